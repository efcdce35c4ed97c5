// Any bytes as a sentencepiece model.
#include "tests/fuzz/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  statescope::fuzz::try_tokenizer({{"tokenizer.model", "\n" + bytes}}, std::string_view(bytes).substr(0, size / 2));
  return 0;
}

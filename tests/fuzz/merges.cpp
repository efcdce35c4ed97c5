// Any bytes as vocab.json, and as merges.txt beside one.
#include "tests/fuzz/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  statescope::fuzz::try_tokenizer({{"vocab.json", bytes}, {"merges.txt", bytes}}, std::string_view(bytes).substr(0, size / 2));
  statescope::fuzz::try_tokenizer({{"vocab.json", R"({"a": 0, "b": 1, "ab": 2})"}, {"merges.txt", bytes}}, "abab");
  return 0;
}

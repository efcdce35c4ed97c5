// Any bytes as a tokenizer.json; the first half of them is also the text that it encodes.
#include "engine/tokenizer/tokenizer.h"

#include <cstdlib>

#include "engine/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  statescope::Checkpoint checkpoint;
  checkpoint.tokenizer["tokenizer.json"] = bytes;
  const auto tokenizer = statescope::make_tokenizer(checkpoint, 300);
  try {
    const statescope::Encoding encoding = tokenizer->encode(bytes.substr(0, size / 2));
    tokenizer->decode(encoding.ids);
    for (std::size_t i = 0; i < encoding.ids.size(); ++i)
      if (encoding.ids[i] < 0 || encoding.ids[i] >= 300 || encoding.begin[i] >= encoding.end[i] || encoding.end[i] > size) std::abort();
  } catch (const statescope::Error&) {
  }
  return 0;
}

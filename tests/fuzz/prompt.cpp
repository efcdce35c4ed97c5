// Any bytes as a prompt file: refused with one line, or spans that lie within the text.
#include "datasets/prompt.h"

#include <cstdlib>
#include <stdexcept>

#include "tests/fuzz/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) try {
  const statescope::fuzz::InputFile file(data, size, ".json");
  const statescope::Prompt prompt = statescope::read_prompt(file.path());
  for (const statescope::PromptSpan& span : prompt.spans)
    if (span.begin >= span.end || span.end > prompt.text.size()) std::abort();
  return 0;
} catch (const std::runtime_error&) {
  return 0;
}

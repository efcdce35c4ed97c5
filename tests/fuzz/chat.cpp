// Any bytes as a template, as a line of `statescope chat` and as a folder's tokenizer_config.json: a text, or one line that says why not.
#include <cstdlib>
#include <filesystem>
#include <string>

#include "engine/chat/chat_template.h"
#include "engine/chat/request.h"
#include "engine/chat/values/json.h"
#include "tests/fuzz/input_file.h"

namespace {

using namespace statescope;

template <class Try>
void attempt(Try what) try {
  what();
} catch (const Error& error) {
  if (std::string(error.what()).empty()) return;  // raise_exception('')
}

const std::tm kNow = chat::parse_time("2026-03-04T05:06:07");

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  static const chat::Dict variables =
      chat::parse_json(
          R"({"messages": [{"role": "user", "content": "a b"}, {"role": "assistant", "content": ["x", 1, 2.5, null]}], "tools": null, "add_generation_prompt": true, "n": 3})",
          "variables")
          .dict();
  attempt([&] { chat::ChatTemplate(bytes).render(variables, kNow); });
  const fuzz::InputFile file(data, size, ".json");
  attempt([&] {
    const chat::TemplateFolder folder(file.path());
    chat::answer(bytes, folder, {"", kNow, {}});
  });
  return 0;
}

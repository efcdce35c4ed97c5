#include "app/eval/text_task.h"

#include "datasets/prose.h"
#include "datasets/text_needles.h"

namespace statescope {

bool reads_real_text(const Tokenizer& tokenizer) {
  const std::string& kind = tokenizer.info().kind;
  return !kind.empty() && kind != "words" && kind != "bytes";
}

std::unique_ptr<const Task> make_text_task(const TaskOptions& options, std::shared_ptr<const Tokenizer> tokenizer,
                                           const std::filesystem::path& assets) {
  const std::filesystem::path haystack = options.haystack == "prose" ? assets / "texts" : std::filesystem::path(options.haystack);
  const std::string text = options.haystack == "filler" ? "" : prose(haystack, options.split);
  TextReader reader{.count = [tokenizer](std::string_view part) { return std::ssize(tokenizer->encode(part).ids); }, .in_chat = {}};
  return make_text_needles(options, read_text_templates(assets / "tasks/text-needles.json"), text, std::move(reader));
}

}  // namespace statescope

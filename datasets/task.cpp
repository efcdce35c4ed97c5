#include "datasets/task.h"

#include "datasets/copying.h"
#include "datasets/needles.h"
#include "datasets/prose.h"
#include "datasets/recall.h"

namespace statescope {
namespace {

constexpr std::int64_t max_length = 1 << 24;

}  // namespace

std::unique_ptr<const Task> make_task(const TaskOptions& options, const std::filesystem::path& assets) {
  if (options.length < 1 || options.length > max_length)
    throw OptionsError(options.name + ": a length of " + std::to_string(options.length) + "; give 1 to " + std::to_string(max_length));
  if (options.name == "mqar") return make_recall(options);
  if (options.name == "copy") return make_copying(options);
  if (options.name != "niah") throw OptionsError("there is no task " + options.name + "; there are niah, mqar and copy");
  const Templates templates = read_templates(assets / "tasks/needles.json");
  if (options.haystack == "filler") return make_filler_needles(options, templates);
  const std::filesystem::path text = options.haystack == "prose" ? assets / "texts" : std::filesystem::path(options.haystack);
  return make_prose_needles(options, templates, prose(text, options.split));
}

}  // namespace statescope

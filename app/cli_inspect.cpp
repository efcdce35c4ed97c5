#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "app/assets.h"
#include "app/cli_commands.h"
#include "app/eval/own_task.h"
#include "app/inspect/report.h"
#include "datasets/prompt.h"
#include "engine/error.h"
#include "engine/run/not_finite.h"
#include "engine/tokenizer/tokenizer.h"

namespace statescope {
namespace {

struct Sequence {
  std::string name;
  std::vector<std::int32_t> ids;
};

/// Evaluation examples of the checkpoint's own task, `samples` of each length: a quarter of its training length, that length, twice as
/// long.
std::vector<Sequence> own_sequences(const std::string& path, const std::optional<Training>& training, std::int64_t trained,
                                    const Tokenizer& tokenizer, std::vector<std::int64_t> lengths, std::int64_t samples) {
  if (!training || (trained == 0 && lengths.empty()))
    throw Error(path + ": it does not say what it was trained on; give --prompt, --text or --ids");
  if (lengths.empty()) lengths = {trained / 4, trained, 2 * trained};
  std::vector<Sequence> sequences;
  for (const std::int64_t length : lengths) {
    const std::unique_ptr<const Task> examples = make_task(own_task(*training, length), assets_folder());
    const std::string name = fmt::format("{}, {} {}", training->task, length, examples->unit());
    for (std::int64_t i = 0; i < samples; ++i) sequences.push_back({name, tokenizer.encode(examples->example(i).text).ids});
  }
  return sequences;
}

/// A file of several examples stands for all of them, under its name.
std::vector<Sequence> prompt_files(const std::vector<std::string>& paths, const Tokenizer& tokenizer) {
  std::vector<Sequence> sequences;
  for (const std::string& path : paths) {
    const std::string name = path == "-" ? "standard input" : std::filesystem::path(path).filename().string();
    for (const Prompt& prompt : read_prompts(path))
      sequences.push_back({name, prompt.ids.empty() ? tokenizer.encode(prompt.text).ids : prompt.ids});
  }
  return sequences;
}

std::vector<Sequence> sequences_of(const InspectArguments& arguments, const std::string& path, const std::optional<Training>& training,
                                   std::int64_t trained, const Tokenizer& tokenizer) {
  if (!arguments.prompts.empty()) return prompt_files(arguments.prompts, tokenizer);
  if (!arguments.prompt.given()) return own_sequences(path, training, trained, tokenizer, arguments.lengths, arguments.samples);
  const PromptInput prompt = load_prompt(arguments.prompt, "", path);
  return {{"prompt", prompt.ids.empty() ? tokenizer.encode(prompt.text).ids : prompt.ids}};
}

/// "gla-step900" before "gla-step1000": a file's name without its number, then the number.
std::pair<std::string, std::int64_t> numbered(const std::filesystem::path& path) {
  constexpr std::size_t most_digits = 18;
  const std::string stem = path.stem().string();
  const std::size_t digits = stem.find_last_not_of("0123456789") + 1;
  if (digits == stem.size() || stem.size() - digits > most_digits) return {stem, 0};
  return {stem.substr(0, digits), std::stoll(stem.substr(digits))};
}

/// A folder that is no model itself stands for the checkpoints in it. Throws Error if there are none.
std::vector<std::string> checkpoints_of(const std::vector<std::string>& given) {
  namespace fs = std::filesystem;
  std::vector<std::string> paths;
  for (const std::string& path : given) {
    if (!fs::is_directory(path) || fs::exists(fs::path(path) / "config.json")) {
      paths.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.path().extension() == ".h5") inside.push_back(entry.path().string());
    }
    if (inside.empty()) throw Error(path + ": there is no checkpoint in this folder");
    std::sort(inside.begin(), inside.end(), [](const std::string& a, const std::string& b) { return numbered(a) < numbered(b); });
    paths.insert(paths.end(), inside.begin(), inside.end());
  }
  return paths;
}

/// Whether every number of the report that a model cannot help computing is there and finite.
bool is_finite(const SequenceReport& report) {
  const auto finite = [](double value) { return std::isfinite(value); };
  return !report.nll_by_eighth.empty() && std::ranges::all_of(report.nll_by_eighth, finite) &&
         std::ranges::all_of(report.layers, finite, &LayerReport::residual_norm);
}

Inspected inspect(const InspectArguments& arguments, const std::string& path, double done, double share, ProgressBar& bar) {
  const auto checkpoint = open_checkpoint(path);
  const std::shared_ptr<Model> model = load_model(checkpoint, arguments.device);
  const std::optional<Training> training = training_of(*checkpoint);
  Inspected inspected{.checkpoint = path,
                      .trained = trained_length(*checkpoint),
                      .steps = training ? training->steps : 0,
                      .names = {},
                      .sequences = {},
                      .notes = model->notes()};
  const std::vector<Sequence> sequences =
      sequences_of(arguments, path, training, inspected.trained, *make_tokenizer(*checkpoint, model->vocab()));
  const bool weights_are_finite = !find_not_finite(*model);
  for (const Sequence& sequence : sequences) {
    if (!weights_are_finite) refuse_not_finite(not_finite(model, sequence.ids), *model, "verdict");
    inspected.names.push_back(sequence.name);
    inspected.sequences.push_back(inspect_sequence(*model, sequence.ids));
    if (!is_finite(inspected.sequences.back())) refuse_not_finite(not_finite(model, sequence.ids), *model, "verdict");
    bar.show(done + share * static_cast<double>(inspected.sequences.size()) / static_cast<double>(sequences.size()), path);
  }
  return inspected;
}

}  // namespace

int inspect_command(const InspectArguments& arguments) {
  ReportFile json_file(arguments.json, arguments.force), page(arguments.html, arguments.force);
  const std::vector<std::string> paths = checkpoints_of(arguments.checkpoints);
  std::vector<Inspected> all;
  std::vector<std::string> broken;  // checkpoints that compute no numbers: why there is no verdict
  {
    ProgressBar bar("inspecting");
    const double share = 1 / static_cast<double>(paths.size());
    for (std::size_t i = 0; i < paths.size(); ++i) {
      try {
        all.push_back(inspect(arguments, paths[i], share * static_cast<double>(i), share, bar));
      } catch (const NotFiniteError& why) {
        broken.emplace_back(why.what());
      }
    }
  }
  if (all.empty()) throw NotFiniteError(fmt::format("{}", fmt::join(broken, "; ")));
  const std::string comparison = all.size() == 2 ? comparison_text(all[0], all[1]) : "";
  std::string text = comparison;
  for (std::size_t i = 0; comparison.empty() && i < all.size(); ++i) text += inspection_text(all[i]);
  if (all.size() > 2) text += overview_text(all);
  print_report(text + fmt::format("how exact: {}\n", accuracy_text()), {&json_file, &page});
  json_file.write(inspection_json(all));
  page.write(inspection_html(all));
  for (const std::string& why : broken) print_failure(why);
  return broken.empty() ? 0 : 1;
}

}  // namespace statescope

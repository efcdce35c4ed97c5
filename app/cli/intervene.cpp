#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/branch_report.h"
#include "app/cli/commands.h"
#include "app/common/console.h"
#include "app/common/recording.h"
#include "app/common/running.h"
#include "engine/checkpoint/printable.h"
#include "engine/error.h"
#include "engine/run/not_finite.h"
#include "engine/run/reading.h"
#include "engine/run/sampling.h"

namespace statescope {
namespace {

using nlohmann::json;

constexpr std::int64_t kDefaultLength = 32;

std::vector<std::int32_t> ids_of(const PromptInput& prompt, const Tokenizer& tokenizer) { return encode(prompt, tokenizer).ids; }

/// Reads a prompt and generates, greedily.
std::shared_ptr<Run> read_run(const std::shared_ptr<Model>& model, const std::vector<std::int32_t>& ids, std::int64_t generate,
                              const RunOptions& options) {
  auto run = std::make_shared<Run>(model, options);
  const std::int64_t length = std::ssize(ids);
  ProgressBar bar("reading");
  run->read(ids, length, [&](std::int64_t tokens) {
    bar.show(static_cast<double>(tokens) / static_cast<double>(length));
    return true;
  });
  for (std::int64_t i = 0; i < generate; ++i) {
    const std::int32_t id = most_probable_id(run->logits(run->tokens() - 1));
    run->read({&id, 1}, length);
  }
  return run;
}

}  // namespace

int intervene_command(const InterveneArguments& arguments) {
  ReportFile json_file(arguments.json, arguments.force);
  std::vector<Intervention> interventions;
  for (const std::string& text : arguments.interventions) interventions.push_back(parse_intervention(text));
  const auto checkpoint = open_checkpoint(arguments.checkpoint);
  const auto model = load_model(checkpoint, arguments.device);
  const auto tokenizer = make_tokenizer(*checkpoint, model->vocab());
  const PromptInput prompt = load_prompt(arguments.prompt, "", arguments.checkpoint);
  const std::vector<std::int32_t> ids = ids_of(prompt, *tokenizer);
  const std::int64_t wanted = prompt.expected.empty() ? kDefaultLength : std::ssize(tokenizer->encode(prompt.expected, kContinuation).ids);
  const std::int64_t generate = arguments.generate.value_or(wanted);
  for (const Intervention& intervention : interventions) changed_layers(intervention, *model, std::ssize(ids) + generate);

  Branches tree(read_run(model, ids, generate, recording_budgets(arguments.memory)));
  for (const std::string& file : arguments.others)
    tree.add(read_run(model, ids_of(load_prompt({.file = file}), *tokenizer), 0, tree[0].run->beside()));
  refuse_not_finite(not_finite(*tree[0].run), *model, "comparison");
  const std::int64_t branch = tree.intervene(interventions);
  refuse_not_finite(not_finite(*tree[branch].run), *model, "comparison, once the interventions have been made");
  for (const auto& run : {tree[0].run, tree[branch].run}) {
    if (const std::string remark = run->remark(); !remark.empty()) print_note(remark);
  }

  const BranchReport report = report_branches(tree, 0, branch, *tokenizer, prompt.expected);
  Run &before = *tree[0].run, &after = *tree[branch].run;
  json out = to_json(report);
  out.update({{"format", "statescope-intervention"},
              {"version", 1},
              {"checkpoint", model->checkpoint().path.string()},
              {"family", model->plan().family},
              {"device", model->backend().description()},
              {"notes", model->notes()},
              {"recording", recording_json(before.recording())}});
  json_file.write(out.dump(2, ' ', true, json::error_handler_t::replace) + "\n");
  if (json_file.is_standard_output()) return 0;
  fmt::print(stderr, "{}\n", recording_text(before.recording()));
  const std::string again = after.first() < after.tokens() ? fmt::format("read again from token {}", after.first()) : "nothing read again";
  fmt::print("{}: {} tokens, {}\n", printable(arguments.checkpoint), before.tokens(), again);
  print(report, tree, *tokenizer);
  return 0;
}

}  // namespace statescope

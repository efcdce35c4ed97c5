// `statescope run` with an engine on another machine, by what a session tells.
#include <fmt/format.h>

#include <QCoreApplication>
#include <chrono>

#include "app/cli/engine.h"
#include "app/cli/run_outcome.h"
#include "app/common/interruption.h"
#include "app/figure/fonts_alone.h"
#include "engine/run/run.h"

namespace statescope {
namespace {

void check_fits_engine(const RunArguments& arguments) {
  const auto refuse = [](bool given, const char* option) {
    if (given) throw OptionsError(fmt::format("{} does not go with --engine: start the command on the engine's machine", option));
  };
  refuse(!arguments.dump.empty(), "--dump");
  refuse(!arguments.states.empty(), "--states");
  refuse(!arguments.session.empty(), "--session");
  refuse(arguments.sampling.temperature > 0, "--temperature");
  refuse(arguments.chunk_size != RunOptions().chunk_size, "--chunk");
}

/// "sla-gla" has the heads' contest in its name, which is not the model type's.
std::string family_of(const ModelInfo& model) { return model.family.starts_with("sla-") ? model.family.substr(4) : model.family; }

/// The tokens behind the prompt, with the probability each had.
std::vector<Prediction> generated_in(ReadRun& run) {
  constexpr std::int64_t at_once = 512;
  const std::vector<TokenInfo>& tokens = run.info().tokens;
  std::vector<Prediction> generated;
  for (std::int64_t from = run.info().prompt_length; from < std::ssize(tokens); from += at_once) {
    const std::int64_t to = std::min(std::ssize(tokens), from + at_once);
    const Predictions before = run.answer(PredictionsQuestion{.from = from - 1, .to = to - 1});
    for (std::int64_t t = from; t < to; ++t) {
      const TokenInfo& token = tokens[static_cast<std::size_t>(t)];
      generated.push_back({token.id, token.text, before.next_probability[static_cast<std::size_t>(t - from)]});
    }
  }
  return generated;
}

}  // namespace

int run_there(const RunArguments& arguments, ReportFile& json_file) {
  check_fits_engine(arguments);
  const Offscreen<QCoreApplication> application;
  const Interruption interruption;
  const auto opening = std::chrono::steady_clock::now();
  const std::unique_ptr<EngineRuns> engine = reach_engine(arguments.engine, arguments.device, 0);
  PromptInput prompt = engine->prompt(arguments.prompt, arguments.checkpoint);
  if (arguments.generate || prompt.expected.empty()) prompt.generate = arguments.generate.value_or(kUsualGeneration);
  Outcome outcome;
  outcome.load_seconds = seconds_since(opening);
  const auto reading = std::chrono::steady_clock::now();
  ProgressBar bar("reading");
  const std::unique_ptr<ReadRun> run = engine->read(arguments.checkpoint, prompt, {}, [&bar](double fraction) {
    bar.show(fraction);
    return !Interruption::asked();
  });
  outcome.read_seconds = seconds_since(reading);
  const RunInfo& info = run->info();
  outcome.checkpoint = arguments.checkpoint;
  outcome.family = family_of(info.model);
  outcome.device = info.model.device;
  outcome.notes = info.model.notes;
  outcome.prompt_length = info.prompt_length;
  outcome.expected = prompt.expected;
  outcome.not_finite = run->not_finite();
  outcome.generated = generated_in(*run);
  if (outcome.generated.empty()) outcome.next = run->snapshot(0, 0, info.prompt_length - 1)->predictions;
  std::vector<std::int32_t> answer;
  for (const Prediction& token : outcome.generated) answer.push_back(token.id);
  outcome.text = run->decode(answer);
  print_notes(outcome.notes);
  tell(outcome, arguments, json_file);
  return 0;
}

}  // namespace statescope

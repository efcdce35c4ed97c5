#include "app/figure/runs.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/assets.h"
#include "app/common/own_task.h"
#include "app/common/prompts.h"
#include "app/figure/run_here.h"
#include "engine/error.h"
#include "engine/run/not_finite.h"

namespace statescope {
namespace {

std::shared_ptr<Reading> read(const std::shared_ptr<Model>& model, const PromptInput& prompt, const Progress& progress,
                              const RunOptions& budgets) {
  auto reading = std::make_shared<Reading>(model, make_tokenizer(model->checkpoint(), model->vocab()), prompt, progress, budgets);
  for (std::int64_t i = 0; i < reading->to_generate(); ++i) {
    reading->generate_one();
    if (!progress(1)) throw Cancelled();
  }
  return reading;
}

/// Equal where two panels read the same.
std::string words_of(const PromptInput& prompt, const std::vector<std::string>& interventions) {
  std::string words = fmt::format("{}\x1f{}\x1f{}\x1f{}", prompt.text, prompt.expected, prompt.generate.value_or(-1), prompt.in_chat);
  for (const std::int32_t id : prompt.ids) words += fmt::format(" {}", id);
  for (const TextSpan& span : prompt.spans) words += fmt::format("\x1f{} {} {}", static_cast<int>(span.kind), span.begin, span.end);
  for (const std::string& intervention : interventions) words += "\x1f" + intervention;
  return words;
}

}  // namespace

Findings FigureRun::find_all(const std::vector<Question>& questions) {
  Findings findings;
  std::vector<Question> others;
  for (const Question& question : questions) {
    if (const Finding* known = last_.find(question)) {
      findings.set(question, *known);
    } else {
      others.push_back(question);
    }
  }
  const Findings found = run_->find_all(others);
  for (const Question& question : others) findings.set(question, *found.find(question));
  last_ = findings;
  return findings;
}

struct FigureRuns::Known {
  std::string checkpoint, words;
  std::unique_ptr<FigureRun> run;
};

FigureRuns::FigureRuns(std::filesystem::path folder, DeviceChoice device, FigureProgress progress, RunOptions budgets, RunReader* reader)
    : folder_(std::move(folder)), device_(std::move(device)), progress_(std::move(progress)), budgets_(budgets), reader_(reader) {}
FigureRuns::~FigureRuns() = default;

const std::shared_ptr<Model>& FigureRuns::model(const std::string& checkpoint) {
  if (reader_) throw Error(checkpoint + ": this needs the model itself, which is with the engine; make it on the engine's machine");
  std::shared_ptr<Model>& model = models_[checkpoint];
  if (!model) {
    tell(0, "opening " + checkpoint);
    model = Model::load(open_checkpoint(file(checkpoint, "checkpoints")), open_device(device_));
  }
  return model;
}

std::vector<std::string> FigureRuns::notes() const {
  std::vector<std::string> all;
  for (const auto& [name, model] : models_) all.insert(all.end(), model->notes().begin(), model->notes().end());
  for (const auto& [name, notes] : remarks_) all.insert(all.end(), notes.begin(), notes.end());
  return all;
}

CheckpointFacts FigureRuns::made_from(const std::string& checkpoint) {
  if (reader_) return reader_->facts(checkpoint, true);
  CheckpointFacts facts;
  facts.sha256 = sha256_of(file(checkpoint, "checkpoints"));
  facts.config = model(checkpoint)->checkpoint().config;
  return facts;
}

/// An example of what the checkpoint was trained on.
PromptInput FigureRuns::own_prompt_of(const std::string& checkpoint) {
  if (!reader_) return own_prompt(model(checkpoint)->checkpoint(), checkpoint);
  const CheckpointFacts facts = reader_->facts(checkpoint, false);
  if (!facts.prompt) throw Error(facts.why_no_prompt);
  return *facts.prompt;
}

PromptInput FigureRuns::prompt(const FigurePanel& panel, const std::string& checkpoint) {
  PromptInput prompt = panel.input            ? *panel.input
                       : panel.prompt.empty() ? own_prompt_of(checkpoint)
                                              : load_prompt({.file = file(panel.prompt, "prompts").string()});
  if (panel.generate) prompt.generate = panel.generate;
  return prompt;
}

RunInfo FigureRuns::planned(const FigurePanel& panel, const std::string& checkpoint) {
  if (reader_) return run(panel, checkpoint).info();
  const PromptInput input = prompt(panel, checkpoint);
  const Model& of = *model(checkpoint);
  const auto tokenizer = make_tokenizer(of.checkpoint(), of.vocab());
  RunInfo info;
  info.model = of.info();
  info.prompt_length = std::ssize(encode(input, *tokenizer).ids);
  const std::int64_t expected = input.expected.empty() ? 0 : std::ssize(tokenizer->encode(input.expected, kContinuation).ids);
  const std::int64_t generated = input.generate.value_or(expected);
  info.tokens.resize(static_cast<std::size_t>(info.prompt_length + generated));
  return info;
}

FigureRun& FigureRuns::run(const FigurePanel& panel, const std::string& checkpoint) {
  PromptInput input = prompt(panel, checkpoint);
  const std::string words = words_of(input, panel.interventions);
  const auto known = std::ranges::find_if(runs_, [&](const Known& one) { return one.checkpoint == checkpoint && one.words == words; });
  if (known != runs_.end()) return *known->run;
  const auto progress = [this, checkpoint](double fraction) { return goes_on(fraction, checkpoint); };
  std::unique_ptr<ReadRun> read_run;
  if (reader_) {
    read_run = reader_->read(checkpoint, input, panel.interventions, progress);
    remarks_[checkpoint] = read_run->info().model.notes;
    refuse_not_finite(read_run->not_finite(), checkpoint, "figure");
  } else {
    read_run = std::make_unique<RunHere>(read(model(checkpoint), input, progress, budgets_), input, panel.interventions, progress, device_);
    refuse_not_finite(read_run->not_finite(), *model(checkpoint), "figure");
  }
  runs_.push_back({checkpoint, words, std::make_unique<FigureRun>(std::move(read_run), std::move(input))});
  return *runs_.back().run;
}

void FigureRuns::begin(std::size_t index, std::size_t count) {
  share_ = 1 / static_cast<double>(count);
  done_ = share_ * static_cast<double>(index);
}

bool FigureRuns::goes_on(double fraction, const std::string& what) const {
  return !progress_ || progress_(done_ + share_ * std::clamp(fraction, 0.0, 1.0), what);
}

void FigureRuns::tell(double fraction, const std::string& what) const {
  if (!goes_on(fraction, what)) throw Cancelled();
}

}  // namespace statescope

#include "app/figure/runs.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/assets.h"
#include "app/common/own_task.h"
#include "app/common/prompts.h"
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

FigureRun::FigureRun(std::shared_ptr<Reading> reading, PromptInput prompt, std::vector<std::string> interventions,
                     const std::function<bool(double)>& progress)
    : prompt_(prompt), tree_(std::move(reading), std::move(prompt)) {
  if (!interventions.empty()) {
    std::vector<Intervention> parsed;
    for (const std::string& text : interventions) parsed.push_back(parse_intervention(text));
    const auto tokens = static_cast<double>(info().tokens.size());
    tree_.intervene(std::move(parsed), [&](std::int64_t read) { return progress(static_cast<double>(read) / tokens); });
  }
  evidence_ = std::make_unique<Evidence>(tree_.current(), alone_);
  evidence_->set_progress(progress);
}

Findings FigureRun::known(const std::vector<Question>& questions) const {
  Findings known;
  for (const Question& question : questions)
    if (const Finding* finding = last_.find(question)) known.set(question, *finding);
  return known;
}

struct FigureRuns::Known {
  std::string checkpoint, words;
  std::unique_ptr<FigureRun> run;
};

FigureRuns::FigureRuns(std::filesystem::path folder, DeviceChoice device, FigureProgress progress, RunOptions budgets)
    : folder_(std::move(folder)), device_(std::move(device)), progress_(std::move(progress)), budgets_(budgets) {}
FigureRuns::~FigureRuns() = default;

const std::shared_ptr<Model>& FigureRuns::model(const std::string& checkpoint) {
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
  return all;
}

PromptInput FigureRuns::prompt(const FigurePanel& panel, const std::string& checkpoint) {
  PromptInput prompt = panel.input            ? *panel.input
                       : panel.prompt.empty() ? own_prompt(model(checkpoint)->checkpoint(), checkpoint)
                                              : load_prompt({.file = file(panel.prompt, "prompts").string()});
  if (panel.generate) prompt.generate = panel.generate;
  return prompt;
}

RunInfo FigureRuns::planned(const FigurePanel& panel, const std::string& checkpoint) {
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
  std::shared_ptr<Reading> reading = read(model(checkpoint), input, progress, budgets_);
  auto run = std::make_unique<FigureRun>(std::move(reading), std::move(input), panel.interventions, progress);
  refuse_not_finite(not_finite(run->run()), *model(checkpoint), "figure");
  runs_.push_back({checkpoint, words, std::move(run)});
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

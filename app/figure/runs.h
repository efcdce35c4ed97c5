// What panels of a figure are made of: checkpoints, opened once, and runs, read once for each prompt.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "app/common/read_run.h"
#include "app/figure/spec.h"
#include "engine/device.h"
#include "engine/findings/findings.h"
#include "engine/model/model.h"
#include "engine/run/run.h"

namespace statescope {

/// What is done now, and how much of all is: 0 … 1. Returning false ends the work: it throws Cancelled.
using FigureProgress = std::function<bool(double fraction, const std::string& what)>;

/// A prompt read by a model, on the branch that the panel's interventions lead to.
class FigureRun {
 public:
  FigureRun(std::unique_ptr<ReadRun> run, PromptInput prompt) : run_(std::move(run)), prompt_(std::move(prompt)) {}

  const PromptInput& prompt() const { return prompt_; }
  const RunInfo& info() const { return run_->info(); }
  std::shared_ptr<const Snapshot> snapshot(const Cursor& at) { return run_->snapshot(at.layer, at.head, at.token); }
  template <class Q>
  typename Q::Answer answer(const Q& question) {
    return run_->answer(question);
  }
  /// Of each its answer, or why there is none; those that were asked last too are not asked again: most are the same from token to token.
  Findings find_all(const std::vector<Question>& questions);

 private:
  std::unique_ptr<ReadRun> run_;
  PromptInput prompt_;
  Findings last_;
};

class FigureRuns {
 public:
  /// `folder`: that of the spec, where the names of its files are looked for first. `reader`: has the checkpoints and reads them, and
  /// outlives this; null: this program does.
  explicit FigureRuns(std::filesystem::path folder = {}, DeviceChoice device = {}, FigureProgress progress = {}, RunOptions budgets = {},
                      RunReader* reader = nullptr);
  ~FigureRuns();
  FigureRuns(const FigureRuns&) = delete;
  FigureRuns& operator=(const FigureRuns&) = delete;

  /// All throw Error.
  std::filesystem::path file(const std::string& name, const char* kind) const { return figure_file(name, folder_, kind); }
  /// Where this program reads.
  const std::shared_ptr<Model>& model(const std::string& checkpoint);
  /// Of a checkpoint: its config and the digest of its bytes.
  CheckpointFacts made_from(const std::string& checkpoint);
  /// Those of all models so far.
  std::vector<std::string> notes() const;
  /// The panel's prompt on one of its checkpoints, with what is generated and the interventions.
  FigureRun& run(const FigurePanel& panel, const std::string& checkpoint);
  /// What is known of that run before it is read: its model, and how many tokens the prompt and all of it will have.
  RunInfo planned(const FigurePanel& panel, const std::string& checkpoint);
  /// The panel's prompt as it was read, and how many tokens were generated: what makes the figure again without its file.
  PromptInput prompt(const FigurePanel& panel, const std::string& checkpoint);
  const DeviceChoice& device() const { return device_; }
  /// What the models ran on, as --device says it.
  std::string device_name() const { return reader_ ? reader_->device() : device_.name; }

  /// Of the whole: panel `index` of `count` is being made.
  void begin(std::size_t index, std::size_t count);
  /// How far the panel is that is being made. False: the work is to end.
  bool goes_on(double fraction, const std::string& what) const;
  /// The same; throws Cancelled.
  void tell(double fraction, const std::string& what) const;

 private:
  PromptInput own_prompt_of(const std::string& checkpoint);

  std::filesystem::path folder_;
  DeviceChoice device_;
  FigureProgress progress_;
  RunOptions budgets_;           // of each recording
  double done_ = 0, share_ = 1;  // of all, before this panel and of it
  RunReader* const reader_;
  std::map<std::string, std::shared_ptr<Model>> models_;
  std::map<std::string, std::vector<std::string>> remarks_;  // notes of the reader's models
  struct Known;
  std::list<Known> runs_;
};

}  // namespace statescope

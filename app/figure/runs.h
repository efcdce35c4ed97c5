// What panels of a figure are made of: checkpoints, opened once, and runs, read once for each prompt.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "app/figure/spec.h"
#include "engine/analysis/evidence.h"
#include "engine/device.h"
#include "engine/findings/findings.h"
#include "engine/session/reading_tree.h"

namespace statescope {

/// What is done now, and how much of all is: 0 … 1. Returning false ends the work: it throws Cancelled.
using FigureProgress = std::function<bool(double fraction, const std::string& what)>;

/// A prompt read by a model, on the branch that the panel's interventions lead to.
class FigureRun {
 public:
  FigureRun(std::shared_ptr<Reading> reading, PromptInput prompt, std::vector<std::string> interventions,
            const std::function<bool(double)>& progress);

  const PromptInput& prompt() const { return prompt_; }
  const RunInfo& info() const { return *tree_.current()->info(); }
  /// Reading::snapshot
  std::shared_ptr<const Snapshot> snapshot(const Cursor& at) { return tree_.current()->snapshot(at.layer, at.head, at.token); }
  Evidence& evidence() { return *evidence_; }
  /// Of the questions those that were asked last too, with what came of them: most are the same from token to token.
  Findings known(const std::vector<Question>& questions) const;
  void keep(Findings findings) { last_ = std::move(findings); }
  Run& run() { return tree_.current()->run(); }

 private:
  PromptInput prompt_;
  ReadingTree tree_;
  FairMutex alone_;
  std::unique_ptr<Evidence> evidence_;
  Findings last_;
};

class FigureRuns {
 public:
  /// `folder`: that of the spec, where the names of its files are looked for first.
  explicit FigureRuns(std::filesystem::path folder = {}, DeviceChoice device = {}, FigureProgress progress = {}, RunOptions budgets = {});
  ~FigureRuns();
  FigureRuns(const FigureRuns&) = delete;
  FigureRuns& operator=(const FigureRuns&) = delete;

  /// All throw Error.
  std::filesystem::path file(const std::string& name, const char* kind) const { return figure_file(name, folder_, kind); }
  const std::shared_ptr<Model>& model(const std::string& checkpoint);
  /// Those of all models so far.
  std::vector<std::string> notes() const;
  /// The panel's prompt on one of its checkpoints, with what is generated and the interventions.
  FigureRun& run(const FigurePanel& panel, const std::string& checkpoint);
  /// What is known of that run before it is read: its model, and how many tokens the prompt and all of it will have.
  RunInfo planned(const FigurePanel& panel, const std::string& checkpoint);
  /// The panel's prompt as it was read, and how many tokens were generated: what makes the figure again without its file.
  PromptInput prompt(const FigurePanel& panel, const std::string& checkpoint);
  const DeviceChoice& device() const { return device_; }

  /// Of the whole: panel `index` of `count` is being made.
  void begin(std::size_t index, std::size_t count);
  /// How far the panel is that is being made. False: the work is to end.
  bool goes_on(double fraction, const std::string& what) const;
  /// The same; throws Cancelled.
  void tell(double fraction, const std::string& what) const;

 private:
  std::filesystem::path folder_;
  DeviceChoice device_;
  FigureProgress progress_;
  RunOptions budgets_;           // of each recording
  double done_ = 0, share_ = 1;  // of all, before this panel and of it
  std::map<std::string, std::shared_ptr<Model>> models_;
  struct Known;
  std::list<Known> runs_;
};

}  // namespace statescope

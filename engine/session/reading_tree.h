// A prompt's run and its other futures, with their text: what a session shows one of.
#pragma once

#include <memory>
#include <vector>

#include "engine/run/branches.h"
#include "engine/run/reading.h"
#include "engine/session/session.h"

namespace statescope {

/// One Reading for each branch, always the same one. Whoever has one may go on with it while another becomes the current one.
class ReadingTree {
 public:
  /// Of a run that has no branches yet.
  ReadingTree(std::shared_ptr<Reading> reading, PromptInput prompt);
  /// Of runs that have read the prompt.
  ReadingTree(Branches branches, std::shared_ptr<const Tokenizer> tokenizer, PromptInput prompt);

  const Branches& branches() const { return branches_; }
  const PromptInput& prompt() const { return prompt_; }
  const std::shared_ptr<Reading>& current() const { return readings_[static_cast<std::size_t>(branches_.current())]; }
  const std::shared_ptr<Reading>& root() const { return readings_[0]; }
  /// Null where no branch is this run, as long as it is now.
  std::shared_ptr<Reading> of(const std::shared_ptr<const RunInfo>& run) const;

  /// As Branches has them.
  void intervene(std::vector<Intervention> interventions, const Run::Progress& progress);
  void restore(std::span<const BranchRecord> records, const Run::Progress& progress);
  void undo() { branches_.undo(); }
  void redo() { branches_.redo(); }
  /// A run of another prompt, which states may come from.
  void add(std::shared_ptr<Run> run);
  /// Throws Error where there is no such branch.
  void go_to(std::int64_t branch);

  BranchTree told() const;

 private:
  void add_readings();

  PromptInput prompt_;
  Branches branches_;
  std::vector<std::shared_ptr<Reading>> readings_;  // of each branch
};

}  // namespace statescope

#include "engine/session/reading_tree.h"

#include <fmt/format.h>

#include "engine/error.h"

namespace statescope {

ReadingTree::ReadingTree(std::shared_ptr<Reading> reading, PromptInput prompt)
    : prompt_(std::move(prompt)), branches_(reading->run_ptr()), readings_{std::move(reading)} {}

ReadingTree::ReadingTree(Branches branches, std::shared_ptr<const Tokenizer> tokenizer, PromptInput prompt)
    : prompt_(std::move(prompt)), branches_(std::move(branches)) {
  readings_.push_back(std::make_shared<Reading>(branches_[0].run, std::move(tokenizer), prompt_));
  add_readings();
}

/// Of the branches that have none.
void ReadingTree::add_readings() {
  for (std::int64_t i = std::ssize(readings_); i < branches_.count(); ++i) {
    const Branches::Branch& branch = branches_[i];
    BranchInfo info{.number = i, .parent = branch.parent, .from = branch.run->first(), .interventions = {}};
    for (const Intervention& intervention : branch.interventions) info.interventions.push_back(to_text(intervention));
    const std::shared_ptr<Reading> parent = branch.parent < 0 ? nullptr : readings_[static_cast<std::size_t>(branch.parent)];
    PromptInput prompt = prompt_;
    if (!parent) {
      const std::vector<std::int32_t>& ids = branch.run->ids();
      prompt = {};
      prompt.ids.assign(ids.begin(), ids.begin() + branch.run->prompt_length());
    }
    readings_.push_back(std::make_shared<Reading>(branch.run, root()->tokenizer(), prompt, std::move(info), parent));
  }
}

void ReadingTree::add(std::shared_ptr<Run> run) {
  branches_.add(std::move(run));
  add_readings();
}

void ReadingTree::intervene(std::vector<Intervention> interventions, const Run::Progress& progress) {
  branches_.intervene(std::move(interventions), progress);
  add_readings();
}

void ReadingTree::restore(std::span<const BranchRecord> records, const Run::Progress& progress) {
  branches_.restore(records, progress);
  add_readings();
}

void ReadingTree::go_to(std::int64_t branch) {
  if (branch < 0 || branch >= branches_.count()) throw Error(fmt::format("there are branches 0 to {}", branches_.count() - 1));
  if (branch > 0 && branches_[branch].parent < 0)
    throw Error(fmt::format("run {} is of another prompt: its states can be imported, it is no branch of this one", branch));
  branches_.go_to(branch);
}

std::shared_ptr<Reading> ReadingTree::of(const std::shared_ptr<const RunInfo>& run) const {
  const auto found = std::ranges::find(readings_, run, &Reading::info);
  return found == readings_.end() ? nullptr : *found;
}

BranchTree ReadingTree::told() const {
  BranchTree tree{.prompt = prompt_,
                  .checkpoint = root()->model()->checkpoint().path,
                  .session = {},
                  .runs = {},
                  .current = branches_.current(),
                  .redo = branches_.to_redo()};
  for (const std::shared_ptr<Reading>& reading : readings_) tree.runs.push_back(reading->info());
  return tree;
}

}  // namespace statescope

// A run and its other futures: a tree, each branch left by interventions; and what one branch has that another has not.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/run/intervention.h"
#include "engine/run/run.h"

namespace statescope {

/// What two runs predict after each token in [from, to), as far as both have read the same: to the end of the shorter one, or to the first
/// token that each of them generated otherwise. (A token of the prompt that an intervention replaces is what is compared.)
struct RunDifference {
  std::int64_t from = 0;
  std::vector<float> logits;            // [n] max_v |b_v − a_v| of the logits after token from + i
  std::vector<double> kl;               // [n] Σ_v p_v ln(p_v / q_v), p = softmax(a), q = softmax(b); nats
  std::optional<std::int64_t> changed;  // the first token after which another next token is the most probable
  std::optional<std::int64_t> parted;   // the first token from which on they read different texts
};
RunDifference compare(Run& a, Run& b, std::int64_t from, std::int64_t to = std::numeric_limits<std::int64_t>::max());

/// Frobenius norms over all slots and heads of a layer's first memory after a token. Zeros for a layer without one.
struct StateDifference {
  double a = 0, b = 0;
  double difference = 0;  // ‖b − a‖
  /// ‖b − a‖ / ‖a‖; 0 / 0 is 0.
  double relative() const { return difference == 0 ? 0 : difference / a; }
};
StateDifference compare_states(Run& a, Run& b, std::int64_t layer, std::int64_t token);

/// How a branch, or another prompt's run, came to be, to make it again.
struct BranchRecord {
  std::int64_t parent = 0;                  // −1: it left none
  std::vector<Intervention> interventions;  // by which it left its parent
  std::vector<std::int32_t> prompt;         // where it left none
  std::vector<std::int32_t> generated;      // behind the prompt
  std::int64_t to_generate = 0;             // behind those: it was still being read
};

class Branches {
 public:
  struct Branch {
    std::int64_t parent = -1;                 // −1: it left no other
    std::vector<Intervention> interventions;  // its own; those of the branches that it left hold too
    std::shared_ptr<Run> run;
  };

  /// Branch 0, the current one.
  explicit Branches(std::shared_ptr<Run> run);
  /// A run of other tokens, to import states from; returns its number. None leaves it. Throws Error if the model is another.
  std::int64_t add(std::shared_ptr<Run> run);

  std::int64_t count() const { return std::ssize(branches_); }
  std::int64_t current() const { return current_; }
  /// Whether a branch is being read, behind all others of records(); it is none of the tree's yet.
  bool is_leaving() const { return coming_.has_value(); }
  const Branch& operator[](std::int64_t branch) const { return branches_[static_cast<std::size_t>(branch)]; }

  /// Leaves the current branch for a new one where the interventions hold too; returns its number. What lies before the first token that
  /// they concern stays shared, to the bit; the prompt is read on from there, and as many tokens are generated (greedily) as the branch
  /// had. Interventions that change nothing make a branch that shares everything. Throws Error; Cancelled if `progress` returns false.
  /// The tree stays as it is then.
  std::int64_t intervene(std::vector<Intervention> interventions, const Run::Progress& progress = {});

  /// Of all branches but the first, in the order in which they were made, and of the one that is being read.
  std::vector<BranchRecord> records() const;
  /// Makes those of a tree whose first run was as this one's is: each reads what was generated then, not what the model would say now, and
  /// what was still to be generated. Where passes are cut as they were (RunOptions), a branch is what it was, to the bit.
  void restore(std::span<const BranchRecord> records, const Run::Progress& progress = {});
  /// Makes a branch the current one.
  void go_to(std::int64_t branch) { current_ = branch; }

  /// The branch that redo goes to; −1: there is none.
  std::int64_t to_redo() const { return child_[static_cast<std::size_t>(current_)]; }
  /// To the branch that the current one left; false: there is none.
  bool undo();
  /// Back to the branch that was undone last, or made last; false: there is none.
  bool redo();

  /// The first token that two branches may not share.
  std::int64_t parting(std::int64_t a, std::int64_t b) const;
  RunDifference compare(std::int64_t a, std::int64_t b) const;

 private:
  /// A branch that is being read.
  struct Coming {
    Branch branch;
    std::int64_t tokens = 0;  // that it will have
  };
  std::int64_t leave(std::vector<Intervention> interventions, const BranchRecord* before, const Run::Progress& progress);
  void restore(const BranchRecord& record, const Run::Progress& progress);
  std::vector<Intervention> lineage(std::int64_t branch) const;
  MixerState imported(std::int64_t run, std::int64_t layer, std::int64_t token) const;
  void check(const Intervention& intervention) const;
  bool changes_nothing(const Intervention& intervention) const;
  bool imports_own(const Intervention& intervention) const;
  std::int64_t first_changed(std::span<const Intervention> inherited, std::span<const Intervention> own) const;

  std::vector<Branch> branches_;
  std::vector<std::int64_t> child_;  // [branches] that redo goes to; −1: none
  std::int64_t current_ = 0;
  std::optional<Coming> coming_;
};

}  // namespace statescope

// Answers the questions of views (engine/findings/findings.h) on a thread of its own, while the run goes on.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/findings/findings.h"
#include "engine/run/fair_mutex.h"
#include "engine/run/reading.h"

namespace statescope {

/// All calls return at once. What an asker asks replaces what it asked before; work that nobody waits for any more ends at its next step.
/// Answers are kept while the run stays the same, those last asked for up to a budget of memory.
class Analyst {
 public:
  /// Called on the analyst's thread: now and then with the progress, then once with an answer or a refusal.
  using Tell = std::function<void(const Question&, Finding)>;

  /// A token's answers of a stage of six views take up to some 30 MB (a head of 1,300 rows in the similarity view, 512 tokens' attention):
  /// going back over the last dozen of tokens works nothing out again.
  static constexpr std::size_t kBudget = std::size_t{384} << 20;

  /// `run_mutex` outlives it: whoever uses a reading that was given to it holds that. `budget`: bytes of answers that are kept beside the
  /// newest.
  explicit Analyst(FairMutex& run_mutex, std::size_t budget = kBudget);
  ~Analyst();

  /// Questions concern this reading from now on. Those before are dropped.
  void set_reading(std::shared_ptr<Reading> reading);
  /// `asker`: a number of the caller's. Questions of another run than the reading's, or of the run when it was shorter, are dropped.
  /// An asker below 0 looks ahead: its questions are worked out while no other waits, given up when one comes, and kept as long as there
  /// is room for more, so that they are known when they are asked.
  void ask(int asker, std::shared_ptr<const RunInfo> run, std::vector<Question> questions, Tell tell);

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace statescope

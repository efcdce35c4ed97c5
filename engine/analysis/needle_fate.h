// What became of a needle: how much of what it wrote is left, who took the rest, and whether the question still reads it.
#pragma once

#include <string>
#include <vector>

#include "engine/analysis/memory_reading.h"

namespace statescope {

/// Tokens [begin, end) of a run.
struct TokenRange {
  std::int64_t begin = 0, end = 0;
};

enum class Loss {
  decay,  // the forget gate
  erase,  // the delta rule
};

struct LossEvent {
  std::int64_t token = 0;
  Loss cause = Loss::decay;
  double lost = 0;  // of what the needle had written there, 0 … 1
};

/// In one slot and head of a memory. Amounts are Frobenius norms of the needle's part C of the state (memory_reading.h).
struct NeedleFate {
  std::int64_t slot = 0, head = 0;
  double written = 0;              // ‖C‖ after the needle's last visit
  double kept = 0;                 // ‖C‖ at the question over `written`
  double decayed = 0, erased = 0;  // taken between them over `written`; kept = 1 − decayed − erased
  std::vector<LossEvent> events;   // the tokens that took most, largest first
  bool visited = false;            // whether the question's token came to this slot: where not, its answer cannot come from here
  double read_share = 0;           // of what it read here, the needle's part (signed); what is missing to 1 was written by others
};

/// For every slot and head that the needle's tokens wrote to, most written first. `question` is the token after which the answer is
/// predicted; `events` at most of each. Throws std::invalid_argument for a memory whose columns decay, or a question that is not behind the
/// needle.
std::vector<NeedleFate> needle_fates(const MemoryTrace& trace, TokenRange needle, std::int64_t question, std::size_t events = 3);

/// Over all of it: the part of what was written that is left, weighted by what was written (squares, as norms of independent parts add),
/// and the largest cause. One line: "kept 0.62: decay took 0.30, the delta rule 0.08; most at token 141".
struct NeedleSummary {
  double kept = 0, decayed = 0, erased = 0;
  double unvisited = 0;  // of what was written, in slots that the question did not come to
  /// "kept 0.62: decay took 0.30, the delta rule 0.08; 0.05 lies where the question does not look"
  std::string text() const;
};
NeedleSummary summary(const std::vector<NeedleFate>& fates);

}  // namespace statescope

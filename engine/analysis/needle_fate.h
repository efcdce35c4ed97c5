// What became of what a needle wrote into a memory, and of what killed it.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/analysis/memory_reading.h"

namespace statescope {

/// Tokens [begin, end) of a run.
struct TokenRange {
  std::int64_t begin = 0, end = 0;
};

/// How a needle is lost. The first two take of what it wrote, the others of what is left.
enum class Loss {
  decay,      // the forget gate
  erase,      // the delta rule, making room for another value
  overwrite,  // later writes along the needle's keys (Interference)
  misroute,   // the question does not read where the needle lies
};
/// "decay", "erasure", "overwriting", "misrouting"
std::string_view name_of(Loss loss);

struct LossEvent {
  std::int64_t token = 0;
  Loss cause = Loss::decay;
  double lost = 0;  // of what the needle had written there, 0 … 1
};

/// In one slot and head of a memory, as parts of what the needle had written there (‖C‖_F after its last visit, memory_reading.h):
/// 1 = decayed + erased + overwritten + misrouted + readable().
struct NeedleFate {
  static constexpr Accuracy accuracy = kRecomputed;
  std::int64_t slot = 0, head = 0;
  double written = 0;              // ‖C‖ after the needle's last visit
  double kept = 0;                 // ‖C‖ at the question over `written`
  double decayed = 0, erased = 0;  // taken between them over `written`; kept = 1 − decayed − erased
  double overwritten = 0;          // kept · Interference::masked(); 0 where the question does not read
  double misrouted = 0;            // kept where the question does not read, else 0
  std::vector<LossEvent> events;   // the tokens that took it, largest first. A cause's events add up to its part: an overwritten part is
                                   // shared out in proportion to what each token alone adds along the needle's keys
  bool read = false;               // whether the question reads this slot: where not, its answer cannot come from here
  double read_share = 0;           // of what it reads here, the needle's part (signed); what is missing to 1 was written by others

  /// What is still clear: where the question reads, and not under later writes. A model may answer from one head with little of it overall.
  double readable() const { return kept - overwritten - misrouted; }
};

/// What the question reads of a place where the needle lies.
struct PlaceRead {
  double share = 0;  // NeedleFate::read_share
  Interference over;
};
/// `left`: of the needle, up to the question and beyond. `read`: none where the question does not read there. `events`: at most of each
/// cause.
NeedleFate fate_of(const Survival& left, std::optional<PlaceRead> read, TokenRange needle, std::int64_t question, std::size_t events);

/// A slot and head that the needle's tokens wrote to.
struct NeedlePlace {
  NeedleFate fate;
  Survival left;
};
/// All of them, most written first. `question` is the token after which the answer is predicted; `events` at most of each cause. `tell`
/// hears after each head how far the work is. `as_read`: the same memory with its values as the question weighs them; null: as they are.
/// Throws std::invalid_argument for a memory whose columns decay, or a question that is not behind the needle.
std::vector<NeedlePlace> needle_places(const MemoryTrace& trace, TokenRange needle, std::int64_t question, std::size_t events = 3,
                                       const std::function<void(double fraction)>& tell = {}, const MemoryTrace* as_read = nullptr);
std::vector<NeedleFate> fates_of(std::span<const NeedlePlace> places);

/// Over several heads: means weighted by what was written (squares, as norms of independent parts add). They add up to 1 as of one head.
struct NeedleSummary {
  static constexpr Accuracy accuracy = kRecomputed;
  double readable = 0, decayed = 0, erased = 0, overwritten = 0, misrouted = 0;

  double lost(Loss loss) const;
  /// "0.62 is still clear: decay took 0.25, overwriting 0.13": the causes by what they took, without those below 0.005
  std::string text() const;
};
NeedleSummary summary(const std::vector<NeedleFate>& fates);

/// A cause of death in one slot and head, as a part of the whole needle.
struct NeedleLoss {
  std::int64_t layer = 0, slot = 0, head = 0;
  Loss cause = Loss::decay;
  double lost = 0;         // of all that the needle wrote
  std::int64_t token = 0;  // that took most of it
};

/// Where the needle is the largest part of what the question reads of a memory of a head.
struct NeedleRead {
  std::int64_t layer = 0, slot = 0, head = 0;
  double share = 0;  // NeedleFate::read_share
};

/// Of all layers. Norms of states compare within a layer, not between layers: every layer that the needle wrote to counts the same.
///
/// It describes what the memories hold and does not diagnose the answer. Over 2,800 answers of the 14 needle models that ship and are
/// neither always right nor always wrong (512 words, 16 or 32 needles, 100 examples each, 1,358 answered right) the areas under the ROC
/// curve within a model, right against wrong answers, are in the mean: what is still clear 0.59 (its largest over layers 0.60, over heads
/// 0.59; 0.5 is chance), the largest read share 0.59; for the first token of the answer 0.56 and 0.59. `tests/clinic/needle_verdicts.py`
/// measures them.
struct NeedleVerdict {
  static constexpr Accuracy accuracy = kRecomputed;
  static constexpr std::string_view kCaution =
      "a description, not a diagnosis: in small models what is still clear hardly tells right answers from wrong ones (AUC 0.59), nor "
      "does the largest read share (0.59)";
  NeedleSummary summary;
  std::vector<NeedleLoss> losses;  // largest first
  std::optional<NeedleRead> read;  // none where the question reads nothing that the needle wrote to
};
/// fates[layer] as needle_places gives them with at least one event of each cause; empty where a layer has no memory.
NeedleVerdict verdict(std::span<const std::vector<NeedleFate>> fates);

}  // namespace statescope

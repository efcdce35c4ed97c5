// How fast a memory forgets: cumulative decay, half-life, receptive field (spec §12.3, §12.4). Decay alone: what a delta rule erases is
// not in it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/accuracy.h"

namespace statescope {

/// log α of some channels of one slot. At a token that does not write to the slot α is 1: a sparse partition rests. A memory without
/// decay (linear attention, DeltaNet) has no `written` tokens.
struct SlotDecay {
  std::span<const float> log_decay;       // [n, stride] nat, ≤ 0; −∞ forgets everything. Row i is that of token written[i]
  std::span<const std::int32_t> written;  // [n] tokens that write to the slot, ascending: all_tokens(T), or those of a partition
  std::int64_t stride = 0;                // numbers per token; of which
  std::int64_t first = 0, channels = 0;   // [first, first + channels) are looked at (channel log_decay of SSE: shared | sparse)
  std::int64_t tokens = 0;                // T of the run
};
// All functions below throw std::invalid_argument if sizes do not fit, `written` does not ascend or θ is outside (0, 1]. A channel with a
// log decay that is NaN or above 0 has NaN for half-life and width.

/// exp of this, and of all below, is 0 in double precision.
constexpr double kLogZero = -746;

/// 0, 1, …, T − 1: what a slot's `written` is where every token writes to it.
std::vector<std::int32_t> all_tokens(std::int64_t tokens);

/// Δ_{t,s} = exp( Σ_{j=s+1..t} log α_j ) of one channel for any two tokens, from prefix sums in double precision: what is left at t of what
/// was written at s     (spec §12.3)
class CumulativeDecay {
 public:
  /// `channel` counts from slot.first.
  CumulativeDecay(const SlotDecay& slot, std::int64_t channel);
  /// 0 ≤ s ≤ t < T
  double operator()(std::int64_t t, std::int64_t s) const;
  /// log Δ_{t,s}, nat; −∞ where a single token of them has an α that is 0 in double precision (log α ≤ −746).
  double log(std::int64_t t, std::int64_t s) const;
  /// Whether every log α is a number ≤ 0, so that Δ never grows with t.
  bool decays() const { return decays_; }

 private:
  std::vector<double> sum_;        // [T] Σ_{j≤t} log α_j, without those of the cuts
  std::vector<std::int32_t> cut_;  // [T] the last token ≤ t whose α is 0; −1: none
  bool decays_ = true;
};

/// ln 2 / (−mean_t log α_{t,r}) over all T tokens: [channels] tokens, infinite without decay     (spec §12.3)
std::vector<double> half_life(const SlotDecay& slot);

/// w_t = max{ t − s : 0 ≤ s ≤ t, Δ_{t,s} ≥ θ }, averaged over the last tokens (spec §12.4, after SSE Def. 4, Prop. 4 and Fig. 9, [A17]).
/// Distances count tokens of the run, not of the partition.
struct ReceptiveField {
  static constexpr Accuracy accuracy = kRecomputed;
  std::vector<double> width;           // mean of w_t, tokens
  std::vector<std::int64_t> censored;  // for how many of the tokens Δ_{t,0} ≥ θ: there w_t = t, and the true width may be larger
  std::int64_t measured = 0;           // tokens averaged over
  double mean = 0;                     // of `width`, tokens
};
constexpr double kReceptiveThreshold = 0.001;
constexpr std::int64_t kReceptiveTokens = 128;

/// Per channel: width and censored are [channels].
ReceptiveField receptive_field(const SlotDecay& slot, double theta = kReceptiveThreshold, std::int64_t last = kReceptiveTokens);

/// The same with Σ_r Δ_{t,s,r} ≥ θ over the `rows` channels of a head, as SSE Def. 4 stands ([A17]): width and censored are
/// [channels / rows]. Where a head decays as one (a channel per head), pass rows = 1 and θ / K.
ReceptiveField receptive_field_summed(const SlotDecay& slot, std::int64_t rows, double theta = kReceptiveThreshold,
                                      std::int64_t last = kReceptiveTokens);

}  // namespace statescope

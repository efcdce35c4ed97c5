// How tokens are spread over partitions and rows: mass, entropy, margin, frequency and balance (spec §11, §12.1, §12.6).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/accuracy.h"

namespace statescope {

/// T tokens routed among N partitions. SSE has writers and readers: `chosen` is the larger number, W the one that is asked about.
/// In SSE's first formulation (v1) e decides the selection alone and weighs neither write nor read: views mark it "selection only".
struct RoutedTokens {
  std::span<const float> gate;             // [T, N] e_t, softmax over all partitions (channel partition_gate)
  std::span<const std::int32_t> selected;  // [T, chosen] largest first (channel partition_selected); T_t is the first W of a row
  std::int64_t partitions = 0;             // N
  std::int64_t chosen = 0;
  std::int64_t width = 0;  // W, 1 ≤ W ≤ chosen

  std::int64_t tokens() const { return partitions > 0 ? static_cast<std::int64_t>(gate.size()) / partitions : 0; }
};
// All functions below throw std::invalid_argument if sizes do not fit or a selected index is no partition.

/// One token (spec §12.1; e: SSE eq. 9).
struct TokenRouting {
  static constexpr Accuracy accuracy = kRecomputed;
  double selected_mass = 0;  // Σ_{n∈T_t} e_t^n, probability
  double entropy = 0;        // −Σ_n e_t^n log e_t^n / log N, in [0, 1]
  double margin = 0;         // e_(W) − e_(W+1), the W-th largest less the next, probability; NaN for W = N, where nothing is left out
};
std::vector<TokenRouting> token_routing(const RoutedTokens& routed);

/// e_t^n / Σ_{m∈T_t} e_t^m for the W selected, in their order: [T, W], probability     (MoM, spec §3.8, §12.1)
std::vector<float> renormalised_weights(const RoutedTokens& routed);

/// The tokens t with n ∈ T_t, ascending.
std::vector<std::int32_t> tokens_of(const RoutedTokens& routed, std::int64_t partition);

/// √(mean of (x − mean)²) / mean (spec §12.6): 0 where all are equal.
double coefficient_of_variation(std::span<const double> values);

/// Means over all T tokens (spec §11, §12.6); NaN without tokens.
struct Balance {
  static constexpr Accuracy accuracy = kRecomputed;
  std::vector<double> frequency;    // [N] f_n = fraction of the tokens with n ∈ T_t
  std::vector<double> probability;  // [N] p_n = mean of e_t^n
  std::vector<double> load;         // [N] f_n / (W / N): 1 is fair
  double variation = 0;             // coefficient of variation of f_n
  double loss = 0;                  // SSE's partition loss (N / W) Σ_n f_n p_n: uniform 1, collapsed up to N / W; without its coefficient
};
Balance balance(const RoutedTokens& routed);

/// f_n, p_n and the loss after every token, as means that forget: x̄_t = Σ_{j≤t} d^{t−j} x_j / Σ_{j≤t} d^{t−j} with d = 0.99 (spec §12.6).
/// The divisor makes the first token's mean its own value, so that f_n sum to W and p_n to 1 at every token.
struct RunningBalance {
  static constexpr Accuracy accuracy = kRecomputed;
  std::vector<float> frequency;    // [T, N]
  std::vector<float> probability;  // [T, N]
  std::vector<double> loss;        // [T]
};
RunningBalance running_balance(const RoutedTokens& routed, double decay = 0.99);

/// Partitions by their load, which 1 would be ideal (Balance::load): dead at or below one threshold, overloaded above the other.
struct LoadThresholds {
  double dead = 0, overloaded = 0;
};
struct UnevenLoads {
  std::vector<std::int64_t> dead, overloaded;  // partitions, ascending
};
UnevenLoads uneven_loads(std::span<const double> load, LoadThresholds thresholds);

/// MoM's loss M Σ_j Σ_m f_{j,m} P_m (spec §11): f_{j,m} the fraction of tokens whose j-th choice is m, P_m the mean probability of m, both
/// over the tokens of all layers, whose rows follow one another in `routed`. Uniform: W. Without its coefficient.
double mom_loss(const RoutedTokens& routed);

/// Which key rows are chosen (spec §11, §12.6). A token chooses the `topk` largest of k_t that are above 0: row-sparse keys are exactly
/// those, and for softmax keys topk = 1 is the largest row. Ties: the lowest row.
struct RowBalance {
  static constexpr Accuracy accuracy = kRecomputed;
  std::vector<double> frequency;  // [H, K] f^r = fraction of the tokens that choose row r
  std::vector<double> variation;  // [H] coefficient of variation of f^r
  std::vector<double> loss;       // [H] (K / topk) Σ_r f^r mean_t k_t^r, the row loss of §11 without its coefficient
};
/// k [T, H, K], the channel k of softmax or row-sparse keys.
RowBalance row_balance(std::span<const float> k, std::int64_t heads, std::int64_t rows, std::int64_t topk);

}  // namespace statescope

// How alike the rows of a head's states are, and how many directions they fill (spec §12.5). Rows i of all P partitions of a head are
// stacked to Z [P·K, V], row n·K + r; without partitions P = 1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/accuracy.h"
#include "kernels/backend.h"

namespace statescope {

/// Of the row cosines C_ij = ⟨Z_i, Z_j⟩ / (‖Z_i‖ ‖Z_j‖) (SSE Def. 1), which are 0 for rows with a norm below 1e-12. Such zero rows count as
/// 0 in the means and not at all in the minimum. A mean over no pairs is NaN; so is everything where a state has a number that is not
/// finite.
struct RowSimilarity {
  static constexpr Accuracy accuracy = accurate_to(1e-5);
  double mean_abs = 0;    // mean of |C_ij| over i ≠ j
  double within = 0;      // … over the pairs of one partition
  double between = 0;     // … over the pairs of different partitions
  double min_cosine = 0;  // min_{i≠j} C_ij over non-zero rows: state distinguishability (a), smaller = more distinguishable; NaN for < 2
  std::int64_t zero_rows = 0;  // greyed in a picture
};
/// cosine [P·K, P·K] as row_cosine gives it: a row is zero where C_ii is.
RowSimilarity row_similarity(std::span<const float> cosine, std::int64_t partitions, std::int64_t rows);

/// Of the n = min(rows, V) singular values σ. A zero matrix has entropy 0 and ranks 0; a σ that is NaN makes all three NaN.
struct Spectrum {
  static constexpr Accuracy accuracy = accurate_to(1e-4, "the value");
  double entropy = 0;          // Hs = −Σ_i p_i log p_i / log n, p_i = σ_i² / Σσ² (SSE footnote 8), in [0, 1]; 0 for n = 1
  double rank = 0;             // exp(−Σ_i p'_i log p'_i), p'_i = σ_i / Σσ: effective rank after Roy and Vetterli, of σ
  double rank_of_squares = 0;  // exp(Hs log n): effective rank of σ²
};
/// sigma [n] as singular_values gives them.
Spectrum spectrum(std::span<const float> sigma);

/// min_{i,j} ⟨Z_i, Z_j⟩ / ‖Z‖₂² with ⟨Z_i, Z_j⟩ = C_ij ‖Z_i‖ ‖Z_j‖ and ‖Z‖₂ the largest singular value: the paper's statistic (c), not a
/// bound ([A19]). NaN for a zero matrix. cosine [R, R], norms [R] of the rows.
double spectral_statistic(std::span<const float> cosine, std::span<const float> norms, double largest_sigma);

/// cos(q_a S, q_b S) over the pairs a < b of queries that the model did ask: state distinguishability (b). Pairs with a read-out of norm
/// below 1e-12 are left out; both are NaN where no pair is left or a number is not finite.
struct ReadSimilarity {
  static constexpr Accuracy accuracy = kRecomputed;
  double min_cosine = 0, mean_cosine = 0;
};
/// queries [n, K], by the spec the last 128; state S [K, V].
ReadSimilarity read_similarity(std::span<const float> queries, std::span<const float> state, std::int64_t rows, std::int64_t columns);

/// All but the reads for one head.
struct StateSimilarity {
  RowSimilarity rows;
  Spectrum stacked;                  // of Z, the headline ([A18])
  std::vector<Spectrum> partitions;  // [P] of each partition's K × V state alone
  double statistic = 0;              // spectral_statistic
};
/// [H] for the states [P, H, K, V] of one layer at one token, float32 in host memory; cosines and singular values come from the device, the
/// cosines of as many heads at a time as make no more than `most_cosines` numbers, of one at least. A layer's figure is the mean over its
/// heads (spec §12.5).
std::vector<StateSimilarity> state_similarity(Backend& backend, Workspace& workspace, std::span<const float> state, std::int64_t partitions,
                                              std::int64_t heads, std::int64_t rows, std::int64_t columns,
                                              std::int64_t most_cosines = 1 << 26);

}  // namespace statescope

// What a token writes, and how a state grows and changes (spec §12.2, §12.10).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/accuracy.h"

namespace statescope {
// All functions throw std::invalid_argument if sizes do not fit.
//
// Write weights ω [M, K] are the coefficients of v_t added to the K rows of a state, one row of ω per write (a token, partition and head
// that is written). They are: k_r (linear attention, RetNet, GLA; Mamba-2: B_r), k1_r in SSE's shared and e^n k2_r in its sparse
// partitions, w_m of GSA's slots, G^K k_r in SLA; for the delta family k̂_r, with u_t in place of v_t (SLA-GDN: G^K is in u_t).

/// |ω_r| ‖v‖: [M, K], unit of the state. v [M, V]: v_t, for the delta family u_t.
std::vector<float> row_write_magnitude(std::span<const float> omega, std::span<const float> v, std::int64_t rows, std::int64_t columns);

/// How few rows one write goes to. Neither depends on a common factor of the ω. Where all ω are 0 both are 0, for nothing is written; both
/// are NaN where an ω is.
struct WriteSpread {
  static constexpr Accuracy accuracy = kRecomputed;
  double ratio = 0;  // ρ = #{ r : |ω_r| ≥ τ Σ_j |ω_j| } / K, write sparsity ratio     (spec §12.2, [A16]); ω_r = 0 never counts
  double participation = 0;  // (Σ_r |ω_r|)² / (K Σ_r ω_r²): 1 where all are equal, 1 / K for a single row
};
constexpr double kWriteThreshold = 0.001;  // τ
/// [M]
std::vector<WriteSpread> write_spread(std::span<const float> omega, std::int64_t rows, double tau = kWriteThreshold);

/// Σ_n K ρ_n / (P K) over the partitions that one token writes, of one head: the fraction of all its P·K rows that are written     (§12.2)
double occupancy(std::span<const WriteSpread> written, std::int64_t partitions);

/// ‖S‖_F of every K × V state of states [M, K, V] (M: slots × heads): [M]
std::vector<double> frobenius_norms(std::span<const float> states, std::int64_t rows, std::int64_t columns);

/// ‖S_t − S_{t−1}‖_F: [M]; states and before [M, K, V]
std::vector<double> update_norms(std::span<const float> states, std::span<const float> before, std::int64_t rows, std::int64_t columns);

/// ‖Z_i‖ of every row: [M, K]
std::vector<double> row_norms(std::span<const float> states, std::int64_t rows, std::int64_t columns);

/// ‖o_n‖ / Σ_m ‖o_m‖ of what one head reads from each slot: [P], the partitions' contributions to the readout; 0 where nothing is read.
/// reads [P, V], o_n = q1 S⁰ of the shared and e^n q2 Sⁿ of the selected partitions, 0 of the others.
std::vector<double> readout_shares(std::span<const float> reads, std::int64_t columns);

constexpr std::int64_t kNeverWritten = -1;

/// t − (the last of `written` ≤ t), tokens; kNeverWritten before the first. `written` are the tokens that write to a slot, ascending.
std::int64_t age_of_last_write(std::span<const std::int32_t> written, std::int64_t t);

/// The same for every row of one head's slot: [K]. Row i of omega [M, K] is the write of token written[i], and a row is written where
/// it counts in ρ: ω_r ≠ 0 and |ω_r| ≥ τ Σ_j |ω_j|.
std::vector<std::int64_t> row_ages(std::span<const float> omega, std::span<const std::int32_t> written, std::int64_t rows, std::int64_t t,
                                   double tau = kWriteThreshold);

}  // namespace statescope

// Where a number in a memory comes from, and what became of what a token wrote: functions of a MemoryTrace, all in double precision. They
// are exact: sums over tokens give the state and the read-out of the run up to rounding. For memories whose rows decay (not GSA's first),
// and for selective scans, whose cells do.
#pragma once

#include <functional>

#include "engine/accuracy.h"
#include "engine/analysis/memory_trace.h"

namespace statescope {

/// ρ S_t as a sum over the tokens that wrote it: ρ S_t = Σ_j coefficient_j v_j, v_j that of the slot's visit j.
struct Contributions {
  static constexpr Accuracy accuracy = kRecomputed;
  std::vector<std::int32_t> token;  // [n], of the slot's first n visits, those not after t
  std::vector<double> coefficient;  // [n], signed
};

/// The sweep backwards from the last visit not after `token` (spec §12.8), for any row vector ρ [K]: with ρ = q it is the implicit
/// attention, with ρ = e_r the provenance of row r. Outer product: c_j = ρ·k_j, ρ ← α_j ρ; delta rule: c_j = β_j ρ·k_j, ρ ← α_j (ρ − c_j
/// k_j); two keys: c_j = ρ·k_j, ρ ← α_j ρ − (ρ·e_j) p_j. Throws std::invalid_argument for a memory whose columns or cells decay.
Contributions contributions(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, std::int64_t token, std::span<const float> rho);

/// Of row `row` of a slot's state after `token`.
Contributions row_provenance(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, std::int64_t row, std::int64_t token);

/// One slot's part of what `token` read: o = Σ_slots Σ_j coefficient_j v_j, before weights that mix the slots, norm and output gate. Empty
/// where the token did not visit the slot.
Contributions implicit_attention(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, std::int64_t token);

/// Of a memory without the delta rule, cell by cell: S[row, column] = Σ_j c_j v_j[column] over the slot's first n visits; [n].
std::vector<double> cell_provenance(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, std::int64_t row, std::int64_t column,
                                    std::int64_t n);

/// Implicit attention of a selective scan, whose channels each have their own (spec §17.1): o[column] = Σ_j a_j v_j[column] over the slot's
/// visits up to that of `token`; [n]. Empty where the token did not visit the slot.
std::vector<double> channel_attention(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, std::int64_t column,
                                      std::int64_t token);

/// What is left, in one slot and head, of what the tokens [begin, end) wrote: C, with S = C + all else, after each later visit.
struct Survival {
  static constexpr Accuracy accuracy = kRecomputed;
  std::vector<std::int32_t> token;  // [n], those that came to the slot from the first of [begin, end) on, ascending
  std::vector<double> kept;         // [n] ‖C‖_F after all visits of the token
  std::vector<double> decayed;      // [n] ‖C‖_F − ‖α C‖_F: taken by decay
  std::vector<double> erased;  // [n] ‖α C‖_F − ‖(I − β kᵀk) α C‖_F, of two keys ‖α C‖_F − ‖α C − eᵀ (p C)‖_F: taken by the rule; below 0
                               // where it reflects (β‖k‖² > 2) by more than the decay took, of which what it gives back is taken off
  std::vector<double> written;  // [n] what the token added to ‖C‖_F: 0 outside of [begin, end)
};
Survival survival(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, std::int64_t begin, std::int64_t end);

/// What later visits wrote over what the tokens [begin, end) had written, in one slot and head after `token`. A key reads k S = k C + k X:
/// the needle's value, and what X, written by others, adds along k (the retrieval error of keys that are not orthogonal: Schlag, Irie,
/// Schmidhuber 2021, "Linear transformers are secretly fast weight programmers", §4.1). The keys here are those that the needle was written
/// with: with C₀ what it had written right after its last visit and Ĉ = C₀ / ‖C₀‖_F, a part X of the state gives ‖ĈᵀX‖_F; for a needle of
/// one token that is ‖k X‖ / ‖k‖. A channel of a selective scan is read by itself: there ĈᵀX is its diagonal.
struct Interference {
  static constexpr Accuracy accuracy = kRecomputed;
  double needle = 0;                // s = ‖ĈᵀC‖_F, C what is left of the needle
  double later = 0;                 // x = ‖ĈᵀX‖_F, X what is left of all that the visits behind the needle wrote
  std::vector<std::int32_t> token;  // [n], those visits up to `token`
  std::vector<double> added;        // [n] of each alone; of random sign among each other, so x is at most their sum

  /// x² / (s² + x²): the part of what the needle's keys read that is of later writes (squares, as norms of independent parts add); 0
  /// where they read nothing.
  double masked() const;
};
/// All 0 where [begin, end) wrote nothing there.
Interference interference(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, std::int64_t token, std::int64_t begin,
                          std::int64_t end);

/// Whether `token` reads in a slot and head: it came there, with a query that is not 0 (in SSE writers and readers may differ).
bool reads(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, std::int64_t token);

/// The share of what `token` read in a slot that the tokens [begin, end) wrote: ⟨o_C, o⟩ / ⟨o, o⟩, signed; over all tokens the shares sum
/// to 1. 0 where it read nothing.
double read_share(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, std::int64_t token, std::int64_t begin, std::int64_t end);

/// ω [last − first, K] of those visits (spec §12.2): the coefficients with which v is added to the rows, under the delta rule v − π (β is
/// in them).
std::vector<float> write_weights(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, std::int64_t first, std::int64_t last);

/// The delta rule at one visit (spec §12.9), with S̄ = α S of the visit before. Of two keys, p that erases and e along which it does, π = p
/// S of the undecayed S, and β = p·e for ‖p‖ = 1.
struct DeltaStep {
  static constexpr Accuracy accuracy = kRecomputed;
  std::int32_t token = 0;
  double prediction = 0;  // ‖π‖, π = k S̄
  double value = 0;       // ‖v‖
  double error = 0;       // ‖v − π‖
  double cosine = 0;      // of π and v; 0 where one of them is 0
  double erase = 0;       // β ‖k‖ ‖π‖, of two keys ‖e‖ ‖π‖: Frobenius norm of what is taken away
  double write = 0;       // β ‖k‖ ‖v‖, of two keys ‖k‖ ‖v‖: of what is put in
  double update = 0;      // β ‖k‖ ‖v − π‖, of two keys ‖kᵀv − eᵀπ‖: of both together
  double beta = 0;
  double alpha = 1;  // the decay along k, k̂ diag(α) k̂ᵀ: α where all rows decay alike
  double mended = 0;  // β ‖k‖²: the part of the error that the update takes away, for k S becomes π + β ‖k‖² (v − π); of two keys p·e, of
                      // which π loses that part
  double put = 0;  // the same, of two keys p·k: without decay p S becomes (1 − p·e) π + (p·k) v
  double along_key = 0;  // of the transition, k̂ (I − β kᵀk) diag(α) k̂ᵀ = α (1 − β ‖k‖²): its eigenvalue where all rows decay alike; of two
                         // keys p̂ (diag(α) − eᵀp) p̂ᵀ = α − p·e
};
/// Of every visit of a slot. `tell` hears how far it is, 0 … 1, and may throw. Throws std::invalid_argument if the memory follows another
/// rule.
std::vector<DeltaStep> delta_steps(const MemoryTrace& trace, std::int64_t slot, std::int64_t head,
                                   const std::function<void(double)>& tell = {});

}  // namespace statescope

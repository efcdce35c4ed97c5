// The inner loops of the memories over rows of float32 numbers, compiled by Highway for every instruction set and chosen at run time.
// A block of rows is a pointer to its first row and the distance `ld` between rows. One thread.
#pragma once

#include <cstdint>

namespace statescope {

/// One token against the state of one head.
struct StateStep {
  std::int64_t K, V;
  const float* state;         // [K, V] contiguous
  float* next;                // [K, V], may be `state`
  const float *q, *k;         // [K]
  const float* v;             // [V]
  const float* row_decay;     // a [K], or null
  const float* column_decay;  // a [V], or null; one of the two is given
  float scale;
  float* o;  // [V]
};

/// next = diag(a) S + kᵀ v  (columns: S diag(a) + kᵀ v),  o = scale · q next: one pass over the state.
void step_decayed_outer_product(const StateStep& step);

/// S̄ = diag(a) S, u = β (v − k S̄), next = S̄ + kᵀ u, o = scale · q next: two passes over each block of columns. `decayed_k` [K]: k ⊙ a;
/// null: all of a is one number.
void step_gated_delta_rule(const StateStep& step, float beta, const float* decayed_k = nullptr);

/// next = diag(a) S − eᵀ (p S) + kᵀ v,  o = scale · q next, or scale · q S where it `reads_first`: two passes over each block of columns. p
/// and e [K], both null: nothing is taken away.
void step_wkv(const StateStep& step, const float* erase_key, const float* erase_along, bool reads_first);

/// Rows of numbers that only are read: row t begins at data + t · stride.
struct RowsRead {
  const float* data;
  std::int64_t stride;
  const float* operator[](std::int64_t t) const { return data + t * stride; }
};

/// Rows of a selective scan over `width` channels (selective_scan.h).
struct ScanColumns {
  std::int64_t N, width, rows;
  const float* A;  // [N, width] contiguous
  float* S;        // the same, changed in place
  RowsRead x, dt;  // [rows, width]
  RowsRead B, C;   // [rows, N]
  float* o;        // [rows, width], rows `o_stride` apart
  std::int64_t o_stride;
};

/// S[n] = exp(Δ_t A[n]) S[n] + B_tn Δ_t x_t,  o_t = Σ_n C_tn S[n], row after row.
void scan_columns(const ScanColumns& scan);

/// y = exp(x) for x ≤ 0; −∞ gives 0. y may be x.
void exp_row(float* y, const float* x, std::int64_t n);

/// y = exp(x − shift), y may be x; returns Σ y. Where x is −∞, y is 0.
float exp_shifted(float* y, const float* x, float shift, std::int64_t n);

/// The largest of x; −∞ if n = 0.
float largest(const float* x, std::int64_t n);

/// y_j = scale · q · x_j for the n rows x_j of `width` numbers.
void dot_rows(float* y, const float* q, const float* x, std::int64_t ld, std::int64_t n, std::int64_t width, float scale = 1);

/// x_j ← x_j ⊙ a, then y_j = q · x_j.
void decay_dot_rows(float* y, const float* q, float* x, std::int64_t ld, const float* a, std::int64_t n, std::int64_t width);

/// x_j ← x_j ⊙ a.
void multiply_rows(float* x, std::int64_t ld, const float* a, std::int64_t n, std::int64_t width);

/// y ← y + factor · Σ_j c_j x_j.
void add_rows(float* y, const float* c, const float* x, std::int64_t ld, std::int64_t n, std::int64_t width, float factor = 1);

}  // namespace statescope

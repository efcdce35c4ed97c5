#include "kernels/ops/decayed_outer_product.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/simd_rows.h"
#include "kernels/ops/linear.h"
#include "kernels/ops/memory_parts.h"

namespace statescope {

namespace {

OperandCheck check_operands(const DecayedOuterProduct& op, const char* operation) {
  const OperandCheck check(operation);
  check_recurrence(check, op);
  const Shape& state = op.initial_state.shape;
  if (op.log_decay && op.log_decay.shape.rank() == 3) {
    const std::int64_t width = op.decay_axis == DecayAxis::columns ? state[3] : state[2];
    check.heads("log_decay", op.log_decay, {op.o.rows(), state[1], width});
  } else if (op.log_decay) {
    check.heads("log_decay", op.log_decay, {op.o.rows(), state[1]});
  }
  return check;
}

enum class Decay { scalar, rows, columns };

/// A decay that is absent is a scalar of 1.
Decay decay_of(const DecayedOuterProduct& op) {
  if (!op.log_decay || op.log_decay.shape.rank() < 3) return Decay::scalar;
  return op.decay_axis == DecayAxis::rows ? Decay::rows : Decay::columns;
}

/// What one head of a segment reads and writes, from the segment's first row on, or from a chunk's.
struct Head {
  std::int64_t K, V;
  HeadRows<const float> q, k, v, log_decay;
  HeadRows<float> o;
  float scale;

  float scalar_decay(std::int64_t i) const { return log_decay.data ? std::exp(*log_decay[i]) : 1; }
  Head from(std::int64_t row) const { return {K, V, q.from(row), k.from(row), v.from(row), log_decay.from(row), o.from(row), scale}; }
};

Head head_of(const DecayedOuterProduct& op, std::int64_t first, std::int64_t h) {
  const Shape& state = op.initial_state.shape;
  const std::int64_t H = state[1], K = state[2], V = state[3];
  const std::int64_t decay_width = op.log_decay.shape.rank() == 3 ? op.log_decay.shape[2] : 1;
  return {K,
          V,
          head_rows(op.q, first, h, H, K),
          head_rows(op.k, first, h, H, K),
          head_rows(op.v, first, h, H, V),
          head_rows(op.log_decay, first, h, H, decay_width),
          head_rows(op.o, first, h, H, V),
          op.scale};
}

void step_head(const Head& head, Decay decay, const float* state, float* next) {
  thread_local Scratch scratch;
  float* a = scratch.take(std::max(head.K, head.V));
  if (decay == Decay::scalar) {
    std::fill_n(a, head.K, head.scalar_decay(0));
  } else {
    exp_row(a, head.log_decay[0], decay == Decay::rows ? head.K : head.V);
  }
  const bool columns = decay == Decay::columns;
  step_decayed_outer_product(
      {head.K, head.V, state, next, head.q[0], head.k[0], head.v[0], columns ? nullptr : a, columns ? a : nullptr, head.scale, head.o[0]});
}

/// Spec §9.1 and 9.2, a chunk of n rows:  O = s·diag(e^G) Q S + (s·Q Kᵀ ⊙ Γ) V,  S' = e^{G_end} S + Kᵀ diag(Γ_end) V.
void chunk_scalar(const Head& head, float* S, std::int64_t n) {
  thread_local Scratch scores, decays, values;
  const auto [K, V, q, k, v, log_decay, o, scale] = head;
  float* A = scores.take(n * n);
  float* decayed_v = values.take(n * V);
  DecayRow decay(decays.take(n));

  gemm({n, n, K, q.data, q.stride, false, k.data, k.stride, true, A, n});
  gemm({n, V, K, q.data, q.stride, false, S, V, false, o.data, o.stride});
  for (std::int64_t i = 0; i < n; ++i) {
    decay.advance(head.scalar_decay(i));
    mask_row(A + i * n, decay, i, n, scale);
    scale_row(o[i], scale * decay.from_start(), V);
  }
  gemm({n, V, n, A, n, false, v.data, v.stride, false, o.data, o.stride, 1, 1});

  for (std::int64_t j = 0; j < n; ++j) {
    std::copy_n(v[j], V, decayed_v + j * V);
    scale_row(decayed_v + j * V, decay.gamma()[j], V);
  }
  gemm({K, V, n, k.data, k.stride, true, decayed_v, V, false, S, V, 1, decay.from_start()});
}

/// Spec §9.3, with the row before sub-chunk I as its reference g*, k̂_j = k_j ⊙ e^{g* − G_j}, q̂_i = q_i ⊙ e^{G_i − g*}:
///   A_IJ = s·q̂ k̂ᵀ (I > J),  A_ij = s·q_i (k_j ⊙ e^{G_i − G_j}) inside I;  O = s·(Q ⊙ e^G) S + A V;  S' = diag(e^{G_end}) S + K̂ᵀ V.
void chunk_rows(const Head& head, float* S, std::int64_t n) {
  thread_local Scratch scores, decay, queries;
  const auto [K, V, q, k, v, log_decay, o, scale] = head;
  float* A = scores.take(n * n);
  float* a = decay.take(K);
  float* decayed_q = queries.take(n * K);
  const DecayedRows keys = decayed_rows(n, K);

  for (std::int64_t first = 0; first < n; first += sub_chunk) {
    const std::int64_t end = std::min(n, first + sub_chunk);
    keys.begin_sub_chunk();
    for (std::int64_t i = first; i < end; ++i) {
      float* A_i = A + i * n;
      for (const auto& rows : {log_decay, q, k}) prefetch(rows, i, n, K);
      exp_row(a, log_decay[i], K);
      multiply_rows(keys.in_sub, K, a, 1, K);
      decay_dot_rows(A_i + first, q[i], keys.x + first * K, K, a, i - first, K);
      dot_rows(A_i + i, q[i], k[i], k.stride, 1, K);
      std::fill(A_i + i + 1, A_i + n, 0.0F);
      keys.append(i, k[i]);
      std::copy_n(q[i], K, decayed_q + i * K);
      multiply_rows(decayed_q + i * K, K, keys.in_sub, 1, K);
    }
    gemm({end - first, first, K, decayed_q + first * K, K, false, keys.x, K, true, A + first * n, n});
    multiply_rows(decayed_q + first * K, K, keys.from_start, end - first, K);
    keys.end_sub_chunk(first);
  }
  gemm({n, V, K, decayed_q, K, false, S, V, false, o.data, o.stride, scale});
  gemm({n, V, n, A, n, false, v.data, v.stride, false, o.data, o.stride, scale, 1});
  for (std::int64_t r = 0; r < K; ++r) scale_row(S + r * V, keys.from_start[r], V);
  gemm({K, V, n, keys.x, K, true, v.data, v.stride, false, S, V, 1, 1});
}

/// Spec §9.6 with the same sub-chunks, v̂_j = v_j ⊙ e^{g* − G_j}:
///   O_i = s·(q_i S ⊙ e^{G_i} + Σ_{j≤i} (q_i·k_j) v_j ⊙ e^{G_i − G_j});  S' = S diag(e^{G_end}) + Kᵀ V̂.
void chunk_columns(const Head& head, float* S, std::int64_t n) {
  thread_local Scratch scores, decay;
  const auto [K, V, q, k, v, log_decay, o, scale] = head;
  float* A = scores.take(n * n);
  float* a = decay.take(V);
  const DecayedRows values = decayed_rows(n, V);

  gemm({n, n, K, q.data, q.stride, false, k.data, k.stride, true, A, n, scale});
  gemm({n, V, K, q.data, q.stride, false, S, V, false, o.data, o.stride, scale});
  for (std::int64_t first = 0; first < n; first += sub_chunk) {
    const std::int64_t end = std::min(n, first + sub_chunk);
    multiply_rows(o[first], o.stride, values.from_start, end - first, V);
    gemm({end - first, V, first, A + first * n, n, false, values.x, V, false, o[first], o.stride, 1, 1});
    values.begin_sub_chunk();
    for (std::int64_t i = first; i < end; ++i) {
      for (const auto& rows : {log_decay, v}) prefetch(rows, i, n, V);
      exp_row(a, log_decay[i], V);
      multiply_rows(values.in_sub, V, a, 1, V);
      multiply_rows(values.x + first * V, V, a, i - first, V);
      values.append(i, v[i]);
      multiply_rows(o[i], V, values.in_sub, 1, V);
      add_rows(o[i], A + i * n + first, values.x + first * V, V, i - first + 1, V);
    }
    values.end_sub_chunk(first);
  }
  multiply_rows(S, V, values.from_start, K, V);
  gemm({K, V, n, k.data, k.stride, true, values.x, V, false, S, V, 1, 1});
}

void chunk_head(const Head& head, Decay decay, float* S, std::int64_t n) {
  switch (decay) {
    case Decay::scalar:
      return chunk_scalar(head, S, n);
    case Decay::rows:
      return chunk_rows(head, S, n);
    case Decay::columns:
      return chunk_columns(head, S, n);
  }
}

}  // namespace

void decayed_outer_product_step(const DecayedOuterProduct& op) {
  check_operands(op, "decayed_outer_product_step").single_rows(op.segments);
  const Decay decay = decay_of(op);
  for_each_state(op, [&](std::int64_t first, std::int64_t, std::int64_t h, const float* initial, float* state) {
    step_head(head_of(op, first, h), decay, initial, state);
  });
}

void decayed_outer_product_chunk(const DecayedOuterProduct& op, std::int64_t chunk_size) {
  check_operands(op, "decayed_outer_product_chunk").chunk_size(chunk_size);
  const Decay decay = decay_of(op);
  for_each_state(op, [&](std::int64_t first, std::int64_t rows, std::int64_t h, const float* initial, float* state) {
    carry_state(state, initial, op.initial_state.shape);
    const Head head = head_of(op, first, h);
    for (std::int64_t row = 0; row < rows; row += chunk_size) {
      chunk_head(head.from(row), decay, state, std::min(chunk_size, rows - row));
    }
  });
}

}  // namespace statescope

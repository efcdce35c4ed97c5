#include "kernels/ops/gated_delta_rule.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/simd_rows.h"
#include "kernels/ops/linear.h"
#include "kernels/ops/memory_parts.h"

namespace statescope {

namespace {

OperandCheck check_operands(const GatedDeltaRule& op, const char* operation) {
  const OperandCheck check(operation);
  check_recurrence(check, op);
  const Shape gates{op.o.rows(), op.initial_state.shape[1]}, channels{op.o.rows(), op.initial_state.shape[1], op.initial_state.shape[2]};
  if (op.log_decay) check.heads("log_decay", op.log_decay, op.log_decay.shape.rank() == 3 ? channels : gates);
  if (op.beta) check.heads("beta", op.beta, gates);
  return check;
}

/// What one head of a segment reads and writes, from the segment's first row on, or from a chunk's.
struct Head {
  std::int64_t K, V;
  HeadRows<const float> q, k, v, log_decay, beta;  // the last two have no data if absent
  HeadRows<float> o;
  float scale;
  bool decays_channels;

  /// Of a head that decays as a whole.
  float alpha(std::int64_t i) const { return log_decay.data ? std::exp(*log_decay[i]) : 1; }
  float write_strength(std::int64_t i) const { return beta.data ? *beta[i] : 1; }
  Head from(std::int64_t row) const {
    return {K, V, q.from(row), k.from(row), v.from(row), log_decay.from(row), beta.from(row), o.from(row), scale, decays_channels};
  }
};

Head head_of(const GatedDeltaRule& op, std::int64_t first, std::int64_t h) {
  const Shape& state = op.initial_state.shape;
  const std::int64_t H = state[1], K = state[2], V = state[3];
  const bool decays_channels = op.log_decay.shape.rank() == 3;
  return {K,
          V,
          head_rows(op.q, first, h, H, K),
          head_rows(op.k, first, h, H, K),
          head_rows(op.v, first, h, H, V),
          head_rows(op.log_decay, first, h, H, decays_channels ? K : 1),
          head_rows(op.beta, first, h, H, 1),
          head_rows(op.o, first, h, H, V),
          op.scale,
          decays_channels};
}

void step_head(const Head& head, const float* state, float* next) {
  thread_local Scratch scratch;
  float *alpha = scratch.take(2 * head.K), *decayed_k = nullptr;
  if (head.decays_channels) {
    exp_row(alpha, head.log_decay[0], head.K);
    decayed_k = alpha + head.K;
    std::copy_n(head.k[0], head.K, decayed_k);
    multiply_rows(decayed_k, head.K, alpha, 1, head.K);
  } else {
    std::fill_n(alpha, head.K, head.alpha(0));
  }
  step_gated_delta_rule({head.K, head.V, state, next, head.q[0], head.k[0], head.v[0], alpha, nullptr, head.scale, head.o[0]},
                        head.write_strength(0), decayed_k);
}

/// X ← L⁻¹ X by forward substitution: L [n, n] unit lower triangular (what lies on and above its diagonal is not read), X [n, V].
void solve_unit_lower(const float* L, float* X, std::int64_t n, std::int64_t V) {
  for (std::int64_t first = 0; first < n; first += sub_chunk) {
    const std::int64_t end = std::min(n, first + sub_chunk);
    gemm({end - first, V, first, L + first * n, n, false, X, V, false, X + first * V, V, -1, 1});
    for (std::int64_t i = first + 1; i < end; ++i) add_rows(X + i * V, L + i * n + first, X + first * V, V, i - first, V, -1);
  }
}

/// Spec §9.5 for a chunk of n rows that enters with state S. With L = I + tril(diag(β) (K Kᵀ ⊙ Γ), −1) the new values are
///   V~ = L⁻¹ diag(β) (V − diag(e^G) K S)      (= U − Wm S),
///   O = s·diag(e^G) Q S + s·tril(Q Kᵀ ⊙ Γ) V~,      S' = e^{G_end} S + Kᵀ diag(Γ_end) V~.
void chunk_head(const Head& head, float* S, std::int64_t n) {
  thread_local Scratch keys, scores, values, decays;
  const auto& [K, V, q, k, v, log_decay, beta, o, scale, decays_channels] = head;
  float* L = keys.take(n * n);
  float* A = scores.take(n * n);
  float* new_v = values.take(n * V);
  DecayRow decay(decays.take(n));

  gemm({n, n, K, k.data, k.stride, false, k.data, k.stride, true, L, n});
  gemm({n, n, K, q.data, q.stride, false, k.data, k.stride, true, A, n});
  gemm({n, V, K, k.data, k.stride, false, S, V, false, new_v, V});
  gemm({n, V, K, q.data, q.stride, false, S, V, false, o.data, o.stride});
  for (std::int64_t i = 0; i < n; ++i) {
    const float beta_i = head.write_strength(i);
    float* v_i = new_v + i * V;
    decay.advance(head.alpha(i));
    mask_row(L + i * n, decay, i, n, beta_i);
    mask_row(A + i * n, decay, i, n, scale);
    for (std::int64_t c = 0; c < V; ++c) v_i[c] = beta_i * (v[i][c] - decay.from_start() * v_i[c]);
    scale_row(o[i], scale * decay.from_start(), V);
  }
  solve_unit_lower(L, new_v, n, V);
  gemm({n, V, n, A, n, false, new_v, V, false, o.data, o.stride, 1, 1});

  for (std::int64_t j = 0; j < n; ++j) scale_row(new_v + j * V, decay.gamma()[j], V);
  gemm({K, V, n, k.data, k.stride, true, new_v, V, false, S, V, 1, decay.from_start()});
}

/// The same where every channel decays by itself (spec §17.3), in the sub-chunks of §9.3: L = I + tril(diag(β) M, −1),
///   M_ij = k_i (k_j ⊙ e^{G_i − G_j}),      A_ij = s·q_i (k_j ⊙ e^{G_i − G_j}),      V~ = L⁻¹ diag(β) (V − (K ⊙ e^G) S),
///   O = s·(Q ⊙ e^G) S + A V~,              S' = diag(e^{G_end}) S + K̂ᵀ V~,  k̂_j = k_j ⊙ e^{G_end − G_j}.
void chunk_channels(const Head& head, float* S, std::int64_t n) {
  thread_local Scratch keys, scores, values, decay, rows;
  const auto& [K, V, q, k, v, log_decay, beta, o, scale, decays_channels] = head;
  float *L = keys.take(n * n), *A = scores.take(n * n), *new_v = values.take(n * V), *a = decay.take(K);
  float *decayed_q = rows.take(2 * n * K), *decayed_k = decayed_q + n * K;
  const DecayedRows decayed = decayed_rows(n, K);

  for (std::int64_t first = 0; first < n; first += sub_chunk) {
    const std::int64_t end = std::min(n, first + sub_chunk);
    decayed.begin_sub_chunk();
    for (std::int64_t i = first; i < end; ++i) {
      float *A_i = A + i * n, *L_i = L + i * n;
      exp_row(a, log_decay[i], K);
      multiply_rows(decayed.in_sub, K, a, 1, K);
      decay_dot_rows(A_i + first, q[i], decayed.x + first * K, K, a, i - first, K);
      dot_rows(L_i + first, k[i], decayed.x + first * K, K, i - first, K);
      dot_rows(A_i + i, q[i], k[i], k.stride, 1, K);
      std::fill(A_i + i + 1, A_i + n, 0.0F);
      decayed.append(i, k[i]);
      for (const auto& [x, to] : {std::pair{q, decayed_q}, std::pair{k, decayed_k}}) {
        std::copy_n(x[i], K, to + i * K);
        multiply_rows(to + i * K, K, decayed.in_sub, 1, K);
      }
    }
    gemm({end - first, first, K, decayed_q + first * K, K, false, decayed.x, K, true, A + first * n, n});
    gemm({end - first, first, K, decayed_k + first * K, K, false, decayed.x, K, true, L + first * n, n});
    multiply_rows(decayed_q + first * K, K, decayed.from_start, end - first, K);
    multiply_rows(decayed_k + first * K, K, decayed.from_start, end - first, K);
    decayed.end_sub_chunk(first);
  }
  gemm({n, V, K, decayed_k, K, false, S, V, false, new_v, V});
  for (std::int64_t i = 0; i < n; ++i) {
    const float beta_i = head.write_strength(i);
    scale_row(L + i * n, beta_i, i);
    for (std::int64_t c = 0; c < V; ++c) new_v[i * V + c] = beta_i * (v[i][c] - new_v[i * V + c]);
  }
  solve_unit_lower(L, new_v, n, V);
  gemm({n, V, K, decayed_q, K, false, S, V, false, o.data, o.stride, scale});
  gemm({n, V, n, A, n, false, new_v, V, false, o.data, o.stride, scale, 1});
  for (std::int64_t r = 0; r < K; ++r) scale_row(S + r * V, decayed.from_start[r], V);
  gemm({K, V, n, decayed.x, K, true, new_v, V, false, S, V, 1, 1});
}

}  // namespace

void gated_delta_rule_step(const GatedDeltaRule& op) {
  check_operands(op, "gated_delta_rule_step").single_rows(op.segments);
  for_each_state(op, [&](std::int64_t first, std::int64_t, std::int64_t h, const float* initial, float* state) {
    step_head(head_of(op, first, h), initial, state);
  });
}

void gated_delta_rule_chunk(const GatedDeltaRule& op, std::int64_t chunk_size) {
  check_operands(op, "gated_delta_rule_chunk").chunk_size(chunk_size);
  for_each_state(op, [&](std::int64_t first, std::int64_t rows, std::int64_t h, const float* initial, float* state) {
    carry_state(state, initial, op.initial_state.shape);
    const Head head = head_of(op, first, h);
    const auto chunk = head.decays_channels ? chunk_channels : chunk_head;
    for (std::int64_t row = 0; row < rows; row += chunk_size) chunk(head.from(row), state, std::min(chunk_size, rows - row));
  });
}

}  // namespace statescope

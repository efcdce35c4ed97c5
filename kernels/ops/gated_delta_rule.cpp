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
  const Shape gates{op.o.rows(), op.initial_state.shape[1]};
  if (op.log_decay) check.heads("log_decay", op.log_decay, gates);
  if (op.beta) check.heads("beta", op.beta, gates);
  return check;
}

/// What one head of a segment reads and writes, from the segment's first row on, or from a chunk's.
struct Head {
  std::int64_t K, V;
  HeadRows<const float> q, k, v, log_decay, beta;  // the last two have no data if absent
  HeadRows<float> o;
  float scale;

  float alpha(std::int64_t i) const { return log_decay.data ? std::exp(*log_decay[i]) : 1; }
  float write_strength(std::int64_t i) const { return beta.data ? *beta[i] : 1; }
  Head from(std::int64_t row) const {
    return {K, V, q.from(row), k.from(row), v.from(row), log_decay.from(row), beta.from(row), o.from(row), scale};
  }
};

Head head_of(const GatedDeltaRule& op, std::int64_t first, std::int64_t h) {
  const Shape& state = op.initial_state.shape;
  const std::int64_t H = state[1], K = state[2], V = state[3];
  return {K,
          V,
          head_rows(op.q, first, h, H, K),
          head_rows(op.k, first, h, H, K),
          head_rows(op.v, first, h, H, V),
          head_rows(op.log_decay, first, h, H, 1),
          head_rows(op.beta, first, h, H, 1),
          head_rows(op.o, first, h, H, V),
          op.scale};
}

void step_head(const Head& head, const float* state, float* next) {
  thread_local Scratch scratch;
  float* alpha = scratch.take(head.K);
  std::fill_n(alpha, head.K, head.alpha(0));
  step_gated_delta_rule({head.K, head.V, state, next, head.q[0], head.k[0], head.v[0], alpha, nullptr, head.scale, head.o[0]},
                        head.write_strength(0));
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
  const auto [K, V, q, k, v, log_decay, beta, o, scale] = head;
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
    for (std::int64_t row = 0; row < rows; row += chunk_size) chunk_head(head.from(row), state, std::min(chunk_size, rows - row));
  });
}

}  // namespace statescope

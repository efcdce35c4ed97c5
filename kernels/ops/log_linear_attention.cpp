#include "kernels/ops/log_linear_attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/simd_rows.h"
#include "kernels/ops/memory_parts.h"

namespace statescope {
namespace {

/// All levels of one head.
class Levels {
 public:
  Levels(const LogLinearAttention& op, std::int64_t h)
      : state_(op.final_state), K_(state_.shape[2]), V_(state_.shape[3]), begin_(h * K_ * V_) {
    for (std::int64_t level = 0; level < count(); ++level) {
      const float* initial = op.initial_state.f32(level) + begin_;
      if (initial != of(level)) std::copy_n(initial, K_ * V_, of(level));
    }
  }
  std::int64_t count() const { return state_.shape[0]; }

  /// S^m ← S^0 + … + S^{m−1}, and those ← 0
  void merge(std::int64_t m) {
    for (std::int64_t level = 0; level < m; ++level) {
      const float one = 1;
      add_rows(of(m), &one, of(level), K_ * V_, 1, K_ * V_);
      std::fill_n(of(level), K_ * V_, 0.0F);
    }
  }
  /// S^ℓ ← α S^ℓ,   o += λ q S^ℓ
  void decay_and_read(std::int64_t level, float alpha, float scale, const float* q, float* o) {
    scale_row(of(level), alpha, K_ * V_);
    add_rows(o, q, of(level), V_, K_, V_, scale);
  }
  /// S^0 = kᵀ v,   o += λ q S^0
  void write_and_read(const float* k, const float* v, float scale, const float* q, float* o) {
    for (std::int64_t r = 0; r < K_; ++r) std::transform(v, v + V_, of(0) + r * V_, [&](float x) { return k[r] * x; });
    add_rows(o, q, of(0), V_, K_, V_, scale);
  }

 private:
  float* of(std::int64_t level) { return state_.f32(level) + begin_; }

  Tensor state_;
  std::int64_t K_, V_, begin_;
};

}  // namespace

void check_log_linear_attention(const LogLinearAttention& op) {
  const OperandCheck check("log_linear_attention");
  check.require(op.initial_state.shape.rank() == 4, "initial_state",
                "found " + op.initial_state.shape.to_string() + ", expected [levels, heads, K, V]");
  const Shape& state = op.initial_state.shape;
  const std::int64_t rows = op.o.rows(), levels = state[0], H = state[1], K = state[2], V = state[3];
  check.tensor("initial_state", op.initial_state, state);
  check.tensor("final_state", op.final_state, state);
  check.tensor("o", op.o, {rows, H, V});
  check.heads("q", op.q, {rows, H, K});
  check.heads("k", op.k, {rows, H, K});
  check.heads("v", op.v, {rows, H, V});
  check.heads("log_decay", op.log_decay, {rows, H});
  check.heads("level_scale", op.level_scale, {rows, H, levels});
  check.require(
      levels >= 1 && levels < 62 && op.position >= 0 && op.position + rows <= std::int64_t{1} << (levels - 1), "position",
      std::to_string(rows) + " rows from " + std::to_string(op.position) + " on, too many for " + std::to_string(levels) + " levels");
}

void log_linear_attention(const LogLinearAttention& op) {
  check_log_linear_attention(op);
  const Shape& shape = op.initial_state.shape;
  const std::int64_t L = shape[0], H = shape[1], K = shape[2], V = shape[3], rows = op.o.rows();
  const auto read = [&](std::int64_t h) {
    const FlushToZero flush;
    Levels levels(op, h);
    const auto of_head = [&](const auto& x, std::int64_t width) { return head_rows(x, 0, h, H, width); };
    const HeadRows<const float> q = of_head(op.q, K), k = of_head(op.k, K), v = of_head(op.v, V), log_decay = of_head(op.log_decay, 1),
                                scale = of_head(op.level_scale, L);
    const HeadRows<float> o = of_head(op.o, V);
    for (std::int64_t t = 0; t < rows; ++t) {
      const std::int64_t position = op.position + t;
      if (position > 0) levels.merge(merged_level(position));
      std::fill_n(o[t], V, 0.0F);
      const float alpha = std::exp(*log_decay[t]);
      for (std::int64_t level = 1; level < L; ++level) {
        if (has_tokens(level, position)) levels.decay_and_read(level, alpha, scale[t][level], q[t], o[t]);
      }
      levels.write_and_read(k[t], v[t], scale[t][0], q[t], o[t]);
    }
  };
  if (rows == 0) return carry_state(op.final_state.f32(), op.initial_state.f32(), {1, 1, L * H * K, V});
  parallel_for(H, read, rows * H * K * V >= worth_a_fork);
}

}  // namespace statescope

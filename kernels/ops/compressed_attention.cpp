#include "kernels/ops/compressed_attention.h"

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/cpu/simd_rows.h"
#include "kernels/ops/attention/parts.h"

namespace statescope {
namespace {

/// k̄ and v̄ of the blocks of all segments.
class Means {
 public:
  explicit Means(const CompressedAttention& op) : Hkv_(op.k.shape[1]), width_(op.k.shape[2] + op.v.shape[2]) {
    thread_local std::vector<std::int64_t> starts;
    thread_local Scratch means;
    starts.assign(1, 0);
    for (std::int64_t s = 0; s < op.segments.count(); ++s) {
      const KeySpan span = span_of(op, s);
      starts.push_back(starts.back() + (span.queries > 0 ? span.keys / op.block_size : 0));
    }
    starts_ = starts;
    means_ = means.take(starts.back() * Hkv_ * width_);
    const auto average = [&](std::int64_t piece) { average_blocks(op, piece / Hkv_, piece % Hkv_); };
    parallel_for(op.segments.count() * Hkv_, average, starts.back() * op.block_size * Hkv_ * width_ >= worth_a_fork);
  }

  /// Of head g of segment s: row b is [k̄_b | v̄_b].
  HeadRows<float> of(std::int64_t s, std::int64_t g) const {
    return {means_ + (starts_[static_cast<std::size_t>(s)] * Hkv_ + g * count(s)) * width_, width_};
  }

 private:
  std::int64_t count(std::int64_t s) const { return starts_[static_cast<std::size_t>(s) + 1] - starts_[static_cast<std::size_t>(s)]; }

  void average_blocks(const CompressedAttention& op, std::int64_t s, std::int64_t g) const {
    const std::int64_t first = span_of(op, s).first_key, size = op.block_size, d = op.k.shape[2], V = op.v.shape[2];
    const HeadRows<const float> k = head_rows(op.k, first, g, Hkv_, d), v = head_rows(op.v, first, g, Hkv_, V);
    for (std::int64_t b = 0; b < count(s); ++b) {
      mean_of_rows(of(s, g)[b], k, b * size, size, d);
      mean_of_rows(of(s, g)[b] + d, v, b * size, size, V);
    }
  }

  std::int64_t Hkv_, width_;
  std::span<const std::int64_t> starts_;
  float* means_;
};

/// chosen[0 … n) = the first block, block `own` and the one before it, then the most important of the `complete` blocks; ascending, −1
/// behind the last one.
void choose(std::int32_t* chosen, std::int64_t n, const float* importance, std::int64_t complete, std::int64_t own) {
  thread_local std::vector<std::int32_t> others;
  const std::array<std::int64_t, 3> always{0, std::max<std::int64_t>(own - 1, 0), own};
  others.clear();
  for (std::int64_t b = 0; b < complete; ++b) {
    if (std::ranges::find(always, b) == always.end()) others.push_back(static_cast<std::int32_t>(b));
  }
  std::fill_n(chosen, n, -1);
  const std::int64_t first = std::min<std::int64_t>(own + 1, 3);
  for (std::int64_t i = 0; i < first; ++i) chosen[i] = static_cast<std::int32_t>(always[static_cast<std::size_t>(3 - first + i)]);
  const std::int64_t more = std::min<std::int64_t>(n - first, std::ssize(others));
  std::partial_sort(others.begin(), others.begin() + more, others.end(), LargestFirst{importance});
  std::copy_n(others.begin(), more, chosen + first);
  std::sort(chosen, chosen + first + more);
}

/// Query i of segment s, all query heads that read key head g.
void attend(const CompressedAttention& op, const Means& means, std::int64_t s, std::int64_t g, std::int64_t i) {
  thread_local Scratch scratch;
  const KeySpan span = span_of(op, s);
  const std::int64_t H = op.q.shape[1], d = op.q.shape[2], V = op.v.shape[2], group = H / op.k.shape[1], n = op.selected.shape[2];
  const std::int64_t position = span.position(i), row = span.first_query + i, complete = (position + 1) / op.block_size;
  const HeadRows<float> k = means.of(s, g), v{k.data + d, k.stride};
  float *p = scratch.take(2 * complete), *importance = p + complete;
  std::fill_n(importance, complete, 0.0F);
  for (std::int64_t h = g * group; h < (g + 1) * group; ++h) {
    float* o = op.o.f32(row) + h * V;
    std::fill_n(o, V, 0.0F);
    if (complete == 0) continue;
    // p_t = softmax_b(scale · q_t·k̄_b),   o_t = Σ_b p_tb v̄_b
    dot_rows(p, op.q.f32(row) + h * d, k.data, k.stride, complete, d, op.scale);
    scale_row(p, 1 / exp_shifted(p, p, largest(p, complete), complete), complete);
    add_rows(o, p, v.data, v.stride, complete, V);
    for (std::int64_t b = 0; b < complete; ++b) importance[b] += p[b] / static_cast<float>(group);
  }
  std::int32_t* chosen = op.selected.i32(row) + g * n;
  choose(chosen, n, importance, complete, position / op.block_size);
  if (!op.importance) return;
  std::transform(chosen, chosen + n, op.importance.f32(row) + g * n,
                 [&](std::int32_t b) { return b < 0 || b >= complete ? 0.0F : importance[b]; });
}

}  // namespace

void check_compressed_attention(const CompressedAttention& op) {
  const OperandCheck check("compressed_attention");
  const Shape &q = op.q.shape, &k = op.k.shape;
  check_heads(check, op);
  check.require(op.selected.shape.rank() == 3 && op.selected.shape[2] >= 3, "selected",
                "found " + op.selected.shape.to_string() + ", expected [queries, key heads, 3 or more]");
  check.tensor("selected", op.selected, {q[0], k[1], op.selected.shape[2]}, DType::i32);
  if (op.importance) check.tensor("importance", op.importance, op.selected.shape);
  check.require(op.block_size >= 1, "block_size", "found " + std::to_string(op.block_size) + ", expected at least 1");
  check_spans(check, op, q[0], k[0]);
}

void compressed_attention(const CompressedAttention& op) {
  check_compressed_attention(op);
  const Means means(op);
  const std::int64_t Hkv = op.k.shape[1], d = op.q.shape[2];
  for (std::int64_t s = 0; s < op.segments.count(); ++s) {
    const KeySpan span = span_of(op, s);
    const auto visit = [&](std::int64_t piece) { attend(op, means, s, piece % Hkv, piece / Hkv); };
    parallel_for(span.queries * Hkv, visit, span.queries * span.keys / op.block_size * op.q.shape[1] * d >= worth_a_fork);
  }
}

}  // namespace statescope

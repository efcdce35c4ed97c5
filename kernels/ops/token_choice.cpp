#include "kernels/ops/token_choice.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/cpu/simd_rows.h"
#include "kernels/ops/attention/parts.h"

namespace statescope {
namespace {

/// Query i of segment s.
void choose(const TokenChoice& op, std::int64_t s, std::int64_t i) {
  thread_local Scratch scratch;
  thread_local std::vector<std::int32_t> order;
  const KeySpan span = span_of(op, s);
  const std::int64_t H = op.q.shape[1], d = op.q.shape[2], n = op.selected.row_size(), row = span.first_query + i;
  const std::int64_t seen = span.position(i) + 1;
  float *I = scratch.take(2 * seen), *score = I + seen;
  std::fill_n(I, seen, 0.0F);
  for (std::int64_t h = 0; h < H; ++h) {
    // I_ts = Σ_h w_th relu(scale · q_th·k_s)
    const float w = op.weight.f32(row)[h];
    dot_rows(score, op.q.f32(row) + h * d, op.k.f32(span.first_key), op.k.stride, seen, d, op.scale);
    for (std::int64_t j = 0; j < seen; ++j) I[j] += w * std::max(score[j], 0.0F);
  }
  order.resize(static_cast<std::size_t>(seen));
  std::iota(order.begin(), order.end(), 0);
  const std::int64_t count = std::min(n, seen);
  if (count < seen) {
    std::nth_element(order.begin(), order.begin() + count, order.end(), LargestFirst{I});
    std::sort(order.begin(), order.begin() + count);
  }
  std::int32_t* selected = op.selected.i32(row);
  std::fill(std::copy_n(order.begin(), count, selected), selected + n, -1);
  if (!op.scores) return;
  std::transform(selected, selected + n, op.scores.f32(row), [&](std::int32_t j) { return j < 0 ? 0.0F : I[j]; });
}

}  // namespace

void check_token_choice(const TokenChoice& op) {
  const OperandCheck check("choose_tokens");
  const Shape &q = op.q.shape, &k = op.k.shape;
  check.require(q.rank() == 3, "q", "found " + q.to_string() + ", expected [queries, heads, d]");
  check.require(k.rank() == 2, "k", "found " + k.to_string() + ", expected [keys, d]");
  check.tensor("q", op.q, q);
  check.tensor("k", op.k, {k[0], q[2]});
  check.tensor("weight", op.weight, {q[0], q[1]});
  check.require(op.selected.shape.rank() == 2 && op.selected.shape[1] >= 1, "selected",
                "found " + op.selected.shape.to_string() + ", expected [queries, 1 or more]");
  check.tensor("selected", op.selected, {q[0], op.selected.shape[1]}, DType::i32);
  if (op.scores) check.tensor("scores", op.scores, op.selected.shape);
  check_spans(check, op, q[0], k[0]);
}

void choose_tokens(const TokenChoice& op) {
  check_token_choice(op);
  for (std::int64_t s = 0; s < op.segments.count(); ++s) {
    const KeySpan span = span_of(op, s);
    parallel_for(
        span.queries, [&](std::int64_t i) { choose(op, s, i); }, span.queries * span.keys * op.q.row_size() >= worth_a_fork);
  }
}

}  // namespace statescope

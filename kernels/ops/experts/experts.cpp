#include "kernels/ops/experts/experts.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "kernels/ops/linear.h"

namespace statescope {
namespace {

/// The `count` indices of the largest numbers, largest first, ties to the lowest index.
std::vector<std::int32_t> largest(std::span<const float> numbers, std::int64_t count) {
  std::vector<std::int32_t> order(numbers.size());
  std::iota(order.begin(), order.end(), 0);
  const auto larger = [&](std::int32_t a, std::int32_t b) {
    return numbers[static_cast<std::size_t>(a)] > numbers[static_cast<std::size_t>(b)];
  };
  std::ranges::stable_sort(order, larger);
  order.resize(static_cast<std::size_t>(count));
  return order;
}

/// c = −∞ outside the chosen groups.
void leave_groups_out(std::vector<float>& c, const ScoredChoice& how) {
  const std::size_t size = c.size() / static_cast<std::size_t>(how.groups);
  std::vector<float> best;
  for (std::size_t begin = 0; begin < c.size(); begin += size) {
    std::vector<float> group(c.begin() + static_cast<std::ptrdiff_t>(begin), c.begin() + static_cast<std::ptrdiff_t>(begin + size));
    std::ranges::sort(group, std::greater{});
    best.push_back(size > 1 ? group[0] + group[1] : group[0]);
  }
  const std::vector<std::int32_t> kept = largest(best, how.chosen_groups);
  for (std::size_t e = 0; e < c.size(); ++e) {
    if (std::ranges::find(kept, static_cast<std::int32_t>(e / size)) == kept.end()) c[e] = -std::numeric_limits<float>::infinity();
  }
}

ConstTensor of_expert(ConstTensor first, std::int64_t stride, std::int64_t e) {
  return {static_cast<const std::byte*>(first.data) + e * stride, first.dtype, first.shape};
}

}  // namespace

void score_experts(const ExpertScores& op) {
  const auto E = static_cast<std::size_t>(op.logits.row_size());
  for (std::int64_t t = 0; t < op.logits.rows(); ++t) {
    const std::span<float> s(op.weights.f32(t), E);
    for (std::size_t e = 0; e < E; ++e) s[e] = 1 / (1 + std::exp(-op.logits.f32(t)[e]));
    std::vector<float> c(s.begin(), s.end());
    for (std::size_t e = 0; op.correction && e < E; ++e) c[e] += op.correction.f32(0)[e];
    if (op.how.groups > 1) leave_groups_out(c, op.how);
    std::vector<std::int32_t> ids = largest(c, op.ids.row_size());
    std::ranges::stable_sort(
        ids, [&](std::int32_t a, std::int32_t b) { return s[static_cast<std::size_t>(a)] > s[static_cast<std::size_t>(b)]; });
    std::ranges::copy(ids, op.ids.i32(t));
    float sum = op.how.eps;
    for (const std::int32_t e : ids) sum += s[static_cast<std::size_t>(e)];
    const float factor = op.how.renormalise ? op.how.factor / sum : op.how.factor;
    for (float& weight : s) weight *= factor;
  }
}

void expert_mlps(const ExpertMlps& op) {
  const std::int64_t D = op.x.row_size(), I = op.up.rows(), k = op.ids.row_size();
  std::vector<float> up(static_cast<std::size_t>(I)), gate(op.gate ? up.size() : 0), down(static_cast<std::size_t>(D));
  const auto row = [](std::vector<float>& numbers) { return Tensor(numbers.data(), DType::f32, {1, std::ssize(numbers)}); };
  for (std::int64_t choice = 0; choice < op.x.rows() * k; ++choice) {
    const std::int64_t t = choice / k, e = op.ids.i32(t)[choice % k];
    const ConstTensor x = op.x.slice(t, 1);
    linear(row(up), x, of_expert(op.up, op.into_stride, e));
    if (op.gate) linear(row(gate), x, of_expert(op.gate, op.into_stride, e));
    for (std::size_t i = 0; i < up.size(); ++i) {
      const float positive = std::max(up[i], 0.0F);
      up[i] = op.gate ? up[i] * gate[i] / (1 + std::exp(-gate[i])) : positive * positive;
    }
    linear(row(down), row(up), of_expert(op.down, op.out_of_stride, e));
    for (std::int64_t d = 0; d < D; ++d) op.y.f32(t)[d] += op.weights.f32(t)[e] * down[static_cast<std::size_t>(d)];
  }
}

}  // namespace statescope

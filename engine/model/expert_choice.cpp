#include "engine/model/expert_choice.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

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
void leave_groups_out(std::vector<float>& c, const ExpertsPlan& plan) {
  const std::size_t size = c.size() / static_cast<std::size_t>(plan.groups);
  std::vector<float> best;
  for (std::size_t begin = 0; begin < c.size(); begin += size) {
    std::vector<float> group(c.begin() + static_cast<std::ptrdiff_t>(begin), c.begin() + static_cast<std::ptrdiff_t>(begin + size));
    std::ranges::sort(group, std::greater{});
    best.push_back(size > 1 ? group[0] + group[1] : group[0]);
  }
  const std::vector<std::int32_t> kept = largest(best, plan.chosen_groups);
  for (std::size_t e = 0; e < c.size(); ++e) {
    if (std::ranges::find(kept, static_cast<std::int32_t>(e / size)) == kept.end()) c[e] = -std::numeric_limits<float>::infinity();
  }
}

/// The choice as channels; `weights` [T, E] are those of choice.weights.
void show(Context& ctx, const ExpertChoice& choice, std::span<const float> weights) {
  const std::size_t k = static_cast<std::size_t>(choice.chosen), E = weights.size() / (choice.ids.size() / k);
  std::vector<float> of_chosen;
  for (std::size_t i = 0; i < choice.ids.size(); ++i) of_chosen.push_back(weights[i / k * E + static_cast<std::size_t>(choice.ids[i])]);
  const ConstTensor host_ids = choice.host_ids();
  const Tensor ids = ctx.workspace.tensor(host_ids.shape, DType::i32), shown = ctx.workspace.tensor(host_ids.shape);
  ctx.backend.upload(ids, host_ids);
  ctx.emit("moe_selected", ids);
  ctx.backend.upload(shown, ConstTensor(of_chosen.data(), DType::f32, shown.shape));
  ctx.emit("moe_weights", shown);
}

/// s = σ(logits);   w_e = s_e of the chosen, divided by their sum where the plan says so, times its factor
ExpertChoice by_scores(Context& ctx, const Tensor& logits, const ExpertsPlan& plan, std::span<const float> correction) {
  const std::int64_t T = ctx.tokens, E = plan.count;
  ExpertChoice choice{.weights = logits, .ids = {}, .chosen = plan.chosen};
  std::vector<float> weights(static_cast<std::size_t>(T * E));
  const Tensor host(weights.data(), DType::f32, logits.shape);
  ctx.backend.download(host, logits);
  for (std::int64_t t = 0; t < T; ++t) {
    const std::span<float> s = std::span(weights).subspan(static_cast<std::size_t>(t * E), static_cast<std::size_t>(E));
    for (float& score : s) score = 1 / (1 + std::exp(-score));
    const std::vector<std::int32_t> ids = chosen_by_scores(s, plan, correction);
    float sum = plan.renormalise_eps;
    for (const std::int32_t e : ids) sum += s[static_cast<std::size_t>(e)];
    const float factor = plan.renormalise ? plan.factor / sum : plan.factor;
    for (float& weight : s) weight *= factor;
    choice.ids.insert(choice.ids.end(), ids.begin(), ids.end());
  }
  choice.weights = ctx.tensor({E});
  ctx.backend.upload(choice.weights, ConstTensor(host));
  if (ctx.wants("moe_selected") || ctx.wants("moe_weights")) show(ctx, choice, weights);
  return choice;
}

/// Softmax over all experts, the top k of it, renormalised where the plan says so: then it is the softmax over those k alone.
ExpertChoice by_softmax(Context& ctx, Tensor logits, const ExpertsPlan& plan) {
  const std::int64_t T = ctx.tokens;
  Tensor probability = ctx.tensor({plan.count}), ids = ctx.workspace.tensor({T, plan.chosen}, DType::i32);
  ctx.backend.softmax(probability, logits);
  ctx.backend.top_k(ids, probability);
  if (plan.renormalise) ctx.backend.renormalise(probability, probability, ids);
  ExpertChoice choice{
      .weights = probability, .ids = std::vector<std::int32_t>(static_cast<std::size_t>(T * plan.chosen)), .chosen = plan.chosen};
  ctx.backend.download(Tensor(choice.ids.data(), DType::i32, ids.shape), ids);
  if (!ctx.wants("moe_selected") && !ctx.wants("moe_weights")) return choice;
  std::vector<float> weights(static_cast<std::size_t>(T * plan.count));
  ctx.backend.download(Tensor(weights.data(), DType::f32, probability.shape), probability);
  show(ctx, choice, weights);
  return choice;
}

}  // namespace

std::vector<std::int32_t> chosen_by_scores(std::span<const float> scores, const ExpertsPlan& plan, std::span<const float> correction) {
  std::vector<float> c(scores.begin(), scores.end());
  for (std::size_t e = 0; e < correction.size(); ++e) c[e] += correction[e];
  if (plan.groups > 1) leave_groups_out(c, plan);
  std::vector<std::int32_t> ids = largest(c, plan.chosen);
  std::ranges::stable_sort(
      ids, [&](std::int32_t a, std::int32_t b) { return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)]; });
  return ids;
}

ExpertChoice chosen_experts(Context& ctx, Tensor logits, const ExpertsPlan& plan, std::span<const float> correction) {
  ctx.emit("moe_logits", logits);
  return plan.sigmoid ? by_scores(ctx, logits, plan, correction) : by_softmax(ctx, logits, plan);
}

}  // namespace statescope

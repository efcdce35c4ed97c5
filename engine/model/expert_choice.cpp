#include "engine/model/expert_choice.h"

namespace statescope {
namespace {

/// The choice as channels.
void show(Context& ctx, const ExpertChoice& choice) {
  ctx.emit("moe_selected", choice.ids);
  if (!ctx.wants("moe_weights")) return;
  const Workspace::Mark mark(ctx.workspace);
  const std::int64_t k = choice.ids.row_size();
  const std::vector<std::int32_t> ids = host_ids(ctx, choice);
  std::vector<float> all(static_cast<std::size_t>(choice.weights.shape.size())), chosen;
  ctx.backend.download(Tensor(all.data(), DType::f32, choice.weights.shape), choice.weights);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::int64_t t = static_cast<std::int64_t>(i) / k;
    chosen.push_back(all[static_cast<std::size_t>(t * choice.weights.row_size() + ids[i])]);
  }
  const Tensor shown = ctx.workspace.tensor(choice.ids.shape);
  ctx.backend.upload(shown, ConstTensor(chosen.data(), DType::f32, shown.shape));
  ctx.emit("moe_weights", shown);
}

}  // namespace

std::vector<std::int32_t> host_ids(Context& ctx, const ExpertChoice& choice) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(choice.ids.shape.size()));
  ctx.backend.download(Tensor(ids.data(), DType::i32, choice.ids.shape), choice.ids);
  return ids;
}

ExpertChoice chosen_experts(Context& ctx, Tensor logits, const ExpertsPlan& plan, ConstTensor correction) {
  ctx.emit("moe_logits", logits);
  const ExpertChoice choice{.weights = ctx.tensor({plan.count}), .ids = ctx.workspace.tensor({ctx.tokens, plan.chosen}, DType::i32)};
  if (plan.sigmoid) {
    ctx.backend.score_experts({choice.weights, choice.ids, logits, correction, plan.how});
  } else {
    // Softmax over all experts, the top k of it, renormalised where the plan says so: then it is the softmax over those k alone.
    ctx.backend.softmax(choice.weights, logits);
    ctx.backend.top_k(choice.ids, choice.weights);
    if (plan.how.renormalise) ctx.backend.renormalise(choice.weights, choice.weights, choice.ids);
  }
  show(ctx, choice);
  return choice;
}

}  // namespace statescope

#include "engine/model/ffn.h"

#include <fmt/format.h>

#include <vector>

namespace statescope {
namespace {

struct SwiGluWeights {
  ConstTensor gate, up, down;

  SwiGluWeights() = default;
  SwiGluWeights(const WeightScope& weights, std::int64_t hidden, std::int64_t intermediate)
      : gate(weights.matrix("gate_proj.weight", {intermediate, hidden})),
        up(weights.matrix("up_proj.weight", {intermediate, hidden})),
        down(weights.matrix("down_proj.weight", {hidden, intermediate})) {}
  void into(Context& ctx, Tensor y, ConstTensor x) const {
    ctx.backend.swiglu(ctx.residual ? ctx.residual : y, x, gate, up, down, ctx.workspace, ctx.norm, ctx.residual);
  }
};

class SwiGlu final : public Ffn {
 public:
  explicit SwiGlu(SwiGluWeights weights) : weights_(weights) {}
  bool folds_norm() const override { return true; }
  void forward(Context& ctx, ConstTensor x, Tensor y) const override { weights_.into(ctx, y, x); }

 private:
  SwiGluWeights weights_;
};

class Experts final : public Ffn {
 public:
  Experts(const WeightScope& weights, const Config& config) {
    hidden_ = config.integer("hidden_size");
    count_ = config.integer("num_experts", 512, 1, 1'000'000);
    topk_ = config.integer("num_experts_per_tok", 10, 1, count_);
    renormalise_ = config.boolean("norm_topk_prob", true);
    const std::int64_t width = config.integer("moe_intermediate_size", 512);
    router_ = Linear(weights, "gate", count_, hidden_);
    if (weights.has("experts.gate_up_proj")) {
      unpack(weights, width);
    } else {
      for (std::int64_t e = 0; e < count_; ++e) experts_.emplace_back(weights.scope(fmt::format("experts.{}.", e)), hidden_, width);
    }
    shared_ = SwiGluWeights(weights.scope("shared_expert."), hidden_, config.integer("shared_expert_intermediate_size", 512));
    shared_gate_ = Linear(weights, "shared_expert_gate", 1, hidden_);
  }

  void forward(Context& ctx, ConstTensor x, Tensor y) const override {
    Backend& backend = ctx.backend;
    const std::int64_t T = ctx.tokens;
    // router: softmax over all experts, the top k of it, renormalised if the config says so
    Tensor logits = router_.exact(ctx, x), probability = ctx.tensor({count_});
    Tensor ids = ctx.workspace.tensor({T, topk_}, DType::i32);
    backend.softmax(probability, logits);
    backend.top_k(ids, probability);
    ctx.emit("moe_logits", logits);
    ctx.emit("moe_selected", ids);
    if (renormalise_) backend.renormalise(probability, probability, ids);

    // σ(shared_expert_gate · x) · SwiGLU_shared(x)
    Tensor shared_gate = shared_gate_.exact(ctx, x), shared = ctx.activation({1, hidden_});
    backend.activate(shared_gate, shared_gate, Activation::sigmoid);
    shared_.into(ctx, shared.with_row({hidden_}), x);
    backend.scale_heads(y.with_row({1, hidden_}), shared, shared_gate);

    // Σ_e w_e · SwiGLU_e(x), each expert over its own tokens
    std::vector<std::int32_t> host_ids(static_cast<std::size_t>(T * topk_));
    Tensor host(host_ids.data(), DType::i32, ids.shape);
    backend.download(host, ids);
    PartitionOrder order;
    order_by_partition(order, host, ctx.cu_seqlens(), count_);
    for (std::size_t r = 0; r < order.run.size(); ++r) {
      const Workspace::Mark mark(ctx.workspace);
      const std::int32_t e = order.run[r], begin = order.cu_seqlens[r], n = order.cu_seqlens[r + 1] - begin;
      const std::int32_t* tokens = order.token.data() + begin;
      Tensor x_e = ctx.workspace.tensor({n, hidden_}, x.dtype), y_e = ctx.workspace.tensor({n, hidden_}, x.dtype),
             w = ctx.workspace.tensor({n, 1});
      backend.gather_rows(x_e, x, tokens);
      backend.gather_rows(w, probability.columns(e, {1}), tokens);
      experts_[static_cast<std::size_t>(e)].into(ctx, y_e, x_e);
      backend.scatter_add_rows(y, y_e, tokens, Tensor(w.data, DType::f32, {n}));
    }
  }

 private:
  /// experts.gate_up_proj [E, 2·I, D] (gate rows first), experts.down_proj [E, D, I]
  void unpack(const WeightScope& weights, std::int64_t width) {
    const ConstTensor gate_up = weights.matrix("experts.gate_up_proj", {count_, 2 * width, hidden_});
    const ConstTensor down = weights.matrix("experts.down_proj", {count_, hidden_, width});
    auto matrix = [](ConstTensor part, std::int64_t rows, std::int64_t columns) {
      return ConstTensor(part.data, part.dtype, {rows, columns});
    };
    for (std::int64_t e = 0; e < count_; ++e) {
      SwiGluWeights expert;
      expert.gate = matrix(gate_up.slice(e, 1), width, hidden_);
      expert.up = matrix(gate_up.slice(e, 1).columns(width * hidden_, {width, hidden_}), width, hidden_);
      expert.down = matrix(down.slice(e, 1), hidden_, width);
      experts_.push_back(expert);
    }
  }

  std::int64_t hidden_, count_, topk_;
  bool renormalise_;
  Linear router_, shared_gate_;
  std::vector<SwiGluWeights> experts_;
  SwiGluWeights shared_;
};

}  // namespace

std::unique_ptr<Ffn> make_swiglu(const WeightScope& weights, std::int64_t hidden, std::int64_t intermediate) {
  return std::make_unique<SwiGlu>(SwiGluWeights(weights, hidden, intermediate));
}

std::unique_ptr<Ffn> make_experts(const WeightScope& weights, const Config& config) { return std::make_unique<Experts>(weights, config); }

}  // namespace statescope

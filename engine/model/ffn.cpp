#include "engine/model/ffn.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "engine/error.h"
#include "engine/model/expert_cache.h"
#include "engine/model/expert_choice.h"

namespace statescope {
namespace {

/// Two matrices that are stored as one.
ConstTensor rows_of(ConstTensor whole, std::int64_t begin, std::int64_t rows, std::int64_t columns) {
  const ConstTensor part = whole.columns(begin * columns, {rows * columns});
  return {part.data, part.dtype, {rows, columns}};
}

class MlpWeights {
 public:
  MlpWeights() = default;
  MlpWeights(const WeightScope& weights, std::int64_t hidden, const MlpPlan& plan) : gate_factor_(plan.gate_factor), factor_(plan.factor) {
    const std::int64_t width = plan.width;
    if (plan.gate_within_up) {
      const ConstTensor both = weights.matrix(plan.up + ".weight", {2 * width, hidden});
      if (both.scales)
        throw Error(fmt::format("tensor {}.weight: gate and up in one matrix in FP8 is not supported", weights.full(plan.up)));
      gate_.weight = both.slice(0, width);
      up_.weight = both.slice(width, width);
    } else {
      if (!plan.gate.empty()) gate_ = Linear(weights, plan.gate, width, hidden, plan.biases);
      up_ = Linear(weights, plan.up, width, hidden, plan.biases);
    }
    down_ = Linear(weights, plan.down, hidden, width, plan.biases);
  }
  /// Without biases.
  MlpWeights(ConstTensor gate, ConstTensor up, ConstTensor down) {
    gate_.weight = gate;
    up_.weight = up;
    down_.weight = down;
  }
  /// Expert e of packed matrices, up [E, (2·)I, D] with the gate's rows first and down [E, D, I].
  MlpWeights(ConstTensor up, ConstTensor down, std::int64_t e, std::int64_t hidden, const MlpPlan& plan) {
    const std::int64_t width = plan.width;
    const ConstTensor up_e = up.slice(e, 1);
    if (!plan.gate.empty()) gate_.weight = rows_of(up_e, 0, width, hidden);
    up_.weight = rows_of(up_e, plan.gate.empty() ? 0 : width, width, hidden);
    down_.weight = rows_of(down.slice(e, 1), 0, hidden, width);
  }

  /// Of what it reads, the matrices.
  std::vector<ConstTensor> matrices() const {
    std::vector<ConstTensor> all;
    for (const Linear* linear : {&gate_, &up_, &down_}) {
      if (*linear) all.push_back(linear->weight);
    }
    return all;
  }
  /// The same with its matrices where `cache` has brought them.
  MlpWeights brought(ExpertCache& cache) const {
    MlpWeights there = *this;
    const std::vector<ConstTensor> matrices = cache.bring(this->matrices());
    auto next = matrices.begin();
    for (Linear* linear : {&there.gate_, &there.up_, &there.down_}) {
      if (*linear) linear->weight = *next++;
    }
    return there;
  }

  /// Nothing but its matrices, in one of the two forms that the steps of experts have.
  bool is_plain() const { return gate_factor_ == 1 && factor_ == 1 && !up_.bias && !down_.bias; }
  ConstTensor gate() const { return gate_.weight; }
  ConstTensor up() const { return up_.weight; }
  ConstTensor down() const { return down_.weight; }

  bool is_swiglu() const { return gate_ && !up_.bias && gate_factor_ == 1 && factor_ == 1; }

  void into(Context& ctx, Tensor y, ConstTensor x) const {
    if (is_swiglu()) {
      ctx.backend.swiglu(ctx.residual ? ctx.residual : y, x, gate_.weight, up_.weight, down_.weight, ctx.workspace, ctx.norm, ctx.residual);
      return;
    }
    const Workspace::Mark mark(ctx.workspace);
    const Tensor h = ctx.workspace.tensor({x.rows(), up_.out()}, ctx.activation_type());
    up_.into(ctx, h, x);
    if (gate_) {
      // y = factor · down( up x ⊙ silu(gate_factor · gate x) )
      const Tensor g = gate_(ctx, x);
      multiply(ctx.backend, ctx.workspace, g, gate_factor_);
      ctx.backend.gate(h, h, g, Activation::silu);
    } else {
      // y = factor · down( relu(up x)² )
      ctx.backend.gate(h, h, h, Activation::relu);
    }
    down_.into(ctx, y, h);
    multiply(ctx.backend, ctx.workspace, y, factor_);
  }

 private:
  Linear gate_, up_, down_;
  float gate_factor_ = 1, factor_ = 1;
};

class Mlp final : public Ffn {
 public:
  explicit Mlp(MlpWeights weights) : weights_(weights) {}
  bool folds_norm() const override { return weights_.is_swiglu(); }
  void forward(Context& ctx, ConstTensor x, Tensor y, std::span<const Tensor>) const override { weights_.into(ctx, y, x); }

 private:
  MlpWeights weights_;
};

/// The first of these names that the file has; else the first.
const std::string& name_there(const WeightScope& weights, const std::vector<std::string>& names) {
  const auto found = std::ranges::find_if(names, [&](const std::string& name) { return weights.has(name + ".weight"); });
  return found == names.end() ? names.front() : *found;
}

class Experts final : public Ffn {
 public:
  Experts(const WeightScope& weights, std::int64_t hidden, const ExpertsPlan& plan)
      : plan_(plan), hidden_(hidden), width_(plan.latent > 0 ? plan.latent : hidden) {
    router_ = Linear(weights, name_there(weights, plan.router), plan.count, hidden);
    if (!plan.correction.empty()) correction_ = weights.floats(plan.correction, {plan.count});
    load_experts(weights.of_expert());
    cache_ = weights.expert_cache();
    if (cache_) cache_->expect(experts_.front().matrices());
    strides_ = strides();
    if (plan.latent > 0) {
      into_latent_ = Linear(weights, "fc1_latent_proj", plan.latent, hidden);
      out_of_latent_ = Linear(weights, "fc2_latent_proj", hidden, plan.latent);
    }
    if (!plan.shared.empty()) shared_ = MlpWeights(weights.scope(plan.shared), hidden, plan.shared_expert);
    if (!plan.shared_gate.empty()) shared_gate_ = Linear(weights, plan.shared_gate, 1, hidden);
  }

  std::int64_t experts() const override { return plan_.count; }
  std::int64_t chosen_experts() const override { return plan_.chosen; }
  void show_choice(Context& ctx, ConstTensor x) const override { choose(ctx, x); }

  void forward(Context& ctx, ConstTensor x, Tensor y, std::span<const Tensor>) const override {
    Backend& backend = ctx.backend;
    const ExpertChoice choice = choose(ctx, x);
    shared_part(ctx, x, y);
    if (plan_.latent == 0) return add_experts(ctx, choice, x, y);
    const Tensor sum = ctx.activation({width_}), projected = ctx.activation({hidden_});
    backend.fill(sum, 0);
    add_experts(ctx, choice, into_latent_(ctx, x), sum);
    out_of_latent_.into(ctx, projected, sum);
    backend.add(y, y, projected);
  }

 private:
  ExpertChoice choose(Context& ctx, ConstTensor x) const {
    return statescope::chosen_experts(ctx, router_.exact(ctx, x), plan_, correction_);
  }

  void load_experts(const WeightScope& weights) {
    const auto packed = std::ranges::find_if(plan_.packed, [&](const auto& names) { return weights.has(names.first); });
    if (packed == plan_.packed.end() && !plan_.one_by_one.empty()) return load_one_by_one(weights);
    const auto& [up_name, down_name] = packed == plan_.packed.end() ? plan_.packed.front() : *packed;
    const std::int64_t width = plan_.expert.width, both = plan_.expert.gate.empty() ? width : 2 * width;
    const ConstTensor up = weights.matrix(up_name, {plan_.count, both, width_});
    const ConstTensor down = weights.matrix(down_name, {plan_.count, width_, width});
    for (std::int64_t e = 0; e < plan_.count; ++e) experts_.emplace_back(up, down, e, width_, plan_.expert);
  }

  /// Side by side where nothing but matrices makes them up.
  void load_one_by_one(const WeightScope& weights) {
    const MlpPlan& plan = plan_.expert;
    const auto prefix = [&](std::int64_t e) { return fmt::format(fmt::runtime(plan_.one_by_one), e); };
    if (plan.biases || plan.gate_within_up) {
      for (std::int64_t e = 0; e < plan_.count; ++e) experts_.emplace_back(weights.scope(prefix(e)), width_, plan);
      return;
    }
    std::vector<TensorSpec> specs;
    for (std::int64_t e = 0; e < plan_.count; ++e) {
      if (!plan.gate.empty()) specs.push_back({prefix(e) + plan.gate + ".weight", {plan.width, width_}});
      specs.push_back({prefix(e) + plan.up + ".weight", {plan.width, width_}});
      specs.push_back({prefix(e) + plan.down + ".weight", {width_, plan.width}});
    }
    const std::vector<ConstTensor> all = weights.matrices(std::move(specs));
    for (auto next = all.begin(); next != all.end();) {
      const ConstTensor gate = plan.gate.empty() ? ConstTensor() : *next++, up = *next++, down = *next++;
      experts_.emplace_back(gate, up, down);
    }
  }

  /// Bytes from the matrices of one expert to those of the next.
  struct Strides {
    std::int64_t into = 0, out_of = 0;
  };
  /// Null where they are not the same for all, or there are biases or factors too.
  std::optional<Strides> strides() const {
    if (cache_ || plan_.expert.biases || experts_.size() < 2 || !experts_.front().is_plain()) return {};
    const auto bytes_between = [](ConstTensor a, ConstTensor b) {
      return static_cast<const std::byte*>(b.data) - static_cast<const std::byte*>(a.data);
    };
    std::vector<std::vector<std::int64_t>> steps;  // of each of an expert's matrices
    for (std::size_t e = 1; e < experts_.size(); ++e) {
      const std::vector<ConstTensor> before = experts_[e - 1].matrices(), own = experts_[e].matrices();
      std::vector<std::int64_t>& step = steps.emplace_back();
      for (std::size_t i = 0; i < own.size(); ++i) {
        if (own[i].dtype != before[i].dtype) return {};
        step.push_back(bytes_between(before[i], own[i]));
      }
    }
    const bool same =
        std::ranges::all_of(steps, [&](const auto& step) { return step == steps.front() && step.front() == step.rbegin()[1]; });
    return same ? std::optional(Strides{steps.front().front(), steps.front().back()}) : std::nullopt;
  }

  /// Where the device reads it.
  MlpWeights expert(std::int32_t e) const {
    const MlpWeights& own = experts_[static_cast<std::size_t>(e)];
    return cache_ ? own.brought(*cache_) : own;
  }

  /// y = σ(shared_gate x) · MLP_shared(x), or without such a gate, or 0
  void shared_part(Context& ctx, ConstTensor x, Tensor y) const {
    if (plan_.shared.empty()) return ctx.backend.fill(y, 0);
    if (!shared_gate_) return shared_.into(ctx, y, x);
    const Tensor gate = shared_gate_.exact(ctx, x), shared = ctx.activation({1, hidden_});
    ctx.backend.activate(gate, gate, Activation::sigmoid);
    shared_.into(ctx, shared.with_row({hidden_}), x);
    ctx.backend.scale_heads(y.with_row({1, hidden_}), shared, gate);
  }

  /// y += Σ_e w_e · MLP_e(x)
  void add_experts(Context& ctx, const ExpertChoice& choice, ConstTensor x, Tensor y) const {
    if (strides_) {
      const MlpWeights& first = experts_.front();
      const ExpertMlps all{y, x, choice.ids, choice.weights, first.gate(), first.up(), first.down(), strides_->into, strides_->out_of};
      if (ctx.backend.takes(all)) return ctx.backend.expert_mlps(all, ctx.workspace);
    }
    x.rows() == 1 ? add_experts_of_one(ctx, choice, x, y) : add_one_by_one(ctx, choice, x, y);
  }

  /// Each expert over its own tokens.
  void add_one_by_one(Context& ctx, const ExpertChoice& choice, ConstTensor x, Tensor y) const {
    Backend& backend = ctx.backend;
    const std::vector<std::int32_t> ids = host_ids(ctx, choice);
    PartitionOrder order;
    order_by_partition(order, ConstTensor(ids.data(), DType::i32, choice.ids.shape), ctx.cu_seqlens(), plan_.count);
    for (std::size_t r = 0; r < order.run.size(); ++r) {
      const Workspace::Mark mark(ctx.workspace);
      const std::int32_t e = order.run[r], begin = order.cu_seqlens[r], n = order.cu_seqlens[r + 1] - begin;
      const std::int32_t* tokens = order.token.data() + begin;
      Tensor x_e = ctx.workspace.tensor({n, width_}, x.dtype), y_e = ctx.workspace.tensor({n, width_}, x.dtype),
             w = ctx.workspace.tensor({n, 1});
      backend.gather_rows(x_e, x, tokens);
      backend.gather_rows(w, choice.weights.columns(e, {1}), tokens);
      expert(e).into(ctx, y_e, x_e);
      backend.scatter_add_rows(y, y_e, tokens, Tensor(w.data, DType::f32, {n}));
    }
  }

  /// Of one token; on the CPU the numbers are those of the sum one by one.
  void add_experts_of_one(Context& ctx, const ExpertChoice& choice, ConstTensor x, Tensor y) const {
    const Workspace::Mark mark(ctx.workspace);
    std::vector<std::int32_t> experts = host_ids(ctx, choice);
    std::ranges::sort(experts);
    const std::int64_t k = std::ssize(experts);
    const std::vector<std::int32_t> token(experts.size(), 0);
    const Tensor all = ctx.workspace.tensor({k, width_}, x.dtype), w = ctx.workspace.tensor({k, 1});
    ctx.backend.gather_rows(w, ConstTensor(choice.weights.data, DType::f32, {plan_.count, 1}), experts.data());
    for (std::int64_t i = 0; i < k; ++i) expert(experts[static_cast<std::size_t>(i)]).into(ctx, all.slice(i, 1), x);
    ctx.backend.scatter_add_rows(y, all, token.data(), Tensor(w.data, DType::f32, {k}));
  }

  ExpertsPlan plan_;
  std::int64_t hidden_, width_;
  Linear router_, shared_gate_, into_latent_, out_of_latent_;
  ConstTensor correction_;
  std::vector<MlpWeights> experts_;
  std::optional<Strides> strides_;      // null: where an expert lies has to be looked up
  std::shared_ptr<ExpertCache> cache_;  // of experts in the host's memory; null: the device has them all
  MlpWeights shared_;
};

}  // namespace

std::unique_ptr<Ffn> make_mlp(const WeightScope& weights, std::int64_t hidden, const MlpPlan& plan) {
  return std::make_unique<Mlp>(MlpWeights(weights, hidden, plan));
}

std::unique_ptr<Ffn> make_experts(const WeightScope& weights, std::int64_t hidden, const ExpertsPlan& plan) {
  return std::make_unique<Experts>(weights, hidden, plan);
}

}  // namespace statescope

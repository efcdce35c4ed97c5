// MetaLA: no keys, what decay leaves free is written; row-sparse writes as an option (spec §17.15).
#include <limits>

#include "engine/mixers/parts.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

class MetaLa final : public Mixer {
 public:
  explicit MetaLa(const MixerBuild& build) {
    const Config& config = build.config;
    const WeightScope& weights = build.weights;
    const std::int64_t hidden = config.integer("hidden_size");
    heads_ = config.integer("num_heads", 4);
    const std::int64_t key_dim = expanded(hidden, config, "expand_k", 0.5);
    K_ = divided(key_dim, "key dim", heads_, "num_heads");
    V_ = divided(hidden, "hidden_size", heads_, "num_heads");
    Linear::load_together(
        weights, {{&q_proj_, "q_proj", key_dim}, {&f_proj_, "f_proj", key_dim}, {&v_proj_, "v_proj", hidden}, {&g_proj_, "g_proj", hidden}},
        hidden);
    aug_ = weights.floats("aug", {key_dim});
    ones_ = {weights.constant(std::vector<float>(static_cast<std::size_t>(K_), 1)).data, DType::f32, {1, K_}};
    normalizer_ = static_cast<float>(config.positive("gate_logit_normalizer", 16));
    if (config.has("row_sparse")) row_topk_ = config.object("row_sparse").integer("topk", {}, 1, K_);
    readout_ = normed_readout(build, "g_norm.weight", V_, hidden);
  }

  MixerLayout layout() const override { return decaying_state(heads_, K_, V_); }

  void describe(Program& p) const override {
    const Value x = p.x(), q = p.with_axes(q_proj_(p, x), {heads_, K_}), v = p.with_axes(v_proj_(p, x), {heads_, V_});
    const Value f = p.with_axes(f_proj_(p, x, ValueType::exact), {heads_, K_});
    const auto [k, log_decay] = row_topk_ > 0 ? coupled_row_sparse(p, f, row_topk_) : coupled(p, f, normalizer_);

    // S_t = diag(α_t) S_{t-1} + k_tᵀ v_t,   o_t = K^{-1/2} ( q_t S_t + (Σ_r q_r aug_r k_r) v_t )
    const float scale = inverse_sqrt(K_);
    const Value read = remember(p, program::OuterProduct{.q = q, .k = k, .v = v, .log_decay = log_decay, .scale = scale}, heads_, V_);
    const Value products = p.combine(program::Gate{}, p.combine(program::Gate{}, k, q), p.constant(aug_, {heads_, K_}));
    const Value own = p.with_axes(p.linear_each_head(ones_, {}, products), {heads_});
    const Value o = p.combine(program::Add{scale}, read, p.combine(program::ScaleHeads{}, v, own));
    // y = o_proj( RMSNorm_head(o) ⊙ silu(g_proj x) )
    p.result = readout_(p, o, g_proj_(p, x));
    p.reads = {read};  // the augmentation goes past the memory
  }

 private:
  std::int64_t heads_, K_, V_, row_topk_ = 0;
  Linear q_proj_, f_proj_, v_proj_, g_proj_;
  ConstTensor aug_, ones_;
  float normalizer_;
  Readout readout_;
};

}  // namespace

std::unique_ptr<Mixer> make_metala(const MixerBuild& build) { return std::make_unique<MetaLa>(build); }

}  // namespace statescope

// Gated slot attention: tokens are written into M slots, read by a softmax over the slots; two passes of one memory (spec §3.7, §9.6).
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/error.h"
#include "engine/mixers/parts.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

class Gsa final : public Mixer {
 public:
  explicit Gsa(const MixerBuild& build) {
    const Config& config = build.config;
    const WeightScope& weights = build.weights;
    const std::int64_t hidden = config.integer("hidden_size");
    qkv_ = QkvProjection(build, 4, 1.0, 1.0);
    heads_ = qkv_.q_heads;
    kv_heads_ = qkv_.k_heads;
    K_ = qkv_.K;
    V_ = qkv_.V;
    if (heads_ * V_ != hidden)
      throw Error(fmt::format("config: GSA needs a value dim ({}) equal to hidden_size ({})", heads_ * V_, hidden));
    slots_ = config.raw().contains("num_slots") && !config.has("num_slots") ? K_ : config.integer("num_slots", 64);
    normalizer_ = static_cast<float>(config.positive("gate_logit_normalizer", 8));
    if (config.has("row_sparse")) row_topk_ = config.object("row_sparse").integer("topk", {}, 1, slots_);
    f_proj_ = Linear(weights, "f_proj", kv_heads_ * slots_, hidden);
    const std::string map = config.text("feature_map", "swish", {"swish", "relu", "t2r"});
    phi_ = map == "swish" ? Activation::silu : Activation::relu;
    if (map == "t2r") phi_layer_ = Linear(weights, "feature_map.layer", K_, K_);
    if (config.boolean("use_short_conv", false)) qkv_.load_convolutions(weights, {config, "conv_size", 4});
    g_norm_ = norm_weight(build, "g_norm.weight", hidden);
    o_proj_ = Linear(weights, "o_proj", hidden, hidden);
  }

  MixerLayout layout() const override {
    MixerLayout layout;
    layout.row_name = "slot";
    layout.slot_names = {"slots × values"};
    layout.memory.push_back({"recurrent_v", {1, heads_, slots_, V_}});
    layout.memory.push_back({"recurrent_k", {1, heads_, K_, slots_}});
    layout.conv_caches = qkv_.cache_shapes();
    layout.decays = true;
    return layout;
  }

  void describe(Program& p) const override {
    const Value x = p.x();
    const auto [projected_q, projected_k, projected_v, raw_q, raw_k, gate] = qkv_(p, x);
    const Value q = feature_map(p, projected_q), k = feature_map(p, projected_k), v = p.apply(Activation::silu, projected_v);
    // log f_t = logσ(f_proj x) / 8 per slot,   w_t = 1 − f_t; row-sparse: w_t of the slots of largest f_proj x (spec §17.15)
    const Value f = p.with_axes(f_proj_(p, x, ValueType::exact), {kv_heads_, slots_});
    const auto [w, log_f] = row_topk_ > 0 ? coupled_row_sparse(p, f, row_topk_) : coupled(p, f, normalizer_);
    p.show("q", q);
    p.show("k", k);
    p.show("v", v);
    p.show("log_decay", log_f);

    // Kt_t = Kt_{t-1} diag(f_t) + k_tᵀ w_t,   a_t = q_t Kt_t
    const Value a =
        p.remember(program::OuterProduct{.q = q, .k = k, .v = w, .log_decay = log_f, .decay_axis = DecayAxis::columns, .state = {1, {}}},
                   heads_, slots_, ValueType::exact);
    // p_t = softmax(a_t) over the slots
    const Value read = p.show("slot_read", p.apply(program::Softmax{}, a));
    // Vt_t = diag(f_t) Vt_{t-1} + w_tᵀ v_t,   o_t = p_t Vt_t
    const Value o = p.remember(program::OuterProduct{.q = read, .k = w, .v = v, .log_decay = log_f}, heads_, V_, ValueType::exact);
    p.reads.push_back(o);

    // y = o_proj( RMSNorm(silu(o)) ), one norm over the whole width; its eps is the kernel's own 1e-5 [A1]
    const Value flat = p.with_axes(p.apply(Activation::silu, o), {heads_ * V_});
    const Value normed = p.show("readout", p.apply(program::RmsNorm{.weight = g_norm_, .group = heads_ * V_, .eps = 1e-5f}, flat));
    p.readouts.push_back(normed);
    p.result = o_proj_(p, normed);
  }

 private:
  /// z [T, H, K]
  Value feature_map(Program& p, Value z) const { return p.apply(phi_, phi_layer_ ? p.linear_each_head(phi_layer_.weight, {}, z) : z); }

  QkvProjection qkv_;
  std::int64_t heads_, kv_heads_, K_, V_, slots_, row_topk_ = 0;
  float normalizer_;
  Linear f_proj_, phi_layer_, o_proj_;
  Activation phi_;
  ConstTensor g_norm_;
};

}  // namespace

std::unique_ptr<Mixer> make_gsa(const MixerBuild& build) { return std::make_unique<Gsa>(build); }

}  // namespace statescope

// Gated slot attention: tokens are written into M slots, read by a softmax over the slots; two passes of one memory (spec §3.7, §9.6).
#include <fmt/format.h>

#include <limits>

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
    heads_ = config.integer("num_heads", 4);
    kv_heads_ = config.integer("num_kv_heads", heads_);
    const std::int64_t groups = divided(heads_, "num_heads", kv_heads_, "num_kv_heads");
    // FLA's constructor spells these exapnd_k, exapnd_v; both occur in configs.
    const std::int64_t key_dim = expanded(hidden, config, config.has("exapnd_k") ? "exapnd_k" : "expand_k", 1.0);
    const std::int64_t value_dim = expanded(hidden, config, config.has("exapnd_v") ? "exapnd_v" : "expand_v", 1.0);
    if (value_dim != hidden) throw Error(fmt::format("config: GSA needs a value dim ({}) equal to hidden_size ({})", value_dim, hidden));
    K_ = divided(key_dim, "key dim", heads_, "num_heads");
    V_ = divided(value_dim, "value dim", heads_, "num_heads");
    slots_ = config.raw().contains("num_slots") && !config.has("num_slots") ? K_ : config.integer("num_slots", 64);
    normalizer_ = static_cast<float>(config.number("gate_logit_normalizer", 8));
    q_proj_ = Linear(weights, "q_proj", key_dim, hidden);
    k_proj_ = Linear(weights, "k_proj", key_dim / groups, hidden);
    v_proj_ = Linear(weights, "v_proj", value_dim / groups, hidden);
    f_proj_ = Linear(weights, "f_proj", kv_heads_ * slots_, hidden);
    const std::string map = config.text("feature_map", "swish", {"swish", "relu", "t2r"});
    phi_ = map == "swish" ? Activation::silu : Activation::relu;
    if (map == "t2r") phi_layer_ = Linear(weights, "feature_map.layer", K_, K_);
    if (config.boolean("use_short_conv", false)) {
      conv_ = QkvConv(weights, key_dim, key_dim / groups, value_dim / groups, config.integer("conv_size", 4));
    }
    g_norm_ = weights.floats("g_norm.weight", {hidden});
    o_proj_ = Linear(weights, "o_proj", hidden, value_dim);
  }

  MixerLayout layout() const override {
    MixerLayout layout;
    layout.slot_names = {"slots × values"};
    layout.memory.push_back({"recurrent_v", {1, heads_, slots_, V_}});
    layout.memory.push_back({"recurrent_k", {1, heads_, K_, slots_}});
    layout.conv_caches = conv_.cache_shapes();
    return layout;
  }

  void forward(Context& ctx, ConstTensor x, MixerState& state, Tensor y) const override {
    Backend& backend = ctx.backend;
    Tensor q = q_proj_(ctx, x), k = k_proj_(ctx, x), v = v_proj_(ctx, x);
    if (conv_) {
      q = conv_.q(ctx, q, state.conv_caches[0]);
      k = conv_.k(ctx, k, state.conv_caches[1]);
      v = conv_.v(ctx, v, state.conv_caches[2]);
    }
    q = feature_map(ctx, q, heads_);
    k = feature_map(ctx, k, kv_heads_);
    backend.activate(v, v, Activation::silu);
    v = v.with_row({kv_heads_, V_});
    // log f_t = logσ(f_proj x) / 8 per slot,   w_t = 1 − f_t
    Tensor log_f = f_proj_(ctx, x).with_row({kv_heads_, slots_}), w = ctx.tensor({kv_heads_, slots_});
    backend.log_sigmoid_decay(log_f, log_f, normalizer_, -std::numeric_limits<float>::infinity());
    backend.one_minus_exp(w, log_f);
    ctx.emit("q", q);
    ctx.emit("k", k);
    ctx.emit("v", v);
    ctx.emit("log_decay", log_f);

    // Kt_t = Kt_{t-1} diag(f_t) + k_tᵀ w_t,   a_t = q_t Kt_t
    Tensor a = ctx.tensor({heads_, slots_});
    backend.decayed_outer_product({.q = q, .k = k, .v = w, .log_decay = log_f, .decay_axis = DecayAxis::columns,
                                   .segments = ctx.one_segment(), .initial_state = state.memory[1], .final_state = state.memory[1], .o = a},
                                  ctx.chunk_size);
    // p_t = softmax(a_t) over the slots
    backend.softmax(a, a);
    ctx.emit("slot_read", a);
    // Vt_t = diag(f_t) Vt_{t-1} + w_tᵀ v_t,   o_t = p_t Vt_t
    Tensor o = ctx.tensor({heads_, V_});
    backend.decayed_outer_product({.q = a, .k = w, .v = v, .log_decay = log_f, .segments = ctx.one_segment(),
                                   .initial_state = state.memory[0], .final_state = state.memory[0], .o = o},
                                  ctx.chunk_size);
    if (ctx.state_only) return;

    // y = o_proj( RMSNorm(silu(o)) ), one norm over the whole width; its eps is the kernel's own 1e-5 [A1]
    Tensor flat = o.with_row({heads_ * V_});
    backend.activate(flat, flat, Activation::silu);
    backend.rms_norm(flat, flat, g_norm_, 1e-5f);
    ctx.emit("readout", flat);
    o_proj_.into(ctx, y, flat);
  }

 private:
  Tensor feature_map(Context& ctx, Tensor z, std::int64_t heads) const {
    if (phi_layer_) {
      // One row per token and head, so that the [K, K] layer sees one head at a time.
      z = phi_layer_(ctx, Tensor(z.data, z.dtype, {ctx.tokens * heads, K_}));
      z = Tensor(z.data, z.dtype, {ctx.tokens, heads * K_});
    }
    ctx.backend.activate(z, z, phi_);
    return z.with_row({heads, K_});
  }

  std::int64_t heads_, kv_heads_, K_, V_, slots_;
  float normalizer_;
  Linear q_proj_, k_proj_, v_proj_, f_proj_, phi_layer_, o_proj_;
  Activation phi_;
  QkvConv conv_;
  ConstTensor g_norm_;
};

}  // namespace

std::unique_ptr<Mixer> make_gsa(const MixerBuild& build) { return std::make_unique<Gsa>(build); }

}  // namespace statescope

// Gated slot attention: tokens are written into M slots, read by a softmax over the slots; two passes of one memory (spec §3.7, §9.6).
#include <fmt/format.h>

#include <limits>
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
    layout.slot_names = {"slots × values"};
    layout.memory.push_back({"recurrent_v", {1, heads_, slots_, V_}});
    layout.memory.push_back({"recurrent_k", {1, heads_, K_, slots_}});
    layout.conv_caches = qkv_.cache_shapes();
    layout.decays = true;
    return layout;
  }

  void forward(Context& ctx, ConstTensor x, MixerState& state, Tensor y) const override {
    Backend& backend = ctx.backend;
    auto [q, k, v, raw_q, raw_k, gate] = qkv_(ctx, x, state);
    q = feature_map(ctx, q);
    k = feature_map(ctx, k);
    backend.activate(v, v, Activation::silu);
    // log f_t = logσ(f_proj x) / 8 per slot,   w_t = 1 − f_t
    Tensor log_f = f_proj_.exact(ctx, x).with_row({kv_heads_, slots_}), w = ctx.tensor({kv_heads_, slots_});
    backend.log_sigmoid_decay(log_f, log_f, normalizer_, -std::numeric_limits<float>::infinity());
    backend.one_minus_exp(w, log_f);
    const ConstTensor decay = ruled_decay(ctx, log_f);
    ctx.emit("q", q);
    ctx.emit("k", k);
    ctx.emit("v", v);
    ctx.emit("log_decay", decay);

    // Kt_t = Kt_{t-1} diag(f_t) + k_tᵀ w_t,   a_t = q_t Kt_t
    Tensor a = ctx.tensor({heads_, slots_});
    backend.decayed_outer_product({.q = q,
                                   .k = k,
                                   .v = w,
                                   .log_decay = decay,
                                   .decay_axis = DecayAxis::columns,
                                   .segments = ctx.one_segment(),
                                   .initial_state = state.memory[1],
                                   .final_state = state.memory[1],
                                   .o = a},
                                  ctx.chunk_size);
    // p_t = softmax(a_t) over the slots
    backend.softmax(a, a);
    ctx.emit("slot_read", a);
    // Vt_t = diag(f_t) Vt_{t-1} + w_tᵀ v_t,   o_t = p_t Vt_t
    Tensor o = ctx.tensor({heads_, V_});
    backend.decayed_outer_product({.q = a,
                                   .k = w,
                                   .v = v,
                                   .log_decay = decay,
                                   .segments = ctx.one_segment(),
                                   .initial_state = state.memory[0],
                                   .final_state = state.memory[0],
                                   .o = o},
                                  ctx.chunk_size);
    if (ctx.state_only) return;

    // y = o_proj( RMSNorm(silu(o)) ), one norm over the whole width; its eps is the kernel's own 1e-5 [A1]
    Tensor flat = o.with_row({heads_ * V_});
    backend.activate(flat, flat, Activation::silu);
    if (g_norm_) {
      backend.rms_norm(flat, flat, g_norm_, 1e-5f);
    } else {
      backend.rms_norm_plain(flat, flat, heads_ * V_, 1e-5f);
    }
    leave_unread(ctx, flat);
    ctx.emit("readout", flat);
    o_proj_.into(ctx, y, flat);
  }

 private:
  /// z [T, H, K]
  Tensor feature_map(Context& ctx, Tensor z) const {
    if (phi_layer_) {
      const Tensor rows = phi_layer_(ctx, head_rows(ctx, z));
      z = Tensor(rows.data, rows.dtype, z.shape);
    }
    ctx.backend.activate(z, z, phi_);
    return z;
  }

  QkvProjection qkv_;
  std::int64_t heads_, kv_heads_, K_, V_, slots_;
  float normalizer_;
  Linear f_proj_, phi_layer_, o_proj_;
  Activation phi_;
  ConstTensor g_norm_;
};

}  // namespace

std::unique_ptr<Mixer> make_gsa(const MixerBuild& build) { return std::make_unique<Gsa>(build); }

}  // namespace statescope

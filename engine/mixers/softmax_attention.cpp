// Softmax attention: the Transformer, the attention layers of every hybrid, and MoBA block attention (spec §3.1, §4.8, §7).
#include "engine/mixers/parts.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

class SoftmaxAttentionMixer final : public Mixer {
 public:
  explicit SoftmaxAttentionMixer(const MixerBuild& build) {
    const Config& config = build.config;
    hidden_ = config.integer("hidden_size");
    heads_ = config.integer("num_heads", 32);
    kv_heads_ = config.integer("num_kv_heads", heads_);
    divided(heads_, "num_heads", kv_heads_, "num_kv_heads");
    head_dim_ = config.has("head_dim") ? config.integer("head_dim") : divided(hidden_, "hidden_size", heads_, "num_heads");
    require_pairs(head_dim_, "head_dim");
    const bool bias = config.boolean("qkv_bias", false);
    q_proj_ = Linear(build.weights, "q_proj", heads_ * head_dim_, hidden_, bias);
    k_proj_ = Linear(build.weights, "k_proj", kv_heads_ * head_dim_, hidden_, bias);
    v_proj_ = Linear(build.weights, "v_proj", kv_heads_ * head_dim_, hidden_, bias);
    o_proj_ = Linear(build.weights, "o_proj", hidden_, heads_ * head_dim_);
    if (config.boolean("qk_norm", false)) {
      q_norm_ = build.weights.floats("q_norm.weight", {head_dim_});
      k_norm_ = build.weights.floats("k_norm.weight", {head_dim_});
    }
    // FLA's layer keeps its own 1e-5 here; only the SSE-SWA-MoBA stack passes norm_eps on (spec §1.2, §4.8).
    qk_norm_eps_ = static_cast<float>(config.not_negative("qk_norm_eps", 1e-5));
    rope_theta_ = config.positive("rope_theta", 10000.0);
    window_ = config.has("window_size") ? config.integer("window_size") : 0;
    moba_chunk_size_ = config.integer("moba_chunk_size", 0, 0);
    moba_topk_ = config.integer("moba_topk", 0, 0, 4096);
  }

  MixerLayout layout() const override {
    MixerLayout layout;
    layout.kv_heads = kv_heads_;
    layout.key_dim = layout.value_dim = head_dim_;
    return layout;
  }

  void forward(Context& ctx, ConstTensor x, MixerState& state, Tensor y) const override {
    Tensor q = q_proj_.exact(ctx, x).with_row({heads_, head_dim_});
    Tensor k = k_proj_.exact(ctx, x).with_row({kv_heads_, head_dim_});
    Tensor v = v_proj_.exact(ctx, x).with_row({kv_heads_, head_dim_});
    if (q_norm_) {
      ctx.backend.rms_norm(q, q, q_norm_, qk_norm_eps_);
      ctx.backend.rms_norm(k, k, k_norm_, qk_norm_eps_);
    }
    ctx.backend.rope(q, q, ctx.position, rope_theta_, head_dim_);
    ctx.backend.rope(k, k, ctx.position, rope_theta_, head_dim_);
    ctx.emit("q", q);
    ctx.emit("k", k);
    ctx.emit("v", v);
    append(state.kv, ctx.backend, k, v);
    if (ctx.state_only) return;

    // o_t = Σ_s softmax_s(d^{-1/2} q_t·k_s) v_s
    Tensor o = attend(ctx, q, state.kv,
                      {.scale = inverse_sqrt(head_dim_),
                       .window = window_,
                       .blocks = {.block_size = moba_chunk_size_, .topk = moba_topk_, .until = ctx.prompt_length}});
    Tensor flat = o.with_row({heads_ * head_dim_});
    ctx.emit("readout", flat);
    o_proj_.into(ctx, y, flat);
  }

 private:
  std::int64_t hidden_, heads_, kv_heads_, head_dim_, window_, moba_chunk_size_, moba_topk_;
  Linear q_proj_, k_proj_, v_proj_, o_proj_;
  ConstTensor q_norm_, k_norm_;
  float qk_norm_eps_;
  double rope_theta_;
};

}  // namespace

std::unique_ptr<Mixer> make_softmax_attention(const MixerBuild& build) { return std::make_unique<SoftmaxAttentionMixer>(build); }

}  // namespace statescope

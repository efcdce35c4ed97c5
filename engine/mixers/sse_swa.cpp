// SSE and sliding-window attention side by side in one layer: y = (RMSNorm(sse) + RMSNorm(swa)) / 2 (spec §4.8).
#include <nlohmann/json.hpp>

#include "engine/mixers/sse.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

/// The layer's `attn` dictionary as the config of its attention branch.
Config window_attention(const Config& config) {
  const Config attn = config.object("attn");
  return attn.with("hidden_size", config.integer("hidden_size"))
      .with("head_dim", config.integer("head_dim", 256))
      .with("num_heads", attn.integer("num_heads", config.integer("num_heads", 6)))
      .with("window_size", attn.integer("window_size", 64))
      .with("qk_norm_eps", config.not_negative("norm_eps", 1e-6))
      .with("moba_chunk_size", nullptr)
      .with("moba_topk", nullptr);
}

class SseSwa final : public Mixer {
 public:
  explicit SseSwa(const MixerBuild& build) : sse_(build, "sse_") {
    const Config swa_config = window_attention(build.config);
    swa_ = make_softmax_attention({swa_config, build.weights.scope("swa_"), build.layer});
    const std::int64_t hidden = build.config.integer("hidden_size");
    // The half of the mean goes into the norms' weights.
    auto half_norm = [&](const char* name) {
      std::vector<float> w = build.weights.host(name, {hidden});
      for (float& value : w) value /= 2;
      return build.weights.constant(w);
    };
    half_sse_norm_ = half_norm("sse_merge_norm.weight");
    half_swa_norm_ = half_norm("swa_merge_norm.weight");
    eps_ = static_cast<float>(build.config.not_negative("norm_eps", 1e-6));
  }

  MixerLayout layout() const override {
    MixerLayout layout = sse_.layout();
    const MixerLayout window = swa_->layout();
    layout.kv_heads = window.kv_heads;
    layout.key_dim = window.key_dim;
    layout.value_dim = window.value_dim;
    return layout;
  }

  void forward(Context& ctx, ConstTensor x, MixerState& state, Tensor y) const override {
    sse_.forward(ctx, x, state, y);
    // The channels of this layer are those of its SSE branch.
    Context silent = ctx;
    silent.channels = nullptr;
    if (ctx.state_only) return swa_->forward(silent, x, state, {});
    Tensor swa_out = ctx.workspace.tensor(y.shape, y.dtype);
    swa_->forward(silent, x, state, swa_out);
    // y = ( RMSNorm(sse; sse_merge_norm) + RMSNorm(swa; swa_merge_norm) ) / 2
    ctx.backend.rms_norm(y, y, half_sse_norm_, eps_);
    ctx.backend.rms_norm(swa_out, swa_out, half_swa_norm_, eps_);
    ctx.backend.add(y, y, swa_out);
  }

 private:
  Sse sse_;
  std::unique_ptr<Mixer> swa_;
  ConstTensor half_sse_norm_, half_swa_norm_;
  float eps_;
};

}  // namespace

std::unique_ptr<Mixer> make_sse_swa(const MixerBuild& build) { return std::make_unique<SseSwa>(build); }

}  // namespace statescope

// SSE and sliding-window attention side by side in one layer: y = (RMSNorm(sse) + RMSNorm(swa)) / 2 (spec §4.8).
#include <nlohmann/json.hpp>

#include "engine/mixers/attention/softmax_attention.h"
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
  explicit SseSwa(const MixerBuild& build) : SseSwa(build, window_attention(build.config)) {}
  SseSwa(const MixerBuild& build, const Config& swa_config)
      : sse_(build, "sse_"), swa_({swa_config, build.weights.scope("swa_"), build.layer}) {
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

  MixerLayout layout() const override { return with_attention(sse_.layout(), swa_.layout()); }

  void describe(Program& p) const override {
    sse_.describe(p);
    const Value sse = p.result, swa = attention_beside(p, swa_);
    // y = ( RMSNorm(sse; sse_merge_norm) + RMSNorm(swa; swa_merge_norm) ) / 2
    const auto norm = [&](ConstTensor weight, Value branch) {
      return p.apply(program::RmsNorm{.weight = weight, .group = p.width(branch), .eps = eps_}, branch);
    };
    p.result = p.combine(program::Add{}, norm(half_sse_norm_, sse), norm(half_swa_norm_, swa));
  }

 private:
  Sse sse_;
  SoftmaxAttentionMixer swa_;
  ConstTensor half_sse_norm_, half_swa_norm_;
  float eps_;
};

}  // namespace

std::unique_ptr<Mixer> make_sse_swa(const MixerBuild& build) { return std::make_unique<SseSwa>(build); }

}  // namespace statescope

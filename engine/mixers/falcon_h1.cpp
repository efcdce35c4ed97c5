// Falcon-H1: Mamba-2 and softmax attention side by side on one normed input (spec §19.5).
#include "engine/mixers/attention/softmax_attention.h"
#include "engine/mixers/mamba2.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

class FalconH1 final : public Mixer {
 public:
  explicit FalconH1(const MixerBuild& build) : FalconH1(build, build.config.object("mamba"), build.config.object("attention")) {}
  FalconH1(const MixerBuild& build, const Config& mamba, const Config& attention)
      : mamba_({mamba, build.weights.scope("mamba."), build.layer}),
        attention_({attention, build.weights.scope("self_attn."), build.layer}),
        mamba_factor_(static_cast<float>(build.config.number("mamba_factor", 1))),
        attention_factor_(static_cast<float>(build.config.number("attention_factor", 1))) {}

  MixerLayout layout() const override { return with_attention(mamba_.layout(), attention_.layout()); }

  void describe(Program& p) const override {
    // y = ssm_out_multiplier · mamba(u) + attention_out_multiplier · attention(u)
    mamba_.describe(p);
    Value y = p.result;
    if (mamba_factor_ != 1) y = p.apply(program::Times{mamba_factor_}, y);
    p.result = p.combine(program::Add{attention_factor_}, y, attention_beside(p, attention_));
  }

 private:
  Mamba2Mixer mamba_;
  SoftmaxAttentionMixer attention_;
  float mamba_factor_, attention_factor_;
};

}  // namespace

std::unique_ptr<Mixer> make_falcon_h1(const MixerBuild& build) { return std::make_unique<FalconH1>(build); }

}  // namespace statescope

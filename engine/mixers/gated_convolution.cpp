// LFM2's gated short convolution, whose memory is a window of the last gated inputs (spec §19.10).
#include "engine/mixers/parts.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

class GatedConvolution final : public Mixer {
 public:
  explicit GatedConvolution(const MixerBuild& build) : hidden_(build.config.integer("hidden_size")) {
    const bool bias = build.config.boolean("conv_bias", false);
    in_proj_ = Linear(build.weights, "in_proj", 3 * hidden_, hidden_, bias);
    conv_ = Conv(build.weights, "conv", hidden_, ToldSize(build.config, "conv_L_cache", 3), Activation::identity, bias);
    out_proj_ = Linear(build.weights, "out_proj", hidden_, hidden_, bias);
  }

  MixerLayout layout() const override {
    MixerLayout layout;
    layout.conv_caches = {conv_.cache_shape()};
    return layout;
  }

  void describe(Program& p) const override {
    // B | C | u = in_proj(x)
    const Value bcu = in_proj_(p, p.x());
    const Value B = p.columns(bcu, 0, {hidden_}), C = p.columns(bcu, hidden_, {hidden_}), u = p.columns(bcu, 2 * hidden_, {hidden_});
    // y = out_proj( C ⊙ conv(B ⊙ u) )
    const Value written = p.show("written", p.combine(program::Gate{}, u, B));
    const Value o = conv_(p, written, 0);
    p.reads.push_back(o);
    const Value read = p.combine(program::Gate{}, o, C);
    p.result = out_proj_(p, p.show("readout", read));
  }

 private:
  std::int64_t hidden_;
  Linear in_proj_, out_proj_;
  Conv conv_;
};

}  // namespace

std::unique_ptr<Mixer> make_gated_convolution(const MixerBuild& build) { return std::make_unique<GatedConvolution>(build); }

}  // namespace statescope

// Lightning attention, MiniMax's: a linear memory whose heads forget at a rate of their own that falls with depth (spec §17.5).
#include <cmath>

#include "engine/mixers/parts.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

/// −rate_h of layer i of L for h = 1 … H: rate_h = 2^{−8h/H} (1 − i/(L − 1 + 1e-5) + 1e-5)
std::vector<float> log_decays(std::int64_t heads, std::int64_t layer, std::int64_t layers) {
  const double depth = 1 - static_cast<double>(layer) / (static_cast<double>(layers) - 1 + 1e-5) + 1e-5;
  std::vector<float> result;
  for (std::int64_t h = 1; h <= heads; ++h)
    result.push_back(static_cast<float>(-std::exp2(-8 * static_cast<double>(h) / static_cast<double>(heads)) * depth));
  return result;
}

class LightningAttention final : public Mixer {
 public:
  explicit LightningAttention(const MixerBuild& build)
      : heads_(build.config.integer("num_heads")), head_dim_(build.config.integer("head_dim")) {
    const std::int64_t hidden = build.config.integer("hidden_size"), width = heads_ * head_dim_;
    Linear::load_together(build.weights, {{&qkv_proj_, "qkv_proj", 3 * width}, {&output_gate_, "output_gate", width}}, hidden);
    norm_ = build.weights.floats("norm.weight", {width});
    out_proj_ = Linear(build.weights, "out_proj", hidden, width);
    log_gamma_ = build.weights.constant(log_decays(heads_, build.layer, build.config.integer("num_hidden_layers")));
  }

  MixerLayout layout() const override { return decaying_state(heads_, head_dim_, head_dim_); }

  void describe(Program& p) const override {
    // [q | k | v] = silu(qkv_proj x), head by head
    const Value qkv = p.apply(Activation::silu, qkv_proj_(p, p.x())), gate = output_gate_(p, p.x());
    const auto part = [&](std::int64_t which) {
      std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
      for (std::int64_t h = 0; h < heads_; ++h) ranges.emplace_back((3 * h + which) * head_dim_, head_dim_);
      return p.taken(qkv, ranges, {heads_, head_dim_});
    };

    // S_t = γ_h S_{t-1} + k_tᵀ v_t,   o_t = q_t S_t
    const Value o =
        remember(p, program::OuterProduct{.q = part(0), .k = part(1), .v = part(2), .log_decay = p.constant(log_gamma_, {heads_})}, heads_,
                 head_dim_);
    p.reads.push_back(o);
    // y = out_proj( RMSNorm(o) ⊙ σ(output_gate x) ), one norm over all heads; its eps is the class's own 1e-6
    const std::int64_t width = heads_ * head_dim_;
    const Value normed = p.apply(program::RmsNorm{.weight = norm_, .group = width, .eps = 1e-6F}, p.with_axes(o, {width}));
    const Value read = p.show("readout", p.combine(program::Gate{Activation::sigmoid}, normed, gate));
    p.show("output_gate", p.mean_of_heads(gate, heads_, Activation::sigmoid), true);
    p.readouts.push_back(read);
    p.result = out_proj_(p, read);
  }

 private:
  std::int64_t heads_, head_dim_;
  Linear qkv_proj_, output_gate_, out_proj_;
  ConstTensor norm_, log_gamma_;
};

}  // namespace

std::unique_ptr<Mixer> make_lightning_attention(const MixerBuild& build) { return std::make_unique<LightningAttention>(build); }

}  // namespace statescope

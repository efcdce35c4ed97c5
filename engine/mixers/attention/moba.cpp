// MoBA as flash-linear-attention has it: softmax attention over blocks chosen by their mean key, a norm of each head, perhaps a gate
// (spec §18.4).
#include "engine/mixers/attention/softmax_attention.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

constexpr float kNormEps = 1e-6F;  // whatever the config says of its other norms

class Moba final : public Mixer {
 public:
  explicit Moba(const MixerBuild& build) : heads_(build) {
    const std::int64_t hidden = build.config.integer("hidden_size"), d = heads_.head_dim();
    if (build.config.boolean("use_output_gate", true)) g_proj_ = LowRank(build.weights, "g_proj", hidden, hidden, d);
    readout_ = {.norm = build.weights.floats("o_norm.weight", {d}),
                .head_dim = d,
                .eps = kNormEps,
                .gate_act = Activation::sigmoid,
                .o_proj = Linear(build.weights, "o_proj", hidden, hidden)};
  }

  MixerLayout layout() const override { return heads_.layout(); }

  void describe(Program& p) const override {
    // y = o_proj( RMSNorm_head(o) ⊙ σ(g_proj x) )
    const Value o = heads_(p), gate = g_proj_ ? g_proj_(p, p.x()) : Value{};
    p.result = readout_(p, o, gate);
  }

 private:
  AttentionHeads heads_;
  LowRank g_proj_;
  Readout readout_;
};

}  // namespace

std::unique_ptr<Mixer> make_moba(const MixerBuild& build) { return std::make_unique<Moba>(build); }

}  // namespace statescope

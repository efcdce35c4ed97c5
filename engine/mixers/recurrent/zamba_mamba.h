// Zamba's Mamba-1, whose channels are dealt out to heads: a part of its layers with and without the shared block (spec §17.7).
#pragma once

#include "engine/mixers/parts.h"

namespace statescope {

class ZambaMambaMixer final : public Mixer {
 public:
  explicit ZambaMambaMixer(const MixerBuild& build);
  MixerLayout layout() const override;
  void describe(Program& p) const override { p.result = output(p, p.x()); }
  /// Of x, already normalised.
  Value output(Program& p, Value x) const;

 private:
  void load_heads(const MixerBuild& build);

  std::int64_t d_in_, heads_, P_, N_, rank_;  // of all channels, heads, channels of a head, states, rank of Δ
  Linear in_proj_, out_proj_;
  Conv conv_;
  std::vector<Linear> x_proj_, dt_proj_;  // of each head
  ConstTensor dt_bias_, A_, D_;           // [heads, P], [heads, N, P], [d_in]
};

}  // namespace statescope

// Mamba-2 as a part: by itself (its rows of the table, with one state or with levels of states), as one branch of Falcon-H1, and behind the
// shared block of Zamba2.
#pragma once

#include <limits>

#include "engine/mixers/parts.h"

namespace statescope {

class Mamba2Mixer final : public Mixer {
 public:
  explicit Mamba2Mixer(const MixerBuild& build);
  MixerLayout layout() const override;
  void describe(Program& p) const override { p.result = output(p, p.x()); }
  /// Of x, already normalised.
  Value output(Program& p, Value x) const;

 private:
  void read_sizes(const Config& config, std::int64_t hidden);
  void read_limit(const Config& config);
  void read_factors(const Config& config, const WeightScope& weights);
  Value remembered(Program& p, const program::OuterProduct& memory, Value levels) const;
  Value group_norm(Program& p, Value x) const;

  std::int64_t d_in_, P_, heads_, state_size_, groups_, levels_;  // levels: 0 where there is one state
  Linear in_proj_, out_proj_;
  Conv conv_;
  ConstTensor A_, dt_bias_, D_, norm_, part_factors_, L_, no_bias_;
  bool D_per_channel_, norm_before_gate_;
  float dt_min_ = 0, dt_max_ = std::numeric_limits<float>::infinity(), eps_, in_factor_ = 1;
};

}  // namespace statescope

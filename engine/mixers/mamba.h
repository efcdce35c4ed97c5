// Mamba-1's scan as a part: by itself (mamba.cpp's row of the table), and beside attention in Hymba.
#pragma once

#include "engine/mixers/parts.h"

namespace statescope {

/// From x, before its convolution, to what the scan reads.
class MambaScan {
 public:
  explicit MambaScan(const MixerBuild& build);
  MixerLayout layout() const;
  /// y + D x [T, d_in]. Shows q, k, v and dt.
  Value operator()(Program& p, Value before) const;
  std::int64_t channels() const { return d_in_; }
  Activation act() const { return act_; }

 private:
  Value normed(Program& p, std::size_t which, Value v) const { return norms_.empty() ? v : p.apply(norms_[which], v); }

  std::int64_t d_in_, N_, rank_;
  Activation act_;
  Linear x_proj_, dt_proj_;
  Conv conv_;
  ConstTensor A_, D_, dt_bias_;
  std::vector<program::RmsNorm> norms_;  // of r, B and C, or none
};

}  // namespace statescope

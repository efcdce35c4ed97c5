// The lightning indexer: which tokens a latent attention looks at (spec §18.2).
#pragma once

#include "engine/mixers/parts.h"
#include "engine/mixers/rope.h"

namespace statescope {

class TokenIndexer {
 public:
  /// Of the tensors "indexer."; its queries come from a latent of `q_rank`.
  TokenIndexer(const MixerBuild& build, std::int64_t q_rank);

  /// k_I [T, width], one for all heads: what the choice of later tokens reads.
  Value key(Program& p, const Rope& rope) const;
  /// The chosen tokens of queries with the latent `low`, once the keys have been appended. Shows them and their scores.
  Value chosen(Program& p, Value low, const Rope& rope) const;
  std::int64_t width() const { return width_; }

 private:
  std::int64_t heads_, width_, topk_;
  Linear wq_b_, centred_wk_, weights_proj_;
  ConstTensor k_norm_, k_bias_;
};

}  // namespace statescope

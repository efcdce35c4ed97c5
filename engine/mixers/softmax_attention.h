// Softmax attention as a part: by itself (softmax_attention.cpp's row of the table), and as one branch of SSE + SWA and of Falcon-H1.
#pragma once

#include "engine/mixers/described.h"
#include "engine/mixers/rope.h"

namespace statescope {

class SoftmaxAttentionMixer final : public DescribedMixer {
 public:
  explicit SoftmaxAttentionMixer(const MixerBuild& build);
  MixerLayout layout() const override;
  void describe(Program& p) const override;

 private:
  void read_norms(const MixerBuild& build);
  void read_factors(const Config& config);
  Value normed(Program& p, Value heads, ConstTensor weight) const;

  std::int64_t hidden_, heads_, kv_heads_, head_dim_, window_, moba_chunk_size_, moba_topk_;
  Linear q_proj_, k_proj_, v_proj_, o_proj_;
  ConstTensor q_norm_, k_norm_;  // [head_dim], or of all heads together
  float qk_norm_eps_;
  std::optional<Rope> rope_;                                 // none: no positions
  float in_factor_ = 1, query_factor_ = 1, key_factor_ = 1;  // of x, q and k
};

}  // namespace statescope

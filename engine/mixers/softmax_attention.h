// Softmax attention as a part: by itself (softmax_attention.cpp's row of the table) and as one branch of SSE + SWA.
#pragma once

#include "engine/mixers/described.h"

namespace statescope {

class SoftmaxAttentionMixer final : public DescribedMixer {
 public:
  explicit SoftmaxAttentionMixer(const MixerBuild& build);
  MixerLayout layout() const override;
  void describe(Program& p) const override;

 private:
  std::int64_t hidden_, heads_, kv_heads_, head_dim_, window_, moba_chunk_size_, moba_topk_;
  Linear q_proj_, k_proj_, v_proj_, o_proj_;
  ConstTensor q_norm_, k_norm_;
  float qk_norm_eps_;
  double rope_theta_;
};

}  // namespace statescope

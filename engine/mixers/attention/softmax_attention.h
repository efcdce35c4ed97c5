// Softmax attention as a part: by itself (softmax_attention.cpp's row of the table), as one branch of SSE + SWA and of Falcon-H1, and
// without its output product, where a norm comes before that.
#pragma once

#include "engine/mixers/parts.h"
#include "engine/mixers/rope.h"

namespace statescope {

/// From x to what the heads read.
class AttentionHeads {
 public:
  explicit AttentionHeads(const MixerBuild& build);
  MixerLayout layout() const;
  /// o [T, heads, head_dim]. Shows q, k, v and which blocks were chosen.
  Value operator()(Program& p) const;
  /// q [T, heads, head_dim], with which it would attend; the keys and values have been appended. Shows all three.
  Value queries(Program& p) const;
  std::int64_t heads() const { return heads_; }
  std::int64_t kv_heads() const { return kv_heads_; }
  std::int64_t head_dim() const { return head_dim_; }
  std::int64_t value_dim() const { return heads_ * head_dim_; }

 private:
  void read_norms(const MixerBuild& build);
  void read_factors(const Config& config);
  Value normed(Program& p, Value heads, ConstTensor weight) const;

  std::int64_t hidden_, heads_, kv_heads_, head_dim_, window_, moba_chunk_size_, moba_topk_;
  Linear q_proj_, k_proj_, v_proj_;
  ConstTensor q_norm_, k_norm_;  // [head_dim], or of all heads together
  float qk_norm_eps_;
  FixedPattern pattern_;
  std::optional<Rope> rope_;                                 // none: no positions
  float in_factor_ = 1, query_factor_ = 1, key_factor_ = 1;  // of x, q and k
};

class SoftmaxAttentionMixer final : public Mixer {
 public:
  explicit SoftmaxAttentionMixer(const MixerBuild& build);
  MixerLayout layout() const override { return heads_.layout(); }
  void describe(Program& p) const override;

 private:
  AttentionHeads heads_;
  Linear o_proj_;
};

}  // namespace statescope

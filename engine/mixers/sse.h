// Sparse state expansion as a part: by itself (sse.cpp's row of the table) and as one branch of SSE + SWA.
#pragma once

#include "engine/mixers/parts.h"

namespace statescope {

class Sse final : public Mixer {
 public:
  /// `prefix` stands before the names of the projections ("sse_" in SSE + SWA), never before lora, A_log, dt_bias and the convolutions.
  explicit Sse(const MixerBuild& build, const std::string& prefix = "");
  MixerLayout layout() const override;
  void describe(Program& p) const override;

 private:
  std::int64_t hidden_, heads_, value_heads_, K_, V_, N_, writers_, readers_;
  bool delta_rule_, v1_, v1_joint_softmax_, use_q_softmax_, use_k_softmax_, emulq_, emulk_, sparse_after_conv_;
  GatePlace gate_place_;
  Activation qk_act_, v_act_;
  float normalizer_, beta_factor_;
  Linear q_proj_, k_proj_, v_proj_, e_proj_, a_proj_, b_proj_;
  LowRank lora_q_, lora_k_, gk_shared_, gk_sparse_, g_proj_;
  ConstTensor A_log_, dt_bias_;
  Conv q_conv_, k_conv_;
  Readout readout_;
};

}  // namespace statescope

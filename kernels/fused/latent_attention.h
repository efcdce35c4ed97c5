// Multi-head latent attention: keys and values of all heads come from one latent vector a token (DeepSeek-V2, section 2.1; spec §17.4).
#pragma once

#include "kernels/backend.h"

namespace statescope {

///   k_s = [W_k c_s | k_r,s],   v_s = W_v c_s   of each head;    o_t = Σ_s softmax_s(scale · q_t·k_s) v_s   over the allowed s ≤ t
/// Segments as in softmax_attention.h. Float32 but for the weights, which may be of 16 bits.
struct LatentAttention {
  ConstTensor q;              // [queries, H, n + r] contiguous: [q_n | q_r] of each head
  bool shared_first = false;  // they are [q_r | q_n]
  ConstTensor latents;        // [keys, 1, C + r]: [c | k_r]
  ConstTensor W_k, W_v;       // [H·n, C], [H·V, C]
  float scale = 1;
  ChosenBlocks chosen;
  Segments segments;                           // of the queries; slots are not used
  std::span<const std::int32_t> cu_seqlens_k;  // [S + 1]
  Tensor o;                                    // [queries, H, V] contiguous
  std::int64_t most_numbers = 64 << 20;        // of keys and values that are worked out at a time, where one head has no more
};

/// Few queries are multiplied with the latents themselves, q_n·(W_k c) = (W_kᵀ q_n)·c and Σ p (W_v c) = W_v (Σ p c); for many, keys and
/// values are worked out, of some heads at a time.
void latent_attention(const LatentAttention& op, std::int64_t chunk_size, Backend& device, Workspace& workspace);

}  // namespace statescope

// Layers of experts: which ones a token goes to, and what those chosen put out (spec §8.1, §18.1, §19.4, §19.6, §19.10).
#pragma once

#include "kernels/tensor.h"

namespace statescope {

/// How experts are chosen whose scores are each for themselves.
struct ScoredChoice {
  std::int64_t groups = 1, chosen_groups = 1;  // experts come from the groups whose two best scores have the largest sums
  bool renormalise = true;                     // the weights of the chosen are divided by their sum + eps
  float eps = 0, factor = 1;
};

/// s = σ(logits);   c = s + correction, −∞ outside the chosen groups;   ids: the k largest c, ties to the lowest index, sorted by s;
/// w_e = factor · s_e, divided by Σ_{ids} s + eps where the plan says so.
struct ExpertScores {
  Tensor weights;                  // [T, E] float32: w of all experts
  Tensor ids;                      // [T, k] i32
  ConstTensor logits, correction;  // [T, E], [E] or absent; float32
  ScoredChoice how;
};
void score_experts(const ExpertScores& op);

/// y_t += Σ_{e ∈ ids_t} w_te · down_e( silu(gate_e x_t) ⊙ up_e x_t ), or without a gate down_e( relu(up_e x_t)² ). All matrices have one
/// type; those of expert e lie e times so many bytes behind those of the first.
struct ExpertMlps {
  Tensor y;                                         // [T, D]
  ConstTensor x, ids, weights;                      // [T, D], [T, k] i32, [T, E] float32
  ConstTensor gate, up, down;                       // of the first expert: [I, D] or absent, [I, D], [D, I]
  std::int64_t into_stride = 0, out_of_stride = 0;  // bytes: of gate and up, of down
};
/// Operands of float32, but for the matrices.
void expert_mlps(const ExpertMlps& op);

}  // namespace statescope

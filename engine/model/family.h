// From model_type to the stack: which mixer each layer has, what the tensors around it are called, and which norms they use (spec §1, §7,
// §8, §15).
#pragma once

#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/config/config.h"

namespace statescope {

enum class FfnKind { none, swiglu, experts };

struct LayerPlan {
  std::string mixer;         // row of the mixer table
  Config config;             // of this layer's mixer
  std::string mixer_prefix;  // "model.layers.0.attn."
  std::string mixer_norm;    // "model.layers.0.attn_norm.weight"
  FfnKind ffn = FfnKind::swiglu;
  std::string ffn_prefix;  // "model.layers.0.mlp."
  std::string ffn_norm;    // "model.layers.0.mlp_norm.weight"
};

struct Plan {
  std::string family;  // model_type
  std::int64_t hidden = 0, vocab = 0, intermediate = 0;
  std::string embeddings, norm, head;
  float norm_eps = 1e-6f, ffn_norm_eps = 1e-6f;
  float norm_offset = 0;  // 1: zero-centred norms
  bool tied = false;
  std::vector<LayerPlan> layers;
  std::vector<std::string> notes;  // what was ignored or mended, one line each
};

/// Throws Error: unknown families are refused by name.
Plan plan_model(const Config& config);

/// The tensors under their present names: legacy checkpoints are made regular (spec §14), and what was done is noted in the plan.
std::vector<StoredTensor> regular_tensors(const Checkpoint& checkpoint, Plan& plan);

}  // namespace statescope

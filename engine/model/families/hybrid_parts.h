// What the plans of hybrids from Transformers have in common: how a model and its layers are read from their keys (spec §19.1, §19.2).
#pragma once

#include <optional>

#include "engine/model/families/families.h"

namespace statescope {

/// Where a family of Mamba-2 hybrids keeps its sizes and switches.
struct MambaKeys {
  std::string_view heads, head_dim, inner, expand;  // d_in is `inner`, else `expand` · hidden_size, else heads · head_dim
  std::string_view state, groups, conv, conv_bias, in_bias, out_bias, act, eps;
  std::int64_t default_groups = 1;
};
/// The config of a hybrid's Mamba-2 layers (spec §19.2), as the mixer reads it.
Config mamba2_layer(const Config& config, const MambaKeys& keys);

/// Width of an MLP of flash-linear-attention, whose config may say a ratio instead (spec §1.4). Throws Error.
std::int64_t swiglu_width(const Config& config, std::int64_t hidden, double default_ratio);

/// The rank of Mamba-1's Δ: "auto" is ceil(D / 16).
std::int64_t time_step_rank(const Config& config, std::string_view key, std::int64_t hidden);
/// What hybrids of Mamba-1 have in common: sizes and switches under keys that begin with "mamba_".
nlohmann::json mamba_sizes(const Config& config, std::int64_t hidden);
/// Whose errors say those keys.
Config with_mamba_keys(nlohmann::json layer);

/// The config of a hybrid's softmax layers: grouped heads, biases by attention_bias, positions by the config's rope settings.
Config softmax_layer(const Config& config);
/// The same without positions.
Config without_positions(const Config& layer);

/// Vocabulary, width and the tensors around the blocks: `root` "model.", `norm` "norm". A missing head is the embedding.
Plan hybrid_plan(const Config& config, const std::string& family, const std::string& root, std::string_view norm, std::string_view eps,
                 double default_eps);

/// One of `allowed` for each layer: the list under `key`, whose old words are read as today's ("mamba" and "attention" as
/// "linear_attention" and "full_attention"). Throws Error, also where they are not
/// as many as `layers`. Empty: there is no such list.
std::vector<std::string> layer_kinds(const Config& config, std::string_view key, std::initializer_list<std::string_view> allowed,
                                     std::optional<std::int64_t> layers = {});
/// For each layer whether `key` lists its number. Throws Error.
std::vector<bool> listed_layers(const Config& config, std::string_view key, std::int64_t layers);

/// An MLP whose matrices are called w1 (the gate), w3 (up) and w2 (down).
MlpPlan with_numbered_names(std::int64_t width);

/// Names of a family's keys for experts whose scores are σ of the router's, chosen with a bias out of the best groups.
struct ExpertKeys {
  std::string_view count, chosen, groups, renormalise = "norm_topk_prob";
  std::int64_t default_count = 8, default_chosen = 2;
};
/// What such experts have in common (spec §17.4, §18.1); their MLPs are left open. Throws Error.
ExpertsPlan grouped_experts(const Config& config, const ExpertKeys& keys);

/// A note about positions that do not turn as usual.
void note_positions(Plan& plan, const Config& softmax);

}  // namespace statescope

#include "engine/config/key_lists.h"

namespace statescope {
namespace {

using enum KeyUse;

// ------------------------------------------------------------------------- Mamba-1, Falcon-Mamba, Jamba (spec §17.1, §17.2, §17.6)

const KeyTable kMamba{{computed,
                       "",
                       {"hidden_size", "num_hidden_layers", "vocab_size", "state_size", "expand", "intermediate_size", "time_step_rank",
                        "conv_kernel", "use_bias", "use_conv_bias", "hidden_act", "layer_norm_epsilon"}},
                      {harmless, "which kernel does it, not what it does", {"use_mambapy", "use_associative_scan", "use_falcon_mambapy"}},
                      {harmless, "everything is float32 here", {"residual_in_fp32"}},
                      {harmless,
                       "initialisation and training",
                       {"time_step_scale", "time_step_min", "time_step_max", "time_step_floor", "time_step_init_scheme"}}};
const KeyTable kMambaOfFla{
    {computed, "", {"norm_eps", "dt_rank"}},
    {harmless, "which kernel does it, not what it does", {"fuse_norm", "fuse_cross_entropy", "fuse_linear_cross_entropy"}},
    {harmless, "initialisation and training", {"dt_scale", "dt_min", "dt_max", "dt_init_scheme", "dt_init_floor"}}};
const KeyTable kFalconMamba{{computed, "", {"mixer_rms_eps"}}};
const KeyTable kJamba{
    {computed, "", {"hidden_size",  "num_hidden_layers",   "vocab_size",          "intermediate_size",   "rms_norm_eps",
                    "hidden_act",   "attn_layer_period",   "attn_layer_offset",   "expert_layer_period", "expert_layer_offset",
                    "num_experts",  "num_experts_per_tok", "num_attention_heads", "num_key_value_heads", "mamba_d_state",
                    "mamba_d_conv", "mamba_expand",        "mamba_dt_rank",       "mamba_conv_bias",     "mamba_proj_bias",
                    "head_dim"}},
    {fixed, "true", {"mamba_inner_layernorms"}},
    {harmless, "which kernel does it, not what it does", {"use_mambapy", "use_associative_scan"}},
    {harmless, "what a call returns", {"calc_logits_for_entire_prompt"}},
    {harmless, "no position is told, and nothing is cut off", {"max_position_embeddings"}}};

// -------------------------------------------------------------------------------------------------------- MiniMax (spec §17.5)

const KeyTable kMiniMax{{computed, "", {"num_local_experts", "num_experts_per_tok", "rms_norm_eps"}},
                        {harmless, "which kernel does it, not what it does", {"block_size"}}};
const KeyTable kMiniMaxOfTransformers{{computed,
                                       "",
                                       {"layer_types", "linear_attn_alpha_factor", "linear_attn_beta_factor", "full_attn_alpha_factor",
                                        "full_attn_beta_factor", "mlp_alpha_factor", "mlp_beta_factor"}}};
const KeyTable kMiniMaxReleases{
    {computed,
     "",
     {"attn_type_list", "rotary_dim", "layernorm_linear_attention_alpha", "layernorm_linear_attention_beta",
      "layernorm_full_attention_alpha", "layernorm_full_attention_beta", "layernorm_mlp_alpha", "layernorm_mlp_beta"}},
    {fixed, "true", {"postnorm"}},
    {fixed, "0", {"shared_intermediate_size"}},
    {harmless, "there is no shared expert", {"shared_moe_mode"}}};

// ------------------------------------------------------------------------------------------------- Zamba, Zamba2 (spec §17.7)

const KeyTable kZambas{{computed,
                        "",
                        {"layers_block_type", "attention_hidden_size", "attention_head_dim", "num_attention_heads", "num_key_value_heads",
                         "rms_norm_eps", "n_mamba_heads", "mamba_d_state", "mamba_d_conv", "mamba_expand"}},
                       {harmless, "which kernel does it, not what it does", {"use_associative_scan", "use_mem_eff_path", "chunk_size"}},
                       {harmless, "initialisation and training", {"time_step_max", "time_step_floor"}}};
const KeyTable kZamba{
    {computed, "", {"hidden_mamba_act", "attn_layer_period", "attn_layer_offset", "mamba_dt_rank", "mamba_conv_bias", "mamba_proj_bias"}},
    {harmless, "no position is told, and nothing is cut off", {"max_position_embeddings"}},
    {harmless, "initialisation and training", {"time_step_min"}}};
const KeyTable kZamba2{{computed,
                        "",
                        {"hybrid_layer_ids", "num_mem_blocks", "adapter_rank", "mamba_headdim", "mamba_ngroups", "use_mem_rope",
                         "use_shared_attention_adapter", "time_step_min", "time_step_limit"}},
                       {fixed, "false", {"use_long_context"}},
                       {harmless, "the convolution always has a bias", {"use_conv_bias"}},
                       {harmless, "the reference does not read it", {"kv_channels", "num_query_groups"}}};

// ------------------------------------------------------------------ Hymba, log-linear Mamba-2, S4 (spec §17.9, §17.14, §17.17)

const KeyTable kHymba{{computed,
                       "",
                       {"num_attention_heads",
                        "num_key_value_heads",
                        "rms_norm_eps",
                        "mamba_d_state",
                        "mamba_d_conv",
                        "mamba_expand",
                        "mamba_dt_rank",
                        "mamba_conv_bias",
                        "mamba_proj_bias",
                        "mamba_inner_layernorms",
                        "rope",
                        "rope_theta",
                        "rope_type",
                        "max_position_embeddings",
                        "orig_max_position_embeddings",
                        "kq_norm",
                        "num_memory_tokens",
                        "sliding_window",
                        "global_attn_idx",
                        "kv_reuse_group",
                        "kv_reuse_every_i_layer",
                        "mlp_hidden_act",
                        "layer_type",
                        "attn_hidden_size",
                        "kq_head_dim",
                        "v_head_dim"}},
                      {fixed, "0", {"memory_tokens_interspersed_every"}},
                      {fixed, "1", {"num_mamba"}},
                      {fixed, "false", {"kv_weight_reuse"}},
                      {harmless, "there is one expert", {"num_experts", "num_experts_per_tok"}},
                      {harmless, "which kernel does it, not what it does", {"attn_implementation_new"}},
                      {harmless, "the sizes of Mamba say it", {"conv_dim"}},
                      {harmless, "what a call returns", {"calc_logits_for_entire_prompt"}},
                      {harmless, "how long prompts were, not what is computed", {"seq_length"}}};
const KeyTable kLogLinear{
    {computed, "", {"time_step_limit", "layer_norm_epsilon"}},
    {fixed, "4", {"hidden_ratio"}},
    {fixed, "true", {"rms_norm"}},
    {harmless, "which kernel does it, not what it does", {"fuse_swiglu"}},
    {harmless, "initialisation and training", {"time_step_rank", "time_step_min", "time_step_max", "time_step_floor"}}};
const KeyTable kS4{{computed, "", {"hidden_size", "num_hidden_layers", "vocab_size", "s4_mode", "state_size", "norm_eps"}}};

// ---------------------------------------------------------------------------------------------------- RWKV-6, RWKV-7 (spec §17.10)

const KeyTable kRwkv{{computed,
                      "",
                      {"hidden_size", "num_hidden_layers", "vocab_size", "intermediate_size", "hidden_ratio", "hidden_act", "norm_eps",
                       "norm_first", "norm_bias", "num_heads", "gate_low_rank_dim"}},
                     {fixed, "true", {"elementwise_affine"}},
                     {harmless, "which kernel does it, not what it does", {"attn_mode", "fuse_cross_entropy", "fuse_linear_cross_entropy"}},
                     {harmless, "no position is told, and nothing is cut off", {"max_position_embeddings"}}};
const KeyTable kRwkv6{{computed, "", {"expand_k", "expand_v", "proj_low_rank_dim"}},
                      {harmless, "which kernel does it, not what it does", {"fuse_norm"}}};
const KeyTable kRwkv7{{computed, "", {"head_dim", "value_dim", "fuse_norm", "decay_low_rank_dim", "a_low_rank_dim", "v_low_rank_dim"}}};

}  // namespace

std::map<std::string_view, std::vector<const KeyTable*>> recurrent_key_tables() {
  return {
      {"mamba", {&kMamba, &kMambaOfFla, &kGeneral, &kWellKnown}},
      {"falcon_mamba", {&kMamba, &kFalconMamba, &kGeneral, &kWellKnown}},
      {"jamba", {&kJamba, &kGeneral, &kWellKnown}},
      {"hymba", {&kHymba, &kHybridModel, &kGeneral, &kWellKnown}},
      {"log_linear_mamba2", {&kMamba2, &kLogLinear, &kGeneral, &kWellKnown}},
      {"s4", {&kS4, &kGeneral, &kWellKnown}},
      {"minimax", {&kMiniMaxOfTransformers, &kMiniMax, &kHybridPositions, &kHybridAttention, &kHybridModel, &kGeneral, &kWellKnown}},
      {"minimax_text_01", {&kMiniMaxReleases, &kMiniMax, &kHybridPositions, &kHybridAttention, &kHybridModel, &kGeneral, &kWellKnown}},
      {"minimax_m1", {&kMiniMaxReleases, &kMiniMax, &kHybridPositions, &kHybridAttention, &kHybridModel, &kGeneral, &kWellKnown}},
      {"zamba", {&kZamba, &kZambas, &kHybridModel, &kGeneral, &kWellKnown}},
      {"zamba2", {&kZamba2, &kZambas, &kHybridPositions, &kHybridModel, &kGeneral, &kWellKnown}},
      {"rwkv6", {&kRwkv6, &kRwkv, &kGeneral, &kWellKnown}},
      {"rwkv7", {&kRwkv7, &kRwkv, &kGeneral, &kWellKnown}},
  };
}

}  // namespace statescope

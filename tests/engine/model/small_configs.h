// Configs of models small enough to run in a test, by family; `changes` are over them.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace statescope::test {

using nlohmann::json;

/// A config with `changes` over it.
inline json with(json config, const json& changes) {
  config.update(changes);
  return config;
}

inline json small_config(const std::string& model_type, const json& changes = json::object()) {
  json config{{"model_type", model_type}, {"vocab_size", 97}, {"hidden_size", 64}, {"num_hidden_layers", 2}};
  if (!model_type.ends_with("mamba") && model_type != "mamba2") config.update({{"intermediate_size", 24}, {"num_heads", 4}});
  return with(config, changes);
}

inline json sla(const json& changes = json::object()) { return {{"sla", with({{"enabled", true}}, changes)}}; }

inline json sse_config(const char* type, const json& changes = json::object()) {
  const json sse{{"linear_attn_type", type}, {"num_heads", 2}, {"head_dim", 16}, {"num_writer", 1}, {"num_reader", 1}};
  return small_config("sse", with(sse, changes));
}

inline json qwen_config(const std::string& model_type, const json& changes = json::object()) {
  json config{{"model_type", model_type},
              {"vocab_size", 97},
              {"hidden_size", 64},
              {"num_hidden_layers", 2},
              {"intermediate_size", 24},
              {"layer_types", {"linear_attention", "full_attention"}},
              {"head_dim", 16},
              {"num_attention_heads", 4},
              {"num_key_value_heads", 2},
              {"linear_num_key_heads", 2},
              {"linear_num_value_heads", 4},
              {"linear_key_head_dim", 12},
              {"linear_value_head_dim", 20}};
  const json experts{
      {"num_experts", 4}, {"num_experts_per_tok", 2}, {"moe_intermediate_size", 12}, {"shared_expert_intermediate_size", 16}};
  if (model_type != "qwen3_5_text") config.update(experts);
  return with(config, changes);
}

/// A hybrid of Mamba-2 in Transformers' keys, with sizes that are no multiple of anything.
inline json mamba_hybrid_config(const std::string& model_type, const json& changes = json::object()) {
  const json config{{"model_type", model_type}, {"vocab_size", 97},         {"hidden_size", 64},   {"num_hidden_layers", 2},
                    {"intermediate_size", 24},  {"num_attention_heads", 4}, {"mamba_n_heads", 8},  {"mamba_d_head", 16},
                    {"num_key_value_heads", 2}, {"mamba_d_state", 12},      {"mamba_n_groups", 2}, {"mamba_expand", 2}};
  return with(config, changes);
}

inline json nemotron_config(const std::string& pattern, const json& changes = json::object()) {
  const json config{{"model_type", "nemotron_h"},
                    {"vocab_size", 97},
                    {"hidden_size", 64},
                    {"hybrid_override_pattern", pattern},
                    {"mamba_num_heads", 6},
                    {"mamba_head_dim", 12},
                    {"ssm_state_size", 10},
                    {"n_groups", 2},
                    {"num_attention_heads", 4},
                    {"num_key_value_heads", 2},
                    {"head_dim", 12},
                    {"intermediate_size", 24},
                    {"n_routed_experts", 8},
                    {"num_experts_per_tok", 3},
                    {"moe_intermediate_size", 12},
                    {"moe_shared_expert_intermediate_size", 20}};
  return with(config, changes);
}

inline json olmo_config(const json& changes = json::object()) {
  const json config{{"model_type", "olmo_hybrid"},
                    {"vocab_size", 97},
                    {"hidden_size", 64},
                    {"num_hidden_layers", 2},
                    {"intermediate_size", 24},
                    {"num_attention_heads", 4},
                    {"layer_types", {"linear_attention", "full_attention"}}};
  return with(config, changes);
}

inline json kimi_config(const json& changes = json::object()) {
  const json config{
      {"model_type", "kimi_linear"},
      {"vocab_size", 97},
      {"hidden_size", 64},
      {"num_hidden_layers", 3},
      {"intermediate_size", 32},
      {"linear_attn_config",
       {{"kda_layers", {1, 3}}, {"full_attn_layers", {2}}, {"num_heads", 2}, {"head_dim", 16}, {"short_conv_kernel_size", 4}}},
      {"num_attention_heads", 2},
      {"kv_lora_rank", 16},
      {"qk_nope_head_dim", 12},
      {"qk_rope_head_dim", 8},
      {"v_head_dim", 12},
      {"num_experts", 6},
      {"num_experts_per_token", 2},
      {"moe_intermediate_size", 12},
      {"routed_scaling_factor", 2.446}};
  return with(config, changes);
}

/// MiniMax in the keys of Transformers, or of the first releases.
inline json minimax_config(const std::string& model_type, const json& changes = json::object()) {
  const json config{{"model_type", model_type}, {"vocab_size", 97},         {"hidden_size", 64},        {"num_hidden_layers", 2},
                    {"intermediate_size", 12},  {"num_attention_heads", 4}, {"num_key_value_heads", 2}, {"head_dim", 12},
                    {"num_local_experts", 4},   {"num_experts_per_tok", 2}};
  const json released{{"attn_type_list", {0, 1}}, {"rotary_dim", 8},           {"layernorm_linear_attention_alpha", 2.2},
                      {"postnorm", true},         {"layernorm_mlp_beta", 0.7}, {"layernorm_full_attention_alpha", 1.7}};
  return with(config, with(model_type == "minimax" ? json::object() : released, changes));
}

/// A layer of Mamba alone, two that begin with the shared block.
inline json zamba_config(const std::string& model_type, const json& changes = json::object()) {
  const json config{{"model_type", model_type}, {"vocab_size", 97},        {"hidden_size", 40},
                    {"num_hidden_layers", 3},   {"intermediate_size", 24}, {"num_attention_heads", 4},
                    {"mamba_d_state", 6},       {"mamba_expand", 2},       {"layers_block_type", {"mamba", "hybrid", "hybrid"}}};
  const json second{{"n_mamba_heads", 8}, {"adapter_rank", 5}, {"mamba_ngroups", 2}};
  return with(config, with(model_type == "zamba2" ? second : json::object(), changes));
}

/// A layer that sees all, two that share keys and values and see a window.
inline json hymba_config(const json& changes = json::object()) {
  const json config{{"model_type", "hymba"},     {"vocab_size", 97},        {"hidden_size", 48},
                    {"num_hidden_layers", 3},    {"intermediate_size", 24}, {"num_attention_heads", 4},
                    {"num_key_value_heads", 2},  {"mamba_d_state", 6},      {"rope", true},
                    {"num_memory_tokens", 5},    {"sliding_window", 9},     {"global_attn_idx", {0}},
                    {"kv_reuse_group", {{1, 2}}}};
  return with(config, changes);
}

inline json log_linear_config(const json& changes = json::object()) {
  const json config{{"model_type", "log_linear_mamba2"},
                    {"vocab_size", 97},
                    {"hidden_size", 48},
                    {"num_hidden_layers", 2},
                    {"expand", 1},
                    {"head_dim", 12},
                    {"state_size", 6}};
  return with(config, changes);
}

inline json s4_config(const char* mode, const json& changes = json::object()) {
  const json config{{"model_type", "s4"},     {"vocab_size", 97}, {"hidden_size", 40},
                    {"num_hidden_layers", 2}, {"s4_mode", mode},  {"state_size", 10}};
  return with(config, changes);
}

/// Heads of 16 channels.
inline json rwkv_config(const std::string& model_type, const json& changes = json::object()) {
  const json config{
      {"model_type", model_type}, {"vocab_size", 97}, {"hidden_size", 64}, {"num_hidden_layers", 3}, {"intermediate_size", 40}};
  const json seventh{{"head_dim", 16}, {"decay_low_rank_dim", 6}, {"a_low_rank_dim", 5}, {"v_low_rank_dim", 4}, {"gate_low_rank_dim", 7}};
  const json sixth{{"num_heads", 4}, {"proj_low_rank_dim", 3}, {"gate_low_rank_dim", 6}};
  return with(config, with(model_type == "rwkv7" ? seventh : sixth, changes));
}

inline json deepseek_config(const json& changes = json::object()) {
  const json config{{"model_type", "deepseek_v3"}, {"vocab_size", 97},           {"hidden_size", 64},          {"num_hidden_layers", 2},
                    {"intermediate_size", 32},     {"num_attention_heads", 2},   {"kv_lora_rank", 16},         {"qk_nope_head_dim", 12},
                    {"qk_rope_head_dim", 8},       {"v_head_dim", 12},           {"first_k_dense_replace", 1}, {"n_routed_experts", 6},
                    {"num_experts_per_tok", 2},    {"moe_intermediate_size", 12}};
  return with(config, changes);
}

/// DeepSeek-V3.2: the same with an indexer.
inline json indexed_config(const json& changes = json::object()) {
  const json config = deepseek_config(
      {{"model_type", "deepseek_v32"}, {"q_lora_rank", 20}, {"index_n_heads", 3}, {"index_head_dim", 14}, {"index_topk", 7}});
  return with(config, changes);
}

inline json lfm2_config(const std::string& model_type, const json& changes = json::object()) {
  const json config{
      {"model_type", model_type}, {"vocab_size", 97},         {"hidden_size", 64},        {"num_hidden_layers", 2},
      {"intermediate_size", 13},  {"num_attention_heads", 4}, {"num_key_value_heads", 2}, {"layer_types", {"conv", "full_attention"}}};
  const json experts{{"num_dense_layers", 1}, {"num_experts", 5}, {"num_experts_per_tok", 2}, {"moe_intermediate_size", 12}};
  return with(config, with(model_type == "lfm2_moe" ? experts : json{{"block_multiple_of", 8}}, changes));
}

/// The first layer is Mamba-1 with an MLP, the second attention with experts, and so on.
inline json jamba_config(const json& changes = json::object()) {
  const json config{{"model_type", "jamba"},   {"vocab_size", 97},         {"hidden_size", 64},        {"num_hidden_layers", 4},
                    {"intermediate_size", 24}, {"num_attention_heads", 4}, {"num_key_value_heads", 2}, {"attn_layer_period", 2},
                    {"attn_layer_offset", 1},  {"num_experts", 4},         {"mamba_d_state", 8}};
  return with(config, changes);
}

inline json pattern(const char* type, const json& keys) { return {{"attn_pattern", with({{"type", type}}, keys)}}; }

/// Of two layers, four heads and the first 48 tokens in blocks of four.
inline json random_blocks() {
  json all = json::array();
  for (int layer = 0; layer < 2; ++layer) {
    for (int head = 0; head < 4; ++head) {
      for (int block = 0; block < 12; ++block) {
        json& list = all[static_cast<std::size_t>(layer)][static_cast<std::size_t>(head)][static_cast<std::size_t>(block)];
        list = json::array();
        if (block > 3) list.push_back((5 * block + head + 2 * layer) % block);
      }
    }
  }
  return all;
}

}  // namespace statescope::test

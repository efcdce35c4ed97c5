// Models small enough to run in a test, of every family and with every switch; their weights are drawn from a fixed seed.
#pragma once

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "engine/model/random_checkpoint.h"
#include "tests/engine/model/small_configs.h"

namespace statescope::test {

struct SmallModel {
  std::string name;
  json config;
};

/// Every family, every switch that changes the mathematics, sizes that are no multiple of anything, and hybrids.
inline std::vector<SmallModel> small_models() {
  const json awkward{{"hidden_size", 60}, {"num_heads", 3}};
  const json window{{"layers", {1}}, {"num_heads", 4}, {"num_kv_heads", 2}, {"window_size", 9}};
  const json moba{{"layers", {1}},    {"num_heads", 4},       {"num_kv_heads", 2}, {"qk_norm", true},
                  {"window_size", 9}, {"moba_chunk_size", 8}, {"moba_topk", 3}};
  const json swa{{"num_hidden_layers", 2}, {"head_dim", 16}, {"num_writer", 2}, {"num_reader", 2}, {"attn", moba}};
  return {
      {"transformer", small_config("transformer", {{"num_kv_heads", 2}, {"qkv_bias", true}})},
      {"transformer, window, qk_norm, 20 channels", small_config("transformer", with(awkward, {{"window_size", 9}, {"qk_norm", true}}))},
      {"moba", small_config("moba", {{"num_kv_heads", 2}, {"qk_norm", true}, {"moba_chunk_size", 8}, {"moba_topk", 3}})},
      {"moba, 20 channels, bias, no gate",
       small_config("moba", with(awkward, {{"qkv_bias", true}, {"moba_chunk_size", 5}, {"moba_topk", 2}, {"use_output_gate", false}}))},
      {"transformer, dilated windows, global tokens",
       small_config("transformer", pattern("longformer", {{"window", 5}, {"dilation", {1, 2, 3, 1}}, {"global_tokens", {0, 9}}}))},
      {"transformer, windows of blocks, random ones",
       small_config(
           "transformer",
           with(pattern("bigbird", {{"block_size", 4}, {"window_blocks", 2}, {"global_blocks", 1}, {"random_blocks", random_blocks()}}),
                {{"num_kv_heads", 2}}))},
      {"transformer, local blocks, vertical strides",
       small_config("transformer",
                    pattern("blocksparse", {{"block_size", 3}, {"local_blocks", 2}, {"vert_stride", 8}, {"homo_head", false}}))},
      {"nsa", small_config("nsa", {{"num_kv_heads", 2}, {"head_dim", 12}, {"block_size", 4}, {"block_counts", 4}, {"window_size", 7}})},
      {"nsa, bias, one head of keys",
       small_config(
           "nsa", {{"num_kv_heads", 1}, {"head_dim", 10}, {"qkv_bias", true}, {"block_size", 5}, {"block_counts", 3}, {"window_size", 3}})},
      {"linear_attn", small_config("linear_attn")},
      {"linear_attn identity, 20 channels, grouped",
       small_config("linear_attn", {{"hidden_size", 80}, {"num_kv_heads", 2}, {"feature_map", "identity"}})},
      {"linear_attn hedgehog", small_config("linear_attn", {{"feature_map", "hedgehog"}, {"norm_feature_map", true}})},
      {"linear_attn t2r", small_config("linear_attn", {{"feature_map", "t2r"}})},
      {"linear_attn dpfp", small_config("linear_attn", {{"feature_map", "dpfp"}})},
      {"linear_attn relu", small_config("linear_attn", {{"feature_map", "relu"}, {"tie_feature_map_qk", true}})},
      {"linear_attn elu, norms",
       small_config("linear_attn", {{"feature_map", "elu"}, {"norm_q", true}, {"norm_k", true}, {"norm_feature_map", true}})},
      {"linear_attn performer",
       small_config("linear_attn", {{"feature_map", "performer"}, {"performer_features", 24}, {"norm_feature_map", true}})},
      {"linear_attn performer, 20 channels, grouped, not normalised",
       small_config("linear_attn", {{"hidden_size", 80}, {"num_kv_heads", 2}, {"feature_map", "performer"}, {"performer_features", 7}})},
      {"retnet", small_config("retnet")},
      {"retnet, 12 channels, no gate",
       small_config("retnet", {{"hidden_size", 60}, {"num_heads", 5}, {"use_output_gate", false}, {"feature_map", "relu"}})},
      {"retnet sla", small_config("retnet", sla())},
      {"gla", small_config("gla")},
      {"gla, 20 channels, conv, no affine",
       small_config("gla", with(awkward, {{"expand_k", 1.0}, {"use_short_conv", true}, {"elementwise_affine", false}}))},
      {"gla grouped, relu, clamped, no gate",
       small_config("gla", {{"num_kv_heads", 2}, {"feature_map", "relu"}, {"clamp_min", -0.05}, {"use_output_gate", false}})},
      {"gla row-sparse", small_config("gla", {{"expand_k", 1.0}, {"row_sparse", {{"topk", 4}}}})},
      {"gla sla", small_config("gla", sla())},
      {"gla sla x", small_config("gla", sla({{"gate_input", "x"}, {"read_gate_position", "post_norm"}, {"temperature", 2.0}}))},
      {"gla sla concat, phi",
       small_config("gla", with(sla({{"gate_input", "q_concat"}, {"gate_stage", "phi"}}), {{"use_short_conv", true}}))},
      {"gla hybrid", small_config("gla", {{"attn", window}})},
      {"gla heterogeneous hybrid",
       small_config("gla", {{"num_hidden_layers", 3}, {"attn", {{{"layers", {0}}, {"num_heads", 4}, {"qkv_bias", true}}, window}}})},
      {"delta_net", small_config("delta_net")},
      {"delta_net, no conv, neg, gate",
       small_config("delta_net", with(awkward, {{"use_short_conv", false}, {"allow_neg_eigval", true}, {"use_gate", true}}))},
      {"delta_net elu, sum, no beta", small_config("delta_net", {{"qk_activation", "elu"}, {"qk_norm", "sum"}, {"use_beta", false}})},
      {"gated_deltanet", small_config("gated_deltanet", {{"head_dim", 16}, {"num_v_heads", 8}})},
      {"gated_deltanet, 20 channels, no conv, neg",
       small_config(
           "gated_deltanet",
           with(awkward,
                {{"head_dim", 20}, {"expand_v", 1.0}, {"use_short_conv", false}, {"allow_neg_eigval", true}, {"use_gate", false}}))},
      {"gated_deltanet sla", small_config("gated_deltanet", with(sla(), {{"head_dim", 16}, {"num_v_heads", 8}}))},
      {"gated_deltanet sla, phi, post_norm, no decay",
       small_config("gated_deltanet",
                    with(sla({{"gate_stage", "phi"}, {"read_gate_position", "post_norm"}, {"gdn_decay", false}}), {{"head_dim", 16}}))},
      {"gated_deltaproduct", small_config("gated_deltaproduct", {{"head_dim", 16}, {"num_householder", 2}, {"use_forget_gate", true}})},
      {"gated_deltaproduct, 3 steps, 20 channels, no conv, neg",
       small_config("gated_deltaproduct", with(awkward, {{"head_dim", 20},
                                                         {"expand_v", 1.0},
                                                         {"num_householder", 3},
                                                         {"use_short_conv", false},
                                                         {"allow_neg_eigval", true},
                                                         {"use_output_gate", false}}))},
      {"gated_deltaproduct, 1 step", small_config("gated_deltaproduct", {{"head_dim", 12}, {"use_forget_gate", true}})},
      {"kda", small_config("kda", {{"head_dim", 16}})},
      {"kda, 20 channels, no conv, neg, grouped",
       small_config(
           "kda",
           with(awkward, {{"head_dim", 20}, {"num_v_heads", 6}, {"num_heads", 3}, {"use_short_conv", false}, {"allow_neg_eigval", true}}))},
      {"kda, bounded gate", small_config("kda", {{"head_dim", 16}, {"safe_gate", true}, {"lower_bound", -5.0}})},
      {"comba", small_config("comba", {{"head_dim", 16}, {"num_v_heads", 8}})},
      {"comba, 20 channels, no conv, no gate, no inner decay",
       small_config(
           "comba",
           with(awkward,
                {{"head_dim", 20}, {"expand_v", 1.0}, {"use_short_conv", false}, {"use_output_gate", false}, {"use_inner_decay", false}}))},
      {"comba, no correction", small_config("comba", {{"head_dim", 16}, {"use_output_correction", false}})},
      {"gsa", small_config("gsa", {{"num_slots", 12}})},
      {"gsa t2r, conv, grouped",
       small_config("gsa", {{"num_slots", nullptr}, {"feature_map", "t2r"}, {"use_short_conv", true}, {"num_kv_heads", 2}})},
      {"gsa relu, 20 channels", small_config("gsa", with(awkward, {{"num_slots", 7}, {"feature_map", "relu"}}))},
      {"gsa row-sparse", small_config("gsa", {{"num_slots", 12}, {"num_kv_heads", 2}, {"row_sparse", {{"topk", 3}}}})},
      {"hgrn2", small_config("hgrn2", {{"expand_ratio", 16}, {"num_hidden_layers", 3}})},
      {"hgrn2, 20 channels, conv, no bounds",
       small_config("hgrn2", with(awkward, {{"expand_ratio", 8}, {"use_short_conv", true}, {"use_lower_bound", false}}))},
      {"metala", small_config("metala")},
      {"metala row-sparse, 20 channels", small_config("metala", with(awkward, {{"expand_k", 1.0}, {"row_sparse", {{"topk", 5}}}}))},
      {"metala, one row a token", small_config("metala", {{"expand_k", 0.25}, {"row_sparse", {{"topk", 1}}}})},
      {"mom", small_config("mom", {{"head_dim", 16}})},
      {"mom, no shared memory", small_config("mom", {{"head_dim", 12}, {"shared_mem", false}, {"topk", 1}, {"use_output_gate", false}})},
      {"mom, one projection", small_config("mom", {{"head_dim", 16}, {"single_kv_proj", true}, {"attn", window}})},
      {"mamba2", small_config("mamba2", {{"head_dim", 16}, {"state_size", 12}, {"n_groups", 2}})},
      {"mamba2 D per channel, biases, no norm", small_config("mamba2", {{"hidden_size", 60},
                                                                        {"head_dim", 20},
                                                                        {"state_size", 16},
                                                                        {"D_has_hdim", true},
                                                                        {"use_bias", true},
                                                                        {"rmsnorm", false},
                                                                        {"dt_limit", {0.2, 0.8}}})},
      {"mamba2 norm before gate", small_config("mamba2", {{"head_dim", 16}, {"state_size", 16}, {"norm_before_gate", true}})},
      {"mamba", small_config("mamba", {{"state_size", 8}})},
      {"mamba, 60 channels, biases, one of the convolution less",
       small_config("mamba", {{"hidden_size", 60}, {"expand", 1}, {"use_bias", true}, {"use_conv_bias", false}, {"time_step_rank", 3}})},
      {"falcon_mamba", small_config("falcon_mamba", {{"state_size", 12}})},
      {"jamba", jamba_config()},
      {"sse gla", sse_config("gla")},
      {"sse gla n4k2, conv", sse_config("gla", {{"num_writer", 2}, {"num_reader", 2}, {"use_short_conv", true}, {"conv_bias", true}})},
      {"sse gla, 12 channels, softmax",
       sse_config("gla", {{"hidden_size", 60}, {"head_dim", 12}, {"expand_v", 1.75}, {"use_q_softmax", true}, {"use_output_gate", false}})},
      {"sse gla silu keys, conv first",
       sse_config("gla", {{"use_k_softmax", false}, {"use_short_conv", true}, {"sparse_branch_after_conv", true}})},
      {"sse gla ungated, w1 r3", sse_config("gla", {{"num_reader", 3}, {"emulq", false}, {"emulk", false}})},
      {"sse gla w3 r1, grouped", sse_config("gla", {{"num_writer", 3}, {"num_v_heads", 4}})},
      {"sse gdn", sse_config("gdn")},
      {"sse gdn n4k2, post_l2, conv",
       sse_config("gdn", {{"num_writer", 2}, {"num_reader", 2}, {"sse_gdn_gate", "post_l2"}, {"use_short_conv", true}})},
      {"sse gdn grouped, neg, w2 r3",
       sse_config("gdn",
                  {{"num_writer", 2}, {"num_reader", 3}, {"num_v_heads", 6}, {"allow_neg_eigval", true}, {"sse_gdn_gate", "post_l2"}})},
      {"sse gdn softmax keys, many partitions",
       sse_config("gdn", {{"num_sparse_partition", 9}, {"use_k_softmax", true}, {"use_q_softmax", true}})},
      {"sse v1", sse_config("gla", {{"num_writer", 2}, {"num_reader", 2}, {"sse_formulation", "v1"}})},
      {"sse v1 joint", sse_config("gla", {{"num_writer", 2}, {"num_reader", 2}, {"sse_formulation", "v1"}, {"v1_joint_softmax", true}})},
      {"sse hybrid", sse_config("gla", {{"attn", window}})},
      {"sse swa moba gdn", small_config("sse_swa_moba", swa)},
      {"sse swa moba gla", small_config("sse_swa_moba", with(swa, {{"linear_attn_type", "gla"},
                                                                   {"num_hidden_layers", 3},
                                                                   {"attn", with(moba, {{"full_layers", {2}}, {"qkv_bias", true}})}}))},
      {"qwen3_next", qwen_config("qwen3_next")},
      {"qwen3_5", qwen_config("qwen3_5_text")},
      {"mamba2 of Transformers", small_config("mamba2", {{"num_heads", 8},
                                                         {"head_dim", 16},
                                                         {"state_size", 12},
                                                         {"n_groups", 4},
                                                         {"time_step_limit", {0.1, 0.9}},
                                                         {"layer_norm_epsilon", 1e-5},
                                                         {"use_bias", true}})},
      {"nemotron_h", nemotron_config("M*-E", {{"use_bias", true}, {"attention_bias", true}})},
      {"nemotron_h, a latent for the experts, groups of them",
       nemotron_config("M*-E", {{"moe_latent_size", 20}, {"n_group", 4}, {"topk_group", 2}, {"routed_scaling_factor", 2.5}})},
      {"bamba", mamba_hybrid_config("bamba", {{"attn_layer_indices", {1}}, {"mlp_bias", true}, {"mamba_proj_bias", true}})},
      {"granitemoehybrid", mamba_hybrid_config("granitemoehybrid", {{"layer_types", {"mamba", "attention"}},
                                                                    {"num_local_experts", 5},
                                                                    {"num_experts_per_tok", 2},
                                                                    {"shared_intermediate_size", 20},
                                                                    {"embedding_multiplier", 3.0},
                                                                    {"residual_multiplier", 0.22},
                                                                    {"attention_multiplier", 0.09},
                                                                    {"logits_scaling", 4.0}})},
      {"granitemoehybrid dense, rope", mamba_hybrid_config("granitemoehybrid", {{"layer_types", {"linear_attention", "full_attention"}},
                                                                                {"shared_intermediate_size", 20},
                                                                                {"position_embedding_type", "rope"}})},
      {"falcon_h1", mamba_hybrid_config("falcon_h1", {{"mamba_d_ssm", 96},
                                                      {"mamba_n_heads", 6},
                                                      {"ssm_multipliers", {0.7, 0.5, 0.6, 0.8, 0.4}},
                                                      {"ssm_in_multiplier", 1.3},
                                                      {"ssm_out_multiplier", 0.7},
                                                      {"attention_in_multiplier", 1.1},
                                                      {"attention_out_multiplier", 0.9},
                                                      {"key_multiplier", 0.5},
                                                      {"mlp_multipliers", {0.8, 0.6}},
                                                      {"embedding_multiplier", 1.7},
                                                      {"lm_head_multiplier", 0.3}})},
      {"falcon_h1, norm before the gate, biases", mamba_hybrid_config("falcon_h1", {{"mamba_rms_norm", true},
                                                                                    {"mamba_norm_before_gate", true},
                                                                                    {"ssm_multipliers", {0.7, 0.5, 0.6, 0.8, 0.4}},
                                                                                    {"mamba_proj_bias", true},
                                                                                    {"projectors_bias", true},
                                                                                    {"mlp_bias", true}})},
      {"olmo_hybrid", olmo_config({{"rope_parameters", {{"rope_theta", nullptr}}}})},
      {"olmo_hybrid, grouped values, rope", olmo_config({{"linear_num_key_heads", 2},
                                                         {"linear_key_head_dim", 10},
                                                         {"linear_value_head_dim", 14},
                                                         {"linear_allow_neg_eigval", false},
                                                         {"rope_parameters", {{"rope_theta", 500.0}}}})},
      {"lfm2", lfm2_config("lfm2", {{"conv_bias", true}, {"conv_L_cache", 4}})},
      {"lfm2_moe", lfm2_config("lfm2_moe")},
      {"zamba", zamba_config("zamba")},
      {"zamba, four heads, grouped keys, biases", zamba_config("zamba", {{"n_mamba_heads", 4},
                                                                         {"num_key_value_heads", 2},
                                                                         {"mamba_proj_bias", true},
                                                                         {"mamba_dt_rank", 4},
                                                                         {"layers_block_type", nullptr}})},
      {"zamba2", zamba_config("zamba2", {{"use_mem_rope", true}, {"use_shared_attention_adapter", true}})},
      {"zamba2, two blocks, no positions",
       zamba_config("zamba2",
                    {{"num_hidden_layers", 4}, {"num_mem_blocks", 2}, {"layers_block_type", {"hybrid", "hybrid", "mamba", "hybrid"}}})},
      {"hymba", hymba_config()},
      {"hymba, no memory tokens, bias, no inner norms",
       hymba_config({{"num_memory_tokens", 0}, {"mamba_proj_bias", true}, {"mamba_inner_layernorms", false}, {"kq_norm", "rms"}})},
      {"hymba, every second layer, norms of heads, relu2, no window", hymba_config({{"kv_reuse_group", nullptr},
                                                                                    {"kv_reuse_every_i_layer", 2},
                                                                                    {"kq_norm", "perhead-rms"},
                                                                                    {"mlp_hidden_act", "relu2"},
                                                                                    {"sliding_window", nullptr},
                                                                                    {"rope", false}})},
      {"log_linear_mamba2", log_linear_config()},
      {"log_linear_mamba2, groups, channels have D", log_linear_config({{"n_groups", 2}, {"D_has_hdim", true}, {"expand", 2}})},
      {"s4 diag", s4_config("diag")},
      {"s4 hippo", s4_config("hippo")},
      {"rwkv6", rwkv_config("rwkv6")},
      {"rwkv6, 20 channels, no biases, no first norm",
       rwkv_config("rwkv6", {{"hidden_size", 60}, {"num_heads", 3}, {"expand_k", 1.0}, {"norm_bias", false}, {"norm_first", false}})},
      {"rwkv7", rwkv_config("rwkv7")},
      {"rwkv7, wider values", rwkv_config("rwkv7", {{"value_dim", {96, 96, 96}}})},
      {"rwkv7, narrower values", rwkv_config("rwkv7", {{"value_dim", 48}})},
      {"rwkv7, 20 channels, exact unit keys",
       rwkv_config("rwkv7",
                   {{"hidden_size", 60}, {"head_dim", 20}, {"fuse_norm", false}, {"intermediate_size", nullptr}, {"hidden_ratio", 2}})},
      {"minimax", minimax_config("minimax", {{"num_attention_heads", 6},
                                             {"linear_attn_alpha_factor", 3.5565588200778455},
                                             {"full_attn_beta_factor", 0.8},
                                             {"mlp_alpha_factor", 2.5}})},
      {"minimax_text_01", minimax_config("minimax_text_01")},
      {"deepseek_v3", deepseek_config({{"q_lora_rank", 20}, {"n_group", 3}, {"topk_group", 1}})},
      {"deepseek_v3, dense, halves turn, biases", deepseek_config({{"first_k_dense_replace", nullptr},
                                                                   {"n_routed_experts", nullptr},
                                                                   {"num_experts_per_tok", nullptr},
                                                                   {"moe_intermediate_size", nullptr},
                                                                   {"rope_interleave", false},
                                                                   {"attention_bias", true}})},
      {"deepseek_v32", indexed_config({{"mlp_layer_types", {"sparse", "dense"}}, {"n_group", 3}, {"topk_group", 1}})},
      {"kimi_linear", kimi_config({{"num_experts", nullptr},
                                   {"num_experts_per_token", nullptr},
                                   {"moe_intermediate_size", nullptr},
                                   {"routed_scaling_factor", nullptr}})},
      {"kimi_linear, experts, latent queries", kimi_config({{"q_lora_rank", 20}, {"num_expert_group", 3}, {"topk_group", 2}})},
  };
}

/// A checkpoint whose tensors may be changed, added and renamed.
class Editable {
 public:
  explicit Editable(const json& config, std::uint64_t seed = 1) : Editable(*random_checkpoint(Config(config), seed)) {}
  explicit Editable(const Checkpoint& original) : copy_(std::make_shared<Checkpoint>(original)) {
    for (StoredTensor& tensor : copy_->tensors) own(tensor);
  }

  json config() const { return json::parse(copy_->config); }
  Editable& set(const json& changes) {
    copy_->config = with(config(), changes).dump();
    return *this;
  }
  StoredTensor& tensor(const std::string& name) {
    for (StoredTensor& tensor : copy_->tensors) {
      if (tensor.name == name) return tensor;
    }
    throw std::logic_error("no tensor " + name);
  }
  std::span<float> floats(const std::string& name) {
    const StoredTensor& found = tensor(name);
    return {reinterpret_cast<float*>(const_cast<std::byte*>(found.data)), static_cast<std::size_t>(found.size())};
  }
  /// Of every tensor whose name ends so.
  Editable& each(std::string_view ending, const std::function<void(std::span<float>)>& change) {
    bool found = false;
    for (const StoredTensor& tensor : copy_->tensors) {
      if (!tensor.name.ends_with(ending)) continue;
      change(floats(tensor.name));
      found = true;
    }
    if (!found) throw std::logic_error("no tensor ends with " + std::string(ending));
    return *this;
  }
  Editable& fill(std::string_view ending, float value) {
    return each(ending, [&](std::span<float> values) { std::fill(values.begin(), values.end(), value); });
  }
  /// The first occurrence of `from` in every name becomes `to`.
  Editable& rename(const std::string& from, const std::string& to) {
    for (StoredTensor& tensor : copy_->tensors) {
      if (const std::size_t at = tensor.name.find(from); at != tensor.name.npos) tensor.name.replace(at, from.size(), to);
    }
    return sorted();
  }
  Editable& add(const std::string& name, std::vector<std::int64_t> shape, const std::vector<float>& values) {
    copy_->tensors.push_back({name, DType::f32, std::move(shape), reinterpret_cast<const std::byte*>(values.data())});
    own(copy_->tensors.back());
    return sorted();
  }
  Editable& erase(std::string_view ending) {
    std::erase_if(copy_->tensors, [&](const StoredTensor& tensor) { return tensor.name.ends_with(ending); });
    return *this;
  }

  std::shared_ptr<const Checkpoint> checkpoint() const { return copy_; }
  std::shared_ptr<Model> model() const { return Model::load(copy_, make_cpu_backend(1)); }

 private:
  void own(StoredTensor& tensor) {
    const std::shared_ptr<std::byte[]> bytes(new std::byte[static_cast<std::size_t>(tensor.bytes())]);
    std::memcpy(bytes.get(), tensor.data, static_cast<std::size_t>(tensor.bytes()));
    tensor.data = bytes.get();
    copy_->storage.push_back(bytes);
  }
  Editable& sorted() {
    std::sort(copy_->tensors.begin(), copy_->tensors.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return *this;
  }
  std::shared_ptr<Checkpoint> copy_;
};

/// The same ids in every run of the tests.
inline std::vector<std::int32_t> some_ids(std::int64_t count, std::int64_t vocab = 97, std::uint32_t seed = 7) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(vocab)));
  return ids;
}

/// Reads more tokens; returns their logits [T, V].
inline std::vector<float> read_logits(Model& model, ModelState& state, std::span<const std::int32_t> ids, const ForwardOptions& options,
                                      Observer* observer = nullptr) {
  const auto T = static_cast<std::int64_t>(ids.size());
  std::vector<float> hidden(static_cast<std::size_t>(T * model.hidden()), std::nanf("")),
      logits(static_cast<std::size_t>(T * model.vocab()), std::nanf(""));
  Tensor x(hidden.data(), DType::f32, {T, model.hidden()}), y(logits.data(), DType::f32, {T, model.vocab()});
  model.forward(state, ids, options, x, observer);
  model.logits(y, x);
  return logits;
}

inline std::vector<float> logits_of(Model& model, std::span<const std::int32_t> ids, std::int64_t chunk_size = 64) {
  ModelState state = model.start();
  return read_logits(model, state, ids, {.chunk_size = chunk_size, .prompt_length = static_cast<std::int64_t>(ids.size())});
}

}  // namespace statescope::test

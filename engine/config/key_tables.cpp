#include "engine/config/key_tables.h"

#include "engine/config/key_lists.h"

namespace statescope {

using enum KeyUse;

// ---------------------------------------------------------------------------------------------------------- keys of any model

/// What the base class of Transformers' configs writes, and what others add to any config.
const KeyTable kGeneral{
    {computed, "", {"model_type", "tie_word_embeddings", "quantization_config", "compression_config"}},
    {harmless,
     "who wrote the file, and with what",
     {"transformers_version", "_name_or_path", "name_or_path", "_commit_hash", "architectures", "auto_map", "custom_pipelines",
      "unsloth_version", "unsloth_fixed", "unsloth_optimized", "model_name", "tokenizer_class", "_diffusers_version", "_comment"}},
    {harmless, "the tensors say their type", {"torch_dtype", "dtype", "use_bfloat16", "mamba_ssm_dtype"}},
    {harmless,
     "how a program runs it, not what it computes",
     {"use_cache", "torchscript", "tf_legacy_loss", "chunk_size_feed_forward", "attn_implementation", "_attn_implementation",
      "_attn_implementation_internal", "_attn_implementation_autoset", "_flash_attn_2_enabled", "experts_implementation",
      "_experts_implementation", "gradient_checkpointing", "use_flash_attn", "use_flash_attention", "pretraining_tp", "is_decoder",
      "tie_encoder_decoder", "use_mamba_kernels", "cache_implementation"}},
    {harmless,
     "what a call returns",
     {"return_dict", "output_attentions", "output_hidden_states", "output_scores", "return_dict_in_generate", "output_router_logits",
      "num_logits_to_keep", "tie_last_hidden_states"}},
    {harmless,
     "initialisation and training",
     {"initializer_range", "initializer_factor", "attention_dropout", "hidden_dropout", "residual_dropout", "embedding_dropout",
      "resid_pdrop", "embd_pdrop", "attn_pdrop", "classifier_dropout", "dropout", "router_aux_loss_coef", "router_z_loss_coef",
      "router_jitter_noise", "aux_loss_alpha", "seq_aux", "rescale_prenorm_residual", "use_l2warp"}},
    {harmless,
     "special tokens: the tokenizer and the prompt say them",
     {"bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "decoder_start_token_id", "unk_token_id", "image_token_id",
      "video_token_id", "audio_token_id", "vision_start_token_id", "vision_end_token_id", "image_token_index", "video_token_index",
      "vision_token_id"}},
    {harmless,
     "generation: the command says it",
     {"max_length",
      "min_length",
      "max_new_tokens",
      "do_sample",
      "early_stopping",
      "num_beams",
      "num_beam_groups",
      "diversity_penalty",
      "temperature",
      "top_k",
      "top_p",
      "min_p",
      "typical_p",
      "repetition_penalty",
      "length_penalty",
      "no_repeat_ngram_size",
      "encoder_no_repeat_ngram_size",
      "bad_words_ids",
      "num_return_sequences",
      "forced_bos_token_id",
      "forced_eos_token_id",
      "remove_invalid_values",
      "exponential_decay_length_penalty",
      "suppress_tokens",
      "begin_suppress_tokens",
      "prefix",
      "generation_config"}},
    {harmless,
     "other tasks than the next token",
     {"id2label", "label2id", "num_labels", "problem_type", "finetuning_task", "task_specific_params", "summary_type", "summary_use_proj",
      "summary_activation", "summary_proj_to_labels", "summary_first_dropout"}},
    {fixed, "false", {"is_encoder_decoder", "add_cross_attention"}},
    {fixed, "{}", {"pruned_heads", "per_layer_config"}},
};

/// Switches and factors that several families have, with the value at which they do nothing. A family that computes with one lists it.
const KeyTable kWellKnown{
    {fixed,
     "false",
     {"attention_bias",
      "qkv_bias",
      "mlp_bias",
      "use_bias",
      "bias",
      "add_bias_linear",
      "add_qkv_bias",
      "attention_out_bias",
      "lm_head_bias",
      "conv_bias",
      "norm_bias",
      "use_sliding_window",
      "qk_norm",
      "use_qk_norm",
      "qk_layernorm",
      "use_qk_layernorm",
      "scale_embeddings",
      "scale_depth",
      "normalize_embeddings",
      "use_parallel_residual",
      "parallel_attn",
      "alibi",
      "use_alibi",
      "rope_interleaved",
      "interleaved_rope",
      "use_elu",
      "use_rope",
      "use_residual",
      "use_mrope",
      "moe",
      "use_moe",
      "sse_qk_relu",
      "row_sparse",
      "allow_neg_eigval",
      "use_attention_sinks"}},
    {fixed, "true", {"attn_output_gate", "norm_topk_prob", "is_causal"}},
    {fixed,
     "1",
     {"logit_scale", "logits_scaling", "logits_scale", "embedding_multiplier", "embedding_scale", "residual_multiplier", "residual_scale",
      "lm_head_multiplier", "mup_width_multiplier", "rotary_pct", "rope_percent", "routed_scaling_factor", "decoder_sparse_step"}},
    {fixed, "0", {"num_experts", "num_local_experts", "n_routed_experts", "n_shared_experts", "num_shared_experts"}},
    {fixed, "[]", {"mlp_only_layers", "sliding_window_layers", "no_rope_layers"}},
    {fixed, "head_dim", {"query_pre_attn_scalar"}},
    {fixed, "head_dim^-1/2", {"attention_multiplier", "attention_scale"}},
    {with, "use_sliding_window", {"sliding_window"}},
    {harmless, "bounds a sliding window, which is refused where there is one", {"max_window_layers"}},
};

// --------------------------------------------------------------------------- of models that Transformers has (spec §19.1, §19.2)

const KeyTable kHybridModel{{computed, "", {"hidden_size", "num_hidden_layers", "vocab_size", "intermediate_size", "hidden_act"}}};
const KeyTable kHybridAttention{{computed, "", {"num_attention_heads", "num_key_value_heads", "head_dim", "attention_bias"}}};
const KeyTable kHybridPositions{{computed,
                                 "",
                                 {"rope_parameters", "rope_scaling", "rope_theta", "partial_rotary_factor", "max_position_embeddings",
                                  "original_max_position_embeddings"}}};
const KeyTable kNoPositions{{harmless,
                             "there are no positions",
                             {"rope_parameters", "rope_scaling", "rope_theta", "partial_rotary_factor", "max_position_embeddings"}}};
const KeyTable kTimeSteps{
    {computed, "", {"time_step_limit"}},
    {harmless,
     "initialisation and training",
     {"time_step_rank", "time_step_min", "time_step_max", "time_step_floor", "time_step_scale", "time_step_init_scheme"}},
    {harmless, "everything is float32 here", {"residual_in_fp32", "mamba_ssm_cache_dtype"}},
    {harmless, "which kernel does it, not what it does", {"chunk_size", "mamba_chunk_size"}}};

const KeyTable kMamba2{
    {computed,
     "",
     {"hidden_size", "num_hidden_layers", "vocab_size", "norm_eps", "hidden_act", "head_dim", "num_heads", "state_size", "expand",
      "n_groups", "use_bias", "use_conv_bias", "conv_kernel", "D_has_hdim", "rmsnorm", "norm_before_gate", "dt_limit"}},
    {harmless, "which kernel does it, not what it does", {"chunk_size", "fuse_norm", "fuse_cross_entropy", "fuse_linear_cross_entropy"}},
    {harmless, "everything is float32 here", {"residual_in_fp32"}},
    {harmless, "initialisation and training", {"A_init_range", "dt_init_floor", "dt_max", "dt_min", "conv_init"}}};

namespace {

// ------------------------------------------------------------------------------- families of flash-linear-attention (spec §2, §3)

const KeyTable kFla{
    {computed,
     "",
     {"hidden_size", "num_hidden_layers", "vocab_size", "norm_eps", "rms_norm_eps", "hidden_ratio", "intermediate_size", "hidden_act",
      "elementwise_affine", "num_heads"}},
    {harmless,
     "which kernel does it, not what it does",
     {"attn_mode", "fuse_norm", "fuse_swiglu", "fuse_cross_entropy", "fuse_linear_cross_entropy"}},
    {harmless, "sizes a table of angles; it is no limit", {"max_position_embeddings"}},
    {harmless, "old: the tensors' names tell", {"norm_first", "share_conv_kernel"}},
};
const KeyTable kHybrid{{computed, "", {"attn"}}};
const KeyTable kExpanded{{computed, "", {"num_kv_heads", "expand_k", "expand_v", "feature_map"}}};
const KeyTable kConvolved{{computed, "", {"use_short_conv", "conv_size"}}};

const KeyTable kTransformer{
    {computed, "", {"num_kv_heads", "head_dim", "qkv_bias", "attention_bias", "qk_norm", "window_size", "rope_theta", "attn_pattern"}}};
const KeyTable kMoba{
    {computed, "", {"num_kv_heads", "qkv_bias", "qk_norm", "rope_theta", "moba_chunk_size", "moba_topk", "use_output_gate"}},
    {harmless, "which kernel does it, not what it does", {"use_flash_moba"}},
    {fixed, "null", {"window_size", "attnres_block_size"}}};
const KeyTable kNsa{{computed, "", {"num_kv_heads", "head_dim", "qkv_bias", "block_size", "block_counts", "window_size", "rope_theta"}},
                    {fixed, "null", {"attnres_block_size"}}};
const KeyTable kLinearAttention{{computed, "", {"tie_feature_map_qk", "norm_q", "norm_k", "norm_feature_map", "performer_features"}}};
const KeyTable kRetNet{{computed, "", {"use_output_gate", "sla"}},
                       {harmless, "never reaches the layer: the tensors tell", {"use_short_conv", "conv_size"}}};
const KeyTable kGla{{computed, "", {"use_output_gate", "clamp_min", "gate_logit_normalizer", "gate_low_rank_dim", "row_sparse", "sla"}},
                    {harmless, "the reference does not read it", {"use_gk", "use_gv"}}};
const KeyTable kDeltaNet{{computed, "", {"expand_k", "expand_v", "use_beta", "use_gate", "allow_neg_eigval", "qk_norm", "qk_activation"}},
                         {harmless, "the reference always normalises", {"use_output_norm"}}};
const KeyTable kGatedDeltaNet{
    {computed, "", {"head_dim", "num_v_heads", "expand_v", "use_gate", "allow_neg_eigval", "output_gate_activation", "sla"}},
    {harmless, "old: its tensor attn.D was never read", {"use_residual"}}};
const KeyTable kGatedDeltaProduct{
    {computed, "", {"head_dim", "expand_v", "num_householder", "use_forget_gate", "allow_neg_eigval", "use_output_gate"}},
    {harmless, "the reference does not hand it on", {"num_v_heads"}}};
const KeyTable kComba{
    {computed, "", {"head_dim", "num_v_heads", "expand_v", "use_output_gate", "use_inner_decay", "use_output_correction"}},
    {harmless, "initialisation and training", {"correction_factor"}}};
const KeyTable kKda{{computed, "", {"head_dim", "num_v_heads", "expand_v", "allow_neg_eigval", "lower_bound"}},
                    {harmless, "the lower bound says it", {"safe_gate"}},
                    {fixed, "null", {"attnres_block_size"}}};
const KeyTable kGsa{{computed, "", {"num_slots", "exapnd_k", "exapnd_v", "gate_logit_normalizer", "row_sparse"}},
                    {harmless, "the reference does not read it", {"use_output_gate", "use_norm", "clamp_min", "clamp_max"}}};
const KeyTable kHgrn2{{computed, "", {"expand_ratio", "use_lower_bound"}}};
const KeyTable kMetaLa{{computed, "", {"expand_k", "gate_logit_normalizer", "row_sparse"}}};
const KeyTable kMom{
    {computed, "", {"head_dim", "expand_v", "num_memories", "topk", "shared_mem", "single_kv_proj", "use_output_gate", "mom_backend"}},
    {harmless, "initialisation and training", {"aux_loss_scale", "use_layer_wise_balance"}},
    {harmless, "the reference does not read it", {"capacity"}}};
const KeyTable kSse{{computed,
                     "",
                     {"linear_attn_type", "head_dim", "num_sparse_partition", "num_writer", "num_reader", "expand_v", "use_output_gate",
                      "allow_neg_eigval"}},
                    {harmless, "which kernel does it, not what it does", {"sse_implementation"}},
                    {harmless, "initialisation and training", {"aux_loss_coef"}}};
const KeyTable kSseAlone{{computed,
                          "",
                          {"num_v_heads", "use_q_softmax", "use_k_softmax", "emulq", "emulk", "gate_logit_normalizer", "gate_low_rank_dim",
                           "conv_bias", "sparse_branch_after_conv", "sse_gdn_gate", "sse_formulation", "v1_joint_softmax"}}};
const KeyTable kSseSwaMoba{{computed, "", {"sse_qk_relu"}},
                           {fixed, "1", {"expand_v"}},
                           {harmless, "the reference does not read it", {"num_v_heads"}},
                           {harmless, "initialisation and training", {"swa_dropout"}}};

// Objects in these configs.
const KeyTable kAttn{{computed, "", {"layers", "num_heads", "num_kv_heads", "qkv_bias", "window_size", "rope_theta"}}};
const KeyTable kAttnOfMom{{computed, "", {"layers", "num_heads", "num_kv_heads", "window_size"}},
                          {harmless, "the reference does not hand it on", {"qkv_bias", "rope_theta"}}};
const KeyTable kAttnOfSseSwaMoba{{computed, "", {"full_layers", "qk_norm", "moba_chunk_size", "moba_topk"}}};
const KeyTable kAttnPattern{{computed,
                             "",
                             {"type", "window", "dilation", "global_tokens", "block_size", "window_blocks", "global_blocks",
                              "random_blocks", "local_blocks", "vert_stride", "homo_head"}}};
const KeyTable kSla{{computed, "", {"enabled", "gate_input", "gate_stage", "read_gate_position", "temperature"}}};
const KeyTable kSlaOfGatedDeltaNet{{computed, "", {"gdn_decay"}}};
const KeyTable kRowSparse{{computed, "", {"topk", "skip_decay"}}};
const KeyTable kCoupledRowSparse{{computed, "", {"topk"}}, {fixed, "true", {"skip_decay"}}};

// ------------------------------------------------------------------------------------- Qwen3-Next and Qwen3.5 (spec §8, §19.9)

const KeyTable kQwen{
    {computed,
     "",
     {"hidden_size",
      "num_hidden_layers",
      "vocab_size",
      "intermediate_size",
      "rms_norm_eps",
      "hidden_act",
      "layer_types",
      "full_attention_interval",
      "num_attention_heads",
      "num_key_value_heads",
      "head_dim",
      "attention_bias",
      "linear_num_key_heads",
      "linear_num_value_heads",
      "linear_key_head_dim",
      "linear_value_head_dim",
      "linear_conv_kernel_dim",
      "rope_parameters",
      "rope_scaling",
      "rope_theta",
      "partial_rotary_factor",
      "max_position_embeddings",
      "original_max_position_embeddings"}},
    {harmless, "heads for more than one token, which are passed over", {"mtp_num_hidden_layers", "mtp_use_dedicated_embeddings"}}};
const KeyTable kRope{{computed,
                      "",
                      {"rope_type", "type", "rope_theta", "partial_rotary_factor", "factor", "original_max_position_embeddings",
                       "attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate", "low_freq_factor",
                       "high_freq_factor", "short_factor", "long_factor"}},
                     {harmless, "the axes are equal for text", {"mrope_section", "mrope_interleaved"}},
                     {harmless, "the reference does not read it", {"finetuned", "max_position_embeddings"}}};
const KeyTable kQwenExperts{
    {computed, "", {"num_experts", "num_experts_per_tok", "moe_intermediate_size", "shared_expert_intermediate_size"}}};
const KeyTable kQwenNext{{computed, "", {"norm_topk_prob", "decoder_sparse_step", "mlp_only_layers"}}};
const KeyTable kWrapper{{computed, "", {"text_config"}},
                        {harmless, "the part for pictures is passed over", {"vision_config", "vision_start_token", "vision_end_token"}},
                        {harmless, "the tensors say whether there is such a part", {"language_model_only"}}};

// ------------------------------------------------------------------- hybrids and Mamba-2 as Transformers has them (spec §19.2 to §19.10)

const KeyTable kMambaOfHybrid{{computed,
                               "",
                               {"mamba_n_heads", "mamba_d_head", "mamba_expand", "mamba_d_state", "mamba_n_groups", "mamba_d_conv",
                                "mamba_conv_bias", "mamba_proj_bias", "rms_norm_eps"}}};
const KeyTable kMamba2OfTransformers{
    {computed,
     "",
     {"layer_norm_epsilon", "head_dim", "num_heads", "state_size", "expand", "n_groups", "use_bias", "use_conv_bias", "conv_kernel"}},
    {harmless, "the reference does not read it", {"norm_before_gate", "rms_norm", "intermediate_size", "norm_eps", "rmsnorm"}}};
const KeyTable kNemotronH{
    {computed,
     "",
     {"layers_block_type",
      "hybrid_override_pattern",
      "layer_norm_epsilon",
      "mamba_num_heads",
      "mamba_head_dim",
      "ssm_state_size",
      "n_groups",
      "conv_kernel",
      "use_conv_bias",
      "use_bias",
      "mamba_hidden_act",
      "attention_head_dim",
      "mlp_bias",
      "mlp_hidden_act",
      "n_routed_experts",
      "num_experts_per_tok",
      "moe_intermediate_size",
      "moe_shared_expert_intermediate_size",
      "moe_latent_size",
      "n_group",
      "topk_group",
      "norm_topk_prob",
      "routed_scaling_factor"}},
    {fixed, "1", {"n_shared_experts"}},
    {harmless, "the reference does not read it", {"expand", "mamba_proj_bias", "sliding_window", "norm_eps", "rms_norm_eps"}},
    {harmless, "how a program runs it, not what it computes", {"moe_shared_expert_overlap"}},
    {harmless,
     "heads for more than one token, which are passed over",
     {"num_nextn_predict_layers", "mtp_hybrid_override_pattern", "mtp_layers_block_type"}}};
const KeyTable kFalconH1{
    {computed,
     "",
     {"mamba_d_ssm", "projectors_bias", "mlp_bias", "mamba_rms_norm", "mamba_norm_before_gate", "embedding_multiplier",
      "lm_head_multiplier", "ssm_in_multiplier", "ssm_out_multiplier", "ssm_multipliers", "attention_in_multiplier",
      "attention_out_multiplier", "key_multiplier", "mlp_multipliers"}},
    {harmless, "the reference does not read it", {"attn_layer_indices", "mamba_use_mlp", "mlp_expansion_factor", "expansion_factor"}}};
const KeyTable kGraniteHybrid{{computed,
                               "",
                               {"layer_types", "embedding_multiplier", "residual_multiplier", "logits_scaling", "attention_multiplier",
                                "position_embedding_type", "num_local_experts", "num_experts_per_tok", "shared_intermediate_size"}}};
const KeyTable kBamba{{computed, "", {"attn_layer_indices", "mlp_bias"}},
                      {harmless, "half of the channels turn, whatever is said", {"attn_rotary_emb"}},
                      {harmless, "initialisation and training", {"z_loss_coefficient"}}};
const KeyTable kOlmoHybrid{{computed,
                            "",
                            {"rms_norm_eps", "layer_types", "linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim",
                             "linear_value_head_dim", "linear_conv_kernel_dim", "linear_allow_neg_eigval"}},
                           {harmless,
                            "initialisation and training",
                            {"linear_a_log_min", "linear_a_log_max", "linear_dt_min", "linear_dt_max", "linear_dt_init_floor"}},
                           {fixed, "true", {"linear_use_gate"}}};
const KeyTable kLfm2{{computed, "", {"norm_eps", "layer_types", "full_attn_idxs", "conv_bias", "conv_L_cache", "tie_embedding"}},
                     {harmless, "only repeats hidden_size and num_attention_heads", {"block_dim", "conv_dim", "conv_dim_out", "num_heads"}},
                     {harmless,
                      "the reference does not read it",
                      {"block_norm_eps", "block_use_swiglu", "block_use_xavier_init", "block_mlp_init_scale", "block_out_init_scale",
                       "conv_use_xavier_init", "use_pos_enc", "theta"}}};
const KeyTable kLfm2Dense{{computed, "", {"block_ff_dim", "block_auto_adjust_ff_dim", "block_ffn_dim_multiplier", "block_multiple_of"}}};
const KeyTable kLfm2Experts{{computed,
                             "",
                             {"num_dense_layers", "num_experts", "num_experts_per_tok", "moe_intermediate_size", "use_expert_bias",
                              "norm_topk_prob", "routed_scaling_factor"}}};

const KeyTable kKimiLinear{{computed,
                            "",
                            {"linear_attn_config",
                             "linear_num_heads",
                             "linear_head_dim",
                             "linear_conv_kernel_dim",
                             "layer_types",
                             "mlp_layer_types",
                             "rms_norm_eps",
                             "num_attention_heads",
                             "q_lora_rank",
                             "kv_lora_rank",
                             "qk_nope_head_dim",
                             "qk_rope_head_dim",
                             "v_head_dim",
                             "mla_use_nope",
                             "num_experts",
                             "num_local_experts",
                             "num_experts_per_token",
                             "num_experts_per_tok",
                             "num_shared_experts",
                             "n_shared_experts",
                             "moe_intermediate_size",
                             "first_k_dense_replace",
                             "moe_layer_freq",
                             "moe_renormalize",
                             "norm_topk_prob",
                             "routed_scaling_factor",
                             "num_expert_group",
                             "n_group",
                             "topk_group",
                             "moe_router_activation_func"}},
                           {harmless, "the sizes of latent attention say it", {"head_dim", "qk_head_dim", "num_key_value_heads"}},
                           {harmless, "the number of groups says it", {"use_grouped_topk"}},
                           {harmless, "how long prompts may be, not what is computed", {"model_max_length"}},
                           {harmless, "heads for more than one token, which are passed over", {"num_nextn_predict_layers"}}};
const KeyTable kDeepSeekV3{
    {computed,
     "",
     {"rms_norm_eps", "num_attention_heads", "q_lora_rank",      "kv_lora_rank",          "qk_nope_head_dim", "qk_rope_head_dim",
      "v_head_dim",   "attention_bias",      "rope_interleave",  "first_k_dense_replace", "n_routed_experts", "num_experts_per_tok",
      "n_group",      "topk_group",          "n_shared_experts", "moe_intermediate_size", "norm_topk_prob",   "routed_scaling_factor",
      "scoring_func", "topk_method"}},
    {fixed, "1", {"moe_layer_freq"}},
    {harmless, "the sizes of latent attention say it", {"head_dim", "qk_head_dim", "num_key_value_heads"}},
    {harmless, "how a program runs it, not what it computes", {"ep_size"}},
    {harmless, "heads for more than one token, which are passed over", {"num_nextn_predict_layers"}}};
const KeyTable kDeepSeekV32{{computed, "", {"index_n_heads", "index_head_dim", "index_topk", "layer_types", "mlp_layer_types"}},
                            {fixed, "true", {"rope_interleave"}}};
const KeyTable kLinearOfKimi{{computed, "", {"kda_layers", "full_attn_layers", "num_heads", "head_dim", "short_conv_kernel_size"}}};

// ------------------------------------------------------------------------------------------------------------------ which has what

}  // namespace

const std::map<std::string_view, std::vector<const KeyTable*>>& key_tables() {
  static const std::map<std::string_view, std::vector<const KeyTable*>> all = [] {
    std::map<std::string_view, std::vector<const KeyTable*>> rows = recurrent_key_tables();
    rows.insert({
        {"transformer", {&kTransformer, &kFla, &kGeneral, &kWellKnown}},
        {"moba", {&kMoba, &kFla, &kGeneral, &kWellKnown}},
        {"nsa", {&kNsa, &kFla, &kGeneral, &kWellKnown}},
        {"linear_attn", {&kLinearAttention, &kExpanded, &kFla, &kHybrid, &kGeneral, &kWellKnown}},
        {"retnet", {&kRetNet, &kExpanded, &kFla, &kHybrid, &kGeneral, &kWellKnown}},
        {"gla", {&kGla, &kExpanded, &kConvolved, &kFla, &kHybrid, &kGeneral, &kWellKnown}},
        {"delta_net", {&kDeltaNet, &kConvolved, &kFla, &kHybrid, &kGeneral, &kWellKnown}},
        {"gated_deltanet", {&kGatedDeltaNet, &kConvolved, &kFla, &kHybrid, &kGeneral, &kWellKnown}},
        {"gated_deltaproduct", {&kGatedDeltaProduct, &kConvolved, &kFla, &kHybrid, &kGeneral, &kWellKnown}},
        {"comba", {&kComba, &kConvolved, &kFla, &kHybrid, &kGeneral, &kWellKnown}},
        {"kda", {&kKda, &kConvolved, &kFla, &kHybrid, &kGeneral, &kWellKnown}},
        {"gsa", {&kGsa, &kExpanded, &kConvolved, &kFla, &kHybrid, &kGeneral, &kWellKnown}},
        {"hgrn2", {&kHgrn2, &kConvolved, &kFla, &kHybrid, &kGeneral, &kWellKnown}},
        {"metala", {&kMetaLa, &kFla, &kHybrid, &kGeneral, &kWellKnown}},
        {"mom", {&kMom, &kConvolved, &kFla, &kHybrid, &kGeneral, &kWellKnown}},
        {"mamba2", {&kMamba2, &kGeneral, &kWellKnown}},
        {"sse", {&kSse, &kSseAlone, &kConvolved, &kFla, &kHybrid, &kGeneral, &kWellKnown}},
        {"sse_swa_moba", {&kSseSwaMoba, &kSse, &kConvolved, &kFla, &kHybrid, &kGeneral, &kWellKnown}},
        {"attn", {&kAttn, &kWellKnown}},
        {"mom.attn", {&kAttnOfMom, &kWellKnown}},
        {"sse_swa_moba.attn", {&kAttnOfSseSwaMoba, &kAttn, &kWellKnown}},
        {"attn_pattern", {&kAttnPattern}},
        {"sla", {&kSla}},
        {"gated_deltanet.sla", {&kSlaOfGatedDeltaNet, &kSla}},
        {"row_sparse", {&kRowSparse}},
        {"gsa.row_sparse", {&kCoupledRowSparse}},
        {"metala.row_sparse", {&kCoupledRowSparse}},
        {"qwen3_next", {&kQwenNext, &kQwenExperts, &kQwen, &kGeneral, &kWellKnown}},
        {"qwen3_5", {&kQwen, &kGeneral, &kWellKnown}},
        {"qwen3_5_moe", {&kQwenExperts, &kQwen, &kGeneral, &kWellKnown}},
        {"mamba2_hf", {&kMamba2OfTransformers, &kTimeSteps, &kHybridModel, &kGeneral, &kWellKnown}},
        {"nemotron_h", {&kNemotronH, &kTimeSteps, &kNoPositions, &kHybridAttention, &kHybridModel, &kGeneral, &kWellKnown}},
        {"falcon_h1",
         {&kFalconH1, &kMambaOfHybrid, &kTimeSteps, &kHybridPositions, &kHybridAttention, &kHybridModel, &kGeneral, &kWellKnown}},
        {"granitemoehybrid",
         {&kGraniteHybrid, &kMambaOfHybrid, &kTimeSteps, &kHybridPositions, &kHybridAttention, &kHybridModel, &kGeneral, &kWellKnown}},
        {"bamba", {&kBamba, &kMambaOfHybrid, &kTimeSteps, &kHybridPositions, &kHybridAttention, &kHybridModel, &kGeneral, &kWellKnown}},
        {"olmo_hybrid", {&kOlmoHybrid, &kHybridPositions, &kHybridAttention, &kHybridModel, &kGeneral, &kWellKnown}},
        {"lfm2", {&kLfm2Dense, &kLfm2, &kHybridPositions, &kHybridAttention, &kHybridModel, &kGeneral, &kWellKnown}},
        {"lfm2_moe", {&kLfm2Experts, &kLfm2, &kHybridPositions, &kHybridAttention, &kHybridModel, &kGeneral, &kWellKnown}},
        {"kimi_linear", {&kKimiLinear, &kNoPositions, &kHybridModel, &kGeneral, &kWellKnown}},
        {"kimi_linear.linear_attn_config", {&kLinearOfKimi}},
        {"deepseek_v3", {&kDeepSeekV3, &kHybridPositions, &kHybridModel, &kGeneral, &kWellKnown}},
        {"deepseek_v32", {&kDeepSeekV32, &kDeepSeekV3, &kHybridPositions, &kHybridModel, &kGeneral, &kWellKnown}},
        {"rope", {&kRope}},
        {"wrapper", {&kWrapper, &kGeneral}},
    });
    return rows;
  }();
  return all;
}

}  // namespace statescope

// Every mixer that Statescope knows, and every channel that one may expose. A new mixer is one file beside this one and one row here.
#include "engine/mixers/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "engine/error.h"

namespace statescope {
namespace {

constexpr std::string_view kOuterProduct = "decayed outer product";
constexpr std::string_view kDeltaRule = "gated delta rule";
constexpr std::string_view kAttention = "softmax attention";

const std::array<MixerRow, 13>& rows() {
  static const std::array<MixerRow, 13> table{{
      {"transformer",
       kAttention,
       {"num_heads", "num_kv_heads", "head_dim", "qkv_bias", "attention_bias", "qk_norm", "window_size", "rope_theta"},
       {"q", "k", "v", "moba_selected", "readout"},
       make_softmax_attention},
      {"linear_attn",
       kOuterProduct,
       {"num_heads", "num_kv_heads", "expand_k", "expand_v", "feature_map", "tie_feature_map_qk", "norm_q", "norm_k", "norm_feature_map"},
       {"q", "k", "v", "readout"},
       make_linear_attention},
      {"retnet",
       kOuterProduct,
       {"num_heads", "num_kv_heads", "expand_k", "expand_v", "feature_map", "use_output_gate", "use_short_conv", "conv_size", "sla"},
       {"q", "k", "v", "log_decay", "head_gate_q", "head_gate_k", "read_gate_effective", "output_gate", "readout"},
       make_retnet},
      {"gla",
       kOuterProduct,
       {"num_heads", "num_kv_heads", "expand_k", "expand_v", "feature_map", "use_output_gate", "use_short_conv", "conv_size", "clamp_min",
        "gate_logit_normalizer", "gate_low_rank_dim", "use_gk", "use_gv", "row_sparse", "sla"},
       {"q", "k", "v", "log_decay", "head_gate_q", "head_gate_k", "read_gate_effective", "output_gate", "readout"},
       make_gla},
      {"delta_net",
       kDeltaRule,
       {"num_heads", "expand_k", "expand_v", "use_beta", "use_gate", "use_short_conv", "conv_size", "allow_neg_eigval", "qk_norm",
        "qk_activation", "use_output_norm"},
       {"q", "k", "v", "beta", "output_gate", "readout"},
       make_delta_net},
      {"gated_deltanet",
       kDeltaRule,
       {"head_dim", "num_heads", "num_v_heads", "expand_v", "use_gate", "use_short_conv", "conv_size", "allow_neg_eigval", "sla"},
       {"q", "k", "v", "log_decay", "beta", "head_gate_q", "head_gate_k", "read_gate_effective", "output_gate", "readout"},
       make_gated_deltanet},
      {"gsa",
       kOuterProduct,
       {"num_heads", "num_kv_heads", "num_slots", "expand_k", "expand_v", "exapnd_k", "exapnd_v", "gate_logit_normalizer", "feature_map",
        "use_short_conv", "conv_size", "use_output_gate", "use_norm", "clamp_min", "clamp_max"},
       {"q", "k", "v", "log_decay", "slot_read", "readout"},
       make_gsa},
      {"mom",
       kDeltaRule,
       {"num_heads", "head_dim", "expand_v", "num_memories", "topk", "shared_mem", "single_kv_proj", "use_output_gate", "use_short_conv",
        "conv_size", "aux_loss_scale", "mom_backend", "capacity", "use_layer_wise_balance"},
       {"partition_logits", "partition_gate", "partition_selected", "output_gate", "readout"},
       make_mom},
      {"mamba2",
       kOuterProduct,
       {"head_dim",
        "num_heads",
        "state_size",
        "expand",
        "n_groups",
        "conv_kernel",
        "use_bias",
        "use_conv_bias",
        "D_has_hdim",
        "rmsnorm",
        "norm_before_gate",
        "dt_limit",
        "layer_norm_epsilon",
        "chunk_size",
        "A_init_range",
        "dt_init_floor",
        "dt_max",
        "dt_min",
        "conv_init",
        "rescale_prenorm_residual",
        "residual_in_fp32"},
       {"q", "k", "v", "log_decay", "dt", "output_gate", "readout"},
       make_mamba2},
      {"sse",
       kOuterProduct,
       {"linear_attn_type",
        "head_dim",
        "num_heads",
        "num_v_heads",
        "expand_v",
        "num_sparse_partition",
        "num_writer",
        "num_reader",
        "sse_implementation",
        "use_output_gate",
        "use_short_conv",
        "conv_size",
        "allow_neg_eigval",
        "aux_loss_coef",
        "use_q_softmax",
        "use_k_softmax",
        "emulq",
        "emulk",
        "gate_logit_normalizer",
        "gate_low_rank_dim",
        "conv_bias",
        "sparse_branch_after_conv",
        "sse_gdn_gate",
        "sse_formulation",
        "v1_joint_softmax"},
       {"q", "k", "v", "log_decay", "beta", "partition_logits", "partition_gate", "partition_selected", "output_gate", "readout"},
       make_sse},
      {"sse_swa",
       kOuterProduct,
       {"linear_attn_type", "head_dim", "num_heads", "num_v_heads", "expand_v", "num_sparse_partition", "num_writer", "num_reader",
        "sse_implementation", "use_output_gate", "use_short_conv", "conv_size", "allow_neg_eigval", "aux_loss_coef", "sse_qk_relu",
        "swa_dropout", "rope_scaling"},
       {"q", "k", "v", "log_decay", "beta", "partition_logits", "partition_gate", "partition_selected", "output_gate", "readout"},
       make_sse_swa},
      {"qwen_gated_deltanet",
       kDeltaRule,
       {"linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim", "linear_conv_kernel_dim"},
       {"q", "k", "v", "log_decay", "beta", "output_gate", "readout"},
       make_qwen_gated_deltanet},
      {"qwen_attention",
       kAttention,
       {"num_attention_heads", "num_key_value_heads", "head_dim", "attention_bias", "attention_dropout", "rope_parameters", "rope_theta",
        "partial_rotary_factor", "layer_types", "full_attention_interval"},
       {"q", "k", "v", "output_gate", "readout"},
       make_qwen_attention},
  }};
  return table;
}

constexpr std::array<ChannelRow, 19> kChannels{{
    {"q", "[heads, K] or [shared | sparse, heads, K]", "1",
     "queries as the memory reads with them, before the factor K^{-1/2}; SSE: before gate and L2 norm (spec §3, §4.3)"},
    {"k", "[heads, K] or [shared | sparse, heads, K]", "1",
     "keys as the memory is written with them; SSE: before gate and L2 norm (spec §3, §4.3, §12.2)"},
    {"v", "[heads, V]", "1", "values as the memory is written with them (spec §3)"},
    {"log_decay", "[heads, K], [heads], or [shared | sparse, …]", "nat", "log α_t; S_t = diag(α_t) S_{t−1} + … (spec §12.3)"},
    {"beta", "[heads] or [shared | sparse, heads]", "1", "write strength β_t of the delta rule (spec §3.5, §3.6)"},
    {"dt", "[heads]", "1", "Mamba-2 step Δ_t = clamp(softplus(dt + dt_bias)) (spec §3.9)"},
    {"slot_read", "[heads, slots]", "probability", "p_t = softmax(q_t Kt_t) of gated slot attention (spec §3.7)"},
    {"partition_logits", "[N]", "1", "e_proj x (SSE eq. 9); MoM: gate x"},
    {"partition_gate", "[N]", "probability", "e_t = softmax(e_proj x) over all N partitions (SSE eq. 9; spec §12.1)"},
    {"partition_selected", "[W]", "index", "T_t, the W partitions of largest e_t, largest first (spec §4.3)"},
    {"head_gate_q", "[heads]", "probability", "G^Q_t = softmax_h(Q_t W_GQ) (SLA eq. 4)"},
    {"head_gate_k", "[heads]", "probability", "G^K_t = softmax_h(K_t W_GK) (SLA eq. 4)"},
    {"read_gate_effective", "[1]", "1",
     "‖y₁ − y‖ / ‖y‖, y the mixer's output and y₁ the same with G^Q = 1: what the read gate does behind the norm (spec §6, A13)"},
    {"output_gate", "[heads]", "1",
     "mean over the head's channels of silu(g_t), g the output gate; Qwen attention: of σ(g_t) (spec §12.10)"},
    {"moba_selected", "[heads, topk − 1]", "index", "past blocks that a query attends to, −1 where fewer exist (spec §4.8)"},
    {"readout", "[H·V]", "1", "what was read, after norm and gate, before o_proj (spec §1.3)"},
    {"mixer_out", "[D]", "1", "mixer output after its projection"},
    {"moe_logits", "[E]", "1", "router of the expert layer (spec §8.1)"},
    {"moe_selected", "[k]", "index", "experts chosen (spec §8.1)"},
}};

}  // namespace

std::span<const MixerRow> mixer_table() { return rows(); }

const MixerRow& mixer_row(std::string_view name) {
  for (const MixerRow& row : rows()) {
    if (row.name == name) return row;
  }
  std::vector<std::string_view> known;
  for (const MixerRow& row : rows()) known.push_back(row.name);
  throw Error(fmt::format("unknown mixer \"{}\"; known are {}", name, fmt::join(known, ", ")));
}

const ChannelRow& channel_row(std::string_view name) {
  const auto row = std::find_if(kChannels.begin(), kChannels.end(), [&](const ChannelRow& channel) { return channel.name == name; });
  if (row == kChannels.end()) throw Error(fmt::format("unknown channel \"{}\"", name));
  return *row;
}

std::vector<TensorSpec> mixer_tensors(const MixerRow& row, const Config& config) {
  DescribedWeights weights;
  row.build({config, WeightScope(weights, ""), 0});
  return weights.specs;
}

}  // namespace statescope

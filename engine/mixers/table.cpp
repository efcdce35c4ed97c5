// Every mixer that Statescope knows, and every channel that one may expose. A new mixer is one file beside this one and one row here
// (CONTRIBUTING.md).
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
constexpr std::string_view kSelectiveScan = "selective scan";
constexpr std::string_view kWkv = "WKV";
constexpr std::string_view kLogLinear = "log-linear attention";
constexpr std::string_view kStateSpace = "state space";
constexpr std::string_view kAttention = "softmax attention";
constexpr std::string_view kConvolution = "short convolution";

// How a token changes the state, with its source; SSE's and SLA's layouts say their own.
constexpr std::string_view kNone;  // no matrix state
constexpr std::string_view kLinear = "S_t = S_{t−1} + φ(k_t)ᵀ v_t";
constexpr std::string_view kRetention = "S_t = γ S_{t−1} + k_tᵀ v_t (RetNet)";
constexpr std::string_view kLightning = "S_t = γ S_{t−1} + k_tᵀ v_t (Lightning Attention)";
constexpr std::string_view kGla = "S_t = diag(α_t) S_{t−1} + k_tᵀ v_t (GLA eq. 3)";
constexpr std::string_view kSlots = "S_t = diag(α_t) S_{t−1} + (1 − α_t)ᵀ v_t (GSA)";
constexpr std::string_view kHgrn2 = "S_t = diag(α_t) S_{t−1} + (1 − α_t)ᵀ v_t (HGRN2)";
constexpr std::string_view kMetaLa = "S_t = diag(α_t) S_{t−1} + (1 − α_t)ᵀ v_t (MetaLA)";
constexpr std::string_view kSse = "S^n_t = diag(α_t) S^n_{t−1} + e^n_t k_tᵀ v_t, n ∈ T_t (SSE eq. 9)";
constexpr std::string_view kDeltaNet = "S_t = S_{t−1} − β_t k_tᵀ (k_t S_{t−1}) + β_t k_tᵀ v_t (DeltaNet)";
constexpr std::string_view kGatedDelta = "S_t = α_t (S_{t−1} − β_t k_tᵀ (k_t S_{t−1})) + β_t k_tᵀ v_t (Gated DeltaNet eq. 10)";
constexpr std::string_view kDeltaProduct =
    "S_{t,j} = S_{t,j−1} + β_{t,j} k_{t,j}ᵀ (v_{t,j} − k_{t,j} S_{t,j−1}), S_{t,0} = α_t S_{t−1} (DeltaProduct)";
constexpr std::string_view kComba = "S_t = α_t S_{t−1} + β_t k_tᵀ (v_t − p_t S_{t−1}) (Comba)";
constexpr std::string_view kKda = "S_t = (1 − β_t k_tᵀ k_t) diag(α_t) S_{t−1} + β_t k_tᵀ v_t (Kimi Linear)";
constexpr std::string_view kMamba = "S_t = exp(Δ_t A) ⊙ S_{t−1} + B_tᵀ (Δ_t x_t) (Mamba eq. 2, 4)";
constexpr std::string_view kMamba2 = "S_t = exp(Δ_t A) S_{t−1} + B_tᵀ (Δ_t x_t) (Mamba-2)";
constexpr std::string_view kLevels = "S^ℓ_t = Σ_s exp(A Σ_{j>s} Δ_j) B_sᵀ (Δ_s x_s), s ∈ L_ℓ (log-linear attention)";
constexpr std::string_view kHeld = "S_t = Ā S_{t−1} + B̄ u_t (S4)";
constexpr std::string_view kRwkv6 = "S_t = diag(w_t) S_{t−1} + k_tᵀ v_t (RWKV-6)";
constexpr std::string_view kRwkv7 = "S_t = diag(w_t) S_{t−1} − (κ_t ⊙ a_t)ᵀ (κ_t S_{t−1}) + k_tᵀ v_t (RWKV-7)";

const std::array<MixerRow, 34>& rows() {
  static const std::array<MixerRow, 34> table{{
      {"transformer", kAttention, kNone, {"q", "k", "v", "moba_selected", "readout"}, make_softmax_attention},
      {"moba", kAttention, kNone, {"q", "k", "v", "moba_selected", "output_gate", "readout"}, make_moba},
      {"linear_attn", kOuterProduct, kLinear, {"q", "k", "v", "readout"}, make_linear_attention},
      {"retnet",
       kOuterProduct,
       kRetention,
       {"q", "k", "v", "log_decay", "head_gate_q", "head_gate_k", "read_gate_effective", "output_gate", "readout"},
       make_retnet},
      {"gla",
       kOuterProduct,
       kGla,
       {"q", "k", "v", "log_decay", "head_gate_q", "head_gate_k", "read_gate_effective", "output_gate", "readout"},
       make_gla},
      {"delta_net", kDeltaRule, kDeltaNet, {"q", "k", "v", "beta", "output_gate", "readout"}, make_delta_net},
      {"gated_deltanet",
       kDeltaRule,
       kGatedDelta,
       {"q", "k", "v", "log_decay", "beta", "head_gate_q", "head_gate_k", "read_gate_effective", "output_gate", "readout"},
       make_gated_deltanet},
      {"gated_deltaproduct",
       kDeltaRule,
       kDeltaProduct,
       {"q", "k", "v", "log_decay", "beta", "output_gate", "readout"},
       make_gated_deltaproduct},
      {"comba", kDeltaRule, kComba, {"q", "k", "v", "log_decay", "beta", "erase", "output_gate", "readout"}, make_comba},
      {"gsa", kOuterProduct, kSlots, {"q", "k", "v", "log_decay", "slot_read", "row_selected", "readout"}, make_gsa},
      {"hgrn2", kOuterProduct, kHgrn2, {"q", "k", "v", "log_decay", "readout"}, make_hgrn2},
      {"metala", kOuterProduct, kMetaLa, {"q", "k", "v", "log_decay", "row_selected", "output_gate", "readout"}, make_metala},
      {"mom",
       kDeltaRule,
       kGatedDelta,
       {"log_decay", "partition_logits", "partition_gate", "partition_selected", "output_gate", "readout"},
       make_mom},
      {"mamba", kSelectiveScan, kMamba, {"q", "k", "v", "dt", "output_gate", "readout"}, make_mamba},
      {"mamba2", kOuterProduct, kMamba2, {"q", "k", "v", "log_decay", "dt", "output_gate", "readout"}, make_mamba2},
      {"log_linear_mamba2", kLogLinear, kLevels, {"q", "k", "v", "log_decay", "dt", "level_scale", "output_gate", "readout"}, make_mamba2},
      {"s4", kStateSpace, kHeld, {"v", "readout"}, make_s4},
      {"hymba",
       kSelectiveScan,
       kMamba,
       {"q", "k", "v", "dt", "output_gate", "readout", "attention_q", "attention_k", "attention_v", "attention_readout", "scan_readout"},
       make_hymba},
      {"lightning_attention", kOuterProduct, kLightning, {"q", "k", "v", "log_decay", "output_gate", "readout"}, make_lightning_attention},
      {"rwkv6", kWkv, kRwkv6, {"q", "k", "v", "log_decay", "output_gate", "readout"}, make_rwkv6},
      {"rwkv7", kWkv, kRwkv7, {"q", "k", "v", "log_decay", "erase_key", "erase_rate", "output_gate", "readout"}, make_rwkv7},
      {"zamba_mamba", kSelectiveScan, kMamba, {"q", "k", "v", "dt", "output_gate", "readout"}, make_zamba_mamba},
      {"zamba_hybrid",
       kSelectiveScan,
       kMamba,
       {"q", "k", "v", "dt", "output_gate", "readout", "attention_q", "attention_k", "attention_v", "attention_readout", "shared_out"},
       make_zamba_hybrid},
      {"zamba2_hybrid",
       kOuterProduct,
       kMamba2,
       {"q", "k", "v", "log_decay", "dt", "output_gate", "readout", "attention_q", "attention_k", "attention_v", "attention_readout",
        "shared_out"},
       make_zamba2_hybrid},
      {"sse",
       kOuterProduct,
       kSse,
       {"q", "k", "v", "log_decay", "beta", "partition_logits", "partition_gate", "partition_selected", "output_gate", "readout"},
       make_sse},
      {"sse_swa",
       kOuterProduct,
       kSse,
       {"q", "k", "v", "log_decay", "beta", "partition_logits", "partition_gate", "partition_selected", "output_gate", "readout",
        "attention_q", "attention_k", "attention_v", "attention_readout"},
       make_sse_swa},
      {"kda", kDeltaRule, kKda, {"q", "k", "v", "log_decay", "beta", "output_gate", "readout"}, make_kda},
      {"mla", kAttention, kNone, {"q", "k", "v", "readout"}, make_latent_attention},
      {"dsa", kAttention, kNone, {"q", "k", "v", "dsa_selected", "dsa_scores", "readout"}, make_sparse_latent_attention},
      {"nsa", kAttention, kNone, {"q", "k", "v", "nsa_gates", "nsa_selected", "nsa_importance", "readout"}, make_nsa},
      {"qwen_gated_deltanet",
       kDeltaRule,
       kGatedDelta,
       {"q", "k", "v", "log_decay", "beta", "output_gate", "readout"},
       make_qwen_gated_deltanet},
      {"qwen_attention", kAttention, kNone, {"q", "k", "v", "output_gate", "readout"}, make_qwen_attention},
      {"falcon_h1",
       kOuterProduct,
       kMamba2,
       {"q", "k", "v", "log_decay", "dt", "output_gate", "readout", "attention_q", "attention_k", "attention_v", "attention_readout"},
       make_falcon_h1},
      {"gated_convolution", kConvolution, kNone, {"written", "readout"}, make_gated_convolution},
  }};
  return table;
}

constexpr std::array<ChannelRow, 37> kChannels{{
    {"q", "[heads, K] or [shared | sparse, heads, K]", "1",
     "queries as the memory reads with them, before the factor K^{-1/2}; SSE: before gate and L2 norm (spec §3, §4.3)"},
    {"k", "[heads, K] or [shared | sparse, heads, K]", "1",
     "keys as the memory is written with them; SSE: before gate and L2 norm (spec §3, §4.3, §12.2)"},
    {"v", "[heads, V]", "1", "values as the memory is written with them (spec §3)"},
    {"log_decay", "[heads, K], [heads], or [shared | sparse, …]", "nat", "log α_t; S_t = diag(α_t) S_{t−1} + … (spec §12.3)"},
    {"beta", "[heads] or [shared | sparse, heads]", "1",
     "write strength β_t of the delta rule; of several steps a token, step by step (spec §3.5, §3.6, §17.12)"},
    {"erase", "[heads]", "1", "c_t with p̂ = c k̂, the key with which Comba erases the state before its decay (spec §17.13)"},
    {"erase_key", "[heads, K]", "1", "κ̂_t, the key whose reading RWKV-7 takes away, of length 1 (spec §17.10)"},
    {"erase_rate", "[heads, K]", "1", "a_t: along κ̂_t ⊙ a_t RWKV-7 takes away what κ̂_t reads (spec §17.10)"},
    {"dt", "[heads] or [heads, channels]", "1",
     "step Δ_t: of a head of Mamba-2 clamp(softplus(dt + dt_bias)), of a channel of Mamba softplus(dt_proj r + bias) (spec §3.9, §17.1)"},
    {"level_scale", "[heads, levels]", "1", "λ_t, with which a token reads each level of states (spec §17.14)"},
    {"slot_read", "[heads, slots]", "probability", "p_t = softmax(q_t Kt_t) of gated slot attention (spec §3.7)"},
    {"row_selected", "[heads, topk]", "index", "rows that a row-sparse token writes to, of largest logit first (spec §17.15)"},
    {"partition_logits", "[N]", "1", "e_proj x (SSE eq. 9); MoM: gate x"},
    {"partition_gate", "[N]", "probability", "e_t = softmax(e_proj x) over all N partitions (SSE eq. 9; spec §12.1)"},
    {"partition_selected", "[W]", "index", "T_t, the W partitions of largest e_t, largest first (spec §4.3)"},
    {"head_gate_q", "[heads]", "probability", "G^Q_t = softmax_h(Q_t W_GQ) (SLA eq. 4)"},
    {"head_gate_k", "[heads]", "probability", "G^K_t = softmax_h(K_t W_GK) (SLA eq. 4)"},
    {"read_gate_effective", "[1]", "1",
     "‖y₁ − y‖ / ‖y‖, y the mixer's output and y₁ the same with G^Q = 1: what the read gate does after the norm (spec §6, A13)"},
    {"output_gate", "[heads]", "1",
     "mean over the head's channels of silu(g_t), g the output gate; of σ(g_t) where the gate is a sigmoid (spec §12.10)"},
    {"moba_selected", "[heads, topk − 1]", "index", "past blocks that a query attends to, −1 where fewer exist (spec §4.8, §18.4)"},
    {"nsa_gates", "[heads, 3]", "1", "g of the means of blocks, of the chosen blocks and of the window (spec §18.3)"},
    {"nsa_selected", "[key heads, S]", "index",
     "blocks that the queries of a key head attend to, ascending, −1 where fewer exist (spec §18.3)"},
    {"nsa_importance", "[key heads, S]", "probability",
     "of those blocks the mean over the query heads of the weight of their means, 0 of one that is not complete (spec §18.3)"},
    {"dsa_selected", "[index_topk]", "index", "tokens that all heads attend to, ascending, −1 where fewer exist (spec §18.2)"},
    {"dsa_scores", "[index_topk]", "1", "I_ts of those tokens, the indexer's scores, 0 where there are fewer (spec §18.2)"},
    {"readout", "[H·V]", "1", "what was read, after norm and gate, before o_proj (spec §1.3)"},
    {"attention_q", "[heads, d]", "1",
     "queries of the attention beside a layer's memory, before the factor d^{-1/2} (spec §19.5, §17.7, §17.9)"},
    {"attention_k", "[key heads, d]", "1", "keys of the attention beside a layer's memory (spec §19.5, §17.7, §17.9)"},
    {"attention_v", "[key heads, d]", "1", "values of the attention beside a layer's memory (spec §19.5, §17.7, §17.9)"},
    {"attention_readout", "[H·V]", "1",
     "of a layer with attention beside its memory, what attention read, before o_proj or its norm (spec §19.5, §17.7, §17.9)"},
    {"scan_readout", "[d_in]", "1",
     "of a layer with attention beside its memory, what the memory read, gated, before its norm (spec §17.9)"},
    {"shared_out", "[D]", "1", "what the block that layers share adds to the input of this layer's Mamba (spec §17.7)"},
    {"written", "[D]", "1", "B ⊙ u, the gated input that a short convolution keeps (spec §19.10)"},
    {"mixer_out", "[D]", "1", "what the mixer adds to the residual stream: its output after the projection (spec §1.3)"},
    {"moe_logits", "[E]", "1", "router of the expert layer (spec §8.1)"},
    {"moe_selected", "[k]", "index", "experts chosen, the largest weight first (spec §8.1)"},
    {"moe_weights", "[k]", "1", "weights of their outputs, in that order (spec §8.1)"},
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

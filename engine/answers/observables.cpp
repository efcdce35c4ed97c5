#include "engine/answers/observables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "engine/analysis/parts.h"
#include "engine/analysis/similarity_analysis.h"
#include "engine/answers/answers.h"
#include "engine/answers/observables_groups.h"
#include "engine/error.h"

namespace statescope {
namespace {

constexpr std::int64_t kMostTokens = 512;

const std::vector<ObservableGroup>& groups() {
  constexpr Accuracy cosine = RowSimilarity::accuracy, spectrum = Spectrum::accuracy;
  static const std::vector<ObservableGroup> table{
      {{{"partition_gate", "[partitions]", "probability", "e_t = softmax(e_proj x) over all partitions (SSE eq. 9; spec §12.1)", kExact},
        {"selected_mass", "", "probability", "Σ e over the partitions T_t that are written (spec §12.1)"},
        {"routing_entropy", "", "1", "−Σ e log e / log N (spec §12.1)"},
        {"routing_margin", "", "probability", "e_(W) − e_(W+1), the W-th largest less the next (spec §12.1)"},
        {"selected_weights", "[partitions]", "probability", "e^n / Σ_T e of the chosen ones, else 0: MoM's weights (spec §3.8, §12.1)"}},
       observe_routing},
      {{{"write_weight", "[slots, heads, rows]", "1",
         "ω_r, with which v is added to a row; under the delta rule β k_r, with which v − π is (spec §12.2)"},
        {"row_write", "[slots, heads, rows]", "state", "|ω_r| ‖v‖; under the delta rule |β k_r| ‖v − π‖ (spec §12.2)"},
        {"write_ratio", "[slots, heads]", "1", "ρ = #{r : |ω_r| ≥ 0.001 Σ|ω|} / K (spec §12.2, A16)"},
        {"write_participation", "[slots, heads]", "1", "(Σ|ω|)² / (K Σω²) (spec §12.2)"},
        {"occupancy", "[heads]", "1", "Σ K ρ over the slots that are written / (P K) (spec §12.2)"}},
       observe_writes},
      {{{"decay", "[slots, heads, channels]", "1", "α_t; 1 where the token does not write (spec §12.3)"},
        {"decay_since", "[slots, heads, channels]", "1",
         "Δ_{t,s} = Π α of the tokens s + 1 … t, s = the token asked for: what is left of what was written then (spec §12.3)"},
        {"half_life", "[slots, heads, channels]", "tokens", "ln 2 / (−mean log α) over the tokens so far (spec §12.3)"},
        {"receptive_field", "[slots, heads, channels]", "tokens",
         "mean over the last 128 tokens t of max{t − s : Δ_{t,s} ≥ 0.001} (SSE Def. 4, Fig. 9; spec §12.4, A17)"},
        {"receptive_field_summed", "[slots, heads]", "tokens", "the same with Σ_r Δ_{t,s,r} ≥ 0.001, as SSE Def. 4 stands (A17)"}},
       observe_decay},
      {{{"row_cosine", "[heads]", "1", "mean of |C_ij| over i ≠ j, C_ij = ⟨Z_i,Z_j⟩ / (‖Z_i‖‖Z_j‖), slots stacked (SSE Def. 1; spec §12.5)",
         cosine},
        {"row_cosine_within", "[heads]", "1", "the same over pairs of one partition (spec §12.5)", cosine},
        {"row_cosine_between", "[heads]", "1", "the same over pairs of different partitions (spec §12.5)", cosine},
        {"row_cosine_min", "[heads]", "1", "min C_ij over i ≠ j of rows that are not 0 (distinguishability (a), SSE Def. 2; spec §12.5)",
         cosine},
        {"zero_rows", "[heads]", "rows", "rows with ‖Z_i‖ < 1e-12 (spec §12.5)"},
        {"state_entropy", "[heads]", "1", "Hs = −Σ p log p / log n, p = σ² / Σσ², slots stacked (SSE footnote 8; spec §12.5, A18)",
         spectrum},
        {"effective_rank", "[heads]", "1", "exp(−Σ p log p), p = σ / Σσ, slots stacked (Roy and Vetterli; spec §12.5)", spectrum},
        {"effective_rank_of_squares", "[heads]", "1", "exp(Hs log n) (spec §12.5)", spectrum},
        {"spectral_statistic", "[heads]", "1", "min ⟨Z_i,Z_j⟩ / ‖Z‖₂², a statistic and no bound (distinguishability (c); spec §12.5, A19)",
         accurate_to(1e-4)},
        {"partition_entropy", "[slots, heads]", "1", "Hs of each slot alone (spec §12.5)", spectrum},
        {"partition_rank", "[slots, heads]", "1", "effective rank of each slot alone (spec §12.5)", spectrum}},
       observe_similarity},
      {{{"read_cosine_min", "[slots, heads]", "1",
         "min cos(q_a S, q_b S) over pairs of the last 128 queries (distinguishability (b); spec §12.5)"},
        {"read_cosine", "[slots, heads]", "1", "their mean (spec §12.5)"}},
       observe_distinguishability},
      {{{"frequency", "[partitions]", "1", "f_n, the fraction of the tokens so far with n ∈ T_t (spec §11, §12.6)"},
        {"probability", "[partitions]", "probability", "p_n, the mean of e^n over the tokens so far (spec §11, §12.6)"},
        {"load", "[partitions]", "1", "f_n / (W / N): 1 is fair (spec §12.6)"},
        {"frequency_variation", "", "1", "coefficient of variation of f_n (spec §12.6)"},
        {"balance_loss", "", "1", "(N / W) Σ f_n p_n over the tokens so far (spec §11)"},
        {"frequency_now", "[partitions]", "1", "f_n as a running mean, 0.99 (spec §12.6)"},
        {"probability_now", "[partitions]", "probability", "p_n as a running mean, 0.99 (spec §12.6)"},
        {"balance_loss_now", "", "1", "(N / W) Σ f_n p_n of the running means (spec §11, §12.6)"}},
       observe_balance},
      {{{"mom_loss", "", "1", "M Σ_j Σ_m f_{j,m} P_m over the tokens so far of all layers: even W (MoM; spec §11)"}}, observe_mom_loss},
      {{{"expert", "[chosen]", "index", "the experts that the token goes to, the largest weight first (spec §12.11)"},
        {"expert_weight", "[chosen]", "1", "w_e of them, by which their outputs are multiplied (spec §12.11)"},
        {"expert_load", "[experts]", "1", "f_e / (k / E) over the tokens so far: 1 is fair (spec §12.11)"},
        {"expert_variation", "", "1", "coefficient of variation of f_e (spec §12.11)"}},
       observe_experts},
      {{{"choice", "[heads, chosen]", "index",
         "the tokens (DeepSeek-V3.2), or blocks by their number, that a head chooses to read; one line where all heads choose alike "
         "(spec §18.2 to §18.4)"},
        {"choice_score", "[heads, chosen]", "1",
         "I_ts of the tokens, importance of the blocks (NSA), by which they are chosen (spec §18.2, §18.3)"},
        {"choice_share", "[heads]", "1", "how many it chooses of those that it could (spec §18.2 to §18.4)"}},
       observe_choices},
      {{{"branch_gate", "[heads, branches]", "1", "g of the means, the chosen blocks and the window (NSA; spec §18.3)"}},
       observe_branch_gates},
      {{{"row_frequency", "[slots, heads, rows]", "1",
         "f^r, the fraction of the tokens so far whose key is largest there; row-sparse: that choose it (spec §12.6)"},
        {"row_variation", "[slots, heads]", "1", "coefficient of variation of f^r (spec §12.6)"},
        {"row_loss", "[slots, heads]", "1", "(K / k) Σ_r f^r mean k_r (spec §11)"}},
       observe_chosen_rows},
      {{{"head_gate_q", "[heads]", "probability", "G^Q = softmax_h(Q W_GQ) (SLA eq. 4)"},
        {"head_gate_k", "[heads]", "probability", "G^K = softmax_h(K W_GK) (SLA eq. 4)"},
        {"gate_entropy_q", "", "1", "−Σ G^Q log G^Q / log H (spec §12.7)"},
        {"gate_entropy_k", "", "1", "−Σ G^K log G^K / log H (spec §12.7)"},
        {"gate_winner_q", "", "head", "argmax G^Q (spec §12.7)"},
        {"gate_winner_k", "", "head", "argmax G^K (spec §12.7)"},
        {"gate_margin_q", "", "probability", "the largest G^Q less the next (spec §12.7)"},
        {"gate_margin_k", "", "probability", "the largest G^K less the next (spec §12.7)"},
        {"information_flow", "", "1", "C_tt = Σ_h G^Q G^K (SLA Thm 4.3)"},
        {"gate_entropy_q_sharpened", "[λ]", "1", "entropy of G^Q with its logits times λ = 1/4, 1/2, 1, 2, 4, 8, 16 (SLA eq. 8)"},
        {"gate_entropy_k_sharpened", "[λ]", "1", "entropy of G^K with its logits times λ (SLA eq. 8)"},
        {"information_flow_sharpened", "[λ]", "1", "C_tt with all logits times λ (SLA eq. 9)"},
        {"read_gate_effective", "", "1", "‖y₁ − y‖ / ‖y‖, y₁ the mixer's output with G^Q = 1 (spec §6, A13)"}},
       observe_head_gates},
      // Of two keys (RWKV-7): p erases, e is what it erases along, k writes.
      {{{"write_strength", "[slots, heads]", "1", "β_t; of two keys p·e = Σ κ² a, the part of π that is taken away (spec §12.9)"},
        {"prediction", "[slots, heads]", "value", "‖π‖, π = k α S_{t−1}; of two keys p S_{t−1}, before the decay (spec §12.9)"},
        {"prediction_error", "[slots, heads]", "value", "‖v − π‖ (spec §12.9)"},
        {"prediction_error_relative", "[slots, heads]", "1", "‖v − π‖ / ‖v‖ (spec §12.9)"},
        {"prediction_cosine", "[slots, heads]", "1", "cos(π, v) (spec §12.9)"},
        {"erased", "[slots, heads]", "state", "β ‖k‖ ‖π‖; of two keys ‖e‖ ‖π‖ (spec §12.9)"},
        {"written", "[slots, heads]", "state", "β ‖k‖ ‖v‖; of two keys ‖k‖ ‖v‖ (spec §12.9)"},
        {"net_update", "[slots, heads]", "state", "β ‖k‖ ‖v − π‖; of two keys ‖kᵀv − eᵀπ‖_F (spec §12.9)"},
        {"transition_eigenvalue", "[slots, heads]", "1",
         "α (1 − β ‖k‖²), along k; α = k̂ diag(α) k̂ᵀ where each row decays by itself; of two keys p̂ (diag(w) − eᵀp) p̂ᵀ, along p "
         "(spec §12.9, §17.3)"}},
       observe_delta_rule},
      {{{"state_norm", "[slots, heads]", "state", "‖S_t‖_F (spec §12.10)", kReplayed},
        {"update_norm", "[slots, heads]", "state", "‖S_t − S_{t−1}‖_F (spec §12.10)", kReplayed},
        {"row_norm", "[slots, heads, rows]", "state", "‖Z_i‖ (spec §12.10)", kReplayed}},
       observe_norms},
      {{{"slot_age", "[slots]", "tokens", "t − the last token that wrote there (spec §12.10)"},
        {"row_age", "[slots, heads, rows]", "tokens", "t − the last token with |ω_r| ≥ 0.001 Σ|ω| (spec §12.10)"}},
       observe_ages},
      {{{"readout_share", "[slots, heads]", "1", "‖o_n‖ / Σ ‖o_m‖, o_n what is read of a slot (spec §12.10)"}}, observe_readout},
      {{{"output_gate", "[heads]", "1", "mean over the head's channels of silu(g), Qwen attention σ(g) (spec §12.10)"}},
       observe_output_gate},
      {{{"attention_norm", "", "value", "‖o‖, o what attention reads beside the scan, before its norm (spec §17.9)"},
        {"scan_norm", "", "value", "‖y ⊙ silu(z)‖, what the scan reads, with its gate, before its norm (spec §17.9)"},
        {"branch_cosine", "", "1", "cos(o, y ⊙ silu(z)); 0 where one of them is 0 (spec §17.9)"}},
       observe_two_readouts},
      {{{"memory_token_share", "[heads]", "probability",
         "Σ A_{t,s} over the model's memory tokens s, A the attention's weights (spec §17.9)"}},
       observe_memory_tokens},
      {{{"eigenvalue_size", "[eigenvalues, channels]", "1", "|λ(Ā)| = e^{Δ Re λ(A)}, the same at every token (spec §17.17)"},
        {"eigenvalue_turn", "[eigenvalues, channels]", "rad", "Δ Im λ(A), by which it turns in a token (spec §17.17)"},
        {"eigenvalue_half_life", "[eigenvalues, channels]", "tokens", "ln 2 / (−Δ Re λ(A)); ∞ where it does not decay (spec §17.17)"}},
       observe_eigenvalues},
      {{{"kernel_since", "[channels]", "1",
         "K_l = C Ā^l B̄, l = t − s, s = the token asked for: with which y_t has its input u_s (spec §17.17)"}},
       observe_kernel},
      {{{"remembered_since", "[channels]", "value",
         "û = Σ_n X_n p_n((t − s + 1/2) Δ), what the states still say of u_s, s = the token asked for; of HiPPO's matrix (spec §17.17)"}},
       observe_remembered},
      {{{"residual_norm", "", "hidden", "‖x_t‖ as it enters the block (spec §12.10)"}}, observe_residual},
  };
  return table;
}

bool wanted(const ObservablesQuestion& question, const ObservableRow& row) {
  return question.names.empty() || std::ranges::find(question.names, row.name) != question.names.end();
}

/// Throws Error.
void check(const ObservablesQuestion& question, const Evidence& evidence) {
  evidence.layer(question.layer);
  if (question.from < 0 || question.to <= question.from || question.to > evidence.tokens() || question.to - question.from > kMostTokens)
    throw Error(fmt::format("no window of tokens {} to {}", question.from, question.to));
  check_index("token", question.since, evidence.tokens());
  std::vector<std::string_view> known;
  for (const ObservableGroup& group : groups()) {
    for (const ObservableRow& row : group.rows) known.push_back(row.name);
  }
  for (const std::string& name : question.names) {
    if (std::ranges::find(known, name) == known.end())
      throw Error(fmt::format("there is no quantity \"{}\"; there are {}", name, fmt::join(known, ", ")));
  }
}

}  // namespace

Observed::Observed(const LayerSpan& span, std::vector<std::int64_t> shape_) : shape(std::move(shape_)), first_(span.from) {
  const std::int64_t each = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies{});
  values.assign(static_cast<std::size_t>(span.count() * each), std::numeric_limits<float>::quiet_NaN());
}

std::span<const ObservableGroup> observable_groups() { return groups(); }

Observables answer(const ObservablesQuestion& question, Evidence& evidence) {
  check(question, evidence);
  const LayerSpan span{question.layer, question.from, question.to, question.since};
  Observables all;
  for (const ObservableGroup& group : groups()) {
    if (std::ranges::none_of(group.rows, [&](const ObservableRow& row) { return wanted(question, row); })) continue;
    std::vector<Observed> observed = group.measure(span, evidence);
    for (std::size_t i = 0; i < observed.size(); ++i) {
      const ObservableRow& row = group.rows[i];
      if (!wanted(question, row)) continue;
      all.quantities.push_back({std::string(row.name), std::string(row.axes), std::string(row.unit), std::string(row.equation),
                                row.accuracy, std::move(observed[i].shape), std::move(observed[i].values)});
    }
  }
  return all;
}

}  // namespace statescope

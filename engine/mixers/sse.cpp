// Sparse state expansion on GLA and on the gated delta rule: SSE-GLA, SSE-GDN and the first published formulation, v1 (spec §4).
#include "engine/mixers/sse.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "engine/error.h"
#include "engine/mixers/table.h"

namespace statescope {

Sse::Sse(const MixerBuild& build, const std::string& prefix) {
  const Config& config = build.config;
  const WeightScope& bare = build.weights;
  const WeightScope weights = bare.scope(prefix);
  delta_rule_ = config.text("linear_attn_type", prefix.empty() ? "gla" : "gdn", {"gla", "gdn"}) == "gdn";
  v1_ = config.text("sse_formulation", "iclr", {"iclr", "v1"}) == "v1";
  v1_joint_softmax_ = config.boolean("v1_joint_softmax", false);
  hidden_ = config.integer("hidden_size");
  heads_ = config.integer("num_heads", 6);
  // The SSE + SWA code line is plain multi-head and ignores num_v_heads (spec §4.8).
  value_heads_ = prefix.empty() ? config.integer("num_v_heads", heads_) : heads_;
  divided(value_heads_, "num_v_heads", heads_, "num_heads");
  K_ = config.integer("head_dim", 256);
  V_ = expanded(K_, config, "expand_v", 1.0);
  N_ = config.integer("num_sparse_partition", 4, 1, 1'000'000);
  writers_ = config.integer("num_writer", 2, 1, N_);
  readers_ = config.integer("num_reader", 2, 1, N_);
  if (writers_ == N_ || readers_ == N_) {
    throw Error(
        fmt::format("config: num_writer ({}) and num_reader ({}) must be less than num_sparse_partition ({})", writers_, readers_, N_));
  }
  use_q_softmax_ = config.boolean("use_q_softmax", false);
  use_k_softmax_ = config.boolean("use_k_softmax", !delta_rule_);
  emulq_ = !v1_ && config.boolean("emulq", true);
  emulk_ = !v1_ && config.boolean("emulk", true);
  sparse_after_conv_ = config.boolean("sparse_branch_after_conv", false);
  gate_place_ = config.text("sse_gdn_gate", "pre_l2", {"pre_l2", "post_l2"}) == "pre_l2" ? GatePlace::before_l2 : GatePlace::after_l2;
  qk_act_ = v1_ ? Activation::identity : config.boolean("sse_qk_relu", false) ? Activation::relu : Activation::silu;
  v_act_ = v1_ ? Activation::identity : Activation::silu;
  normalizer_ = static_cast<float>(config.positive("gate_logit_normalizer", 16));
  beta_factor_ = config.boolean("allow_neg_eigval", false) ? 2.0f : 1.0f;

  const std::int64_t key_dim = heads_ * K_, value_dim = value_heads_ * V_;
  const bool bias = !prefix.empty() && !delta_rule_ && config.object("attn").boolean("qkv_bias", false);
  std::vector<Linear::Part> parts{{&lora_q_.first, "lora_q_proj.0", LowRank::rank(bare, "lora_q_proj", V_)},
                                  {&lora_k_.first, "lora_k_proj.0", LowRank::rank(bare, "lora_k_proj", V_)}};
  const bool gated = config.boolean("use_output_gate", true);
  if (gated) parts.push_back({&g_proj_.first, prefix + "g_proj.0", LowRank::rank(weights, "g_proj", V_)});
  parts.push_back({&q_proj_, prefix + "q_proj", key_dim});
  parts.push_back({&k_proj_, prefix + "k_proj", key_dim});
  parts.push_back({&v_proj_, prefix + "v_proj", value_dim});
  Linear::load_together(bare, parts, hidden_);
  if (bias) {
    q_proj_.bias = weights.floats("q_proj.bias", {key_dim});
    k_proj_.bias = weights.floats("k_proj.bias", {key_dim});
    v_proj_.bias = weights.floats("v_proj.bias", {value_dim});
  }
  lora_q_.second = Linear(bare, "lora_q_proj.1", key_dim, lora_q_.first.out());
  lora_k_.second = Linear(bare, "lora_k_proj.1", key_dim, lora_k_.first.out());
  if (gated) g_proj_.second = Linear(weights, "g_proj.1", value_dim, g_proj_.first.out());
  e_proj_ = Linear(weights, "e_proj", N_, hidden_);
  if (delta_rule_) {
    a_proj_ = Linear(weights, "a_proj", 2 * value_heads_, hidden_);
    b_proj_ = Linear(weights, "b_proj", 2 * value_heads_, hidden_);
    A_log_ = bare.floats("A_log", {2 * value_heads_});
    dt_bias_ = bare.floats("dt_bias", {2 * value_heads_});
  } else {
    const ToldSize rank(config, "gate_low_rank_dim", 16);
    gk_shared_ = LowRank(weights, "gk_proj.0", key_dim, hidden_, rank, true);
    gk_sparse_ = LowRank(weights, "gk_proj.1", key_dim, hidden_, rank, true);
  }
  if (config.boolean("use_short_conv", false)) {
    const ToldSize width(config, "conv_size", 4);
    const bool conv_bias = config.boolean("conv_bias", false);
    q_conv_ = Conv(bare, "q_conv1d_shared", key_dim, width, Activation::identity, conv_bias);
    k_conv_ = Conv(bare, "k_conv1d_shared", key_dim, width, Activation::identity, conv_bias);
  }
  readout_ = {.norm = weights.floats("o_norm.weight", {V_}),
              .head_dim = V_,
              .eps = static_cast<float>(config.not_negative("norm_eps", 1e-6)),
              .o_proj = Linear(weights, "o_proj", hidden_, value_dim)};
}

MixerLayout Sse::layout() const {
  MixerLayout layout;
  if (delta_rule_) {
    layout.memory_kind = "gated delta rule";
    layout.recurrence = "S^n_t = α_t (S^n_{t−1} − β_t k_tᵀ (k_t S^n_{t−1})) + β_t k_tᵀ v_t, n ∈ T_t (SSE eq. 9, Gated DeltaNet eq. 10)";
  }
  layout.has_shared_slot = true;
  layout.partitions = N_;
  layout.writers = writers_;
  layout.readers = readers_;
  layout.decays = true;
  layout.slot_names.push_back("shared");
  for (std::int64_t n = 1; n <= N_; ++n) layout.slot_names.push_back(fmt::format("{}", n));
  layout.memory.push_back({"recurrent", {1 + N_, value_heads_, K_, V_}});
  if (q_conv_) layout.conv_caches = {q_conv_.cache_shape(), k_conv_.cache_shape()};
  return layout;
}

void Sse::describe(Program& p) const {
  const Value x = p.x();
  // z¹ = W x, z² = W x + B A x: q and k of the shared state and of the sparse partitions; convolved, or only the first, or neither
  const Value more_q = lora_q_(p, x), more_k = lora_k_(p, x), raw_q = q_proj_(p, x), raw_k = k_proj_(p, x);
  const Value shared_q = q_conv_(p, raw_q, 0), shared_k = k_conv_(p, raw_k, 1);
  const Value sparse_q = sparse_after_conv_ ? shared_q : raw_q, sparse_k = sparse_after_conv_ ? shared_k : raw_k;
  // q = (f(z¹_q), f(z²_q)), k likewise, f = silu or a softmax per head;   v = silu(v_proj x), never convolved
  Value q = p.pair({.shared = shared_q, .sparse = sparse_q, .more = more_q, .act = qk_act_, .softmax = use_q_softmax_}, {2, heads_, K_});
  Value k = p.pair({.shared = shared_k, .sparse = sparse_k, .more = more_k, .act = qk_act_, .softmax = use_k_softmax_}, {2, heads_, K_});
  const Value v = p.with_axes(p.apply(v_act_, v_proj_(p, x)), {value_heads_, V_});
  // Gates of the shared state (pair 0) and of the sparse partitions (pair 1).
  Value log_decay, beta;
  if (delta_rule_) {
    // log α = −exp(A_log)·softplus(a + dt_bias),   β = σ(b)
    log_decay = p.with_axes(p.apply(DeltaDecay{A_log_, dt_bias_}, a_proj_(p, x, ValueType::exact)), {2, value_heads_});
    beta = p.with_axes(p.apply(Activation::sigmoid, b_proj_(p, x, ValueType::exact)), {2, value_heads_});
    if (beta_factor_ != 1) beta = p.combine(program::Add{}, beta, beta);
  } else {
    // log α⁰ = logσ(gk_proj.0 x) / 16,   log αˢ = logσ(gk_proj.1 x) / 16, per key channel
    const ForgetGate forget{normalizer_, -std::numeric_limits<float>::infinity()};
    const Value shared = p.apply(forget, gk_shared_(p, x, ValueType::exact)), sparse = p.apply(forget, gk_sparse_(p, x, ValueType::exact));
    log_decay = p.repeat_heads(p.stack(shared, sparse, {2, heads_, K_}), 2, heads_, value_heads_);
  }
  const Value g = g_proj_ ? g_proj_(p, x) : Value{};

  // e_t = softmax(e_proj x) over the partitions; the W largest are selected, ties to the lowest index      (SSE eq. 9, ICLR gate)
  const Value logits = p.show("partition_logits", e_proj_(p, x, ValueType::exact));
  const Value e = p.show("partition_gate", p.apply(program::Softmax{}, logits));
  const Value T = p.show("partition_selected", p.top_k(v1_ ? logits : e, std::max(writers_, readers_)));
  // v1: k^i = softmax(x W_k) / W, or one softmax over all selected rows, whose partition share is e renormalised over T [A9]
  const bool joint = v1_ && v1_joint_softmax_;
  const Value gate = joint ? p.renormalise(e, p.columns(T, 0, {writers_})) : e;
  q = p.repeat_heads(q, 2, heads_, value_heads_);
  k = p.repeat_heads(k, 2, heads_, value_heads_);

  // S⁰_t = diag(α⁰) S⁰_{t-1} + k1ᵀ v;   n ∈ T_t: Sⁿ_t = diag(αˢ) Sⁿ_{t-1} + e_t^n k2ᵀ v;   n ∉ T_t: Sⁿ_t = Sⁿ_{t-1}
  // o_t = K^{-1/2} ( q1 S⁰_t + Σ_{n∈T_t} e_t^n q2 Sⁿ_t )                                   (SSE-GDN: the delta rule in place of the sum)
  const Value o = remember(p,
                           program::SparseMemory{.q = q,
                                                 .k = k,
                                                 .v = v,
                                                 .log_decay = log_decay,
                                                 .beta = beta,
                                                 .gate = gate,
                                                 .selected = T,
                                                 .writers = writers_,
                                                 .readers = readers_,
                                                 .gate_q = emulq_,
                                                 .gate_k = emulk_ || joint,
                                                 .gate_place = gate_place_,
                                                 .writes_mean = v1_ && !joint,
                                                 .scale = inverse_sqrt(K_)},
                           value_heads_, V_);
  p.result = readout_(p, o, g);
}

std::unique_ptr<Mixer> make_sse(const MixerBuild& build) { return std::make_unique<Sse>(build); }

}  // namespace statescope

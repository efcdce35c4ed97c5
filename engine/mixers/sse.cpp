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
  if (delta_rule_) layout.memory_kind = "gated delta rule";
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

/// [T, 2, H, K]: z1 = base x (convolved: `shared`), z2 = base x + lora x; then softmax or silu per head.
SparsePair Sse::pair_of(Context& ctx, ConstTensor raw, ConstTensor shared, ConstTensor more, bool softmax) const {
  return {ctx.activation({2, heads_, K_}), shared, sparse_after_conv_ ? shared : raw, more, qk_act_, softmax};
}

/// [T, 2, H, n] → [T, 2, Hv, n], repeat-interleaved.
Tensor Sse::repeat_pair(Context& ctx, Tensor pair, std::int64_t channels) const {
  if (value_heads_ == heads_) return pair;
  Tensor repeated = ctx.workspace.tensor({ctx.tokens, 2, value_heads_, channels}, pair.dtype);
  for (std::int64_t i = 0; i < 2 * value_heads_; ++i) {
    const std::int64_t from = i / value_heads_ * heads_ + producer_head(i % value_heads_, heads_, value_heads_);
    ctx.backend.copy(repeated.columns(i * channels, {channels}), pair.columns(from * channels, {channels}));
  }
  return repeated;
}

void Sse::forward(Context& ctx, ConstTensor x, MixerState& state, Tensor y) const {
  Backend& backend = ctx.backend;
  // What is made of x in one go: q, k and their branches, v, the routing, decays and gates. What others are made of comes first, so that
  // nothing waits for it long.
  std::vector<Projection> all, second;
  const auto add = [&](const Linear& linear, Tensor z, Finish finish = {}) { all.push_back(linear.onto(ctx, z, x, finish)); };
  const auto base = [&](const Linear& linear, const Conv& conv, std::size_t cache, Tensor raw) {
    add(linear, raw);
    if (!conv) return raw;
    Projection& p = all.back();
    p.z = raw;
    p.y = ctx.activation({heads_ * K_});
    p.finish = Convolve{conv.weight, conv.bias, conv.act, state.conv_caches[cache]};
    return p.y;
  };
  // out = second(first(x)): features of the first product, which the second one takes
  const auto low_rank = [&](const LowRank& both, Tensor features, Tensor out, Finish finish = {}) {
    add(both.first, features);
    second.push_back(both.onto(out, features, finish));
    return out;
  };
  const std::int64_t key_dim = heads_ * K_, value_dim = value_heads_ * V_;
  const bool gated = g_proj_ && !ctx.state_only;
  std::vector<std::int64_t> widths{lora_q_.first.out(), lora_k_.first.out()};
  if (gated) widths.push_back(g_proj_.first.out());
  widths.insert(widths.end(), {key_dim, key_dim, value_dim});
  const std::vector<Tensor> made = ctx.activations(widths);
  const Tensor more_q = low_rank(lora_q_, made[0], ctx.activation({key_dim}));
  const Tensor more_k = low_rank(lora_k_, made[1], ctx.activation({key_dim}));
  // Gates of the shared state (pair 0) and of the sparse partitions (pair 1).
  Tensor log_decay, beta;
  std::vector<Projection> decays;
  if (delta_rule_) {
    // log α = −exp(A_log)·softplus(a + dt_bias),   β = σ(b)
    log_decay = ctx.tensor({2, value_heads_});
    beta = ctx.tensor({2, value_heads_});
    add(a_proj_, log_decay.with_row({2 * value_heads_}), DeltaDecay{A_log_, dt_bias_});
    add(b_proj_, beta.with_row({2 * value_heads_}), Activate{Activation::sigmoid, {}});
  } else {
    // log α^0 = logσ(gk_proj.0 x) / 16,   log α^s = logσ(gk_proj.1 x) / 16, per key channel
    log_decay = ctx.tensor({2, heads_, K_});
    const ForgetGate gate{normalizer_, -std::numeric_limits<float>::infinity()};
    const bool with_memory = decay_is_memorys(ctx) && value_heads_ == heads_;
    const auto forget = [&](const LowRank& both, Tensor half) {
      const Tensor features = ctx.tensor({both.first.out()});
      add(both.first, features);
      (with_memory ? decays : second).push_back(both.onto(half, features, gate));
    };
    forget(gk_shared_, log_decay.columns(0, {key_dim}));
    forget(gk_sparse_, log_decay.columns(key_dim, {key_dim}));
  }
  const Tensor g = gated ? low_rank(g_proj_, made[2], ctx.activation({value_dim})) : Tensor{};
  const Tensor raw_q = made[made.size() - 3], raw_k = made[made.size() - 2], logits = ctx.tensor({N_});
  const Tensor shared_q = base(q_proj_, q_conv_, 0, raw_q), shared_k = base(k_proj_, k_conv_, 1, raw_k);
  // v = silu(v_proj x), never convolved
  add(v_proj_, made.back(), Activate{v_act_, {}});
  const Tensor v = made.back().with_row({value_heads_, V_});
  add(e_proj_, logits);
  all.insert(all.end(), second.begin(), second.end());
  backend.project(all, ctx.workspace);

  // e_t = softmax(e_proj x) over the partitions; the W largest are selected, ties to the lowest index      (SSE eq. 9, ICLR gate)
  const Routed T = routed(ctx, writers_, readers_);
  const SparseSources from{.q = pair_of(ctx, raw_q, shared_q, more_q, use_q_softmax_),
                           .k = pair_of(ctx, raw_k, shared_k, more_k, use_k_softmax_),
                           .logits = logits,
                           .gate = ctx.tensor({N_}),
                           .selected = T.ruled ? Tensor{} : T.partitions,
                           .by_logits = v1_,
                           .decays = decays};
  if (delta_rule_ && beta_factor_ != 1) backend.add(beta, beta, beta);
  if (!delta_rule_) log_decay = repeat_pair(ctx, log_decay, K_);
  // v1: k^i = softmax(x W_k) / W, or one softmax over all selected rows, whose partition share is e renormalised over T [A9]
  const bool joint = v1_ && v1_joint_softmax_, made_here = joint || T.ruled || value_heads_ != heads_;
  if (made_here) backend.make(from, ctx.workspace);
  const Tensor q = repeat_pair(ctx, from.q.pair, K_), k = repeat_pair(ctx, from.k.pair, K_);
  Tensor gate = from.gate;
  if (joint) {
    gate = ctx.tensor({N_});
    backend.renormalise(gate, from.gate, T.partitions.columns(0, {T.writers}));
  }
  // S⁰_t = diag(α⁰) S⁰_{t-1} + k1ᵀ v;   n ∈ T_t: Sⁿ_t = diag(α^s) Sⁿ_{t-1} + e_t^n k2ᵀ v;   n ∉ T_t: Sⁿ_t = Sⁿ_{t-1}
  // o_t = K^{-1/2} ( q1 S⁰_t + Σ_{n∈T_t} e_t^n q2 Sⁿ_t )                                   (SSE-GDN: the delta rule in place of the sum)
  Tensor o = ctx.activation({value_heads_, V_});
  const SparseState memory{.q = q,
                           .k = k,
                           .v = v,
                           .log_decay = ruled_decay(ctx, log_decay),
                           .beta = beta,
                           .gate = gate,
                           .selected = T.partitions,
                           .writers = T.writers,
                           .readers = T.readers,
                           .gate_q = emulq_,
                           .gate_k = emulk_ || joint,
                           .gate_place = gate_place_,
                           .write_scale = v1_ && !joint ? 1 / static_cast<float>(T.writers) : 1.0f,
                           .scale = inverse_sqrt(K_),
                           .cu_seqlens = ctx.cu_seqlens(),
                           .initial_state = state.memory[0],
                           .final_state = state.memory[0],
                           .o = o};
  made_here ? backend.sparse_state(memory, ctx.chunk_size, ctx.workspace)
            : backend.sparse_state(memory, from, ctx.chunk_size, ctx.workspace);
  ctx.emit("partition_logits", logits);
  ctx.emit("partition_gate", from.gate);
  ctx.emit("partition_selected", T.partitions);
  if (delta_rule_) ctx.emit("beta", beta);
  ctx.emit("q", q);
  ctx.emit("k", k);
  ctx.emit("v", v);
  ctx.emit("log_decay", memory.log_decay);
  if (ctx.state_only) return;
  readout_(ctx, o, g, y);
}

std::unique_ptr<Mixer> make_sse(const MixerBuild& build) { return std::make_unique<Sse>(build); }

}  // namespace statescope

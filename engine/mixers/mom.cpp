// Mixture of memories: a router, and behind it gated delta rules that each see only the tokens routed to them (spec §3.8).
#include <fmt/format.h>

#include <numeric>

#include "engine/error.h"
#include "engine/mixers/parts.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

class Mom final : public Mixer {
 public:
  explicit Mom(const MixerBuild& build) {
    const Config& config = build.config;
    const WeightScope& weights = build.weights;
    hidden_ = config.integer("hidden_size");
    heads_ = config.integer("num_heads", 4);
    K_ = config.integer("head_dim", 256);
    V_ = expanded(K_, config, "expand_v", 1.0);
    memories_ = config.integer("num_memories", 4, 1, 100'000);
    topk_ = config.integer("topk", 2, 1, memories_);
    const bool single_kv = config.boolean("single_kv_proj", false);
    shared_ = config.boolean("shared_mem", true);
    config.text("mom_backend", "gated_deltanet", {"gated_deltanet"});
    if (!config.boolean("use_short_conv", true)) throw Error("config: MoM needs \"use_short_conv\": true");
    const std::int64_t key_dim = heads_ * K_, value_dim = heads_ * V_;
    router_ = Linear(weights, "gate", memories_, hidden_);
    q_proj_ = Linear(weights, "q_proj", key_dim, hidden_);
    for (std::int64_t m = 0; m < memories_ && !single_kv; ++m) {
      projections_.push_back({.k = Linear(weights, fmt::format("k_proj.{}", m), key_dim, hidden_),
                              .v = Linear(weights, fmt::format("v_proj.{}", m), value_dim, hidden_),
                              .b = Linear(weights, fmt::format("b_proj.{}", m), heads_, hidden_),
                              .a = Linear(weights, fmt::format("a_proj.{}", m), heads_, hidden_)});
    }
    if (shared_ || single_kv) {
      shared_projection_ = {.k = Linear(weights, "shared_k", key_dim, hidden_),
                            .v = Linear(weights, "shared_v", value_dim, hidden_),
                            .b = Linear(weights, "shared_b", heads_, hidden_),
                            .a = Linear(weights, "shared_a", heads_, hidden_)};
    }
    if (single_kv) projections_.assign(static_cast<std::size_t>(memories_), shared_projection_);
    A_log_ = weights.floats("A_log", {heads_});
    dt_bias_ = weights.floats("dt_bias", {heads_});
    const ToldSize width(config, "conv_size", 4);
    q_conv_ = Conv(weights, "q_conv1d", key_dim, width, Activation::silu);
    k_conv_ = Conv(weights, "k_conv1d", key_dim, width, Activation::silu);
    v_conv_ = Conv(weights, "v_conv1d", value_dim, width, Activation::silu);
    if (config.boolean("use_output_gate", true)) g_proj_ = Linear(weights, "g_proj", value_dim, hidden_);
    readout_ = normed_readout(build, "o_norm.weight", V_, value_dim);
  }

  MixerLayout layout() const override {
    MixerLayout layout;
    layout.has_shared_slot = shared_;
    layout.partitions = memories_;
    layout.writers = topk_;
    layout.decays = layout.decays_by_slot = true;
    if (shared_) layout.slot_names.push_back("shared");
    for (std::int64_t m = 0; m < memories_; ++m) layout.slot_names.push_back(fmt::format("{}", m + 1));
    const auto slots = static_cast<std::int64_t>(layout.slot_names.size());
    layout.memory.push_back({"recurrent", {slots, heads_, K_, V_}});
    for (const Conv* conv : {&q_conv_, &k_conv_, &v_conv_}) layout.conv_caches.push_back(conv->cache_shape(slots));
    return layout;
  }

  void forward(Context& ctx, ConstTensor x, MixerState& state, Tensor y) const override {
    Backend& backend = ctx.backend;
    const std::int64_t T = ctx.tokens;
    // s = softmax(gate x), the top k of it renormalised to sum 1
    Tensor logits = router_.exact(ctx, x), s = ctx.tensor({memories_});
    backend.softmax(s, logits);
    ctx.emit("partition_logits", logits);
    ctx.emit("partition_gate", s);
    const Tensor ids = route_tokens(ctx, s, topk_, topk_).partitions;
    Tensor weights = ctx.tensor({memories_});
    backend.renormalise(weights, s, ids);

    // Rows: all tokens for the shared memory, then each memory's own tokens in order.
    const Runs runs = order(ctx, ids);
    const auto rows = static_cast<std::int64_t>(runs.token.size());
    Tensor x_rows = ctx.workspace.tensor({rows, hidden_}, x.dtype);
    backend.gather_rows(x_rows, x, runs.token.data());
    Tensor q = q_proj_(ctx, x_rows);
    Tensor k = ctx.workspace.tensor({rows, heads_ * K_}, q.dtype), v = ctx.workspace.tensor({rows, heads_ * V_}, q.dtype);
    Tensor beta = ctx.workspace.tensor({rows, heads_}), log_decay = ctx.workspace.tensor({rows, heads_});
    for (std::size_t r = 0; r < runs.slot.size(); ++r) {
      const std::int64_t begin = runs.cu_seqlens[r], count = runs.cu_seqlens[r + 1] - begin;
      const Projection& project = projection(runs.slot[r]);
      const ConstTensor x_run = x_rows.slice(begin, count);
      project.k.into(ctx, k.slice(begin, count), x_run);
      project.v.into(ctx, v.slice(begin, count), x_run);
      project.b.into(ctx, beta.slice(begin, count), x_run);
      project.a.into(ctx, log_decay.slice(begin, count), x_run);
    }
    // The convolution's neighbours are the previous tokens of the same memory [A2].
    const Segments segments{runs.cu_seqlens, runs.slot};
    q = convolve(ctx, q_conv_, q, state.conv_caches[0], segments).with_row({heads_, K_});
    k = convolve(ctx, k_conv_, k, state.conv_caches[1], segments).with_row({heads_, K_});
    v = convolve(ctx, v_conv_, v, state.conv_caches[2], segments).with_row({heads_, V_});
    backend.l2_norm(q, q);
    backend.l2_norm(k, k);
    backend.activate(beta, beta, Activation::sigmoid);
    backend.gated_delta_decay(log_decay, log_decay, A_log_, dt_bias_);

    const ConstTensor decay = ruled_decay(ctx, log_decay);
    emit_decay(ctx, decay, runs);

    // Each memory a gated delta rule (spec §3.6) over its own tokens; the others stay as they are.
    Tensor o_rows = ctx.workspace.tensor({rows, heads_, V_});
    backend.gated_delta_rule({.q = q,
                              .k = k,
                              .v = v,
                              .log_decay = decay,
                              .beta = beta,
                              .scale = inverse_sqrt(K_),
                              .segments = segments,
                              .initial_state = state.memory[0],
                              .final_state = state.memory[0],
                              .o = o_rows},
                             ctx.chunk_size);
    if (ctx.state_only) return;
    // o_t = Σ_m w_t^m o_t^m + o_t^shared
    Tensor o = shared_ ? o_rows.slice(0, T) : ctx.tensor({heads_, V_});
    if (!shared_) backend.fill(o, 0);
    const std::int64_t items = ids.shape.size(), first = rows - items;
    Tensor item_weight = ctx.workspace.tensor({items, 1});
    backend.gather_rows(item_weight, Tensor(weights.data, DType::f32, {T * memories_, 1}), runs.weight.data());
    backend.scatter_add_rows(o.with_row({heads_ * V_}), o_rows.slice(first, items).with_row({heads_ * V_}), runs.token.data() + first,
                             Tensor(item_weight.data, DType::f32, {items}));
    readout_(ctx, o, g_proj_ ? g_proj_(ctx, x) : Tensor{}, y);
  }

 private:
  struct Projection {
    Linear k, v, b, a;
  };
  struct Runs {
    std::vector<std::int32_t> token;       // [rows]
    std::vector<std::int32_t> weight;      // [items] t · M + m: where the item's weight lies
    std::vector<std::int32_t> cu_seqlens;  // [runs + 1]
    std::vector<std::int32_t> slot;        // [runs]
  };

  Runs order(Context& ctx, ConstTensor ids) const {
    std::vector<std::int32_t> host_ids(static_cast<std::size_t>(ids.shape.size()));
    Tensor host(host_ids.data(), DType::i32, ids.shape);
    ctx.backend.download(host, ids);
    PartitionOrder order;
    order_by_partition(order, host, ctx.cu_seqlens(), memories_);
    Runs runs;
    runs.cu_seqlens.push_back(0);
    std::int32_t offset = 0;
    if (shared_) {
      offset = static_cast<std::int32_t>(ctx.tokens);
      runs.token.resize(static_cast<std::size_t>(ctx.tokens));
      std::iota(runs.token.begin(), runs.token.end(), 0);
      runs.cu_seqlens.push_back(offset);
      runs.slot.push_back(0);
    }
    for (std::size_t i = 0; i < order.token.size(); ++i) {
      runs.token.push_back(order.token[i]);
      runs.weight.push_back(order.token[i] * static_cast<std::int32_t>(memories_) + order.partition[i]);
    }
    for (std::size_t r = 0; r < order.run.size(); ++r) {
      runs.cu_seqlens.push_back(offset + order.cu_seqlens[r + 1]);
      runs.slot.push_back(order.run[r] + (shared_ ? 1 : 0));
    }
    return runs;
  }

  /// Emits log_decay [T, slots, H], 0 where a token does not come to a memory; decay [rows, H].
  void emit_decay(Context& ctx, ConstTensor decay, const Runs& runs) const {
    if (!ctx.wants("log_decay")) return;
    const std::int64_t slots = memories_ + (shared_ ? 1 : 0);
    std::vector<std::int32_t> place(runs.token.size());  // t · slots + slot of each row
    for (std::size_t r = 0; r < runs.slot.size(); ++r) {
      for (auto row = static_cast<std::size_t>(runs.cu_seqlens[r]); row < static_cast<std::size_t>(runs.cu_seqlens[r + 1]); ++row)
        place[row] = runs.token[row] * static_cast<std::int32_t>(slots) + runs.slot[r];
    }
    const Tensor all = ctx.tensor({slots, heads_});
    ctx.backend.fill(all, 0);
    ctx.backend.scatter_add_rows(Tensor(all.data, DType::f32, {ctx.tokens * slots, heads_}), decay, place.data());
    ctx.emit("log_decay", all);
  }

  const Projection& projection(std::int32_t slot) const {
    if (shared_ && slot == 0) return shared_projection_;
    return projections_[static_cast<std::size_t>(slot - (shared_ ? 1 : 0))];
  }

  static Tensor convolve(Context& ctx, const Conv& conv, ConstTensor rows, Tensor cache, const Segments& segments) {
    Tensor out = ctx.workspace.tensor({rows.rows(), conv.channels()}, rows.dtype);
    ctx.backend.short_convolution({.x = rows,
                                   .weight = conv.weight,
                                   .bias = conv.bias,
                                   .act = conv.act,
                                   .segments = segments,
                                   .initial_cache = cache,
                                   .final_cache = cache,
                                   .y = out});
    return out;
  }

  std::int64_t hidden_, heads_, K_, V_, memories_, topk_;
  bool shared_;
  Linear router_, q_proj_, g_proj_;
  std::vector<Projection> projections_;
  Projection shared_projection_;
  ConstTensor A_log_, dt_bias_;
  Conv q_conv_, k_conv_, v_conv_;
  Readout readout_;
};

}  // namespace

std::unique_ptr<Mixer> make_mom(const MixerBuild& build) { return std::make_unique<Mom>(build); }

}  // namespace statescope

// Mixture of memories: a router, and behind it gated delta rules that each see only the tokens routed to them (spec §3.8).
#include <fmt/format.h>

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

  void describe(Program& p) const override {
    // s = softmax(gate x), the top k of it renormalised to sum 1
    const Value logits = p.show("partition_logits", router_(p, p.x(), ValueType::exact));
    const Value s = p.show("partition_gate", p.apply(program::Softmax{}, logits));
    const Value ids = p.show("partition_selected", p.top_k(s, topk_));
    const Value weights = p.renormalise(s, ids);

    // Each memory has its own projections, and as neighbours in the convolution the previous tokens of its own [A2].
    const Value x = p.dispatch(p.x(), ids, memories_, shared_, {hidden_});
    const Value q = p.with_axes(q_conv_(p, q_proj_(p, x), 0), {heads_, K_});
    const Value k = p.with_axes(k_conv_(p, p.linear_of_slots(of_slots(&Projection::k), x), 1), {heads_, K_});
    const Value v = p.with_axes(v_conv_(p, p.linear_of_slots(of_slots(&Projection::v), x), 2), {heads_, V_});
    const Value beta = p.apply(Activation::sigmoid, p.linear_of_slots(of_slots(&Projection::b), x, ValueType::exact));
    const Value decay = p.apply(DeltaDecay{A_log_, dt_bias_}, p.linear_of_slots(of_slots(&Projection::a), x, ValueType::exact));
    p.show("log_decay", p.by_slot(decay, memories_ + (shared_ ? 1 : 0)));

    // A gated delta rule (spec §3.6) in each over its own tokens; the others stay as they are.
    const Value o = p.remember(program::DeltaRule{.q = p.apply(program::L2Norm{}, q),
                                                  .k = p.apply(program::L2Norm{}, k),
                                                  .v = v,
                                                  .log_decay = decay,
                                                  .beta = beta,
                                                  .scale = inverse_sqrt(K_)},
                               heads_, V_, ValueType::exact);
    // o_t = Σ_m w_t^m o_t^m + o_t^shared
    p.result = readout_(p, p.collect(o, weights), g_proj_ ? g_proj_(p, p.x()) : Value{});
  }

 private:
  struct Projection {
    Linear k, v, b, a;
  };

  /// The weights of one projection, slot by slot.
  std::vector<ConstTensor> of_slots(Linear Projection::*part) const {
    std::vector<ConstTensor> weights;
    if (shared_) weights.push_back((shared_projection_.*part).weight);
    for (const Projection& own : projections_) weights.push_back((own.*part).weight);
    return weights;
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

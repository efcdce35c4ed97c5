// Zamba's layers that begin with the shared block: attention and an MLP over the stream and the embedding, then Mamba (spec §17.7).
#include <fmt/format.h>

#include <cmath>

#include "engine/mixers/mamba2.h"
#include "engine/mixers/recurrent/zamba_mamba.h"
#include "engine/mixers/rope.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

/// weight·x, and what this use of the block adds to it: second(first(x)), Zamba2's adapter.
struct Adapted {
  Linear shared;
  LowRank adapter;

  Value operator()(Program& p, Value x, ValueType numbers = ValueType::rounded) const {
    const Value y = shared(p, x, numbers);
    return adapter ? p.combine(program::Add{}, y, adapter(p, x, numbers)) : y;
  }
};

template <class Mamba>
class ZambaHybrid final : public Mixer {
 public:
  explicit ZambaHybrid(const MixerBuild& build)
      : hidden_(build.config.integer("hidden_size")),
        mamba_({build.config.object("mamba"), build.weights.scope("mamba_decoder.mamba."), build.layer}) {
    const Config& config = build.config;
    heads_ = config.integer("num_heads");
    kv_heads_ = config.integer("num_kv_heads", heads_);
    divided(heads_, "num_attention_heads", kv_heads_, "num_key_value_heads");
    head_dim_ = config.integer("head_dim");
    if (config.boolean("positions", false)) rope_ = Rope(config, head_dim_, 1);
    eps_ = static_cast<float>(config.not_negative("norm_eps", 1e-5));
    linear_ = Linear(build.weights, "linear", hidden_, hidden_);
    mamba_norm_ = build.weights.floats("mamba_decoder.input_layernorm.weight", {hidden_});
    // A layer's own copy of the block where it has one, else that of the first layer which uses it; adapters likewise.
    const std::string name = config.text("block");
    const bool own = build.weights.has(name + "input_layernorm.weight");
    const WeightScope first = build.weights.of_model().scope(config.text("owner") + name);
    load_block(own ? build.weights.scope(name) : first, first, config);
  }

  MixerLayout layout() const override {
    MixerLayout layout = mamba_.layout();
    layout.attention_heads = heads_;
    layout.kv_heads = kv_heads_;
    layout.key_dim = layout.value_dim = head_dim_;
    return layout;
  }

  void describe(Program& p) const override {
    const auto normed = [&](ConstTensor weight, Value x) {
      return p.apply(program::RmsNorm{.weight = weight, .group = p.width(x), .eps = eps_}, x);
    };
    // n = RMSNorm([x | e]),   a = o_proj( softmax((d/2)^{-1/2} q Kᵀ) V ),   m = down( gelu(gate a') ⊙ up a' ),   a' = RMSNorm(a)
    const Value both = input_of(p, 2 * hidden_), x = p.columns(both, 0, {hidden_}), n = normed(input_norm_, both);
    const Value a = normed(ff_norm_, attention(p, n)), gate_up = gate_up_proj_ ? (*gate_up_proj_)(p, a) : Value{};
    const Value gate = gate_up ? p.columns(gate_up, 0, {width_}) : gate_proj_(p, a);
    const Value up = gate_up ? p.columns(gate_up, width_, {width_}) : up_proj_(p, a);
    const Value m = down_proj_(p, p.combine(program::Gate{Activation::gelu}, up, gate));
    // mamba( RMSNorm(x + linear m) )
    const Value shared = p.show("shared_out", linear_(p, m));
    p.result = mamba_.output(p, normed(mamba_norm_, p.combine(program::Add{}, x, shared)));
  }

 private:
  void load_block(const WeightScope& block, const WeightScope& first, const Config& config) {
    const WeightScope attention = block.scope("self_attn."), mlp = block.scope("feed_forward.");
    const std::int64_t wide = 2 * hidden_, use = config.integer("use", 0, 0), uses = config.integer("uses", use + 1);
    const bool adapts_attention = config.boolean("adapts_attention", false), second = config.boolean("second", false);
    const ToldSize rank(config, "adapter_rank", 128);
    const auto adapter_in = [&](const WeightScope& scope, const std::string& list, std::int64_t u, std::int64_t out, std::int64_t in) {
      return LowRank(scope, fmt::format("{}_adapter_list.{}", list, u), out, in, rank);
    };
    const auto adapter = [&](const std::string& list, std::int64_t out, std::int64_t in) {
      const auto has = [&](std::int64_t u) { return block.has(fmt::format("{}_adapter_list.{}.0.weight", list, u)); };
      // Files that repeat the block repeat what its other uses add, too.
      for (std::int64_t u = 0; u < uses; ++u)
        if (u != use && has(u)) adapter_in(block, list, u, out, in);
      return adapter_in(has(use) ? block : first, list, use, out, in);
    };
    const auto projection = [&](const char* which, std::int64_t heads) {
      Adapted adapted{Linear(attention, fmt::format("{}_proj", which), heads * head_dim_, wide), {}};
      if (adapts_attention) adapted.adapter = adapter(fmt::format("self_attn.linear_{}", which), heads * head_dim_, wide);
      return adapted;
    };
    q_proj_ = projection("q", heads_);
    k_proj_ = projection("k", kv_heads_);
    v_proj_ = projection("v", kv_heads_);
    o_proj_ = Linear(attention, "o_proj", hidden_, heads_ * head_dim_);
    input_norm_ = block.floats("input_layernorm.weight", {wide});
    ff_norm_ = block.floats("pre_ff_layernorm.weight", {hidden_});
    width_ = config.integer("intermediate_size");
    if (second) {
      gate_up_proj_ = Adapted{Linear(mlp, "gate_up_proj", 2 * width_, hidden_), adapter("feed_forward.gate_up_proj", 2 * width_, hidden_)};
    } else {
      gate_proj_ = Linear(mlp, "gate_proj", width_, hidden_);
      up_proj_ = Linear(mlp, "up_proj", width_, hidden_);
    }
    down_proj_ = Linear(mlp, "down_proj", hidden_, width_);
  }

  Value attention(Program& p, Value n) const {
    const auto heads = [&](const Adapted& projection, std::int64_t count) {
      return p.with_axes(projection(p, n, ValueType::exact), {count, head_dim_});
    };
    Value q = p.apply(program::Times{std::sqrt(2.0F)}, heads(q_proj_, heads_)), k = heads(k_proj_, kv_heads_);
    if (rope_) {
      q = (*rope_)(p, q);
      k = (*rope_)(p, k);
    }
    p.show("attention_q", q);
    p.append(p.show("attention_k", k), p.show("attention_v", heads(v_proj_, kv_heads_)));
    const Value o = p.attend(program::Attend{.q = q, .scale = inverse_sqrt(head_dim_)}, heads_, head_dim_).first;
    return o_proj_(p, p.show("attention_readout", p.with_axes(o, {heads_ * head_dim_})));
  }

  std::int64_t hidden_, heads_, kv_heads_, head_dim_, width_ = 0;
  float eps_;
  Adapted q_proj_, k_proj_, v_proj_;
  std::optional<Adapted> gate_up_proj_;  // Zamba2
  Linear gate_proj_, up_proj_, down_proj_, o_proj_, linear_;
  ConstTensor input_norm_, ff_norm_, mamba_norm_;
  std::optional<Rope> rope_;
  Mamba mamba_;
};

}  // namespace

std::unique_ptr<Mixer> make_zamba_hybrid(const MixerBuild& build) { return std::make_unique<ZambaHybrid<ZambaMambaMixer>>(build); }
std::unique_ptr<Mixer> make_zamba2_hybrid(const MixerBuild& build) { return std::make_unique<ZambaHybrid<Mamba2Mixer>>(build); }

}  // namespace statescope

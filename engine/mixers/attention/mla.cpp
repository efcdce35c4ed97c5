// Multi-head latent attention: keys and values of all heads come from one latent vector a token, which is what is kept (spec §17.4, §18.1);
// with an indexer only tokens that it chooses are looked at (§18.2).
#include <optional>

#include "engine/mixers/attention/token_indexer.h"
#include "engine/mixers/parts.h"
#include "engine/mixers/rope.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

constexpr float kLatentEps = 1e-6F;  // whatever the config says of its other norms

class LatentAttention final : public Mixer {
 public:
  LatentAttention(const MixerBuild& build, bool chooses) {
    const Config& config = build.config;
    const WeightScope& weights = build.weights;
    const std::int64_t hidden = config.integer("hidden_size"), q_rank = config.integer("q_lora_rank", 0, 0);
    heads_ = config.integer("num_attention_heads");
    latent_ = config.integer("kv_lora_rank");
    own_ = config.integer("qk_nope_head_dim");
    shared_ = config.integer("qk_rope_head_dim");
    V_ = config.integer("v_head_dim");
    const std::int64_t q_dim = heads_ * (own_ + shared_);
    const bool bias = config.boolean("attention_bias", false);
    if (q_rank > 0) {
      q_a_proj_ = Linear(weights, "q_a_proj", q_rank, hidden, bias);
      q_a_norm_ = weights.floats("q_a_layernorm.weight", {q_rank});
    }
    q_proj_ = q_rank > 0 ? Linear(weights, "q_b_proj", q_dim, q_rank) : Linear(weights, "q_proj", q_dim, hidden);
    kv_a_proj_ = Linear(weights, "kv_a_proj_with_mqa", latent_ + shared_, hidden, bias);
    kv_a_norm_ = weights.floats("kv_a_layernorm.weight", {latent_});
    load_kv_b_proj(weights);
    o_proj_ = Linear(weights, "o_proj", hidden, heads_ * V_, bias);
    if (!config.boolean("positions", false)) return;
    require_pairs(shared_, "qk_rope_head_dim");
    rope_ = Rope(config, shared_, 1);
    interleaved_ = config.boolean("rope_interleave", true);
    if (chooses) indexer_.emplace(build, q_rank);
  }

  MixerLayout layout() const override {
    MixerLayout layout;
    layout.attention_heads = heads_;
    layout.kv_heads = 1;
    layout.key_dim = latent_ + shared_;
    if (indexer_) layout.index_dim = indexer_->width();
    return layout;
  }

  void describe(Program& p) const override {
    const Value x = p.x();
    // q = q_proj x, or q_b_proj RMSNorm(q_a_proj x)
    const Value low = q_a_proj_ ? p.apply(norm_of(q_a_norm_), q_a_proj_(p, x)) : x;
    Value q = p.with_axes(q_proj_(p, low, ValueType::exact), {heads_, own_ + shared_});
    // [c | k_r] = kv_a_proj x,   c ← RMSNorm(c);   with positions RoPE of q_r and k_r, and q = [q_r | q_n] then
    const Value both = kv_a_proj_(p, x, ValueType::exact);
    const Value c = p.apply(norm_of(kv_a_norm_), p.columns(both, 0, {latent_}));
    Value k_r = p.columns(both, latent_, {shared_});
    if (rope_) {
      Ranges turned, query;
      append_turned(turned, latent_);
      append_turned(query, own_);
      query.emplace_back(0, own_);
      q = (*rope_)(p, p.taken_of_heads(q, query));
      k_r = p.with_axes((*rope_)(p, p.taken(both, turned, {1, shared_})), {shared_});
      if (rope_->score_factor() != 1) q = p.apply(program::Times{rope_->score_factor()}, q);
    }
    p.show("q", q);
    show_keys_and_values(p, c, k_r);
    p.append(p.stack(c, k_r, {1, latent_ + shared_}), {}, indexer_ ? indexer_->key(p, *rope_) : Value{});
    // o_t = Σ_s softmax_s(d^{-1/2} q_t·k_s) v_s, d the length of a key; s: all tokens up to t, or those that the indexer chooses of them
    const Value o = p.attend(program::LatentAttend{.q = q,
                                                   .shared_first = rope_.has_value(),
                                                   .W_k = W_k_,
                                                   .W_v = W_v_,
                                                   .scale = inverse_sqrt(own_ + shared_),
                                                   .chosen = indexer_ ? indexer_->chosen(p, low, *rope_) : Value{}},
                             heads_, V_);
    p.result = o_proj_(p, p.show("readout", p.with_axes(o, {heads_ * V_})));
  }

 private:
  using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;

  /// The rows of W_k of all heads, then those of W_v; kv_b_proj has [k_n | v] of one head after the other.
  void load_kv_b_proj(const WeightScope& weights) {
    const std::int64_t keys = heads_ * own_, values = heads_ * V_;
    std::vector<std::int64_t> order(static_cast<std::size_t>(keys + values));
    for (std::int64_t i = 0; i < keys; ++i) order[static_cast<std::size_t>(i)] = i / own_ * (own_ + V_) + i % own_;
    for (std::int64_t i = 0; i < values; ++i) order[static_cast<std::size_t>(keys + i)] = i / V_ * (own_ + V_) + own_ + i % V_;
    const ConstTensor all = weights.matrix_in_order("kv_b_proj.weight", {keys + values, latent_}, order);
    W_k_ = all.slice(0, keys);
    W_v_ = all.slice(keys, values);
  }

  /// For whoever wants to see them: k = [W_k c | k_r] of each head, the same k_r for all, with positions [k_r | W_k c];   v = W_v c
  void show_keys_and_values(Program& p, Value c, Value k_r) const {
    const Value all = p.stack(p.linear(W_k_, {}, c, ValueType::exact), k_r, {heads_ * own_ + shared_});
    Ranges keys;
    for (std::int64_t h = 0; h < heads_; ++h) {
      if (rope_) keys.emplace_back(heads_ * own_, shared_);
      keys.emplace_back(h * own_, own_);
      if (!rope_) keys.emplace_back(heads_ * own_, shared_);
    }
    p.show("k", p.taken(all, keys, {heads_, own_ + shared_}));
    p.show("v", p.with_axes(p.linear(W_v_, {}, c, ValueType::exact), {heads_, V_}));
  }

  /// The channels from `begin` on that turn. Of interleaved pairs (2j, 2j + 1) all first members, then all second ones, as Rope pairs them.
  void append_turned(Ranges& ranges, std::int64_t begin) const {
    if (!interleaved_) return ranges.push_back({begin, shared_});
    for (std::int64_t member = 0; member < 2; ++member) {
      for (std::int64_t j = 0; j < shared_ / 2; ++j) ranges.emplace_back(begin + 2 * j + member, 1);
    }
  }
  static program::RmsNorm norm_of(ConstTensor weight) { return {.weight = weight, .group = weight.rows(), .eps = kLatentEps}; }

  std::int64_t heads_, latent_, own_, shared_, V_;
  Linear q_a_proj_, q_proj_, kv_a_proj_, o_proj_;
  ConstTensor q_a_norm_, kv_a_norm_;
  ConstTensor W_k_, W_v_;  // [H n, C], [H v, C]
  std::optional<Rope> rope_;
  std::optional<TokenIndexer> indexer_;
  bool interleaved_ = false;
};

}  // namespace

std::unique_ptr<Mixer> make_latent_attention(const MixerBuild& build) { return std::make_unique<LatentAttention>(build, false); }
std::unique_ptr<Mixer> make_sparse_latent_attention(const MixerBuild& build) { return std::make_unique<LatentAttention>(build, true); }

}  // namespace statescope

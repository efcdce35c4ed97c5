// Native sparse attention: means of blocks, the blocks that they choose, and a window, each with a gate of its own (spec §18.3).
#include "engine/mixers/attention/softmax_attention.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

constexpr std::int64_t kAlwaysChosen = 3;  // the first block, a token's own and the one before it

class NativeSparseAttention final : public Mixer {
 public:
  explicit NativeSparseAttention(const MixerBuild& build) : heads_(build) {
    const Config& config = build.config;
    const std::int64_t hidden = config.integer("hidden_size");
    block_size_ = config.integer("block_size");
    block_counts_ = config.integer("block_counts", {}, kAlwaysChosen, 4096);
    window_ = config.integer("window_size");
    g_proj_ = Linear(build.weights, "g_proj", kBranches * heads_.heads(), hidden);
    o_proj_ = Linear(build.weights, "o_proj", hidden, heads_.value_dim());
  }

  MixerLayout layout() const override { return heads_.layout(); }

  void describe(Program& p) const override {
    const std::int64_t H = heads_.heads(), d = heads_.head_dim();
    const float scale = inverse_sqrt(d);
    const Value q = heads_.queries(p);
    // g of head h = σ(rows 3h, 3h + 1, 3h + 2 of g_proj x): of the means, the chosen blocks, the window
    const Value gates = p.show("nsa_gates", p.with_axes(p.apply(Activation::sigmoid, g_proj_(p, p.x(), ValueType::exact)), {H, kBranches}));
    const auto gated = [&](Value o, std::int64_t branch) {
      std::vector<std::pair<std::int64_t, std::int64_t>> rows;
      for (std::int64_t h = 0; h < H; ++h) rows.emplace_back(kBranches * h + branch, 1);
      return p.combine(program::ScaleHeads{}, o, p.taken(gates, rows, {H}));
    };
    // o_cmp = Σ_b softmax_b(d^{-1/2} q_t·k̄_b) v̄_b over complete blocks, whose weights choose blocks
    const auto compressed =
        p.attend(program::CompressedAttend{.q = q, .scale = scale, .block_size = block_size_}, H, d, heads_.kv_heads(), block_counts_);
    p.show("nsa_selected", compressed.selected);
    p.show("nsa_importance", compressed.importance);
    // o_slc = Σ_s softmax_s(d^{-1/2} q_t·k_s) v_s over the chosen blocks,   o_swa over the last tokens
    const program::Attend chosen{.q = q, .scale = scale, .block_size = block_size_, .chosen = compressed.selected};
    const program::Attend last{.q = q, .scale = scale, .window = window_};
    const Value o_slc = p.attend(chosen, H, d).first, o_swa = p.attend(last, H, d).first;
    // y = o_proj( g_cmp o_cmp + g_slc o_slc + g_swa o_swa )
    const Value two = p.combine(program::Add{}, gated(compressed.o, 0), gated(o_slc, 1));
    const Value o = p.combine(program::Add{}, two, gated(o_swa, 2));
    p.result = o_proj_(p, p.show("readout", p.with_axes(o, {heads_.value_dim()})));
  }

 private:
  static constexpr std::int64_t kBranches = 3;

  AttentionHeads heads_;
  std::int64_t block_size_, block_counts_, window_;
  Linear g_proj_, o_proj_;
};

}  // namespace

std::unique_ptr<Mixer> make_nsa(const MixerBuild& build) { return std::make_unique<NativeSparseAttention>(build); }

}  // namespace statescope

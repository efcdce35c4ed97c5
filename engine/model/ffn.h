// What stands between mixers: MLPs with and without a gate (spec §1.4, §19.4) and layers of experts (spec §8.1, §19.4, §19.6, §19.10).
#pragma once

#include <memory>

#include "engine/mixers/parts.h"

namespace statescope {

/// An MLP: down(up x ⊙ silu(gate x)), or without a gate down(relu(up x)²).
struct MlpPlan {
  std::int64_t width = 0;
  std::string gate = "gate_proj", up = "up_proj", down = "down_proj";  // names of its matrices; no gate: empty
  bool gate_within_up = false;                                         // `up` has the rows of the gate, then those of up
  bool biases = false;
  float gate_factor = 1, factor = 1;  // of gate x, and of what comes out
};

/// Σ_e w_e · MLP_e(x) over the chosen experts e, and perhaps an expert that all tokens share.
struct ExpertsPlan {
  std::int64_t count = 0, chosen = 0;
  MlpPlan expert;
  std::string one_by_one = "experts.{}.";  // what stands before the names of an expert's matrices; empty: they are packed
  /// Names of the packed matrices, up (with the gate's rows first, if there is one) and down; those count that are there.
  std::vector<std::pair<std::string, std::string>> packed{{"experts.gate_up_proj", "experts.down_proj"}};
  std::vector<std::string> router{"gate"};  // likewise

  bool sigmoid = false;    // scores are σ(router x), each for itself, instead of a softmax over all
  std::string correction;  // name of a bias of the scores that only chooses; empty: none
  ScoredChoice how;        // of a softmax: whether the weights of the chosen are divided by their sum

  std::int64_t latent = 0;  // width of what the experts read and write, projected from and to the model's; 0: the model's own
  std::string shared;       // what stands before the names of the shared expert; empty: there is none
  MlpPlan shared_expert;
  std::string shared_gate;  // name of the matrix whose σ weighs it; empty: weight 1
};

/// RWKV's, which reads the token before too (channel_mix.h): value(relu(key(x + δ ⊙ μ))²).
struct ChannelMixPlan {
  std::int64_t width = 0;
  bool receptance = false;  // RWKV-6: times σ(receptance(x + δ ⊙ μ_r)); its tensors have other names
};

class Ffn {
 public:
  virtual ~Ffn() = default;
  /// As a mixer's.
  virtual bool folds_norm() const { return false; }
  /// What it keeps from one token to the next, behind the mixer's own in MixerState::conv_caches.
  virtual std::vector<Shape> cache_shapes() const { return {}; }
  /// y [T, D] = f(x [T, D], already normalised); `caches` [cache_shapes()] are brought from before the first token to after the last.
  virtual void forward(Context& ctx, ConstTensor x, Tensor y, std::span<const Tensor> caches) const = 0;
  /// How many experts it has, and how many of them a token chooses; 0: it has none.
  virtual std::int64_t experts() const { return 0; }
  virtual std::int64_t chosen_experts() const { return 0; }
  /// Shows as channels which experts x chooses, and computes nothing else.
  virtual void show_choice(Context& /*ctx*/, ConstTensor /*x*/) const {}
  /// The caches alone, of tokens whose last came in as `last` [1, D].
  virtual void keep(Context& /*ctx*/, ConstTensor /*last*/, std::span<const Tensor> /*caches*/) const {}
};

std::unique_ptr<Ffn> make_mlp(const WeightScope& weights, std::int64_t hidden, const MlpPlan& plan);
std::unique_ptr<Ffn> make_experts(const WeightScope& weights, std::int64_t hidden, const ExpertsPlan& plan);

}  // namespace statescope

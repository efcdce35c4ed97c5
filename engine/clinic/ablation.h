// What the predictions at the end of a sequence owe to the memory, found by taking it away.
#pragma once

#include <limits>
#include <vector>

#include "engine/accuracy.h"
#include "engine/analysis/predictions.h"

namespace statescope {

/// How much the predictions at the end change when the first tokens are left out: the total variation ½ Σ_v |p_v − p'_v|, mean over the
/// last predictions (effective remembrance: Understanding and Improving Length Generalization, arXiv 2507.02782).
struct Remembrance {
  static constexpr Accuracy accuracy = kRecomputed;
  std::int64_t dropped = 0;  // the first of the sequence
  double change = 0;         // 0: nothing of them is remembered (or needed), 1: everything depends on them
};
constexpr std::int64_t kRememberedAt = 16;  // the last predictions
/// By eighths; of a sequence longer than this, where a reading takes long, without the last half, quarter and eighth of it.
constexpr std::int64_t kRemembersInEighths = 2048;

/// The last predictions, how they change (total variation, mean) when for them a memory is written but not read.
struct Ablation {
  static constexpr Accuracy accuracy = kRecomputed;
  std::vector<double> layers;                             // [layers] what it reads is 0; NaN for a layer without a matrix state
  std::vector<std::vector<double>> heads;                 // [layers][H] what a head reads is 0; NaN where it was not tried
  double all = std::numeric_limits<double>::quiet_NaN();  // what all memories read is 0; NaN where there is none
  double entropy = 0;                                     // of the untouched predictions, nat, mean
  std::vector<Remembrance> remembrance;                   // empty below 8 · kRememberedAt tokens
};
/// Heads are tried in the order of how little their layer's output changes without them, so many of the model; fewer where a prediction is
/// a row of very many numbers.
constexpr std::size_t kHeadsTried = 64, kHeadsTriedOfMany = 16;

/// How many of the last predictions are compared: fewer where each is a row of very many numbers.
std::int64_t compared_predictions(const Model& model, std::int64_t tokens);

/// A model's state at a token, kept on the device, to come back to.
class Bookmark {
 public:
  Bookmark(Model& model, const ModelState& state);
  std::int64_t position() const { return position_; }
  /// Of the layers from `first` on.
  void restore(ModelState& state, std::int64_t first = 0) const;

 private:
  Backend& backend_;
  std::int64_t position_;
  std::vector<Buffer> memory_;
  std::vector<Tensor> blocks_;        // [layers] MixerState::everything
  std::vector<std::int64_t> cached_;  // [layers] tokens in the softmax cache
};

/// `ids` has two tokens or more, `state` has read all of them and is spent afterwards, `before` was made compared_predictions before its
/// end. Throws Error.
Ablation ablate(Model& model, std::span<const std::int32_t> ids, ModelState& state, const Bookmark& before, ReadingProgress& progress);
/// How many tokens that reads.
std::int64_t tokens_of_ablation(const Model& model, std::int64_t tokens);

}  // namespace statescope

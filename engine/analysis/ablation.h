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

/// The last predictions, how they change (total variation, mean) when for them a memory is written but not read: its layer's output is 0.
struct Ablation {
  static constexpr Accuracy accuracy = kRecomputed;
  std::vector<double> layers;                             // [layers] of each alone; NaN for a layer without a matrix state
  double all = std::numeric_limits<double>::quiet_NaN();  // of all memories at once; NaN where there is none
  double entropy = 0;                                     // of the untouched predictions, nat, mean
  std::vector<Remembrance> remembrance;                   // empty below 8 · kRememberedAt tokens
};

/// `ids` has two tokens or more. Throws Error.
Ablation ablate(Model& model, std::span<const std::int32_t> ids, ReadingProgress& progress);
/// How many tokens that reads.
std::int64_t tokens_of_ablation(const Model& model, std::int64_t tokens);

}  // namespace statescope

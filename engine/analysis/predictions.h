// What a model predicts while it reads a sequence, in passes that fit into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "engine/model/model.h"

namespace statescope {

/// Rows of logits [n, V] on a model's device.
class Logits {
 public:
  /// Of hidden [n, D].
  Logits(Model& model, ConstTensor hidden);
  ConstTensor rows() const { return rows_; }
  /// −log softmax(row t)[ids[t]], nat, of the first ids.size() rows.
  std::vector<double> nll(std::span<const std::int32_t> ids) const;
  double nll(std::int64_t row, std::int32_t id) const;
  /// −Σ_v p_v log p_v, nat, mean over rows.
  double mean_entropy() const;

 private:
  Backend& backend_;
  Buffer memory_;
  Tensor rows_;
};

/// Total variation ½ Σ_v |p_v − p'_v| of two predictions, mean over rows; a, b [n, V] logits on the device.
double mean_total_variation(Backend& backend, ConstTensor a, ConstTensor b);

/// How far a reading of several passes has come. `tell` hears which part is done, in [0, 1]; returning false cancels.
class ReadingProgress {
 public:
  using Tell = std::function<bool(double part)>;
  ReadingProgress(Tell tell, std::int64_t tokens) : tell_(std::move(tell)), tokens_(tokens) {}
  /// Throws Cancelled.
  void add(std::int64_t tokens);

 private:
  Tell tell_;
  std::int64_t tokens_, done_ = 0;
};

/// Passes over a sequence; `seen` hears of each: its first token, and what left the last block [n, D].
using SeenPass = std::function<void(std::size_t first, const Tensor& hidden)>;
void read_passes(Model& model, ModelState& state, std::span<const std::int32_t> ids, const ForwardOptions& options, Observer* observer,
                 ReadingProgress& progress, const SeenPass& seen);

/// nat of every token but the first, reading them with a fresh state.
std::vector<double> read_nll(Model& model, std::span<const std::int32_t> ids);

}  // namespace statescope

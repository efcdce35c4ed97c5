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

/// logits [n, V] of hidden [n, D]
std::vector<float> host_logits(Model& model, ConstTensor hidden);

/// How far a reading of several passes has come. `tell` hears which part is done, in [0, 1]; returning false cancels.
class ReadingProgress {
 public:
  using Tell = std::function<bool(double part)>;
  ReadingProgress(Tell tell, std::int64_t tokens) : tell_(std::move(tell)), tokens_(tokens) {}
  /// Throws Error "cancelled".
  void add(std::int64_t tokens);

 private:
  Tell tell_;
  std::int64_t tokens_, done_ = 0;
};

/// Passes over a sequence; `seen` hears of each: its first token, and what left the last block [n, D].
using SeenPass = std::function<void(std::size_t first, const Tensor& hidden)>;
void read_passes(Model& model, ModelState& state, std::span<const std::int32_t> ids, const ForwardOptions& options, Observer* observer,
                 ReadingProgress& progress, const SeenPass& seen);

/// −log softmax(logits[row])[id], nat; logits [n, vocab].
double token_nll(std::span<const float> logits, std::size_t vocab, std::size_t row, std::int32_t id);

/// Total variation ½ Σ_v |p_v − p'_v|, mean over rows; logits [n, vocab].
double total_variation(std::span<const float> a, std::span<const float> b, std::size_t vocab);

/// −Σ_v p_v log p_v, nat, mean over rows.
double mean_entropy(std::span<const float> logits, std::size_t vocab);

}  // namespace statescope

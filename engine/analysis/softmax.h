// What logits say about the next token.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace statescope {

/// One token's logits z as probabilities p = exp(z − max z) / Σ exp(z − max z).
struct Softmax {
  std::span<const float> logits;
  double largest, sum = 0;

  explicit Softmax(std::span<const float> logits_) : logits(logits_), largest(*std::ranges::max_element(logits_)) {
    for (const float z : logits) sum += std::exp(z - largest);
  }
  float logit(std::int32_t id) const { return logits[static_cast<std::size_t>(id)]; }
  double probability(std::int32_t id) const { return std::exp(logit(id) - largest) / sum; }
  /// −Σ p log p = log Σ exp(z − max z) − Σ p (z − max z)
  double entropy() const {
    double mean = 0;
    for (const float z : logits) mean += std::exp(z - largest) * (z - largest);
    return std::log(sum) - mean / sum;
  }
  /// How many are more probable.
  std::int64_t rank(std::int32_t id) const {
    return std::ranges::count_if(logits, [z = logit(id)](float other) { return other > z; });
  }
  std::vector<std::int32_t> top(std::size_t count) const {
    std::vector<std::int32_t> ids(logits.size());
    std::iota(ids.begin(), ids.end(), 0);
    count = std::min(count, ids.size());
    std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count), ids.end(),
                      [&](std::int32_t a, std::int32_t b) { return logit(a) != logit(b) ? logit(a) > logit(b) : a < b; });
    ids.resize(count);
    return ids;
  }
};

}  // namespace statescope

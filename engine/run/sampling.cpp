#include "engine/run/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace statescope {
namespace {

/// Ids by falling logit, the lowest id of equals first; only the first `count` are in order.
std::vector<std::int32_t> ranked(std::span<const float> logits, std::size_t count) {
  std::vector<std::int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(std::min(count, ids.size())), ids.end(),
                    [&](std::int32_t a, std::int32_t b) {
                      const float x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
                      return x != y ? x > y : a < b;
                    });
  return ids;
}

/// exp((logit − largest) / temperature)
double weight(std::span<const float> logits, std::int32_t id, double largest, double temperature) {
  return std::exp((logits[static_cast<std::size_t>(id)] - largest) / temperature);
}

}  // namespace

std::int32_t most_probable_id(std::span<const float> logits) {
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

std::vector<Prediction> most_probable(std::span<const float> logits, std::size_t count, const Tokenizer& tokenizer) {
  count = std::min(count, logits.size());
  const std::vector<std::int32_t> ids = ranked(logits, count);
  const double largest = logits[static_cast<std::size_t>(ids[0])];
  double sum = 0;
  for (std::int32_t id : ids) sum += weight(logits, id, largest, 1);
  std::vector<Prediction> predictions;
  for (std::size_t i = 0; i < count; ++i) {
    predictions.push_back({ids[i], tokenizer.text_of(ids[i]), static_cast<float>(weight(logits, ids[i], largest, 1) / sum)});
  }
  return predictions;
}

float probability_of(std::span<const float> logits, std::int32_t id) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float logit : logits) sum += std::exp(logit - largest);
  return static_cast<float>(weight(logits, id, largest, 1) / sum);
}

std::int32_t Sampler::next(std::span<const float> logits) {
  if (options_.temperature <= 0) return most_probable_id(logits);
  const std::vector<std::int32_t> ids = ranked(logits, logits.size());
  const double largest = logits[static_cast<std::size_t>(ids[0])];
  std::vector<double> cumulative;
  double sum = 0;
  for (std::int32_t id : ids) cumulative.push_back(sum += weight(logits, id, largest, options_.temperature));
  // The shortest run of most probable tokens that holds top_p of the mass.
  const auto nucleus = std::lower_bound(cumulative.begin(), cumulative.end(), options_.top_p * sum);
  const auto kept = std::min<std::ptrdiff_t>(nucleus - cumulative.begin(), static_cast<std::ptrdiff_t>(ids.size()) - 1);
  const double uniform = static_cast<double>(random_() >> 11) * 0x1p-53;  // [0, 1), the same everywhere
  const double drawn = uniform * cumulative[static_cast<std::size_t>(kept)];
  const auto chosen = std::upper_bound(cumulative.begin(), cumulative.begin() + kept, drawn);
  return ids[static_cast<std::size_t>(chosen - cumulative.begin())];
}

void Sampler::skip(std::int64_t tokens) {
  if (options_.temperature > 0) random_.discard(static_cast<unsigned long long>(tokens));
}

}  // namespace statescope

// Choosing the next token.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "engine/snapshot.h"
#include "engine/tokenizer/tokenizer.h"

namespace statescope {

/// The id of the largest logit, the lowest of equals.
std::int32_t most_probable_id(std::span<const float> logits);

/// The `count` most probable next tokens with their probabilities (softmax over all logits), most probable first.
std::vector<Prediction> most_probable(std::span<const float> logits, std::size_t count, const Tokenizer& tokenizer);

/// softmax(logits)[id]
float probability_of(std::span<const float> logits, std::int32_t id);

struct SamplingOptions {
  double temperature = 0;  // 0: greedy
  double top_p = 1;        // of the probability mass, the most probable tokens first; at least one token stays
  std::uint64_t seed = 0;
};

/// The same seed and logits give the same tokens on every machine.
class Sampler {
 public:
  explicit Sampler(SamplingOptions options) : options_(options), random_(options.seed) {}
  std::int32_t next(std::span<const float> logits);
  /// Goes on as after so many tokens.
  void skip(std::int64_t tokens);

 private:
  SamplingOptions options_;
  std::mt19937_64 random_;
};

}  // namespace statescope

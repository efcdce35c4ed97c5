// Choosing the next token.
#include "engine/run/sampling.h"

#include <cmath>
#include <map>

#include "tests/catch.h"

namespace statescope::test::sampling_test {
namespace {

/// softmax: 1/10, 2/10, 3/10, 4/10
const std::vector<float> kLogits{std::log(1.0F), std::log(2.0F), std::log(3.0F), std::log(4.0F)};

std::map<std::int32_t, double> frequencies(SamplingOptions options, int draws = 20000) {
  Sampler sampler(options);
  std::map<std::int32_t, double> counts;
  for (int i = 0; i < draws; ++i) counts[sampler.next(kLogits)] += 1.0 / draws;
  return counts;
}

std::vector<std::int32_t> draws(SamplingOptions options) {
  Sampler sampler(options);
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 50; ++i) ids.push_back(sampler.next(kLogits));
  return ids;
}

class Numerals final : public Tokenizer {
 public:
  Encoding encode(std::string_view, const EncodeOptions&) const override { return {}; }
  std::string text_of(std::int32_t id) const override { return std::to_string(id); }
  std::string decode(std::span<const std::int32_t>, bool) const override { return {}; }
};

}  // namespace

TEST_CASE("sampling: greedy takes the largest, the lowest of equals") {
  CHECK(most_probable_id(kLogits) == 3);
  CHECK(most_probable_id(std::vector<float>{1, 5, 5, 2}) == 1);
  CHECK(draws({.temperature = 0}) == std::vector<std::int32_t>(50, 3));
}

TEST_CASE("sampling: at temperature 1 tokens come as often as they are probable") {
  const auto counts = frequencies({.temperature = 1, .seed = 3});
  REQUIRE(counts.size() == 4);
  for (const auto& [id, frequency] : counts) CHECK(frequency == Approx(0.1 * (id + 1)).margin(0.015));
}

TEST_CASE("sampling: temperature sharpens and flattens") {
  // At ½ the weights are squared: 1, 4, 9, 16 of 30.
  for (const auto& [id, frequency] : frequencies({.temperature = 0.5}))
    CHECK(frequency == Approx((id + 1) * (id + 1) / 30.0).margin(0.015));
  for (const auto& [id, frequency] : frequencies({.temperature = 1e6})) CHECK(frequency == Approx(0.25).margin(0.015));
  CHECK(draws({.temperature = 1e-6}) == std::vector<std::int32_t>(50, 3));
}

TEST_CASE("sampling: top-p keeps the shortest run of most probable tokens that holds the mass") {
  CHECK(frequencies({.temperature = 1, .top_p = 0.35}, 200).size() == 1);
  const auto two = frequencies({.temperature = 1, .top_p = 0.65});
  REQUIRE(two.size() == 2);
  CHECK(two.at(3) == Approx(4.0 / 7).margin(0.015));
  CHECK(frequencies({.temperature = 1, .top_p = 0.85}).size() == 3);
  CHECK(frequencies({.temperature = 1, .top_p = 0}, 200).size() == 1);
}

TEST_CASE("sampling: the same seed draws the same tokens, another one others") {
  CHECK(draws({.temperature = 1, .seed = 7}) == draws({.temperature = 1, .seed = 7}));
  CHECK(draws({.temperature = 1, .seed = 7}) != draws({.temperature = 1, .seed = 8}));
  // Kept from the first run: the standard fixes the numbers of mt19937_64, so they are these on every machine.
  const std::vector<std::int32_t> all = draws({.temperature = 1, .seed = 7});
  CHECK(std::vector<std::int32_t>(all.begin(), all.begin() + 8) == std::vector<std::int32_t>{1, 0, 3, 1, 3, 3, 1, 0});
}

TEST_CASE("sampling: predictions are a softmax over all logits, most probable first") {
  const std::vector<Prediction> three = most_probable(kLogits, 3, Numerals());
  REQUIRE(three.size() == 3);
  for (int i = 0; i < 3; ++i) {
    CHECK(three[static_cast<std::size_t>(i)].id == 3 - i);
    CHECK(three[static_cast<std::size_t>(i)].text == std::to_string(3 - i));
    CHECK(three[static_cast<std::size_t>(i)].probability == Approx(0.4 - 0.1 * i));
  }
  CHECK(most_probable(kLogits, 10, Numerals()).size() == 4);
  CHECK(probability_of(kLogits, 1) == Approx(0.2));
  const std::vector<float> far{-1000, 1000};
  CHECK(probability_of(far, 0) == 0);
  CHECK(most_probable(far, 1, Numerals())[0].probability == 1);
}

}  // namespace statescope::test::sampling_test

#include "engine/analysis/decay_analysis.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/catch.h"
#include "tests/kernels/random_tensors.h"

namespace statescope::test::decay_analysis_test {

using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
using testing::Random;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// The memory that SlotDecay looks at.
struct Slot {
  std::vector<float> log_decay;
  std::vector<std::int32_t> written;
  std::int64_t stride, first, channels, tokens;

  SlotDecay view() const { return {log_decay, written, stride, first, channels, tokens}; }
  /// log α_{t,c}, straight from the definition: 0 where the token does not write.
  double log_alpha(std::int64_t t, std::int64_t c) const {
    const auto at = std::find(written.begin(), written.end(), t);
    return at == written.end() ? 0 : log_decay[static_cast<std::size_t>((at - written.begin()) * stride + first + c)];
  }
  double decay(std::int64_t t, std::int64_t s, std::int64_t c) const {
    double sum = 0;
    for (std::int64_t j = s + 1; j <= t; ++j) sum += log_alpha(j, c);
    return std::exp(sum);
  }
};

/// Every token writes, every channel has the same constant log α.
Slot constant(std::int64_t T, float log_alpha, std::int64_t channels = 1) {
  return {std::vector<float>(static_cast<std::size_t>(T * channels), log_alpha), all_tokens(T), channels, 0, channels, T};
}

/// Some tokens write; log decays from slow to fast, now and then −∞ or −1100.
Slot random_slot(Random& random, std::int64_t T, std::int64_t channels, float fastest) {
  Slot slot{{}, {}, channels + 3, 2, channels, T};
  for (std::int32_t t = 0; t < T; ++t) {
    if (random.below(3) == 0) continue;
    slot.written.push_back(t);
    for (std::int64_t c = 0; c < slot.stride; ++c) {
      const std::int64_t kind = random.below(60);
      slot.log_decay.push_back(kind == 0 ? -kInfinity : kind == 1 ? -1100.0F : kind < 30 ? 0 : random.uniform(fastest, 0));
    }
  }
  return slot;
}

struct Width {
  double mean = 0;
  std::int64_t censored = 0;
};

/// max{ t − s : score(t, s) ≥ θ }, by looking at every s.
template <class Score>
Width width_by_definition(std::int64_t T, double theta, std::int64_t last, const Score& score) {
  Width width;
  const std::int64_t first = std::max<std::int64_t>(0, T - last);
  for (std::int64_t t = first; t < T; ++t) {
    std::int64_t widest = -1;
    for (std::int64_t s = 0; s <= t; ++s) {
      if (score(t, s) >= theta) widest = std::max(widest, t - s);
    }
    width.mean += static_cast<double>(widest) / static_cast<double>(T - first);
    if (score(t, 0) >= theta) ++width.censored;
  }
  return width;
}

}  // namespace

TEST_CASE("receptive field: a constant decay reaches floor(ln theta / ln alpha) back") {
  for (const double alpha : {0.05, 0.3, 0.5, 0.9, 0.97, 0.99, 0.999}) {
    const Slot slot = constant(400, static_cast<float>(std::log(alpha)));
    for (const double theta : {0.5001, 0.1, 0.001}) {
      INFO("alpha " << alpha << ", theta " << theta);
      const double reach = std::floor(std::log(theta) / slot.log_decay[0]);
      double expected = 0;
      std::int64_t censored = 0;
      for (std::int64_t t = 272; t < 400; ++t) {
        expected += std::min(reach, static_cast<double>(t)) / 128;
        censored += reach >= static_cast<double>(t);
      }
      const ReceptiveField field = receptive_field(slot.view(), theta);
      CHECK(field.measured == 128);
      CHECK_THAT(field.width.at(0), WithinAbs(expected, 1e-9));
      CHECK(field.censored.at(0) == censored);
      CHECK(field.mean == field.width[0]);
    }
  }
}

TEST_CASE("receptive field: without decay it is all there is, and censored") {
  const Slot slot{{}, {}, 0, 0, 2, 200};
  const ReceptiveField field = receptive_field(slot.view());
  CHECK_THAT(field.width.at(1), WithinAbs((72 + 199) / 2.0, 1e-9));
  CHECK(field.censored == std::vector<std::int64_t>{128, 128});
  CHECK(half_life(slot.view()) == std::vector<double>(2, kInfinity));
  CHECK(CumulativeDecay(slot.view(), 0)(1, 0) == 1);

  const ReceptiveField few = receptive_field(constant(3, -10).view());
  CHECK(few.measured == 3);
  CHECK(few.width.at(0) == 0);
  CHECK(few.censored.at(0) == 1);  // the first token has nothing before it
}

TEST_CASE("receptive field: in a sparse partition tokens that rest count as distance") {
  // Writes at 0, 4 and 8, each forgetting 9 parts of 10: 0.1, 0.01, 0.001 of what lies before them is left.
  const Slot slot{std::vector<float>(3, std::log(0.1F)), {0, 4, 8}, 1, 0, 1, 11};
  CHECK_THAT(receptive_field(slot.view(), 0.02, 1).width.at(0), WithinAbs(10 - 4, 1e-9));   // crosses only the write at 8
  CHECK_THAT(receptive_field(slot.view(), 0.002, 1).width.at(0), WithinAbs(10 - 0, 1e-9));  // the write at 0 decays what is before 0
  CHECK(receptive_field(slot.view(), 0.002, 1).censored.at(0) == 1);
  CHECK_THAT(receptive_field(slot.view(), 0.5, 2).width.at(0), WithinAbs((10 - 8 + 9 - 8) / 2.0, 1e-9));
  // Over all 11 tokens three write: −mean log α = 3/11 ln 10.
  CHECK_THAT(half_life(slot.view()).at(0), WithinRel(std::log(2) / std::log(10) * 11 / 3, 1e-6));
}

TEST_CASE("half-life: after it half is left") {
  const Slot slot = constant(100, std::log(0.5F) / 20);
  CHECK_THAT(half_life(slot.view()).at(0), WithinRel(20, 1e-6));
  CHECK_THAT(CumulativeDecay(slot.view(), 0)(70, 50), WithinRel(0.5, 1e-6));
  CHECK(half_life(constant(5, -kInfinity).view()).at(0) == 0);
  CHECK(half_life(constant(5, 0).view()).at(0) == kInfinity);
}

TEST_CASE("cumulative decay: exact past a token that forgets everything") {
  // What was written before −∞ or −1100 is gone; what was written after is counted as if they were not there.
  const Slot slot{{-1, -kInfinity, -0.5F, -1100, -0.25F, -0.125F}, all_tokens(6), 1, 0, 1, 6};
  const CumulativeDecay decay(slot.view(), 0);
  CHECK(decay(5, 3) == std::exp(-0.375));
  CHECK(decay(5, 2) == 0);
  CHECK(decay(2, 1) == std::exp(-0.5));
  CHECK(decay(1, 0) == 0);
  CHECK(decay(1, 1) == 1);
  CHECK(decay.log(5, 0) == -kInfinity);
  CHECK(decay(5, 4) == std::exp(-0.125));
  CHECK(receptive_field(slot.view(), 0.001, 1).width.at(0) == 2);
}

TEST_CASE("decay: agrees with its definitions on random slots") {
  Random random(11);
  for (int round = 0; round < 12; ++round) {
    const std::int64_t T = 1 + random.below(150), rows = 1 + random.below(4), heads = 2;
    const Slot slot = random_slot(random, T, heads * rows, round % 2 == 0 ? -0.1F : -3);
    const std::int64_t last = round % 3 == 0 ? 128 : 1 + random.below(40);
    const double theta = round % 4 == 0 ? 0.1 : 0.001;
    INFO("round " << round << ", " << T << " tokens, last " << last << ", theta " << theta);

    const ReceptiveField field = receptive_field(slot.view(), theta, last), summed = receptive_field_summed(slot.view(), rows, theta, last);
    REQUIRE(field.width.size() == static_cast<std::size_t>(heads * rows));
    REQUIRE(summed.width.size() == static_cast<std::size_t>(heads));
    double mean = 0;
    for (std::int64_t c = 0; c < heads * rows; ++c) {
      const auto at = static_cast<std::size_t>(c);
      const Width width = width_by_definition(T, theta, last, [&](std::int64_t t, std::int64_t s) { return slot.decay(t, s, c); });
      CHECK_THAT(field.width[at], WithinAbs(width.mean, 1e-9));
      CHECK(field.censored[at] == width.censored);
      mean += width.mean / static_cast<double>(heads * rows);

      double log_sum = 0;
      for (std::int64_t t = 0; t < T; ++t) log_sum += slot.log_alpha(t, c);
      const double expected = -std::log(2) / (log_sum / static_cast<double>(T));
      CHECK((half_life(slot.view())[at] == std::abs(expected) || std::abs(half_life(slot.view())[at] / expected - 1) < 1e-9));
    }
    CHECK_THAT(field.mean, WithinAbs(mean, 1e-9));
    for (std::int64_t h = 0; h < heads; ++h) {
      const Width width = width_by_definition(T, theta, last, [&](std::int64_t t, std::int64_t s) {
        double sum = 0;
        for (std::int64_t r = 0; r < rows; ++r) sum += slot.decay(t, s, h * rows + r);
        return sum;
      });
      CHECK_THAT(summed.width[static_cast<std::size_t>(h)], WithinAbs(width.mean, 1e-9));
      CHECK(summed.censored[static_cast<std::size_t>(h)] == width.censored);
    }
  }
}

TEST_CASE("cumulative decay: agrees with its definition for all pairs") {
  Random random(12);
  const std::int64_t T = 40, channels = 3;
  const Slot slot = random_slot(random, T, channels, -1);
  for (std::int64_t t = 0; t < T; ++t) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const CumulativeDecay decay(slot.view(), c);
      CHECK(decay.decays());
      for (std::int64_t s = 0; s <= t; ++s) {
        CHECK_THAT(decay(t, s), WithinAbs(slot.decay(t, s, c), 1e-12));
      }
    }
  }
}

TEST_CASE("receptive field summed: equal rows are one row with the threshold shared out") {
  const Slot rows = constant(300, -0.05F, 8), head = constant(300, -0.05F, 1);
  const ReceptiveField summed = receptive_field_summed(rows.view(), 8, 0.01), scalar = receptive_field_summed(head.view(), 1, 0.01 / 8);
  CHECK(summed.width == scalar.width);
  CHECK_THAT(summed.width.at(0), WithinAbs(std::floor(std::log(0.01 / 8) / -0.05F), 1e-9));
  CHECK(receptive_field_summed(head.view(), 1, 0.01).width == receptive_field(head.view(), 0.01).width);
}

TEST_CASE("decay: a channel that grows or is not a number has no half-life and no width; its neighbour has") {
  for (const float wrong : {0.5F, std::numeric_limits<float>::quiet_NaN()}) {
    const Slot slot{{-1, -1, -1, wrong, -1, -1}, all_tokens(3), 2, 0, 2, 3};
    CHECK(std::isnan(half_life(slot.view())[1]));
    CHECK(std::isnan(receptive_field(slot.view()).width[1]));
    CHECK(std::isnan(receptive_field_summed(slot.view(), 2).width[0]));
    CHECK_THAT(half_life(slot.view())[0], WithinRel(std::log(2), 1e-9));
    CHECK_THAT(receptive_field(slot.view()).width[0], WithinAbs(1, 1e-9));  // 0, 1 and 2
  }
}

TEST_CASE("decay: sizes that do not fit are refused") {
  Slot slot = constant(4, -1, 2);
  CHECK_THROWS_AS(receptive_field(slot.view(), 0), std::invalid_argument);
  CHECK_THROWS_AS(receptive_field(slot.view(), 1.5), std::invalid_argument);
  CHECK_THROWS_AS(receptive_field(slot.view(), 0.1, 0), std::invalid_argument);
  CHECK_THROWS_AS(receptive_field_summed(slot.view(), 3), std::invalid_argument);
  CHECK_THROWS_AS(CumulativeDecay(slot.view(), 2), std::invalid_argument);
  slot.first = 1;
  CHECK_THROWS_AS(half_life(slot.view()), std::invalid_argument);
  slot.first = 0;
  slot.written = {0, 2, 1, 3};
  CHECK_THROWS_AS(half_life(slot.view()), std::invalid_argument);
  slot.written = {0, 1, 2, 4};
  CHECK_THROWS_AS(half_life(slot.view()), std::invalid_argument);
  slot.written = {0, 1, 2};
  CHECK_THROWS_AS(half_life(slot.view()), std::invalid_argument);
}

}  // namespace statescope::test::decay_analysis_test

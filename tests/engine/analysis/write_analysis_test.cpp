#include "engine/analysis/write_analysis.h"

#include <cmath>
#include <limits>

#include "tests/catch.h"
#include "tests/kernels/random_tensors.h"

namespace statescope::test::write_analysis_test {

using Catch::Matchers::WithinAbs;
using testing::Numbers;
using testing::Random;

TEST_CASE("write spread: one row, all rows, and rows below the threshold") {
  const auto got = write_spread(std::vector<float>{0, -3, 0, 0, 0.5F, -0.5F, 0.5F, 0.5F, 1, 0.5F, 0.25F, 0.25F}, 4, 0.2);
  REQUIRE(got.size() == 3);
  CHECK(got[0].ratio == 0.25);
  CHECK_THAT(got[0].participation, WithinAbs(0.25, 1e-12));
  CHECK(got[1].ratio == 1);
  CHECK_THAT(got[1].participation, WithinAbs(1, 1e-12));
  CHECK(got[2].ratio == 0.5);  // of 2: 0.4 is needed
  CHECK_THAT(got[2].participation, WithinAbs(4 / (4 * 1.375), 1e-12));
  CHECK(write_spread(std::vector<float>{0.5F, 0.5F}, 2, 0.5).at(0).ratio == 1);  // at the threshold is in
  CHECK_THAT(occupancy(got, 5), WithinAbs((0.25 + 1 + 0.5) / 5, 1e-12));
}

TEST_CASE("write spread: nothing written is no write; what is not a number stays so") {
  const WriteSpread nothing = write_spread(std::vector<float>(3), 3).at(0);
  CHECK(nothing.ratio == 0);
  CHECK(nothing.participation == 0);
  CHECK(write_spread(std::vector<float>{0, 1}, 2, 0).at(0).ratio == 0.5);
  const WriteSpread bad = write_spread(std::vector<float>{1, std::numeric_limits<float>::quiet_NaN()}, 2).at(0);
  CHECK(std::isnan(bad.ratio));
  CHECK(std::isnan(bad.participation));
}

TEST_CASE("write spread and magnitude: agree with their definitions on random writes") {
  Random random(9);
  for (const auto& [M, K, V] : {std::array<std::int64_t, 3>{1, 1, 1}, {20, 7, 5}, {6, 64, 16}}) {
    Numbers omega = random.uniform({M, K}), v = random.uniform({M, V});
    for (float& w : omega.values) w = std::pow(w, 9.0F);  // some far below the threshold
    const double tau = kWriteThreshold;
    const auto spread = write_spread(omega.values, K);
    const auto magnitude = row_write_magnitude(omega.values, v.values, K, V);
    REQUIRE(spread.size() == static_cast<std::size_t>(M));
    for (std::int64_t i = 0; i < M; ++i) {
      double sum = 0, squares = 0, rows = 0, length = 0;
      for (std::int64_t c = 0; c < V; ++c) length += std::pow(static_cast<double>(v.row(i)[c]), 2);
      for (std::int64_t r = 0; r < K; ++r) sum += std::abs(static_cast<double>(omega.row(i)[r]));
      for (std::int64_t r = 0; r < K; ++r) {
        const double w = std::abs(static_cast<double>(omega.row(i)[r]));
        squares += w * w;
        rows += w >= tau * sum;
        CHECK_THAT(magnitude[static_cast<std::size_t>(i * K + r)], WithinAbs(w * std::sqrt(length), 1e-6));
      }
      CHECK_THAT(spread[static_cast<std::size_t>(i)].ratio, WithinAbs(rows / static_cast<double>(K), 1e-12));
      CHECK_THAT(spread[static_cast<std::size_t>(i)].participation, WithinAbs(sum * sum / (static_cast<double>(K) * squares), 1e-9));
    }
    // A partition's gate is a common factor: it changes magnitudes alone.
    Numbers gated = omega;
    for (float& w : gated.values) w *= 0.25F;
    for (std::size_t i = 0; i < spread.size(); ++i) {
      CHECK(write_spread(gated.values, K)[i].ratio == spread[i].ratio);
      CHECK_THAT(write_spread(gated.values, K)[i].participation, WithinAbs(spread[i].participation, 1e-12));
    }
    CHECK_THAT(row_write_magnitude(gated.values, v.values, K, V)[0], WithinAbs(0.25 * magnitude[0], 1e-7));
  }
}

TEST_CASE("state norms: by hand and by definition") {
  const std::vector<float> state{3, 4, 0, 0, 0, 0, 1, 2, 2}, before{3, 0, 0, 0, 0, 3, 1, 2, 2};
  CHECK(row_norms(state, 1, 3) == std::vector<double>{5, 0, 3});
  CHECK(frobenius_norms(state, 1, 3) == std::vector<double>{5, 0, 3});
  CHECK(frobenius_norms(state, 3, 3) == std::vector<double>{std::sqrt(34.0)});
  CHECK(update_norms(state, before, 1, 3) == std::vector<double>{4, 3, 0});
  CHECK(update_norms(state, before, 3, 3) == std::vector<double>{5});

  Random random(10);
  const Numbers after = random.uniform({4, 6, 5}), earlier = random.uniform({4, 6, 5});
  const auto frobenius = frobenius_norms(after.values, 6, 5), update = update_norms(after.values, earlier.values, 6, 5);
  const auto rows = row_norms(after.values, 6, 5);
  REQUIRE(rows.size() == 24);
  for (std::int64_t i = 0; i < 4; ++i) {
    double squares = 0, changes = 0, of_rows = 0;
    for (std::int64_t j = 0; j < 30; ++j) {
      squares += std::pow(static_cast<double>(after.row(i)[j]), 2);
      changes += std::pow(static_cast<double>(after.row(i)[j]) - earlier.row(i)[j], 2);
    }
    for (std::int64_t r = 0; r < 6; ++r) of_rows += std::pow(rows[static_cast<std::size_t>(i * 6 + r)], 2);
    CHECK_THAT(frobenius[static_cast<std::size_t>(i)], WithinAbs(std::sqrt(squares), 1e-12));
    CHECK_THAT(frobenius[static_cast<std::size_t>(i)], WithinAbs(std::sqrt(of_rows), 1e-12));
    CHECK_THAT(update[static_cast<std::size_t>(i)], WithinAbs(std::sqrt(changes), 1e-12));
  }
}

TEST_CASE("readout shares: of the norm, whatever the direction") {
  const auto shares = readout_shares(std::vector<float>{3, -4, 0, 0, 0, 15}, 2);
  CHECK(shares == std::vector<double>{0.25, 0, 0.75});
  CHECK(readout_shares(std::vector<float>(4), 2) == std::vector<double>{0, 0});
}

TEST_CASE("age of the last write: of a slot and of its rows") {
  const std::vector<std::int32_t> written{2, 5, 6};
  std::vector<std::int64_t> ages;
  for (std::int64_t t = 0; t < 9; ++t) ages.push_back(age_of_last_write(written, t));
  CHECK(ages == std::vector<std::int64_t>{-1, -1, 0, 1, 2, 0, 0, 1, 2});
  CHECK(age_of_last_write({}, 3) == kNeverWritten);

  // Row 0 is written by all three, row 1 by token 5 alone, row 2 only below the threshold, row 3 never.
  const std::vector<float> omega{1, 0, 0, 0, -1, 1, 0.0001F, 0, 1, 0, 0, 0};
  CHECK(row_ages(omega, written, 4, 8) == std::vector<std::int64_t>{2, 3, kNeverWritten, kNeverWritten});
  CHECK(row_ages(omega, written, 4, 8, 0) == std::vector<std::int64_t>{2, 3, 3, kNeverWritten});
  CHECK(row_ages(omega, written, 4, 4) == std::vector<std::int64_t>{2, kNeverWritten, kNeverWritten, kNeverWritten});
}

TEST_CASE("row ages: agree with their definition on random writes") {
  Random random(12);
  const std::int64_t T = 60, K = 9;
  std::vector<std::int32_t> written;
  std::vector<float> omega;
  for (std::int32_t t = 0; t < T; ++t) {
    if (random.below(4) != 0) continue;
    written.push_back(t);
    for (std::int64_t r = 0; r < K; ++r) omega.push_back(random.below(3) == 0 ? random.uniform(-1, 1) : 0);
  }
  for (std::int64_t t = 0; t < T; ++t) {
    const auto ages = row_ages(omega, written, K, t, 0.05);
    for (std::int64_t r = 0; r < K; ++r) {
      std::int64_t expected = kNeverWritten;
      for (std::size_t i = 0; i < written.size(); ++i) {
        double sum = 0;
        for (std::int64_t j = 0; j < K; ++j) sum += std::abs(static_cast<double>(omega[i * K + j]));
        const double w = std::abs(static_cast<double>(omega[i * K + r]));
        if (written[i] <= t && w > 0 && w >= 0.05 * sum) expected = t - written[i];
      }
      CHECK(ages[static_cast<std::size_t>(r)] == expected);
    }
  }
}

TEST_CASE("writes: sizes that do not fit are refused") {
  const std::vector<float> six(6), four(4);
  CHECK_THROWS_AS(write_spread(six, 4), std::invalid_argument);
  CHECK_THROWS_AS(row_write_magnitude(six, four, 3, 3), std::invalid_argument);
  CHECK_THROWS_AS(frobenius_norms(six, 2, 2), std::invalid_argument);
  CHECK_THROWS_AS(readout_shares(six, 4), std::invalid_argument);
  CHECK_THROWS_AS(row_norms(six, 2, 2), std::invalid_argument);
  CHECK_THROWS_AS(update_norms(six, four, 2, 3), std::invalid_argument);
  CHECK_THROWS_AS(row_ages(six, std::vector<std::int32_t>{0, 1}, 2, 1), std::invalid_argument);
  CHECK_THROWS_AS(occupancy(std::vector<WriteSpread>(3), 2), std::invalid_argument);
}

}  // namespace statescope::test::write_analysis_test

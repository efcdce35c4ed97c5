#include "engine/analysis/routing_analysis.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "tests/catch.h"
#include "tests/kernels/random_tensors.h"

namespace statescope::test::routing_analysis_test {

using Catch::Matchers::WithinAbs;
using testing::Random;

namespace {

/// Tokens with what they chose; the memory that RoutedTokens looks at.
struct Tokens {
  std::vector<float> gate;
  std::vector<std::int32_t> selected;
  std::int64_t N, chosen;

  RoutedTokens view(std::int64_t width) const { return {gate, selected, N, chosen, width}; }
  float e(std::int64_t t, std::int64_t n) const { return gate[static_cast<std::size_t>(t * N + n)]; }
  bool has(std::int64_t t, std::int64_t n, std::int64_t width) const {
    const auto row = selected.begin() + t * chosen;
    return std::find(row, row + width, n) != row + width;
  }
};

/// Random softmax gates and their largest.
Tokens random_tokens(Random& random, std::int64_t T, std::int64_t N, std::int64_t chosen) {
  Tokens tokens{{}, {}, N, chosen};
  for (std::int64_t t = 0; t < T; ++t) {
    std::vector<double> e;
    double sum = 0;
    for (std::int64_t n = 0; n < N; ++n) sum += e.emplace_back(std::exp(random.uniform(-3, 3)));
    for (const double value : e) tokens.gate.push_back(static_cast<float>(value / sum));
    std::vector<std::int32_t> order;
    for (std::int32_t n = 0; n < N; ++n) order.push_back(n);
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return e[a] > e[b]; });
    tokens.selected.insert(tokens.selected.end(), order.begin(), order.begin() + chosen);
  }
  return tokens;
}

/// Every token spreads its gate evenly; the choices go round.
Tokens uniform_tokens(std::int64_t T, std::int64_t N, std::int64_t W) {
  Tokens tokens{std::vector<float>(static_cast<std::size_t>(T * N), 1.0F / static_cast<float>(N)), {}, N, W};
  for (std::int64_t i = 0; i < T * W; ++i) tokens.selected.push_back(static_cast<std::int32_t>(i % N));
  return tokens;
}

}  // namespace

TEST_CASE("routing: mass, entropy and margin by hand") {
  const Tokens tokens{{0.5F, 0.25F, 0.125F, 0.125F, 0.25F, 0.25F, 0.25F, 0.25F, 0, 0, 1, 0}, {0, 1, 0, 1, 2, 0}, 4, 2};
  const auto two = token_routing(tokens.view(2)), one = token_routing(tokens.view(1));
  REQUIRE(two.size() == 3);
  CHECK(two[0].selected_mass == 0.75);
  CHECK(one[0].selected_mass == 0.5);
  CHECK_THAT(two[0].entropy, WithinAbs(1.75 / 2, 1e-12));  // in bits: 1/2 + 1/2 + 3/8 + 3/8, of log2 4
  CHECK(two[0].margin == 0.125);
  CHECK(one[0].margin == 0.25);
  CHECK_THAT(two[1].entropy, WithinAbs(1, 1e-12));  // equal logits
  CHECK(two[1].margin == 0);
  CHECK(two[2].entropy == 0);
  CHECK(one[2].margin == 1);
  CHECK(two[2].margin == 0);

  const std::vector<float> weights = renormalised_weights(tokens.view(2));
  CHECK(weights == std::vector<float>{2.0F / 3, 1.0F / 3, 0.5F, 0.5F, 1, 0});
  CHECK(tokens_of(tokens.view(2), 0) == std::vector<std::int32_t>{0, 1, 2});
  CHECK(tokens_of(tokens.view(1), 0) == std::vector<std::int32_t>{0, 1});
  CHECK(tokens_of(tokens.view(2), 3).empty());
}

TEST_CASE("routing: where nothing is left out, one partition, and what is not a number") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tokens all{{0.75F, 0.25F, nan, 0.5F}, {0, 1, 1, 0}, 2, 2};
  const auto routing = token_routing(all.view(2));
  CHECK(routing[0].selected_mass == 1);
  CHECK(std::isnan(routing[0].margin));
  CHECK(std::isnan(token_routing(all.view(1))[1].margin));
  CHECK(std::isnan(routing[1].entropy));
  CHECK(std::isnan(routing[1].selected_mass));
  CHECK(token_routing(Tokens{{1}, {0}, 1, 1}.view(1))[0].entropy == 0);
}

TEST_CASE("routing: agrees with its definitions on random tokens") {
  Random random(7);
  for (const auto& [T, N, chosen, W] : {std::array<std::int64_t, 4>{1, 2, 1, 1}, {37, 4, 2, 1}, {37, 4, 2, 2}, {50, 9, 4, 3}}) {
    const Tokens tokens = random_tokens(random, T, N, chosen);
    const auto routing = token_routing(tokens.view(W));
    for (std::int64_t t = 0; t < T; ++t) {
      double mass = 0, entropy = 0, smallest_in = 1, largest_out = 0;
      for (std::int64_t n = 0; n < N; ++n) {
        const double e = tokens.e(t, n);
        entropy -= e * std::log(e) / std::log(static_cast<double>(N));
        if (tokens.has(t, n, W)) {
          mass += e;
          smallest_in = std::min(smallest_in, e);
        } else {
          largest_out = std::max(largest_out, e);
        }
      }
      const TokenRouting& got = routing[static_cast<std::size_t>(t)];
      CHECK_THAT(got.selected_mass, WithinAbs(mass, 1e-12));
      CHECK_THAT(got.entropy, WithinAbs(entropy, 1e-12));
      CHECK_THAT(got.margin, WithinAbs(smallest_in - largest_out, 1e-12));
    }
  }
}

TEST_CASE("balance: uniform routing has loss 1, collapsed routing N / W") {
  for (const auto& [N, W] : {std::pair<std::int64_t, std::int64_t>{4, 1}, {4, 2}, {9, 3}, {5, 2}}) {
    INFO(N << " partitions, " << W << " chosen");
    const Balance even = balance(uniform_tokens(10 * N, N, W).view(W));
    CHECK_THAT(even.loss, WithinAbs(1, 1e-6));
    CHECK_THAT(even.variation, WithinAbs(0, 1e-12));
    for (const double load : even.load) CHECK_THAT(load, WithinAbs(1, 1e-12));
    CHECK_THAT(mom_loss(uniform_tokens(10 * N, N, W).view(W)), WithinAbs(static_cast<double>(W), 1e-6));

    Tokens collapsed{std::vector<float>(static_cast<std::size_t>(20 * N)), {}, N, W};
    for (std::int64_t t = 0; t < 20; ++t) {
      for (std::int64_t n = 0; n < W; ++n) {
        collapsed.gate[static_cast<std::size_t>(t * N + n)] = 1.0F / static_cast<float>(W);
        collapsed.selected.push_back(static_cast<std::int32_t>(n));
      }
    }
    CHECK_THAT(balance(collapsed.view(W)).loss, WithinAbs(static_cast<double>(N) / static_cast<double>(W), 1e-6));
  }
}

TEST_CASE("balance: by hand") {
  // Choices 0, 0, 0, 1 of three partitions, of which partition 2 is never chosen.
  const Tokens tokens{{0.5F, 0.25F, 0.25F, 0.5F, 0.25F, 0.25F, 0.75F, 0.25F, 0, 0.25F, 0.75F, 0}, {0, 0, 0, 1}, 3, 1};
  const Balance got = balance(tokens.view(1));
  CHECK(got.frequency == std::vector<double>{0.75, 0.25, 0});
  CHECK(got.probability == std::vector<double>{0.5, 0.375, 0.125});
  CHECK(got.load == std::vector<double>{2.25, 0.75, 0});
  CHECK_THAT(got.loss, WithinAbs(3 * (0.75 * 0.5 + 0.25 * 0.375), 1e-12));
  CHECK_THAT(got.variation, WithinAbs(std::sqrt((25 + 1 + 16) / 144.0 / 3) * 3, 1e-12));

  const UnevenLoads uneven = uneven_loads(got.load, {.dead = 0, .overloaded = 2});
  CHECK(uneven.dead == std::vector<std::int64_t>{2});
  CHECK(uneven.overloaded == std::vector<std::int64_t>{0});
  CHECK(uneven_loads(got.load, {.dead = 0.75, .overloaded = 2.25}).dead == std::vector<std::int64_t>{1, 2});
  CHECK(uneven_loads(got.load, {.dead = 0.75, .overloaded = 2.25}).overloaded.empty());
  CHECK(std::isnan(balance(Tokens{{}, {}, 3, 1}.view(1)).loss));
}

TEST_CASE("balance: running means and losses agree with their definitions") {
  Random random(8);
  const std::int64_t T = 60, N = 5, chosen = 3;
  const Tokens tokens = random_tokens(random, T, N, chosen);
  for (const std::int64_t W : {1, 2, 3}) {
    const RunningBalance running = running_balance(tokens.view(W));
    const Balance whole = balance(tokens.view(W)), plain{};
    REQUIRE(running.loss.size() == static_cast<std::size_t>(T));
    double mom = 0, sum_f = 0;
    for (std::int64_t n = 0; n < N; ++n) {
      double p = 0;
      for (std::int64_t t = 0; t < T; ++t) p += tokens.e(t, n) / static_cast<double>(T);
      for (std::int64_t j = 0; j < W; ++j) {  // f_{j,m}
        double f = 0;
        for (std::int64_t t = 0; t < T; ++t) f += tokens.selected[static_cast<std::size_t>(t * chosen + j)] == n ? 1.0 / T : 0;
        mom += static_cast<double>(N) * f * p;
        sum_f += f;
      }
      CHECK_THAT(whole.probability[static_cast<std::size_t>(n)], WithinAbs(p, 1e-12));
    }
    CHECK_THAT(mom_loss(tokens.view(W)), WithinAbs(mom, 1e-12));
    CHECK_THAT(whole.loss, WithinAbs(mom / static_cast<double>(W), 1e-12));
    CHECK_THAT(sum_f, WithinAbs(static_cast<double>(W), 1e-12));

    for (std::int64_t t = 0; t < T; ++t) {
      double loss = 0;
      for (std::int64_t n = 0; n < N; ++n) {
        double f = 0, p = 0, weights = 0;
        for (std::int64_t j = 0; j <= t; ++j) {
          const double weight = std::pow(0.99, static_cast<double>(t - j));
          weights += weight;
          f += weight * tokens.has(j, n, W);
          p += weight * tokens.e(j, n);
        }
        loss += static_cast<double>(N) / static_cast<double>(W) * f / weights * p / weights;
        CHECK_THAT(running.frequency[static_cast<std::size_t>(t * N + n)], WithinAbs(f / weights, 1e-6));
        CHECK_THAT(running.probability[static_cast<std::size_t>(t * N + n)], WithinAbs(p / weights, 1e-6));
      }
      CHECK_THAT(running.loss[static_cast<std::size_t>(t)], WithinAbs(loss, 1e-12));
    }
    // Nothing forgotten: the mean over the whole prompt.
    CHECK_THAT(running_balance(tokens.view(W), 1).loss.back(), WithinAbs(whole.loss, 1e-12));
  }
}

TEST_CASE("row balance: softmax keys choose their largest row, row-sparse keys theirs that are not 0") {
  // Two tokens, two heads, four rows.
  const std::vector<float> k{0.5F,  0.25F, 0.25F, 0, 0,     1, 0, 0,  //
                             0.25F, 0,     0.75F, 0, 0.75F, 0, 0, 0.25F};
  const RowBalance largest = row_balance(k, 2, 4, 1), sparse = row_balance(k, 2, 4, 2);
  CHECK(largest.frequency == std::vector<double>{0.5, 0, 0.5, 0, 0.5, 0.5, 0, 0});
  CHECK(sparse.frequency == std::vector<double>{1, 0.5, 0.5, 0, 0.5, 0.5, 0, 0.5});
  CHECK(largest.variation == std::vector<double>{1, 1});
  // Head 0: mean k = (3/8, 1/8, 1/2, 0).
  CHECK_THAT(largest.loss[0], WithinAbs(4 * (0.5 * 0.375 + 0.5 * 0.5), 1e-12));
  CHECK_THAT(sparse.loss[0], WithinAbs(2 * (0.375 + 0.5 * 0.125 + 0.5 * 0.5), 1e-12));

  // Equal keys of which every token chooses another: uniform, loss 1.
  std::vector<float> even;
  for (int t = 0; t < 6; ++t) {
    for (int r = 0; r < 6; ++r) even.push_back(r == t || r == (t + 1) % 6 ? 0.5F : 0);
  }
  const RowBalance uniform = row_balance(even, 1, 6, 2);
  CHECK_THAT(uniform.loss[0], WithinAbs(1, 1e-12));
  CHECK_THAT(uniform.variation[0], WithinAbs(0, 1e-12));
}

TEST_CASE("routing: sizes that do not fit are refused") {
  const Tokens tokens = uniform_tokens(6, 3, 2);
  CHECK_THROWS_AS(token_routing({tokens.gate, tokens.selected, 4, 2, 2}), std::invalid_argument);
  CHECK_THROWS_AS(token_routing({tokens.gate, tokens.selected, 3, 1, 1}), std::invalid_argument);
  CHECK_THROWS_AS(token_routing(tokens.view(3)), std::invalid_argument);
  CHECK_THROWS_AS(balance(Tokens{{1, 0}, {2}, 2, 1}.view(1)), std::invalid_argument);
  CHECK_THROWS_AS(tokens_of(Tokens{{1, 0}, {-1}, 2, 1}.view(1), 0), std::invalid_argument);
  CHECK_THROWS_AS(row_balance(tokens.gate, 1, 4, 1), std::invalid_argument);
}

}  // namespace statescope::test::routing_analysis_test

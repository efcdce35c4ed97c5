// Likeness, spectra and ranks of a run's states, against their definitions in double precision.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/analysis/similarity_analysis.h"
#include "engine/answers/answers.h"
#include "engine/error.h"
#include "tests/catch.h"
#include "tests/engine/analysis/evidence_of.h"
#include "tests/engine/analysis/states.h"

namespace statescope::test::answers_likeness_test {

using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

namespace {

constexpr std::int64_t kTokens = 37;

std::vector<SmallModel> some_models() {
  return {{"sse gla", sse_config("gla")},
          {"sse gdn", sse_config("gdn")},
          {"gla", small_config("gla")},
          {"gated_deltanet", small_config("gated_deltanet", {{"head_dim", 16}, {"num_v_heads", 8}})},
          {"gsa", small_config("gsa", {{"num_slots", 12}})},
          {"mom", small_config("mom", {{"head_dim", 16}})}};
}

double dot(const float* a, const float* b, std::int64_t n) { return std::inner_product(a, a + n, b, 0.0); }

/// NaN where one of them is zero.
double cosine(const float* a, const float* b, std::int64_t n) {
  const double length = std::sqrt(dot(a, a, n) * dot(b, b, n));
  return length == 0 ? NAN : dot(a, b, n) / length;
}

bool same(double found, double expected) { return std::isnan(expected) ? std::isnan(found) : std::abs(found - expected) < 1e-5; }

void check_cosines(const std::vector<float>& found, const std::vector<std::vector<float>>& of) {
  const std::size_t n = of.size();
  REQUIRE(found.size() == n * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) REQUIRE(same(found[i * n + j], cosine(of[i].data(), of[j].data(), std::ssize(of[i]))));
  }
}

std::vector<std::vector<float>> cut(const std::vector<float>& values, std::int64_t each) {
  std::vector<std::vector<float>> parts;
  for (auto at = values.begin(); at != values.end(); at += each) parts.emplace_back(at, at + each);
  return parts;
}

}  // namespace

TEST_CASE("answers: similarity of rows, partitions and heads is that of the state") {
  for (const SmallModel& small : some_models()) {
    for (const std::int64_t token : {std::int64_t{0}, kTokens - 1}) {
      INFO(small.name << ", token " << token);
      SmallEvidence run(small.config, kTokens);
      const LayerState state = run.evidence.state(1, token);
      const std::int64_t head = state.heads - 1;
      const std::vector<float> Z = one_head(state, head);
      const Similarity found = answer(SimilarityQuestion{1, head, token}, run.evidence);
      CHECK(found.partitions == state.slots);
      CHECK(found.rows == state.rows);
      const std::vector<std::vector<float>> rows = cut(Z, state.columns);
      check_cosines(found.cosine.values(), rows);
      check_cosines(found.partition_cosine, cut(Z, state.rows * state.columns));
      std::vector<std::vector<float>> heads;
      for (std::int64_t h = 0; h < state.heads; ++h) heads.push_back(one_head(state, h));
      check_cosines(found.head_cosine, heads);

      std::int64_t zero = 0;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const double length = std::sqrt(dot(rows[i].data(), rows[i].data(), state.columns));
        CHECK_THAT(found.row_norm[i], WithinAbs(length, 1e-5 * length));
        zero += length == 0;
      }
      CHECK(found.zero_rows == zero);
      if (small.name == "sse gla" && token == 0) CHECK(zero == 3 * state.rows);  // one of four partitions was written
      CHECK(std::ranges::is_sorted(found.order));
      const Similarity clustered = answer(SimilarityQuestion{1, head, token, true}, run.evidence);
      std::vector<std::int64_t> order = clustered.order;
      for (std::int64_t i = 0; i < std::ssize(order); ++i) {
        CHECK(same(clustered.cosine.at(0, i), found.cosine.at(order[0], order[static_cast<std::size_t>(i)])));
        if (i >= std::ssize(order) - zero) CHECK(found.row_norm[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] == 0);
      }
      std::ranges::sort(order);
      for (std::int64_t i = 0; i < std::ssize(rows); ++i) REQUIRE(order[static_cast<std::size_t>(i)] == i);
    }
  }
}

TEST_CASE("answers: likeness to another model's states, of rows and of heads, as far as their shapes allow") {
  const auto check_block = [](const CosineBlock& found, const std::vector<std::vector<float>>& a,
                              const std::vector<std::vector<float>>& b) {
    REQUIRE(found.cosine.values().size() == a.size() * b.size());
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      for (std::size_t j = 0; j < b.size(); ++j) {
        const float c = found.cosine.values()[i * b.size() + j];
        REQUIRE(same(c, cosine(a[i].data(), b[j].data(), std::ssize(a[i]))));
        sum += std::isnan(c) ? 0 : std::abs(c);
      }
    }
    const auto pairs = std::ssize(found.cosine.values()) - found.gaps;
    CHECK(found.mean * static_cast<double>(pairs) == Approx(sum));
  };
  SmallEvidence sse(sse_config("gla"), kTokens), gla(small_config("gla"), kTokens);
  const auto other = std::make_shared<const LayerState>(answer(LayerStateQuestion{.layer = 0, .token = 20}, sse.evidence));
  const LayerState own = gla.evidence.state(1, 12);
  const CrossSimilarity found =
      answer(CrossSimilarityQuestion{.layer = 1, .head = 1, .token = 12, .other = other, .other_slot = 2}, gla.evidence);
  if (own.columns == other->columns)
    check_block(found.of_rows, cut(one_head(*other, 0), own.columns), cut(one_head(own, 1), own.columns));
  else
    CHECK(found.of_rows.cosine.empty());

  const CrossSimilarity same_shape =
      answer(CrossSimilarityQuestion{.layer = 1, .slot = 3, .head = 1, .token = 20, .other = other, .other_slot = 2, .other_head = 1},
             sse.evidence);
  const LayerState state = sse.evidence.state(1, 20);
  const auto heads_of = [](const LayerState& all, std::int64_t slot) {
    const std::int64_t each = all.rows * all.columns;
    return cut({all.matrix(slot, 0), all.matrix(slot, 0) + all.heads * each}, each);
  };
  check_block(same_shape.of_heads, heads_of(*other, 2), heads_of(state, 3));
  check_block(same_shape.of_rows, cut(one_head(*other, 1), state.columns), cut(one_head(state, 1), state.columns));
  CHECK_THROWS_AS(answer(CrossSimilarityQuestion{.layer = 1, .slot = 9, .token = 3, .other = other}, sse.evidence), Error);
}

TEST_CASE("answers: states after different tokens, a tile of them") {
  SmallEvidence run(sse_config("gla"), kTokens);
  const auto states_after = [&](const TokenSteps& tokens) {
    std::vector<std::vector<float>> states;
    for (std::int64_t i = 0; i < tokens.count; ++i) {
      const LayerState state = run.evidence.state(0, tokens.from + i * tokens.step);
      states.emplace_back(state.matrix(2, 1), state.matrix(2, 1) + state.rows * state.columns);
    }
    return states;
  };
  const TokenSteps all{0, 1, kTokens}, some{3, 2, 4};
  check_cosines(answer(TokenSimilarityQuestion{0, 2, 1, all, all}, run.evidence).cosine, states_after(all));
  const std::vector<float> tile = answer(TokenSimilarityQuestion{0, 2, 1, some, all}, run.evidence).cosine;
  const auto rows = states_after(some), columns = states_after(all);
  REQUIRE(tile.size() == rows.size() * columns.size());
  for (std::size_t i = 0; i < tile.size(); ++i) {
    const auto &a = rows[i / columns.size()], &b = columns[i % columns.size()];
    REQUIRE(same(tile[i], cosine(a.data(), b.data(), std::ssize(a))));
  }
  CHECK_THROWS_AS(answer(TokenSimilarityQuestion{0, 0, 0, {0, 1, TokenSimilarity::kMostTokens + 1}, all}, run.evidence), Error);
  CHECK_THROWS_AS(answer(TokenSimilarityQuestion{0, 0, 0, {kTokens - 1, 1, 2}, all}, run.evidence), Error);
  CHECK_THROWS_WITH(answer(TokenSimilarityQuestion{0, 99, 0, all, all}, run.evidence), "there is no slot 99 (slots are 0 to 4)");
  CHECK_THROWS_WITH(answer(TokenSimilarityQuestion{0, 0, 99, all, all}, run.evidence), "there is no head 99 (heads are 0 to 1)");
}

TEST_CASE("answers: singular values of every head, and their summary along the run") {
  for (const SmallModel& small : some_models()) {
    INFO(small.name);
    SmallEvidence run(small.config, 80);
    const LayerState state = run.evidence.state(0, 79);
    const std::vector<StateSimilarity> expected = state_similarity(run.evidence.backend(), run.evidence.workspace(), state.values,
                                                                   state.slots, state.heads, state.rows, state.columns);
    const Spectra found = answer(SpectraQuestion{0, 79}, run.evidence);
    const RankSeries series = answer(RankSeriesQuestion{0}, run.evidence);
    REQUIRE(found.heads == state.heads);
    REQUIRE(std::ssize(found.sigma) == found.heads * found.count);
    CHECK(std::ssize(series.token) == RankSeries::kMostTokens);
    CHECK(series.token.back() == 79);
    for (std::int64_t h = 0; h < state.heads; ++h) {
      const StateSimilarity& head = expected[static_cast<std::size_t>(h)];
      const auto at = static_cast<std::size_t>(h);
      CHECK_THAT(found.entropy[at], WithinRel(head.stacked.entropy, 1e-5));
      CHECK_THAT(found.rank[at], WithinRel(head.stacked.rank, 1e-5));
      CHECK_THAT(found.rank_of_squares[at], WithinRel(head.stacked.rank_of_squares, 1e-5));
      for (std::int64_t p = 0; p < state.slots; ++p) {
        const auto place = static_cast<std::size_t>(h * state.slots + p);
        CHECK_THAT(found.partition_rank[place], WithinAbs(head.partitions[static_cast<std::size_t>(p)].rank, 1e-4));
        CHECK_THAT(found.partition_entropy[place], WithinAbs(head.partitions[static_cast<std::size_t>(p)].entropy, 1e-5));
      }
      const std::size_t last = static_cast<std::size_t>((std::ssize(series.token) - 1) * state.heads + h);
      CHECK_THAT(series.rank[last], WithinRel(found.rank[at], 1e-5F));
      CHECK_THAT(series.entropy[last], WithinRel(found.entropy[at], 1e-5F));
      // ‖S‖² = Σ σ²
      const float* sigma = found.sigma.data() + h * found.count;
      CHECK_THAT(series.norm[last], WithinRel(static_cast<float>(std::sqrt(dot(sigma, sigma, found.count))), 1e-5F));
    }
  }
}

TEST_CASE("answers: before the first token all is zero, and nothing is like anything") {
  SmallEvidence run(sse_config("gla"), 5);
  const Similarity likeness = answer(SimilarityQuestion{0, 0, -1}, run.evidence);
  CHECK(likeness.zero_rows == likeness.partitions * likeness.rows);
  CHECK(std::isnan(likeness.cosine.at(0, 0)));
  CHECK(std::ssize(likeness.order) == likeness.zero_rows);
  const Spectra spectra = answer(SpectraQuestion{0, -1}, run.evidence);
  CHECK(spectra.rank == std::vector<float>(static_cast<std::size_t>(spectra.heads)));
}

TEST_CASE("answers: layers without a matrix have nothing to compare, and what does not exist is refused") {
  SmallEvidence softmax(small_config("transformer"), 5);
  CHECK(answer(SimilarityQuestion{0, 0, 4}, softmax.evidence).partitions == 0);
  CHECK(answer(TokenSimilarityQuestion{0, 0, 0, {0, 1, 5}, {0, 1, 5}}, softmax.evidence).cosine.empty());
  CHECK(answer(SpectraQuestion{0, 4}, softmax.evidence).heads == 0);
  CHECK(answer(RankSeriesQuestion{0}, softmax.evidence).token.empty());
  SmallEvidence gla(small_config("gla"), 5);
  CHECK_THROWS_AS(answer(SimilarityQuestion{0, 4, 4}, gla.evidence), Error);
  CHECK_THROWS_AS(answer(TokenSimilarityQuestion{0, 1, 0, {0, 1, 5}, {0, 1, 5}}, gla.evidence), Error);
  gla.evidence.set_progress([](double) { return false; });
  CHECK_THROWS_AS(answer(SimilarityQuestion{0, 0, 4}, gla.evidence), Error);
  CHECK_THROWS_AS(answer(RankSeriesQuestion{0}, gla.evidence), Error);
}

}  // namespace statescope::test::answers_likeness_test

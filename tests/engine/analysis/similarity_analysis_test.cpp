#include "engine/analysis/similarity_analysis.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/catch.h"
#include "tests/kernels/random_tensors.h"

namespace statescope::test::similarity_analysis_test {

using Catch::Matchers::WithinAbs;
using testing::Numbers;
using testing::Random;

namespace {

using Row = std::vector<double>;
using Matrix = std::vector<Row>;

constexpr double kNone = std::numeric_limits<double>::infinity();

/// Of states [P, H, K, V].
std::vector<StateSimilarity> similarity(const Numbers& state, std::int64_t most_cosines = 1'000'000) {
  const auto backend = make_cpu_backend(1);
  Workspace workspace(*backend);
  return state_similarity(*backend, workspace, state.values, state.shape[0], state.shape[1], state.shape[2], state.shape[3], most_cosines);
}

/// Rows n·K + r of head h.
Matrix stacked(const Numbers& state, std::int64_t h) {
  const std::int64_t P = state.shape[0], H = state.shape[1], K = state.shape[2], V = state.shape[3];
  Matrix Z;
  for (std::int64_t n = 0; n < P; ++n) {
    for (std::int64_t r = 0; r < K; ++r) {
      const float* row = state.values.data() + ((n * H + h) * K + r) * V;
      Z.emplace_back(row, row + V);
    }
  }
  return Z;
}

double dot(const Row& a, const Row& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }
double norm(const Row& a) { return std::sqrt(dot(a, a)); }

/// The min(rows, V) largest first: rows are turned against each other in pairs until all are orthogonal, and their norms remain (Hestenes).
Row singular_values(Matrix Z) {
  for (int sweep = 0; sweep < 40; ++sweep) {
    for (std::size_t i = 0; i < Z.size(); ++i) {
      for (std::size_t j = i + 1; j < Z.size(); ++j) {
        const double angle = std::atan2(2 * dot(Z[i], Z[j]), dot(Z[i], Z[i]) - dot(Z[j], Z[j])) / 2;
        for (std::size_t c = 0; c < Z[i].size(); ++c) {
          const double a = Z[i][c], b = Z[j][c];
          Z[i][c] = std::cos(angle) * a + std::sin(angle) * b;
          Z[j][c] = std::cos(angle) * b - std::sin(angle) * a;
        }
      }
    }
  }
  Row sigma;
  for (const Row& row : Z) sigma.push_back(norm(row));
  std::sort(sigma.begin(), sigma.end(), std::greater<>());
  sigma.resize(std::min(Z.size(), Z[0].size()));
  return sigma;
}

void check_spectrum(const Spectrum& got, const Matrix& Z) {
  const Row sigma = singular_values(Z);
  double squares = 0, linear = 0;
  for (const double s : sigma) {
    const double p = s * s / dot(sigma, sigma), q = s / std::accumulate(sigma.begin(), sigma.end(), 0.0);
    squares -= p > 0 ? p * std::log(p) : 0;
    linear -= q > 0 ? q * std::log(q) : 0;
  }
  const auto n = static_cast<double>(sigma.size());
  CHECK_THAT(got.entropy, WithinAbs(n > 1 ? squares / std::log(n) : 0, 1e-6));
  CHECK_THAT(got.rank, WithinAbs(std::exp(linear), 1e-5));
  CHECK_THAT(got.rank_of_squares, WithinAbs(std::exp(squares), 1e-5));
}

void check_rows(const StateSimilarity& got, const Matrix& Z, std::size_t K) {
  double within = 0, between = 0, inside = 0, outside = 0, smallest = kNone, product = kNone;
  for (std::size_t i = 0; i < Z.size(); ++i) {
    for (std::size_t j = 0; j < Z.size(); ++j) {
      product = std::min(product, dot(Z[i], Z[j]));
      if (i == j) continue;
      const bool zero = norm(Z[i]) < 1e-12 || norm(Z[j]) < 1e-12;
      const double cosine = zero ? 0 : dot(Z[i], Z[j]) / norm(Z[i]) / norm(Z[j]);
      if (!zero) smallest = std::min(smallest, cosine);
      (i / K == j / K ? within : between) += std::abs(cosine);
      (i / K == j / K ? inside : outside) += 1;
    }
  }
  CHECK_THAT(got.rows.mean_abs, WithinAbs((within + between) / (inside + outside), 1e-6));
  CHECK_THAT(got.rows.within, WithinAbs(within / inside, 1e-6));
  if (outside > 0) CHECK_THAT(got.rows.between, WithinAbs(between / outside, 1e-6));
  CHECK(std::isnan(got.rows.between) == (outside == 0));
  CHECK_THAT(got.rows.min_cosine, WithinAbs(smallest, 1e-6));
  CHECK(got.rows.zero_rows == std::count_if(Z.begin(), Z.end(), [](const Row& row) { return norm(row) < 1e-12; }));
  CHECK_THAT(got.statistic, WithinAbs(product / std::pow(singular_values(Z)[0], 2), 1e-6));
}

/// Of the stacked rows those of partition n.
Matrix partition(const Matrix& Z, std::int64_t n, std::int64_t K) { return {Z.begin() + n * K, Z.begin() + (n + 1) * K}; }

}  // namespace

TEST_CASE("similarity: orthogonal rows of one length fill every direction") {
  Numbers state({1, 1, 4, 4});
  for (std::int64_t i = 0; i < 4; ++i) state[i * 4 + (i + 1) % 4] = i % 2 == 0 ? 3.0F : -3.0F;
  const StateSimilarity got = similarity(state).at(0);
  CHECK(got.rows.mean_abs == 0);
  CHECK(got.rows.min_cosine == 0);
  CHECK_THAT(got.stacked.entropy, WithinAbs(1, 1e-9));
  CHECK_THAT(got.stacked.rank, WithinAbs(4, 1e-6));
  CHECK_THAT(got.stacked.rank_of_squares, WithinAbs(4, 1e-6));
  CHECK(got.statistic == 0);
}

TEST_CASE("similarity: a state of rank one fills one direction") {
  // Row r is (r + 1)·(1, 2, −2), the last with the other sign.
  Numbers state({1, 1, 4, 3});
  for (std::int64_t r = 0; r < 4; ++r) {
    const float length = r == 3 ? -4.0F : static_cast<float>(r + 1);
    for (std::int64_t c = 0; c < 3; ++c) state[r * 3 + c] = length * std::array{1.0F, 2.0F, -2.0F}[static_cast<std::size_t>(c)];
  }
  const StateSimilarity got = similarity(state).at(0);
  CHECK_THAT(got.rows.mean_abs, WithinAbs(1, 1e-6));
  CHECK_THAT(got.rows.min_cosine, WithinAbs(-1, 1e-6));
  CHECK_THAT(got.stacked.entropy, WithinAbs(0, 1e-9));
  CHECK_THAT(got.stacked.rank, WithinAbs(1, 1e-5));
  CHECK_THAT(got.stacked.rank_of_squares, WithinAbs(1, 1e-9));
  CHECK_THAT(got.statistic, WithinAbs(-12.0 / 30, 1e-6));  // −3·4·9 over (1 + 4 + 9 + 16)·9
}

TEST_CASE("spectrum: by hand, nothing, one number, and what is not a number") {
  const Spectrum two = spectrum(std::vector<float>{3, 1});
  CHECK_THAT(two.entropy, WithinAbs(-(0.9 * std::log2(0.9) + 0.1 * std::log2(0.1)), 1e-12));
  CHECK_THAT(two.rank, WithinAbs(std::exp(-(0.75 * std::log(0.75) + 0.25 * std::log(0.25))), 1e-12));
  CHECK_THAT(two.rank_of_squares, WithinAbs(std::pow(2, two.entropy), 1e-12));
  const Spectrum none = spectrum(std::vector<float>(3));
  CHECK(none.entropy == 0);
  CHECK(none.rank == 0);
  CHECK(none.rank_of_squares == 0);
  const Spectrum one = spectrum(std::vector<float>{5});
  CHECK(one.entropy == 0);
  CHECK(one.rank == 1);
  CHECK(one.rank_of_squares == 1);
  const Spectrum bad = spectrum(std::vector<float>(2, std::numeric_limits<float>::quiet_NaN()));
  CHECK(std::isnan(bad.entropy));
  CHECK(std::isnan(bad.rank));
  CHECK(std::isnan(bad.rank_of_squares));
}

TEST_CASE("similarity: the counter-example to the paper's bound") {
  // Rows (1, 0), (−0.9, 0.1): cosine −0.994, "bound" −0.496 ([A19]).
  const StateSimilarity got = similarity(Numbers({1, 1, 2, 2}, {1, 0, -0.9F, 0.1F})).at(0);
  CHECK_THAT(got.rows.min_cosine, WithinAbs(-0.994, 5e-4));
  CHECK_THAT(got.statistic, WithinAbs(-0.496, 5e-4));
}

TEST_CASE("row similarity: partitions that hold the same, each with orthogonal rows") {
  // C of the rows x, y of partition 0 and x, y of partition 1.
  const std::vector<float> C{1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 0, 0, 1, 0, 1};
  const RowSimilarity got = row_similarity(C, 2, 2);
  CHECK(got.within == 0);
  CHECK(got.between == 0.5);
  CHECK_THAT(got.mean_abs, WithinAbs(4.0 / 12, 1e-12));
  CHECK(got.min_cosine == 0);
  CHECK(row_similarity(C, 1, 4).within == got.mean_abs);
}

TEST_CASE("similarity: rows of zeros count in the means, not in the minimum") {
  const StateSimilarity got = similarity(Numbers({1, 1, 3, 2}, {1, 0, 0, 0, 0.6F, 0.8F})).at(0);
  CHECK(got.rows.zero_rows == 1);
  CHECK_THAT(got.rows.mean_abs, WithinAbs(0.6 / 3, 1e-6));
  CHECK_THAT(got.rows.min_cosine, WithinAbs(0.6, 1e-6));
  CHECK(got.statistic == 0);  // of all rows, zeros too

  const StateSimilarity empty = similarity(Numbers({2, 1, 2, 3})).at(0);
  CHECK(empty.rows.zero_rows == 4);
  CHECK(empty.rows.mean_abs == 0);
  CHECK(empty.stacked.entropy == 0);
  CHECK(empty.partitions.at(1).rank == 0);
  CHECK(std::isnan(empty.rows.min_cosine));
  CHECK(std::isnan(empty.statistic));
}

TEST_CASE("similarity: a number that is not finite spoils its head and no other") {
  Random random(3);
  for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Numbers state = random.uniform({2, 2, 3, 4});
    state[3 * 12 + 5] = wrong;  // partition 1 of head 1
    const auto got = similarity(state);
    CHECK(std::isnan(got.at(1).rows.mean_abs));
    CHECK(std::isnan(got.at(1).rows.min_cosine));
    CHECK(std::isnan(got.at(1).stacked.entropy));
    CHECK(std::isnan(got.at(1).stacked.rank));
    CHECK(std::isnan(got.at(1).partitions.at(1).entropy));
    CHECK(std::isnan(got.at(1).statistic));
    check_spectrum(got.at(1).partitions.at(0), partition(stacked(state, 1), 0, 3));
    check_rows(got.at(0), stacked(state, 0), 3);
    check_spectrum(got.at(0).stacked, stacked(state, 0));
  }
}

TEST_CASE("similarity: agrees with its definitions in double precision on random states") {
  Random random(4);
  for (const Shape& shape : {Shape{1, 1, 2, 1}, Shape{1, 3, 4, 9}, Shape{3, 2, 7, 5}, Shape{5, 2, 16, 12}}) {
    INFO(shape.to_string());
    Numbers state = random.uniform(shape);
    const std::int64_t P = shape[0], K = shape[2];
    std::fill_n(&state[shape.size() - shape[3]], shape[3], 1e-14F);  // the last row of the last head counts as zero
    const auto got = similarity(state);
    REQUIRE(got.size() == static_cast<std::size_t>(shape[1]));
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      const Matrix Z = stacked(state, h);
      const StateSimilarity& head = got[static_cast<std::size_t>(h)];
      check_spectrum(head.stacked, Z);
      REQUIRE(head.partitions.size() == static_cast<std::size_t>(P));
      for (std::int64_t n = 0; n < P; ++n) check_spectrum(head.partitions[static_cast<std::size_t>(n)], partition(Z, n, K));
      if (Z.size() > 2) check_rows(head, Z, static_cast<std::size_t>(K));
    }
  }
}

TEST_CASE("read similarity: one-hot queries read rows, and no query can tell the rows of a state of rank one apart") {
  const std::vector<float> rows{1, 0, 0.6F, 0.8F, 0, 0}, unit{1, 0, 0, 0, 1, 0, 0, 0, 1};
  const ReadSimilarity got = read_similarity(unit, rows, 3, 2);  // the read of the zero row is in no pair
  CHECK_THAT(got.min_cosine, WithinAbs(0.6, 1e-6));
  CHECK_THAT(got.mean_cosine, WithinAbs(0.6, 1e-6));
  const ReadSimilarity same = read_similarity(std::vector<float>{1, 2, 0.5F, 3}, std::vector<float>{1, 2, 2, 4}, 2, 2);
  CHECK_THAT(same.min_cosine, WithinAbs(1, 1e-12));
  CHECK(std::isnan(read_similarity(std::vector<float>{1, 2}, std::vector<float>{1, 2, 2, 4}, 2, 2).min_cosine));  // one query
  const ReadSimilarity bad = read_similarity(unit, std::vector<float>{1, 0, 0, std::nanf(""), 1, 1}, 3, 2);
  CHECK(std::isnan(bad.min_cosine));
  CHECK(std::isnan(bad.mean_cosine));
}

TEST_CASE("read similarity: agrees with its definition; non-negative states are told apart best by their rows") {
  Random random(5);
  for (const auto& [n, K, V] : {std::array<std::int64_t, 3>{2, 1, 3}, {20, 6, 4}, {31, 5, 8}}) {
    const Numbers queries = random.uniform({n, K}, 0, 1), state = random.uniform({K, V}, 0, 1);
    Matrix reads(static_cast<std::size_t>(n), Row(static_cast<std::size_t>(V)));
    double smallest = kNone, sum = 0;
    for (std::int64_t a = 0; a < n; ++a) {
      for (std::int64_t c = 0; c < V; ++c) {
        double& o = reads[static_cast<std::size_t>(a)][static_cast<std::size_t>(c)];
        for (std::int64_t r = 0; r < K; ++r) o += static_cast<double>(queries.row(a)[r]) * state.row(r)[c];
      }
    }
    for (std::size_t a = 0; a < reads.size(); ++a) {
      for (std::size_t b = a + 1; b < reads.size(); ++b) {
        const double cosine = dot(reads[a], reads[b]) / norm(reads[a]) / norm(reads[b]);
        smallest = std::min(smallest, cosine);
        sum += cosine;
      }
    }
    const ReadSimilarity got = read_similarity(queries.values, state.values, K, V);
    CHECK_THAT(got.min_cosine, WithinAbs(smallest, 1e-9));
    CHECK_THAT(got.mean_cosine, WithinAbs(sum / (static_cast<double>(n * (n - 1)) / 2), 1e-9));
    if (K > 1) CHECK(got.min_cosine >= similarity(Numbers({1, 1, K, V}, state.values)).at(0).rows.min_cosine - 1e-6);
  }
}

TEST_CASE("similarity: the same however many heads are taken at a time") {
  Random random(6);
  const Numbers state = random.uniform({2, 5, 3, 4});
  const auto together = similarity(state);
  for (const std::int64_t most : {1, 72, 80}) {  // one, two and two heads of 36 cosines
    const auto got = similarity(state, most);
    REQUIRE(got.size() == 5);
    for (std::size_t h = 0; h < 5; ++h) {
      CHECK_THAT(got[h].rows.mean_abs, WithinAbs(together[h].rows.mean_abs, 1e-6));
      CHECK_THAT(got[h].rows.min_cosine, WithinAbs(together[h].rows.min_cosine, 1e-6));
      CHECK_THAT(got[h].statistic, WithinAbs(together[h].statistic, 1e-6));
      CHECK_THAT(got[h].stacked.entropy, WithinAbs(together[h].stacked.entropy, 1e-6));
    }
  }
}

TEST_CASE("spectral statistic: by hand, and what is not a number") {
  const std::vector<float> norms{2, 3};
  CHECK_THAT(spectral_statistic(std::vector<float>{1, -0.5F, -0.5F, 1}, norms, 4), WithinAbs(-3.0 / 16, 1e-12));
  CHECK_THAT(spectral_statistic(std::vector<float>{1, 0.75F, 0.75F, 1}, norms, 4), WithinAbs(4.0 / 16, 1e-12));
  CHECK(std::isnan(spectral_statistic(std::vector<float>{1, std::nanf(""), 0, 1}, norms, 4)));
  CHECK(std::isnan(spectral_statistic(std::vector<float>{1, 0, 0, 1}, norms, std::nan(""))));
}

TEST_CASE("similarity: sizes that do not fit are refused") {
  const auto backend = make_cpu_backend(1);
  Workspace workspace(*backend);
  const std::vector<float> numbers(12);
  CHECK_THROWS_AS(state_similarity(*backend, workspace, numbers, 1, 2, 2, 2), std::invalid_argument);
  CHECK_THROWS_AS(state_similarity(*backend, workspace, numbers, 0, 2, 2, 3), std::invalid_argument);
  CHECK_THROWS_AS(read_similarity(numbers, numbers, 3, 3), std::invalid_argument);
  CHECK_THROWS_AS(read_similarity(numbers, numbers, 5, 3), std::invalid_argument);
  CHECK_THROWS_AS(row_similarity(numbers, 2, 2), std::invalid_argument);
  CHECK_THROWS_AS(spectral_statistic(numbers, std::vector<float>(3), 1), std::invalid_argument);
}

}  // namespace statescope::test::similarity_analysis_test

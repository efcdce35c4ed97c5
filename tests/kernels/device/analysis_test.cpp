// What is asked of many states on a CUDA device: against the CPU form, and the entropy of singular values against a full decomposition.
#include <Eigen/SVD>
#include <cmath>

#include "tests/kernels/device_cases.h"

namespace statescope::device_analysis_test {
using namespace statescope::testing;

namespace {

using Limits = std::numeric_limits<float>;

std::string name_of(const char* operation, std::int64_t R, std::int64_t V, const char* what) {
  return std::string(operation) + " [" + std::to_string(R) + ", " + std::to_string(V) + "], " + what;
}

/// z [B, R, V] of the given rank.
Numbers of_rank(Random& random, const Shape& shape, std::int64_t rank) {
  Numbers z(shape);
  const std::int64_t R = shape[1], V = shape[2];
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    const Numbers left = random.uniform({R, rank}), right = random.uniform({rank, V});
    for (std::int64_t i = 0; i < R; ++i) {
      for (std::int64_t r = 0; r < rank; ++r) {
        for (std::int64_t j = 0; j < V; ++j) z.row(b)[i * V + j] += left.row(i)[r] * right.row(r)[j];
      }
    }
  }
  return z;
}

/// −Σ_i p_i log p_i, p_i = σ_i^power / Σ σ^power
template <class Sigma>
double entropy(const Sigma& sigma, int power) {
  double sum = 0, result = 0;
  for (const double s : sigma) sum += std::pow(s, power);
  for (const double s : sigma) {
    const double p = std::pow(s, power) / sum;
    if (p > 0) result -= p * std::log(p);
  }
  return result;
}

}  // namespace

TEST_CASE("device: what logits say about the next token", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const std::int64_t n : {1, 3, 33, 1000, 5000, 250'000}) {
    Random random(1);
    const Numbers a = random.uniform({3, n}, -20, 20), b = random.uniform({3, n}, -20, 20);
    const std::vector<std::int32_t> ids{0, static_cast<std::int32_t>(n / 2), static_cast<std::int32_t>(n - 1)};
    const std::string of = " of " + std::to_string(n);
    both("next_token_nll" + of, [&](Side& s) { s->next_token_nll(s.out({3}), s.in(a), ids.data()); });
    both("total_variation" + of, [&](Side& s) { s->total_variation(s.out({3}), s.in(a), s.in(b)); });
    both("row_norms" + of, [&](Side& s) { s->row_norms(s.out({3}), s.in(a)); });
    Numbers holed = a;
    holed.row(1)[n / 2] = std::nanf("");
    holed.row(2)[n - 1] = -Limits::infinity();
    both("next_token_nll with NaN and what cannot be," + of, [&](Side& s) { s->next_token_nll(s.out({3}), s.in(holed), ids.data()); });
  }
}

TEST_CASE("device: row cosine and singular values", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const auto& [R, V] : {std::pair{1, 1},
                             {1, 7},
                             {7, 1},
                             {2, 2},
                             {16, 16},
                             {80, 16},
                             {33, 40},
                             {60, 64},
                             {65, 33},
                             {64, 96},
                             {640, 60},
                             {640, 64},
                             {640, 127},
                             {640, 128},
                             {128, 640},
                             {130, 200},
                             {300, 180},
                             {640, 256},
                             {530, 520}}) {
    Random random(1);
    Numbers z = random.uniform({3, R, V});
    const auto cosine = [&](Side& s) { s->row_cosine(s.out_whole({3, R, R}), s.whole(z)); };
    const auto sigma = [&](Side& s) { s->singular_values(s.out_whole({3, std::min(R, V)}), s.whole(z), s.workspace()); };
    const auto compare = [&](const char* what) {
      both(name_of("row_cosine", R, V, what), cosine);
      both(name_of("singular_values", R, V, what), sigma);
    };
    compare("any numbers");
    std::fill_n(z.row(1), V, 0.0F);
    z.row(2)[0] = Limits::quiet_NaN();
    compare("one NaN, a row of zeros");
    z.row(2)[0] = Limits::infinity();
    compare("one infinity, a row of zeros");
    std::fill(z.values.begin(), z.values.end(), 0.25F);
    compare("rank 1");
    std::fill(z.values.begin(), z.values.end(), 0.0F);
    compare("zeros");
  }
}

TEST_CASE("device: row cosine and singular values of no state, and of very large and small ones", "[device]") {
  const Comparison both;
  if (!both) return;
  Random random(2);
  for (const int exponent : {-9, -6, 6, 15}) {
    const auto size = static_cast<float>(std::pow(10, exponent));
    for (const std::int64_t B : {0, 2}) {
      const Numbers z = random.uniform({B, 70, 40}, -size, size);
      const std::string of = std::to_string(B) + " states of numbers up to 1e" + std::to_string(exponent);
      both("row_cosine, " + of, [&, B = B](Side& s) { s->row_cosine(s.out_whole({B, 70, 70}), s.whole(z)); });
      both("singular_values, " + of, [&, B = B](Side& s) { s->singular_values(s.out_whole({B, 40}), s.whole(z), s.workspace()); });
    }
  }
}

TEST_CASE("device: the entropy of singular values is right to 1e-4, also of states of low rank", "[device]") {
  const std::shared_ptr<Backend> device = cuda_backend();
  if (!device) return;
  using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  constexpr std::int64_t B = 2;
  for (const auto& [R, V] : {std::pair{60, 60}, {640, 64}, {640, 128}, {256, 256}}) {
    for (const std::int64_t rank : {2, 5, 40, 60}) {
      Random random(3);
      const Numbers z = of_rank(random, {B, R, V}, rank);
      const std::int64_t n = std::min(R, V);
      Numbers sigma = poisoned({B, n});
      Workspace workspace(*device);
      const Tensor on_device = workspace.tensor(z.shape), result = workspace.tensor({B, n});
      device->upload(on_device, z.view());
      device->singular_values(result, on_device, workspace);
      device->download(sigma.view(), result);
      for (std::int64_t b = 0; b < B; ++b) {
        const Eigen::VectorXd truth =
            Eigen::BDCSVD<Eigen::MatrixXd>(Eigen::Map<const RowMajor>(z.row(b), R, V).cast<double>()).singularValues();
        const std::span<const float> found(sigma.row(b), static_cast<std::size_t>(n));
        for (const int power : {1, 2}) {
          INFO("[" << R << ", " << V << "], rank " << rank << ", of the singular values to the power " << power);
          const double expected = entropy(truth, power);
          CHECK(std::abs(entropy(found, power) - expected) <= 1e-4 * expected);
        }
      }
    }
  }
}

}  // namespace statescope::device_analysis_test

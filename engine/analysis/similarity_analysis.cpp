#include "engine/analysis/similarity_analysis.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "engine/analysis/parts.h"

namespace statescope {
namespace {

/// A mean of what was added; NaN of nothing.
struct Mean {
  double sum = 0, count = 0;
  double value() const { return sum / count; }
};

/// x_i / Σx; all 0 if the sum is.
std::vector<double> shares(std::vector<double> x) {
  const double sum = std::accumulate(x.begin(), x.end(), 0.0);
  if (sum != 0) std::for_each(x.begin(), x.end(), [sum](double& value) { value /= sum; });
  return x;
}

/// [P, H, K, V] → [H, P, K, V]
std::vector<float> stacked(std::span<const float> state, std::int64_t P, std::int64_t H, std::int64_t KV) {
  std::vector<float> Z(state.size());
  for (std::int64_t i = 0; i < P * H; ++i) std::copy_n(state.data() + i * KV, KV, Z.data() + (i % H * P + i / H) * KV);
  return Z;
}

/// Everything of a device tensor; the spans below are its rows.
std::vector<float> downloaded(Backend& backend, ConstTensor tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.shape.size()));
  backend.download(Tensor(values.data(), DType::f32, tensor.shape), tensor);
  return values;
}

std::span<const float> part(const std::vector<float>& values, std::int64_t index, std::int64_t size) {
  return {values.data() + index * size, static_cast<std::size_t>(size)};
}

/// σ [B, n] of Z [B, R, V], which lies on the device.
std::vector<float> sigmas(Backend& backend, Workspace& workspace, ConstTensor Z) {
  const Workspace::Mark mark(workspace);
  Tensor sigma = workspace.tensor({Z.rows(), std::min(Z.shape[1], Z.shape[2])});
  backend.singular_values(sigma, Z, workspace);
  return downloaded(backend, sigma);
}

std::vector<float> row_norms(std::span<const float> Z, std::int64_t V) {
  std::vector<float> norms;
  for (std::size_t at = 0; at < Z.size(); at += static_cast<std::size_t>(V)) {
    norms.push_back(static_cast<float>(norm(Z.subspan(at, static_cast<std::size_t>(V)))));
  }
  return norms;
}

/// q S / ‖q S‖ of queries [n, K] and a state [K, V]: [n, V], 0 where ‖q S‖ < 1e-12.
std::vector<double> unit_reads(std::span<const float> queries, std::span<const float> state, std::int64_t n, std::int64_t V) {
  const std::int64_t K = static_cast<std::int64_t>(state.size()) / V;
  std::vector<double> reads(static_cast<std::size_t>(n * V));
  for (std::int64_t a = 0; a < n; ++a) {
    double* o = reads.data() + a * V;
    for (std::int64_t r = 0; r < K; ++r) {
      const double q = queries[static_cast<std::size_t>(a * K + r)];
      for (std::int64_t c = 0; c < V; ++c) o[c] += q * state[static_cast<std::size_t>(r * V + c)];
    }
    const double length = std::sqrt(std::inner_product(o, o + V, o, 0.0));
    std::transform(o, o + V, o, [length](double x) { return length < 1e-12 ? 0 : x / length; });
  }
  return reads;
}

template <class At>
bool is_zero(At at, std::int64_t size) {
  return std::all_of(at, at + size, [](double x) { return x == 0; });
}

}  // namespace

RowSimilarity row_similarity(std::span<const float> cosine, std::int64_t partitions, std::int64_t rows) {
  const std::int64_t R = partitions * rows;
  check_size("row similarity: cosine", cosine, R * R);
  Mean within, between;
  double smallest = std::numeric_limits<double>::infinity();
  const auto C = [&](std::int64_t i, std::int64_t j) { return static_cast<double>(cosine[static_cast<std::size_t>(i * R + j)]); };
  RowSimilarity result;
  for (std::int64_t i = 0; i < R; ++i) {
    if (C(i, i) == 0) ++result.zero_rows;
    for (std::int64_t j = 0; j < R; ++j) {
      if (i == j) continue;
      Mean& mean = i / rows == j / rows ? within : between;
      mean.sum += std::abs(C(i, j));
      ++mean.count;
      if (C(i, i) != 0 && C(j, j) != 0) smallest = std::min(smallest, C(i, j));
    }
  }
  result.within = within.value();
  result.between = between.value();
  result.mean_abs = Mean{within.sum + between.sum, within.count + between.count}.value();
  result.min_cosine = std::isfinite(smallest) && std::isfinite(within.sum + between.sum) ? smallest : kNaN;
  return result;
}

Spectrum spectrum(std::span<const float> sigma) {
  std::vector<double> squares;
  for (const double value : sigma) squares.push_back(value * value);
  const std::vector<double> p = shares(squares), linear = shares({sigma.begin(), sigma.end()});
  const double sum = std::accumulate(squares.begin(), squares.end(), 0.0);
  if (sum == 0) return {};
  // exp(Hs log n) without the detour through log n, which n = 1 could not take
  return {normalised_entropy(std::span(p)), std::exp(entropy(std::span(linear))), std::exp(entropy(std::span(p)))};
}

double spectral_statistic(std::span<const float> cosine, std::span<const float> norms, double largest_sigma) {
  const std::size_t R = norms.size();
  check_size("spectral statistic: cosine", cosine, static_cast<std::int64_t>(R * R));
  double smallest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < R; ++i) {
    for (std::size_t j = 0; j < R; ++j) {
      const double product = static_cast<double>(cosine[i * R + j]) * norms[i] * norms[j];
      if (std::isnan(product)) return kNaN;
      smallest = std::min(smallest, product);
    }
  }
  return smallest / (largest_sigma * largest_sigma);
}

ReadSimilarity read_similarity(std::span<const float> queries, std::span<const float> state, std::int64_t rows, std::int64_t columns) {
  check_that(rows > 0 && columns > 0, "read similarity: an empty state");
  const std::int64_t n = static_cast<std::int64_t>(queries.size()) / rows;
  check_size("read similarity: queries", queries, n * rows);
  check_size("read similarity: state", state, rows * columns);
  const std::vector<double> o = unit_reads(queries, state, n, columns);
  const auto read = [&](std::int64_t a) { return o.begin() + a * columns; };
  Mean mean;
  double smallest = std::numeric_limits<double>::infinity();
  for (std::int64_t a = 0; a < n; ++a) {
    for (std::int64_t b = 0; b < a; ++b) {
      if (is_zero(read(a), columns) || is_zero(read(b), columns)) continue;
      const double cosine = std::inner_product(read(a), read(a) + columns, read(b), 0.0);
      smallest = std::min(smallest, cosine);
      mean.sum += cosine;
      ++mean.count;
    }
  }
  return {std::isfinite(mean.value()) ? smallest : kNaN, mean.value()};
}

std::vector<StateSimilarity> state_similarity(Backend& backend, Workspace& workspace, std::span<const float> state, std::int64_t partitions,
                                              std::int64_t heads, std::int64_t rows, std::int64_t columns, std::int64_t most_cosines) {
  const std::int64_t P = partitions, H = heads, K = rows, V = columns, R = P * K;
  check_that(P > 0 && H > 0 && K > 0 && V > 0, "state similarity: an empty state");
  check_size("state similarity: state", state, P * H * K * V);
  const Workspace::Mark mark(workspace);
  const std::vector<float> host = stacked(state, P, H, K * V);
  const Tensor Z = workspace.tensor({H, R, V}), each(Z.data, DType::f32, {H * P, K, V});
  backend.upload(Z, ConstTensor(host.data(), DType::f32, Z.shape));
  const std::vector<float> sigma = sigmas(backend, workspace, Z);
  const std::vector<float> sigma_each = P > 1 ? sigmas(backend, workspace, each) : sigma;

  std::vector<StateSimilarity> result;
  const std::int64_t at_once = std::clamp<std::int64_t>(most_cosines / (R * R), 1, H);
  for (std::int64_t first = 0; first < H; first += at_once) {
    const Workspace::Mark of_these(workspace);
    const std::int64_t count = std::min(at_once, H - first);
    const Tensor cosine = workspace.tensor({count, R, R});
    backend.row_cosine(cosine, Z.slice(first, count));
    const std::vector<float> cosines = downloaded(backend, cosine);
    for (std::int64_t h = first; h < first + count; ++h) {
      const auto C = part(cosines, h - first, R * R), of_head = part(sigma, h, std::min(R, V));
      StateSimilarity head{.rows = row_similarity(C, P, K), .stacked = spectrum(of_head), .partitions = {}};
      for (std::int64_t n = 0; n < P; ++n) head.partitions.push_back(spectrum(part(sigma_each, h * P + n, std::min(K, V))));
      head.statistic = spectral_statistic(C, row_norms(part(host, h, R * V), V), of_head[0]);
      result.push_back(std::move(head));
    }
  }
  return result;
}

}  // namespace statescope

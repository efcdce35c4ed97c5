#include "engine/analysis/routing_analysis.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "engine/analysis/parts.h"
#include "kernels/ops/routing.h"

namespace statescope {
namespace {

void check(const RoutedTokens& routed) {
  check_that(routed.partitions > 0 && routed.width > 0 && routed.width <= routed.chosen && routed.chosen <= routed.partitions,
             "routing: 1 ≤ width ≤ chosen ≤ partitions does not hold");
  check_size("routing: gate", routed.gate, routed.tokens() * routed.partitions);
  check_size("routing: selected", routed.selected, routed.tokens() * routed.chosen);
  for (const std::int32_t n : routed.selected) check_that(n >= 0 && n < routed.partitions, "routing: a selected index is no partition");
}

std::span<const float> gate_of(const RoutedTokens& routed, std::int64_t t) {
  return {routed.gate.data() + t * routed.partitions, static_cast<std::size_t>(routed.partitions)};
}

/// T_t
std::span<const std::int32_t> selected_of(const RoutedTokens& routed, std::int64_t t) {
  return {routed.selected.data() + t * routed.chosen, static_cast<std::size_t>(routed.width)};
}

double selected_mass(const RoutedTokens& routed, std::int64_t t) {
  double mass = 0;
  for (const std::int32_t n : selected_of(routed, t)) mass += gate_of(routed, t)[static_cast<std::size_t>(n)];
  return mass;
}

/// e_(W) − e_(W+1)
double margin(std::span<const float> gate, std::int64_t W) {
  if (W == static_cast<std::int64_t>(gate.size()) || std::any_of(gate.begin(), gate.end(), [](float e) { return std::isnan(e); }))
    return kNaN;
  std::vector<float> sorted(gate.begin(), gate.end());
  std::partial_sort(sorted.begin(), sorted.begin() + W + 1, sorted.end(), std::greater<>());
  return static_cast<double>(sorted[static_cast<std::size_t>(W - 1)]) - sorted[static_cast<std::size_t>(W)];
}

/// Σ_n f_n p_n
template <class Number>
double dot(std::span<const Number> f, std::span<const Number> p) {
  return std::inner_product(f.begin(), f.end(), p.begin(), 0.0);
}

/// N / W
double choices(const RoutedTokens& routed) { return static_cast<double>(routed.partitions) / static_cast<double>(routed.width); }

}  // namespace

std::vector<TokenRouting> token_routing(const RoutedTokens& routed) {
  check(routed);
  std::vector<TokenRouting> result;
  for (std::int64_t t = 0; t < routed.tokens(); ++t) {
    const auto e = gate_of(routed, t);
    result.push_back({selected_mass(routed, t), normalised_entropy(e), margin(e, routed.width)});
  }
  return result;
}

std::vector<float> renormalised_weights(const RoutedTokens& routed) {
  check(routed);
  std::vector<float> weights;
  for (std::int64_t t = 0; t < routed.tokens(); ++t) {
    const double mass = selected_mass(routed, t);
    for (const std::int32_t n : selected_of(routed, t)) {
      weights.push_back(static_cast<float>(gate_of(routed, t)[static_cast<std::size_t>(n)] / mass));
    }
  }
  return weights;
}

std::vector<std::int32_t> tokens_of(const RoutedTokens& routed, std::int64_t partition) {
  check(routed);
  std::vector<std::int32_t> tokens;
  for (std::int64_t t = 0; t < routed.tokens(); ++t) {
    const auto T = selected_of(routed, t);
    if (std::find(T.begin(), T.end(), partition) != T.end()) tokens.push_back(static_cast<std::int32_t>(t));
  }
  return tokens;
}

double coefficient_of_variation(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / n) / mean;
}

Balance balance(const RoutedTokens& routed) {
  check(routed);
  const auto N = static_cast<std::size_t>(routed.partitions);
  const auto T = static_cast<double>(routed.tokens());
  Balance result{.frequency = std::vector<double>(N), .probability = std::vector<double>(N), .load = {}};
  for (std::int64_t t = 0; t < routed.tokens(); ++t) {
    for (const std::int32_t n : selected_of(routed, t)) result.frequency[static_cast<std::size_t>(n)] += 1;
    for (std::size_t n = 0; n < N; ++n) result.probability[n] += gate_of(routed, t)[n];
  }
  for (double& f : result.frequency) f /= T;
  for (double& p : result.probability) p /= T;
  for (const double f : result.frequency) result.load.push_back(f * choices(routed));
  result.variation = coefficient_of_variation(result.frequency);
  result.loss = choices(routed) * dot<double>(result.frequency, result.probability);
  return result;
}

RunningBalance running_balance(const RoutedTokens& routed, double decay) {
  check(routed);
  const auto N = static_cast<std::size_t>(routed.partitions);
  RunningBalance result;
  std::vector<double> f(N), p(N);
  double weight = 0;  // Σ_{j≤t} d^{t−j}
  for (std::int64_t t = 0; t < routed.tokens(); ++t) {
    weight = 1 + decay * weight;
    // x̄_t = x̄_{t−1} + (x_t − x̄_{t−1}) / Σ_{j≤t} d^{t−j}
    for (std::size_t n = 0; n < N; ++n) f[n] -= f[n] / weight;
    for (const std::int32_t n : selected_of(routed, t)) f[static_cast<std::size_t>(n)] += 1 / weight;
    for (std::size_t n = 0; n < N; ++n) p[n] += (gate_of(routed, t)[n] - p[n]) / weight;
    result.frequency.insert(result.frequency.end(), f.begin(), f.end());
    result.probability.insert(result.probability.end(), p.begin(), p.end());
    result.loss.push_back(choices(routed) * dot<double>(f, p));
  }
  return result;
}

UnevenLoads uneven_loads(std::span<const double> load, LoadThresholds thresholds) {
  UnevenLoads result;
  for (std::size_t n = 0; n < load.size(); ++n) {
    if (load[n] <= thresholds.dead) result.dead.push_back(static_cast<std::int64_t>(n));
    if (load[n] > thresholds.overloaded) result.overloaded.push_back(static_cast<std::int64_t>(n));
  }
  return result;
}

// Σ_j f_{j,m} = f_m, so the sum over choices is SSE's loss times W.
double mom_loss(const RoutedTokens& routed) { return static_cast<double>(routed.width) * balance(routed).loss; }

RowBalance row_balance(std::span<const float> k, std::int64_t heads, std::int64_t rows, std::int64_t topk) {
  check_that(heads > 0 && topk > 0 && topk <= rows, "row balance: 1 ≤ topk ≤ rows does not hold");
  const std::int64_t T = static_cast<std::int64_t>(k.size()) / (heads * rows);
  check_size("row balance: k", k, T * heads * rows);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(T * heads * topk));
  top_k(Tensor(ids.data(), DType::i32, {T * heads, topk}), ConstTensor(k.data(), DType::f32, {T * heads, rows}));
  std::vector<double> frequency(static_cast<std::size_t>(heads * rows)), mean(frequency.size());
  for (std::int64_t i = 0; i < T * heads; ++i) {
    const float* key = k.data() + i * rows;
    const std::int64_t head = i % heads * rows;
    for (std::int64_t r = 0; r < rows; ++r) mean[static_cast<std::size_t>(head + r)] += key[r] / static_cast<double>(T);
    for (std::int64_t j = 0; j < topk; ++j) {
      const std::int32_t r = ids[static_cast<std::size_t>(i * topk + j)];
      if (key[r] > 0) frequency[static_cast<std::size_t>(head + r)] += 1 / static_cast<double>(T);
    }
  }
  RowBalance result{.frequency = frequency, .variation = {}, .loss = {}};
  for (std::int64_t h = 0; h < heads; ++h) {
    const std::span<const double> f(frequency.data() + h * rows, static_cast<std::size_t>(rows));
    const std::span<const double> m(mean.data() + h * rows, static_cast<std::size_t>(rows));
    result.variation.push_back(coefficient_of_variation(f));
    result.loss.push_back(static_cast<double>(rows) / static_cast<double>(topk) * dot(f, m));
  }
  return result;
}

}  // namespace statescope

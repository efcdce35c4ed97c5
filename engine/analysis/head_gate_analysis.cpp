#include "engine/analysis/head_gate_analysis.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "engine/analysis/parts.h"

namespace statescope {
namespace {

std::int64_t rows_of(std::span<const float> gates, std::int64_t heads) {
  check_that(heads > 0, "head gates: no heads");
  const std::int64_t rows = static_cast<std::int64_t>(gates.size()) / heads;
  check_size("head gates", gates, rows * heads);
  return rows;
}

std::span<const float> row(std::span<const float> gates, std::int64_t t, std::int64_t heads) {
  return gates.subspan(static_cast<std::size_t>(t * heads), static_cast<std::size_t>(heads));
}

template <class Number>
double dot(std::span<Number> a, std::span<Number> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

HeadGate head_gate(std::span<const float> gate) {
  const auto largest = std::max_element(gate.begin(), gate.end());
  double next = std::numeric_limits<double>::quiet_NaN();
  for (auto other = gate.begin(); other != gate.end(); ++other) {
    if (other != largest) next = std::fmax(next, *other);
  }
  return {normalised_entropy(gate), largest - gate.begin(), *largest - next};
}

}  // namespace

std::vector<HeadGate> head_gates(std::span<const float> gates, std::int64_t heads) {
  std::vector<HeadGate> result;
  for (std::int64_t t = 0; t < rows_of(gates, heads); ++t) result.push_back(head_gate(row(gates, t, heads)));
  return result;
}

std::vector<float> information_flow(std::span<const float> gate_q, std::span<const float> gate_k, std::int64_t heads) {
  const std::int64_t A = rows_of(gate_q, heads), B = rows_of(gate_k, heads);
  std::vector<float> flow;
  flow.reserve(static_cast<std::size_t>(A * B));
  for (std::int64_t t = 0; t < A; ++t) {
    for (std::int64_t s = 0; s < B; ++s) flow.push_back(static_cast<float>(dot(row(gate_q, t, heads), row(gate_k, s, heads))));
  }
  return flow;
}

std::vector<float> own_information_flow(std::span<const float> gate_q, std::span<const float> gate_k, std::int64_t heads) {
  const std::int64_t T = rows_of(gate_q, heads);
  check_size("head gates: gate_k", gate_k, T * heads);
  std::vector<float> flow;
  for (std::int64_t t = 0; t < T; ++t) flow.push_back(static_cast<float>(dot(row(gate_q, t, heads), row(gate_k, t, heads))));
  return flow;
}

std::vector<double> sharpened(std::span<const float> gate, double lambda) {
  check_that(!gate.empty() && lambda > 0, "head gates: no heads, or λ is not positive");
  const double largest = *std::max_element(gate.begin(), gate.end());
  std::vector<double> result;
  double sum = 0;
  for (const double g : gate) {
    result.push_back(std::exp(lambda * (std::log(g) - std::log(largest))));
    sum += result.back();
  }
  for (double& g : result) g /= sum;
  return result;
}

SharpnessCurve entropy_curve(std::span<const float> gate) {
  SharpnessCurve curve{};
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const std::vector<double> g = sharpened(gate, kSharpness[i]);
    curve[i] = normalised_entropy(std::span(g));
  }
  return curve;
}

SharpnessCurve flow_curve(std::span<const float> gate_q, std::span<const float> gate_k) {
  check_size("head gates: gate_k", gate_k, static_cast<std::int64_t>(gate_q.size()));
  SharpnessCurve curve{};
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const std::vector<double> q = sharpened(gate_q, kSharpness[i]), k = sharpened(gate_k, kSharpness[i]);
    curve[i] = dot(std::span(q), std::span(k));
  }
  return curve;
}

}  // namespace statescope

#include "engine/mixers/feature_map.h"

#include <fmt/format.h>

#include <cmath>

namespace statescope {
namespace {

/// Numbers that follow from the config, or are weights with a factor, as a matrix.
ConstTensor matrix_of(const WeightScope& weights, const std::vector<float>& numbers, std::int64_t columns) {
  return {weights.constant(numbers).data, DType::f32, {std::ssize(numbers) / columns, columns}};
}

}  // namespace

FeatureMap::FeatureMap(const MixerBuild& build, std::string_view kind, std::string_view name, std::int64_t K) : kind_(kind), features_(K) {
  const WeightScope& weights = build.weights;
  if (kind_ == "elementwise_product") {
    first_ = Linear(weights, fmt::format("{}.layer1", name), K, K, true);
    second_ = Linear(weights, fmt::format("{}.layer2", name), K, K, true);
  } else if (kind_ == "t2r") {
    first_ = Linear(weights, fmt::format("{}.layer", name), K, K);
  } else if (kind_ == "hedgehog") {
    load_hedgehog(weights, name, K);
  } else if (kind_ == "dpfp") {
    load_dpfp(weights, K);
  } else if (kind_ == "performer") {
    load_performer(build, K);
  }
}

Value FeatureMap::operator()(Program& p, Value x) const {
  const auto linear = [&](const Linear& layer, Value z) { return p.linear_each_head(layer.weight, layer.bias, z); };
  if (kind_ == "relu") return p.apply(Activation::relu, x);
  if (kind_ == "elu") return p.apply(Activation::elu_plus_one, x);
  // φ(x) = (A₁x + b₁) ⊙ (A₂x + b₂)
  if (kind_ == "elementwise_product") return p.combine(program::Gate{}, linear(first_, x), linear(second_, x));
  // φ(x) = relu(Ax)
  if (kind_ == "t2r") return p.apply(Activation::relu, linear(first_, x));
  // φ(x) = softmax([y, −y]), y = 2(Ax + b)
  if (kind_ == "hedgehog") return p.apply(program::Softmax{}, linear(first_, x));
  if (kind_ == "dpfp") {
    // z = [relu(x), −relu(x)]; φ(x) = concat_j z ⊙ roll(z, j), j = 1 … 4
    const Value positive = p.apply(Activation::relu, x);
    return p.combine(program::Gate{}, linear(first_, positive), linear(second_, positive));
  }
  if (kind_ == "performer") {
    // φ(x)_m = exp( ω_m·x' − ‖x'‖²/2 ) / √M,   x' = K^{-1/4} x
    const Value squares = p.combine(program::Gate{}, x, x);
    const Value exponent = p.combine(program::Add{}, linear(first_, x), linear(second_, squares));
    return p.apply(program::Times{inverse_sqrt(features_)}, p.apply(Activation::exp, exponent));
  }
  return x;
}

/// [2A; −2A] and [2b; −2b]
void FeatureMap::load_hedgehog(const WeightScope& weights, std::string_view name, std::int64_t K) {
  const auto both_signs = [](std::vector<float> z) {
    for (float& number : z) number *= 2;
    const std::size_t n = z.size();
    for (std::size_t i = 0; i < n; ++i) z.push_back(-z[i]);
    return z;
  };
  features_ = 2 * K;
  first_.weight = matrix_of(weights, both_signs(weights.host(fmt::format("{}.layer.weight", name), {K, K})), K);
  first_.bias = weights.constant(both_signs(weights.host(fmt::format("{}.layer.bias", name), {K})));
}

/// What makes of relu(x) z four times, and z rolled by 1 to 4: roll(z, j) moves entry i to i + j.
void FeatureMap::load_dpfp(const WeightScope& weights, std::int64_t K) {
  const std::int64_t n = 2 * K;
  std::vector<float> same, rolled;
  const auto append_entry = [K](std::vector<float>& matrix, std::int64_t i) {
    std::vector<float> row(static_cast<std::size_t>(K));
    row[static_cast<std::size_t>(i % K)] = i < K ? 1.0F : -1.0F;
    matrix.insert(matrix.end(), row.begin(), row.end());
  };
  for (std::int64_t j = 1; j <= 4; ++j) {
    for (std::int64_t i = 0; i < n; ++i) {
      append_entry(same, i);
      append_entry(rolled, (i + 4 * n - j) % n);
    }
  }
  features_ = 4 * n;
  first_.weight = matrix_of(weights, same, K);
  second_.weight = matrix_of(weights, rolled, K);
}

/// K^{-1/4} ω, and −K^{-1/2}/2 everywhere, which sums x²
void FeatureMap::load_performer(const MixerBuild& build, std::int64_t K) {
  features_ = ToldSize(build.config, "performer_features", K).of(build.weights, "feature_map.proj", 0);
  std::vector<float> omega = build.weights.host("feature_map.proj", {features_, K});
  for (float& number : omega) number *= std::sqrt(inverse_sqrt(K));
  first_.weight = matrix_of(build.weights, omega, K);
  second_.weight = matrix_of(build.weights, std::vector<float>(omega.size(), -inverse_sqrt(K) / 2), K);
}

}  // namespace statescope

// Tensors for tests: seeded, poisoned, compared.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "kernels/tensor.h"

namespace statescope::testing {

/// Float32 numbers with a shape, which own their memory.
struct Numbers {
  std::vector<float> values;
  Shape shape;

  Numbers() = default;
  explicit Numbers(Shape shape_, float value = 0) : values(static_cast<std::size_t>(shape_.size()), value), shape(shape_) {}
  Numbers(Shape shape_, std::vector<float> values_) : values(std::move(values_)), shape(shape_) {}

  /// A view of all of it. Not absent even if there is no row.
  Tensor view() { return {data(), DType::f32, shape}; }
  ConstTensor view() const { return {const_cast<Numbers*>(this)->data(), DType::f32, shape}; }
  float* row(std::int64_t t) { return values.data() + t * shape.row_size(); }
  const float* row(std::int64_t t) const { return values.data() + t * shape.row_size(); }
  float& operator[](std::int64_t i) { return values[static_cast<std::size_t>(i)]; }
  float operator[](std::int64_t i) const { return values[static_cast<std::size_t>(i)]; }

 private:
  float* data() { return values.empty() ? &none_ : values.data(); }
  float none_ = 0;
};

/// Seeded numbers: the same on every machine, for std::mt19937_64 is, and the distributions of the library are not used.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  float uniform(float low, float high) { return low + (high - low) * static_cast<float>(engine_() >> 40) * 0x1p-24F; }
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(n)); }
  Numbers uniform(const Shape& shape, float low = -1, float high = 1) {
    Numbers numbers(shape);
    for (float& x : numbers.values) x = uniform(low, high);
    return numbers;
  }

 private:
  std::mt19937_64 engine_;
};

/// Every number NaN: what is not written shows.
inline Numbers poisoned(const Shape& shape) { return Numbers(shape, std::numeric_limits<float>::quiet_NaN()); }

/// Each group of `n` numbers divided by its length (a head's key).
inline Numbers l2_normalized(Numbers numbers, std::int64_t n) {
  for (std::size_t begin = 0; begin < numbers.values.size(); begin += static_cast<std::size_t>(n)) {
    const std::span<float> group(&numbers.values[begin], static_cast<std::size_t>(n));
    double squares = 0;
    for (float x : group) squares += static_cast<double>(x) * x;
    for (float& x : group) x = static_cast<float>(x / std::sqrt(squares));
  }
  return numbers;
}

/// ‖a − b‖ / ‖b‖, b being the truth; infinite if the sizes differ, NaN if a number is.
template <class A, class B>
double relative_error(const A& a, const B& b) {
  if (std::size(a) != std::size(b)) return std::numeric_limits<double>::infinity();
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < std::size(b); ++i) {
    const double x = a[i], y = b[i];
    difference += (x - y) * (x - y);
    norm += y * y;
  }
  if (difference == 0) return 0;
  return std::sqrt(difference / (norm > 0 ? norm : 1));
}

}  // namespace statescope::testing

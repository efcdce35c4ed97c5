// What the analyses share.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>

#include "engine/place_words.h"

namespace statescope {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Throws std::invalid_argument unless `what` has as many numbers as its shape says.
template <class Number>
void check_size(const char* what, std::span<Number> values, std::int64_t expected) {
  if (static_cast<std::int64_t>(values.size()) == expected) return;
  throw std::invalid_argument(std::string(what) + ": " + std::to_string(values.size()) + " numbers, not " + std::to_string(expected));
}

/// Throws std::invalid_argument unless the condition holds.
inline void check_that(bool condition, const char* what) {
  if (!condition) throw std::invalid_argument(what);
}

/// −Σ_i p_i log p_i in nat, with 0 log 0 = 0; NaN where p has a NaN.
template <class Number>
double entropy(std::span<Number> p) {
  double sum = 0;
  for (const double value : p) {
    if (value != 0) sum -= value * std::log(value);
  }
  return sum;
}

/// −Σ_i p_i log p_i / log n of the n numbers p: 1 for equal ones, 0 where one has everything. 0 for n = 1, where there is no choice.
template <class Number>
double normalised_entropy(std::span<Number> p) {
  return p.size() == 1 ? 0 * entropy(p) : entropy(p) / std::log(static_cast<double>(p.size()));
}

/// √(Σ_i x_i²), summed in double precision.
inline double norm(std::span<const float> x) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  return std::sqrt(squares);
}

}  // namespace statescope

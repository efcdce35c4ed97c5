// How far a measured mean may lie from the true one.
#pragma once

#include <cstdint>
#include <span>

namespace statescope {

/// A mean and its 95 % confidence interval.
struct Estimate {
  double mean = 0, low = 0, high = 0;
};

/// Of a fraction: Wilson's score interval. `successes` may be a sum of fractions. n > 0.
Estimate wilson(double successes, std::int64_t n);

/// Of the mean of independent fractions, each that of several questions which share an example: mean ± 1.96 sd / √n within [0, 1]. Where
/// all are equal their spread says nothing, and Wilson's interval over the examples stands in. n > 0.
Estimate clustered(std::span<const double> fractions);

/// sd / √n; 0 for fewer than two values.
double standard_error(std::span<const double> values);

}  // namespace statescope

// Cosines of what one model has to what another has, with what can be said of all of them.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/findings/pyramid.h"

namespace statescope {

struct CosineBlock {
  Pyramid cosine;     // [rows, columns]; NaN where one of the two is zero; empty where they cannot be compared
  double mean = NAN;  // of |cos| over the pairs that have one; NaN without, as the next two
  double most = NAN;  // |cos|
  double same = NAN;  // mean cos of those of the same number
  std::int64_t gaps = 0;

  CosineBlock() = default;
  CosineBlock(std::vector<float> cosines, std::int64_t rows, std::int64_t columns) {
    double sum = 0, same_sum = 0;
    std::int64_t pairs = 0, same_pairs = 0;
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      const double c = cosines[static_cast<std::size_t>(i)];
      if (std::isnan(c)) continue;
      sum += std::abs(c);
      most = std::fmax(most, std::abs(c));
      ++pairs;
      if (i / columns != i % columns) continue;
      same_sum += c;
      ++same_pairs;
    }
    if (pairs > 0) mean = sum / static_cast<double>(pairs);
    if (same_pairs > 0) same = same_sum / static_cast<double>(same_pairs);
    gaps = rows * columns - pairs;
    cosine = Pyramid(std::move(cosines), rows, columns);
  }
};

}  // namespace statescope

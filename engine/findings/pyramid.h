// A matrix to be looked at from near and far: shared read-only between threads, cheap to copy.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

namespace statescope {

/// Which of some numbers are neither NaN nor infinite: how many, and between what they lie; without any all is 0.
struct FiniteNumbers {
  std::int64_t count = 0;
  float least = 0, most = 0;
};
inline FiniteNumbers finite_numbers(std::span<const float> numbers) {
  constexpr float largest = std::numeric_limits<float>::max();
  FiniteNumbers found{0, largest, -largest};
  for (const float x : numbers) {
    const bool is_finite = std::abs(x) <= largest;
    found.count += is_finite;
    found.least = is_finite && x < found.least ? x : found.least;
    found.most = is_finite && x > found.most ? x : found.most;
  }
  return found.count > 0 ? found : FiniteNumbers{};
}

/// A matrix and its halvings: each cell is the one of 2 × 2 that is farthest from 0. NaN where all four are.
class Pyramid {
 public:
  struct Level {
    std::int64_t rows = 0, columns = 0;
    std::int64_t gathered = 1;  // cells of the matrix along a side of one of these
    std::vector<float> values;
  };

  Pyramid() : levels_(std::make_shared<const std::vector<Level>>(1)) {}
  Pyramid(std::vector<float> values, std::int64_t rows, std::int64_t columns) : finite_(finite_numbers(values)) {
    std::vector<Level> levels;
    levels.push_back({rows, columns, 1, std::move(values)});
    while (std::min(levels.back().rows, levels.back().columns) > 32) levels.push_back(halved(levels.back()));
    levels_ = std::make_shared<const std::vector<Level>>(std::move(levels));
  }

  std::int64_t rows() const { return levels_->front().rows; }
  std::int64_t columns() const { return levels_->front().columns; }
  bool empty() const { return values().empty(); }
  float at(std::int64_t row, std::int64_t column) const { return values()[static_cast<std::size_t>(row * columns() + column)]; }
  /// [rows, columns]
  const std::vector<float>& values() const { return levels_->front().values; }
  const FiniteNumbers& finite() const { return finite_; }
  /// The finest whose cells are no smaller than a unit where it is drawn w × h units large; else the coarsest there is.
  const Level& level_for(float w, float h) const {
    const auto fits = [&](const Level& level) { return static_cast<float>(level.rows) <= h && static_cast<float>(level.columns) <= w; };
    const auto found = std::ranges::find_if(*levels_, fits);
    return found == levels_->end() ? levels_->back() : *found;
  }

 private:
  static float stronger(float a, float b) { return std::abs(a) > std::abs(b) || std::isnan(b) ? a : b; }

  static Level halved(const Level& fine) {
    Level coarse{(fine.rows + 1) / 2, (fine.columns + 1) / 2, 2 * fine.gathered, {}};
    coarse.values.resize(static_cast<std::size_t>(coarse.rows * coarse.columns));
    std::vector<float> both(static_cast<std::size_t>(2 * coarse.columns), std::numeric_limits<float>::quiet_NaN());  // of two rows
    for (std::int64_t r = 0; r < coarse.rows; ++r) {
      const float *first = fine.values.data() + 2 * r * fine.columns, *second = 2 * r + 1 < fine.rows ? first + fine.columns : first;
      for (std::int64_t c = 0; c < fine.columns; ++c) both[static_cast<std::size_t>(c)] = stronger(first[c], second[c]);
      float* out = coarse.values.data() + r * coarse.columns;
      for (std::int64_t c = 0; c < coarse.columns; ++c)
        out[c] = stronger(both[static_cast<std::size_t>(2 * c)], both[static_cast<std::size_t>(2 * c + 1)]);
    }
    return coarse;
  }

  std::shared_ptr<const std::vector<Level>> levels_;  // one at least
  FiniteNumbers finite_;
};

}  // namespace statescope

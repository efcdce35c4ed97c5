// A matrix to be looked at from near and far: shared read-only between threads, cheap to copy.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

namespace statescope {

/// A matrix and its halvings: each cell is the one of 2 × 2 that is farthest from 0. NaN where all four are.
class Pyramid {
 public:
  struct Level {
    std::int64_t rows = 0, columns = 0;
    std::int64_t gathered = 1;  // cells of the matrix along a side of one of these
    std::vector<float> values;
  };

  Pyramid() : levels_(std::make_shared<const std::vector<Level>>(1)) {}
  Pyramid(std::vector<float> values, std::int64_t rows, std::int64_t columns) {
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
};

}  // namespace statescope

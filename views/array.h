// The numbers that a view draws, exactly and with their meaning: what goes beside a figure as data, and into its caption.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace statescope {

/// One axis of an array, counted from 0: each place has a coordinate or a label, or, where both are empty, its own number.
struct ArrayAxis {
  std::string name;  // "token", "key row"
  std::string unit;  // empty: none
  std::vector<double> coordinates = {};
  std::vector<std::string> labels = {};
  std::int64_t count = 0;
};

/// Values [axes[0].count, axes[1].count, …], row-major; without axes a single one. NaN: there is no number there.
struct Array {
  std::string name;      // "S"
  std::string unit;      // "nat"; empty: none
  std::string equation;  // with its source
  std::vector<ArrayAxis> axes;
  std::vector<float> values;
  bool as_colors = false;  // drawn as a heatmap beside a bar of its colours
};

}  // namespace statescope

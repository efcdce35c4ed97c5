// Shapes over which operations on a device are compared with the CPU, and what their cases are called.
#pragma once

#include <initializer_list>
#include <sstream>

#include "tests/kernels/device_cases.h"
#include "tests/kernels/memory_cases.h"

namespace statescope::testing {

inline const std::vector<std::int64_t> token_counts = {1, 2, 63, 64, 65, 300}, widths = {16, 60, 64, 128}, head_counts = {1, 3};

inline const Packed mixed_segments({5, 0, 1, 70, 17}, {6, 2, 0, 3, 5}, 7);
inline const Packed single_row_segments({1, 0, 1, 1}, {2, 0, 4, 1}, 5);
inline const Packed empty_segments({0, 0}, {1, 0}, 3);

inline std::string with(const std::string& name, std::initializer_list<std::pair<const char*, double>> settings) {
  std::ostringstream text;
  text << name;
  for (const auto& [key, value] : settings) text << ", " << key << ' ' << value;
  return text.str();
}

}  // namespace statescope::testing

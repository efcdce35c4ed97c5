#pragma once

#include <cstdint>
#include <vector>

#include "engine/accuracy.h"

namespace statescope {

/// Singular values of every head's stacked state after a token (spec §12.5).
struct Spectra {
  static constexpr Accuracy accuracy = accurate_to(1e-4, "the value");
  std::int64_t heads = 0, count = 0, partitions = 0;
  std::vector<float> sigma;                              // [H, n] descending
  std::vector<float> entropy, rank, rank_of_squares;     // [H]: Hs; effective rank of σ (Roy and Vetterli), of σ²
  std::vector<float> partition_entropy, partition_rank;  // [H, P] of σ of each partition alone
};

struct SpectraQuestion {
  std::int64_t layer = 0, token = 0;
  using Answer = Spectra;
  bool operator==(const SpectraQuestion&) const = default;
};

}  // namespace statescope

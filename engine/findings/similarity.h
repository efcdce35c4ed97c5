#pragma once

#include <cstdint>
#include <vector>

#include "engine/accuracy.h"
#include "engine/findings/pyramid.h"

namespace statescope {

/// Likeness of the states of one layer after a token (spec §12.5).
struct Similarity {
  static constexpr Accuracy accuracy = accurate_to(1e-5);
  static constexpr std::int64_t kMostRows = 4096;  // with more, `cosine`, `order` and the numbers of both are left out
  std::int64_t partitions = 0, rows = 0, heads = 0;
  std::vector<std::int64_t> order;  // [P·K] rows as they stand in `cosine`
  Pyramid cosine;                   // [P·K, P·K] of the rows of the head asked for, in that order; NaN where a row is zero
  std::vector<float> row_norm;      // [P·K]
  double mean_abs = 0, within = 0, between = 0, min_cosine = 0;
  std::int64_t zero_rows = 0;
  std::vector<float> partition_cosine;  // [P, P] of the partitions' states as vectors, of that head
  std::vector<float> head_cosine;       // [H, H] of the heads' states as vectors
};

struct SimilarityQuestion {
  std::int64_t layer = 0, head = 0, token = 0;
  bool clustered = false;  // like rows beside each other (average linkage of |cosine|), zero ones last; else as they are numbered
  using Answer = Similarity;
  bool operator==(const SimilarityQuestion&) const = default;
};

}  // namespace statescope

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/accuracy.h"

namespace statescope {

/// How often the open checkpoint finds a needle, by how long the text is and how deep the needle stands: the prompts of `statescope eval
/// --task niah`, read apart from the run. It comes a few prompts at a time, the same number for every cell.
struct NeedleGrid {
  static constexpr Accuracy accuracy = kExact;  // counted, of so many prompts; what they say of others a view estimates
  struct Failure {
    std::int64_t index = 0;  // of the prompt
    std::int64_t place = 0;  // in the answer, of its first wrong token; 0 by reply
  };
  struct Cell {
    std::int64_t right = 0, read = 0;  // prompts
    std::vector<Failure> failures;     // by index
    std::string impossible;            // why there are no such prompts; empty: there are
  };
  std::string unit, haystack;  // what lengths count: "words", "bytes", "tokens"; among what the needles stand: "filler", "prose"
  bool by_reply = false;       // right is a reply that contains the answer, else an answer that is predicted token by token
  std::vector<Cell> cells;     // [depths, lengths] as asked
};

struct NeedleGridQuestion {
  std::int64_t needles = 1, samples = 20;  // in a text; prompts of a cell
  std::vector<std::int64_t> lengths;
  std::vector<int> depths;  // percent
  using Answer = NeedleGrid;
  bool operator==(const NeedleGridQuestion&) const = default;
};

/// One prompt of that grid, and where in its answer to look.
struct NeedleExample {
  std::int64_t needles = 1, length = 0;
  int depth = 0;         // percent
  std::string haystack;  // empty: what the model is given
  std::int64_t index = 0, place = 0;
};

}  // namespace statescope

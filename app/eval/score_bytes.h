// Scores as bytes, from one process of the program to another.
#pragma once

#include <optional>
#include <string>

#include "app/eval/score.h"

namespace statescope {

/// What came of a cell elsewhere; of the score all but which checkpoint and which cell it is of.
struct CellOutcome {
  std::optional<std::string> not_finite;  // why the checkpoint has no score
  CellScore score = {};
};

std::string packed(const CellOutcome& outcome);
CellOutcome unpacked_outcome(const std::string& bytes);

}  // namespace statescope

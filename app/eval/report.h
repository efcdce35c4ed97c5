// Scores as a table to read, as JSON and as CSV (app/cli/README.md says what the keys mean).
#pragma once

#include <span>
#include <string>

#include "app/eval/score.h"

namespace statescope {

/// A table for each task; where depths were asked for, also each checkpoint's exact answers by depth and length.
std::string eval_table(std::span<const CellScore> scores);
std::string eval_json(std::span<const CellScore> scores);
std::string eval_csv(std::span<const CellScore> scores);

}  // namespace statescope

// Reads what `statescope eval --json` wrote (app/cli/README.md says what the keys mean).
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "app/eval/score.h"

namespace statescope {

/// Of texts only the cell. Throws Error: `name` and what is wrong.
std::vector<CellScore> parse_scores(std::string_view text, const std::string& name);
std::vector<CellScore> load_scores(const std::filesystem::path& path);

}  // namespace statescope

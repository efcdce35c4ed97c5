// Scores as an HDF5 file, for a sweep of many cells.
#pragma once

#include <filesystem>
#include <span>

#include "app/eval/score.h"

namespace statescope {

/// Cells whose texts are the same (checkpoint, task, haystack, …) make a group "/0", "/1", … of columns: what a number sets and what a
/// number was found, by the keys of the JSON; [cells], or [cells, longest] of lists. NaN where a cell has none. Each column has the texts
/// as attributes. The same scores give the same bytes. Throws Error; nothing is left half-written.
void write_scores_hdf5(std::span<const CellScore> scores, const std::filesystem::path& path, bool overwrite);

}  // namespace statescope

// The numbers of a figure, beside it.
#pragma once

#include <filesystem>
#include <string>

#include "app/figure/render.h"

namespace statescope {

/// One line for each number: panel, array, unit, then name, place and label of up to three axes, and the value in full. Throws Error where
/// there are more than a million.
std::string figure_csv(const Figure& figure);

/// /PANEL/NUMBER/values with the attributes name, unit, equation and axes; /PANEL/NUMBER/axis0, … where the axis has coordinates, labels in
/// its attribute "labels", a line each. `provenance`: the file's attribute "figure". Throws Error.
void write_figure_hdf5(const Figure& figure, const std::string& provenance, const std::filesystem::path& path, bool overwrite);

}  // namespace statescope

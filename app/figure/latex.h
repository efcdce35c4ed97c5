// A figure's words and numbers for a paper that is set with LaTeX.
#pragma once

#include <string>
#include <string_view>

#include "app/figure/render.h"

namespace statescope {

/// The text with LaTeX's own signs escaped, and the symbols of equations as mathematics.
std::string latex_text(std::string_view text);

/// \caption{…}, a line for each panel.
std::string latex_caption(const Figure& figure);

/// A table for pgfplots: the places of a chart and a column for each of its series, and for the ends of their intervals; nan where there is
/// no number. Throws Error where the figure is not one chart.
std::string pgf_table(const Figure& figure);

}  // namespace statescope

// Which numbers the colours of a heatmap span, as the view has it or as the reader wants it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "views/plot.h"

namespace statescope {

/// Of the numbers that a heatmap shows; its colours span `own` unless something else is wanted. NaN and infinite ones do not count. The
/// range of signed ones stays symmetric about 0, that of magnitudes may be logarithmic, and is where `own` is.
Shading shade(std::span<const float> numbers, const ColorRange& own, bool is_signed, const RangeChoice& wanted);
/// The same of a matrix that may have millions of cells: who made it has found their bounds already.
Shading shade(const Pyramid& cells, const ColorRange& own, bool is_signed, const RangeChoice& wanted);

inline bool is_own(const RangeChoice& wanted) { return wanted.fit == RangeChoice::Fit::own && !wanted.logarithmic; }

/// The colours of a heatmap of magnitudes, and the values that are named beside them.
struct Coloring {
  Shading shading;
  std::vector<ScaleMark> marks;

  ColorScale scale() const { return {ColorMap::viridis, shading.range.low, shading.range.high, shading.range.logarithmic}; }
};
/// `marks`: of the view's own range; another one names its ends and its middle.
Coloring colored(std::span<const float> numbers, const ColorRange& own, std::vector<ScaleMark> marks, const RangeChoice& wanted);
/// What View::shading says of them.
std::optional<Shading> shading_of(const std::optional<Coloring>& coloring);

/// Both ends and the middle of the range; an end beyond which there are numbers says so with ≤ or ≥.
std::vector<ScaleMark> range_marks(const Shading& shading);

}  // namespace statescope

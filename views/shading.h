// Which numbers the colours of a heatmap span, as the view has it or as the reader wants it.
#pragma once

#include <span>
#include <vector>

#include "views/plot.h"

namespace statescope {

/// Of the numbers that a heatmap shows; its colours span `own` unless something else is wanted. NaN and infinite ones do not count. The
/// range of signed ones stays symmetric about 0, that of magnitudes may be logarithmic.
Shading shade(std::span<const float> numbers, const ColorRange& own, bool is_signed, const RangeChoice& wanted);

inline bool is_own(const RangeChoice& wanted) { return wanted.fit == RangeChoice::Fit::own && !wanted.logarithmic; }

/// Both ends and the middle of the range; an end beyond which there are numbers says so with ≤ or ≥.
std::vector<ScaleMark> range_marks(const Shading& shading);

}  // namespace statescope

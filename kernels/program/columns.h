// Columns of a value side by side, copied in as few pieces as may be.
#pragma once

#include <span>
#include <utility>

#include "kernels/backend.h"

namespace statescope::program {

/// y = of every row of x these ranges (begin, count), side by side
void copy_ranges(Backend& backend, Tensor y, ConstTensor x, std::span<const std::pair<std::int64_t, std::int64_t>> ranges);

}  // namespace statescope::program

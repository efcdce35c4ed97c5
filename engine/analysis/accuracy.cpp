#include "engine/analysis/accuracy.h"

#include <fmt/format.h>

namespace statescope {

std::string Accuracy::text() const {
  if (kind == Kind::recomputed) return "recomputed in double precision";
  return of.empty() ? fmt::format("within {}", bound) : fmt::format("within {} of {}", bound, of);
}

}  // namespace statescope

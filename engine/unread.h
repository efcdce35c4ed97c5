// How much of a run's prompt is still to be read.
#pragma once

#include <algorithm>

#include "engine/snapshot.h"

namespace statescope {

/// Tokens of the prompt that follow those of the run and have not been read yet; its spans may lie there.
inline std::int64_t unread(const RunInfo& run) {
  return std::max<std::int64_t>(run.prompt_length - static_cast<std::int64_t>(run.tokens.size()), 0);
}

}  // namespace statescope

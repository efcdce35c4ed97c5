// What of a run is recorded for a page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "views/canvas.h"

namespace statescope {

/// Tokens of a run; below 0: counted from its prompt's end. Unset: to its end.
struct RecordedTokens {
  std::int64_t first = 0;
  std::optional<std::int64_t> last;
};
/// "10 .. 40", either side may be left out. Throws Error.
RecordedTokens recorded_tokens(const std::string& text);

struct RecorderOptions {
  Size size{480, 360};  // of a view, in units
  RecordedTokens tokens;
  std::size_t most_bytes = 20'000'000;  // of the page
};

}  // namespace statescope

// Numbers read from texts, and rounded, as Python does.
#pragma once

#include <optional>
#include <string>

#include "engine/chat/values/value.h"

namespace statescope::chat {

/// Python's int(text, base); none where it is no such number.
std::optional<Int> parse_integer(const std::string& text, std::int64_t base);
/// Python's float(text).
std::optional<double> parse_float(const std::string& text);
/// Half to even, on the exact decimal value; `places` may be below 0.
double rounded(double value, std::int64_t places);
Int rounded(Int value, std::int64_t places);

}  // namespace statescope::chat

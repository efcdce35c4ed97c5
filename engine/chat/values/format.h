// Python's two ways to format.
#pragma once

#include <string>

#include "engine/chat/values/value.h"

namespace statescope::chat {

/// `text % arguments`: a tuple's elements one by one, a dict's by name, anything else as it is.
Value percent_format(const std::string& text, const Value& arguments);
/// `text.format(arguments)`.
Value brace_format(const std::string& text, const Arguments& arguments);
/// Python's format(value, spec).
std::string formatted(const Value& value, const std::string& spec);

/// repr, with everything beyond ASCII escaped.
std::string ascii_repr(const Value& value);
/// As C's printf: one of e, f, g, E, F, G.
std::string float_format(double value, char kind, int precision, bool alternate);
/// In base 2, 8, 10 or 16, without its sign.
std::string digits_of(Int value, int base);
/// Between spaces, in code points: '<', '>', '^'.
std::string aligned(const std::string& text, std::size_t width, char align, const std::string& fill = " ");

}  // namespace statescope::chat

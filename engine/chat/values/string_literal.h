// What stands between the quotation marks of a template's string.
#pragma once

#include <string>
#include <string_view>

namespace statescope::chat {

/// Python's escapes are resolved; unknown ones stay. Throws Error for those that are cut off, and for lone surrogates.
std::string unescaped(std::string_view text);

}  // namespace statescope::chat

// Text from outside on its way to a terminal.
#pragma once

#include <string>
#include <string_view>

namespace statescope {

/// Bytes that are no UTF-8 and characters that drive a terminal, but for the ends of lines and tabs, stand as "\x1b".
std::string printable(std::string_view text);

}  // namespace statescope

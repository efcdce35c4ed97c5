// Base64 (RFC 4648).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace statescope {

/// The bytes that `text` spells; nothing if it is no base64.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace statescope

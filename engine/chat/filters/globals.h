// The functions that every template knows.
#pragma once

#include <optional>
#include <string>

#include "engine/chat/values/value.h"

namespace statescope::chat {

/// None where there is no global of that name.
std::optional<Value> global(const std::string& name);

}  // namespace statescope::chat

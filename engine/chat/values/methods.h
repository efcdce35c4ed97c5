// The methods of Python's strings, lists and dicts.
#pragma once

#include <optional>
#include <string>

#include "engine/chat/values/value.h"

namespace statescope::chat {

/// The method of that name; undefined for one that would change the value; none where there is none. Throws Error for one of Python's that
/// is not supported.
std::optional<Value> method_of(const Value& value, const std::string& name);

}  // namespace statescope::chat

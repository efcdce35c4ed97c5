// `value is name(arguments)`.
#pragma once

#include <string>

#include "engine/chat/values/runtime.h"

namespace statescope::chat {

bool is_test(const std::string& name);
/// Throws Error, also where there is no such test.
bool test_value(Runtime& runtime, const std::string& name, const Value& value, const Arguments& arguments);

}  // namespace statescope::chat

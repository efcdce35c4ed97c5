// The methods of Python's strings.
#pragma once

#include <map>
#include <string>

#include "engine/chat/values/runtime.h"

namespace statescope::chat {

const std::map<std::string, Entry>& text_methods();

}  // namespace statescope::chat

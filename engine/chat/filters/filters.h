// `value | name(arguments)`.
#pragma once

#include <map>
#include <string>

#include "engine/chat/values/runtime.h"

namespace statescope::chat {

bool is_filter(const std::string& name);
/// Throws Error, also where there is no such filter.
Value filtered(Runtime& runtime, const std::string& name, const Value& value, const Arguments& arguments);

/// The parts of the table: what makes texts, numbers, and what goes through sequences.
const std::map<std::string, Entry>& text_filters();
const std::map<std::string, Entry>& number_filters();
const std::map<std::string, Entry>& sequence_filters();
const std::map<std::string, Entry>& order_filters();

}  // namespace statescope::chat

// x.name and x[key], in the order in which Jinja tries Python's attributes and items.
#pragma once

#include <string>
#include <vector>

#include "engine/chat/values/value.h"

namespace statescope::chat {

/// `value.name`: the attribute, else the item, else undefined. Throws Error for what is undefined itself.
Value attribute_or_item(const Value& value, const std::string& name);
/// `value[key]`: the item, else the attribute, else undefined.
Value item_or_attribute(const Value& value, const Value& key);
/// The attribute alone.
std::optional<Value> attribute(const Value& value, const std::string& name);

/// A part of a path: a whole number, or a name.
Value part_of_path(const std::string& part);
/// "a.0.b" as its parts; none: no parts.
std::vector<Value> path_of(const Value& attribute);
/// What stands at the end of the path; `otherwise`, if it is not none, for what is undefined on the way.
Value follow(Value value, const std::vector<Value>& path, const Value& otherwise = {});

}  // namespace statescope::chat

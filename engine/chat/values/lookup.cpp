#include "engine/chat/values/lookup.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/chat/values/methods.h"
#include "engine/chat/values/operators.h"
#include "engine/chat/values/print.h"

namespace statescope::chat {
namespace {

Value missing(const Value& value, const Value& key) {
  const std::string kind = value.is_none() ? "None" : value.type() + " object";
  return Value::undefined(key.is_text() ? fmt::format("'{}' has no attribute '{}'", kind, key.text())
                                        : fmt::format("{} has no element {}", kind, printed(key.object() ? Value(key.type()) : key)));
}

std::vector<std::string> split(const std::string& text, char mark) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == mark) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

}  // namespace

std::optional<Value> attribute(const Value& value, const std::string& name) {
  if (name != "__class__") defined(value);  // which even what is undefined has
  if (name.starts_with("__") && name.ends_with("__")) {
    return Value::undefined(fmt::format("access to attribute '{}' of '{}' object is unsafe", name, value.type()));
  }
  if (value.object()) {
    if (auto found = value.object()->attribute(name)) return found;
  }
  return method_of(value, name);
}

Value attribute_or_item(const Value& value, const std::string& name) {
  if (auto found = attribute(value, name)) return *found;
  if (auto found = item(value, name)) return *found;
  return missing(value, name);
}

Value item_or_attribute(const Value& value, const Value& key) {
  defined(value);
  if (auto found = item(value, key)) return *found;
  if (key.is_text()) {
    if (auto found = attribute(value, key.text())) return *found;
  }
  return missing(value, key);
}

Value part_of_path(const std::string& part) {
  const bool number = !part.empty() && part.size() < 19 && part.find_first_not_of("0123456789") == std::string::npos;
  return number ? Value(Int{std::stoll(part)}) : Value(part);
}

std::vector<Value> path_of(const Value& attribute) {
  if (attribute.is_none()) return {};
  if (!attribute.is_text()) return {attribute};
  std::vector<Value> path;
  for (const std::string& part : split(attribute.text(), '.')) path.push_back(part_of_path(part));
  return path;
}

Value follow(Value value, const std::vector<Value>& path, const Value& otherwise) {
  for (const Value& part : path) {
    value = item_or_attribute(value, part);
    if (value.is_undefined() && !otherwise.is_none()) value = otherwise;
  }
  return value;
}

}  // namespace statescope::chat

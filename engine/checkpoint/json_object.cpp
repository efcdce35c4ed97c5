#include "engine/checkpoint/json_object.h"

#include <fmt/format.h>

#include "engine/checkpoint/file.h"

namespace statescope {

using nlohmann::json;

JsonObject::JsonObject(const json& value, std::string place) : value_(value), place_(std::move(place)) {
  if (!value_.is_object()) refuse("is not an object");
}

void JsonObject::refuse(std::string_view what) const { throw Error(fmt::format("{}{}{}", place_, place_.empty() ? "" : ": ", what)); }

void JsonObject::wrong(const char* key, std::string_view expected) const { refuse(fmt::format("\"{}\" is not {}", key, expected)); }

void JsonObject::nothing_else(std::string_view what) const {
  for (const auto& [key, value] : value_.items()) {
    if (!asked_.contains(key)) refuse(fmt::format("{} is no key of {}", in_quotes(key), what));
  }
}

const json* JsonObject::find(const char* key) {
  asked_.insert(key);
  const auto found = value_.find(key);
  return found == value_.end() ? nullptr : &*found;
}

const json& JsonObject::at(const char* key) {
  const json* value = find(key);
  if (!value) refuse(fmt::format("has no \"{}\"", key));
  return *value;
}

const json& JsonObject::list(const char* key) {
  const json& value = at(key);
  if (!value.is_array()) wrong(key, "a list");
  return value;
}

JsonObject JsonObject::object(const char* key) { return {at(key), fmt::format("{}{}{}", place_, place_.empty() ? "" : ": ", key)}; }

void JsonObject::take(const char* key, bool& out) {
  if (const json* value = find(key)) out = flag_of(*value, key);
}

void JsonObject::take(const char* key, std::string& out) {
  if (const json* value = find(key)) out = text_of(*value, key);
}

void JsonObject::take(const char* key, std::vector<std::string>& out) {
  const json* value = find(key);
  if (!value) return;
  if (!value->is_array()) wrong(key, "a list of texts");
  for (const json& each : *value) out.push_back(text_of(each, key));
}

void JsonObject::take(const char* key, double& out, double least, double most) {
  if (const json* value = find(key)) out = number_of(*value, key, least, most);
}

std::string JsonObject::text_of(const json& value, const char* key) const {
  if (!value.is_string() || value.get_ref<const std::string&>().find('\0') != std::string::npos) wrong(key, "a text");
  return value.get<std::string>();
}

bool JsonObject::flag_of(const json& value, const char* key) const {
  if (!value.is_boolean()) wrong(key, "true or false");
  return value.get<bool>();
}

std::int64_t JsonObject::integer_of(const json& value, const char* key, std::int64_t least, std::int64_t most) const {
  const bool fits = value.is_number_unsigned() ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most)
                                               : value.is_number_integer() && value.get<std::int64_t>() <= most;
  if (!fits || value.get<std::int64_t>() < least) wrong(key, fmt::format("a whole number from {} to {}", least, most));
  return value.get<std::int64_t>();
}

double JsonObject::number_of(const json& value, const char* key, double least, double most) const {
  if (!value.is_number() || !(value.get<double>() >= least && value.get<double>() <= most))
    wrong(key, fmt::format("a number from {:g} to {:g}", least, most));
  return value.get<double>();
}

}  // namespace statescope

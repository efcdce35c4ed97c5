#include "engine/tokenizer/pipeline/json_fields.h"

#include <fmt/format.h>

#include "engine/checkpoint/file.h"
#include "engine/error.h"

namespace statescope {

using nlohmann::json;

JsonFields::JsonFields(std::string part, const json& value) : part_(std::move(part)), value_(value) {
  if (!value.is_object()) throw Error(fmt::format("{} is not an object", part_));
  type_ = text("type", "");
}

bool JsonFields::has(const char* key) const { return value_.contains(key) && !value_[key].is_null(); }

void JsonFields::refuse(std::string_view what) const {
  throw Error(fmt::format("{}{}{}: {} is not supported", part_, type_.empty() ? "" : " ", one_line(type_, 60), what));
}

void JsonFields::refuse_type() const {
  throw Error(type_.empty() ? fmt::format("{} has no type", part_) : fmt::format("{} {} is not supported", part_, in_quotes(type_)));
}

void JsonFields::refuse_value(const char* key, const char* expected) const {
  throw Error(fmt::format("{}{}{}: {} is not {}", part_, type_.empty() ? "" : " ", one_line(type_, 60), key, expected));
}

std::string JsonFields::text(const char* key, const std::string& otherwise) const { return has(key) ? text(key) : otherwise; }

std::string JsonFields::text(const char* key) const {
  if (!has(key) || !value_[key].is_string()) refuse_value(key, "a text");
  return value_[key].get<std::string>();
}

bool JsonFields::flag(const char* key, bool otherwise) const {
  if (!has(key)) return otherwise;
  if (!value_[key].is_boolean()) refuse_value(key, "true or false");
  return value_[key].get<bool>();
}

std::int64_t JsonFields::number(const char* key, std::int64_t otherwise) const {
  if (!has(key)) return otherwise;
  if (!value_[key].is_number_integer() || value_[key].is_number_unsigned() != (value_[key] >= 0)) refuse_value(key, "a whole number");
  return value_[key].get<std::int64_t>();
}

std::int32_t JsonFields::id(const char* key) const {
  if (!has(key) || !value_[key].is_number_unsigned() || value_[key].get<std::uint64_t>() > 0x7FFFFFFF) refuse_value(key, "a token id");
  return value_[key].get<std::int32_t>();
}

const json& JsonFields::list(const char* key) const {
  if (!has(key) || !value_[key].is_array()) refuse_value(key, "a list");
  return value_[key];
}

const json& JsonFields::value(const char* key) const {
  if (!has(key)) refuse_value(key, "there");
  return value_[key];
}

SplitPattern JsonFields::pattern(const char* key) const {
  const json& pattern = value(key);
  const auto text_called = [&](const char* name) { return pattern.is_object() && pattern.contains(name) && pattern[name].is_string(); };
  if (text_called("Regex")) return {pattern["Regex"].get_ref<const std::string&>(), RegexFlavour::oniguruma};
  if (text_called("String")) return SplitPattern::literal(pattern["String"].get_ref<const std::string&>());
  refuse_value(key, "a Regex or a String");
}

}  // namespace statescope

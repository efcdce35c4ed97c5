#include "engine/config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/format.h"
#include "engine/error.h"

namespace statescope {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(std::string_view key, const json& value, std::string_view expected) {
  throw Error(fmt::format("config: \"{}\" is {}, expected {}", key, shown(value), expected));
}

[[noreturn]] void missing(std::string_view key) { throw Error(fmt::format("config: \"{}\" is missing", key)); }

double as_number(std::string_view key, const json& value, bool allow_infinity) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double number = 0;
  if (value.is_number()) {
    number = value.get<double>();
  } else if (value.is_object() && value.contains(python_float_key)) {
    number = value[python_float_key] == "Infinity" ? infinity : value[python_float_key] == "-Infinity" ? -infinity : std::nan("");
  } else if (allow_infinity && value == "Infinity") {  // of writers whose JSON has no such number
    number = infinity;
  } else {
    refuse(key, value, "a number");
  }
  if (std::isnan(number) || (std::isinf(number) && !allow_infinity)) refuse(key, value, "a finite number");
  return number;
}

template <class Item, class Get>
std::vector<Item> list_of(const json* value, std::string_view key, std::string_view expected, Get get) {
  std::vector<Item> items;
  if (!value) return items;
  if (!value->is_array()) refuse(key, *value, expected);
  for (const json& item : *value) items.push_back(get(item));
  return items;
}

}  // namespace

std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

Config::Config() : Config(json::object()) {}

Config::Config(json object) : object_(std::make_shared<const json>(std::move(object))) {}

Config Config::parse(std::string_view text) {
  json object = json::parse(quote_python_floats(text), nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded()) throw Error("config: not valid JSON");
  if (!object.is_object()) throw Error("config: a JSON object is expected");
  return Config(std::move(object));
}

const json* Config::find(std::string_view key) const {
  auto it = object_->find(key);
  return it == object_->end() || it->is_null() ? nullptr : &*it;
}

std::int64_t Config::integer(std::string_view key, std::optional<std::int64_t> fallback, std::int64_t low, std::int64_t high) const {
  const json* value = find(key);
  if (!value && !fallback) missing(in_file(key));
  const std::string expected = fmt::format("an integer from {} to {}", low, high);
  if (!value && (*fallback < low || *fallback > high))
    throw Error(fmt::format("config: \"{}\" is missing and its default {} is not {}", in_file(key), *fallback, expected));
  if (!value) return *fallback;
  // 2.0 is an integer too: some writers know only floats.
  if (!value->is_number() || value->get<double>() != std::floor(value->get<double>())) refuse(in_file(key), *value, expected);
  const double number = value->get<double>();
  if (number < static_cast<double>(low) || number > static_cast<double>(high)) refuse(in_file(key), *value, expected);
  return static_cast<std::int64_t>(number);
}

double Config::number(std::string_view key, std::optional<double> fallback, bool allow_infinity) const {
  const json* value = find(key);
  if (!value && !fallback) missing(in_file(key));
  return value ? as_number(in_file(key), *value, allow_infinity) : *fallback;
}

double Config::from(double low, std::string_view key, double fallback, std::string_view expected) const {
  const double value = number(key, fallback);
  if (!(value >= low && value <= std::numeric_limits<float>::max())) refuse(in_file(key), *find(key), expected);
  return value;
}

double Config::positive(std::string_view key, double fallback) const {
  return from(std::numeric_limits<float>::min(), key, fallback, "a number greater than 0");
}

double Config::not_negative(std::string_view key, double fallback) const { return from(0, key, fallback, "0 or a greater number"); }

bool Config::boolean(std::string_view key, bool fallback) const {
  const json* value = find(key);
  if (value && !value->is_boolean()) refuse(in_file(key), *value, "true or false");
  return value ? value->get<bool>() : fallback;
}

std::string Config::text(std::string_view key, std::optional<std::string> fallback, std::initializer_list<std::string_view> allowed) const {
  const json* value = find(key);
  if (!value && !fallback) missing(in_file(key));
  if (value && !value->is_string()) refuse(in_file(key), *value, "a text");
  std::string text = value ? value->get<std::string>() : *fallback;
  if (allowed.size() > 0 && std::find(allowed.begin(), allowed.end(), text) == allowed.end()) {
    throw Error(fmt::format("config: \"{}\" is {}, expected one of {}", in_file(key), shown(text), fmt::join(allowed, ", ")));
  }
  return text;
}

std::vector<std::int64_t> Config::integers(std::string_view key) const {
  return list_of<std::int64_t>(find(key), in_file(key), "a list of integers", [&](const json& item) {
    if (!item.is_number_integer()) refuse(in_file(key), item, "an integer in the list");
    return item.get<std::int64_t>();
  });
}

std::vector<std::string> Config::texts(std::string_view key) const {
  return list_of<std::string>(find(key), in_file(key), "a list of texts", [&](const json& item) {
    if (!item.is_string()) refuse(in_file(key), item, "a text in the list");
    return item.get<std::string>();
  });
}

std::vector<double> Config::numbers(std::string_view key) const {
  return list_of<double>(find(key), in_file(key), "a list of numbers",
                         [&](const json& item) { return as_number(in_file(key), item, true); });
}

Config Config::object(std::string_view key) const {
  const json* value = find(key);
  if (!value) return Config(json::object());
  if (!value->is_object()) refuse(in_file(key), *value, "an object");
  return Config(*value);
}

std::vector<Config> Config::objects(std::string_view key) const {
  const json* value = find(key);
  if (!value) return {};
  if (value->is_object()) return {Config(*value)};
  return list_of<Config>(value, in_file(key), "an object or a list of objects", [&](const json& item) {
    if (!item.is_object()) refuse(in_file(key), item, "an object in the list");
    return Config(item);
  });
}

Config Config::said(std::string_view key, std::string_view in_file) const {
  Config copy = *this;
  if (key != in_file && !in_file.empty()) copy.in_file_.insert_or_assign(std::string(key), std::string(in_file));
  return copy;
}

std::string Config::in_file(std::string_view key) const {
  const auto known = in_file_.find(key);
  return known == in_file_.end() ? std::string(key) : known->second;
}

std::vector<std::string> Config::keys() const {
  std::vector<std::string> names;
  for (const auto& [key, value] : object_->items()) names.push_back(key);
  return names;
}

Config Config::with(std::string_view key, nlohmann::json value) const {
  json copy = *object_;
  copy[std::string(key)] = std::move(value);
  Config changed(std::move(copy));
  changed.in_file_ = in_file_;
  return changed;
}

}  // namespace statescope

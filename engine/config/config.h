// A model's config.json, read with care: every value is checked, and an error names the key, what it holds and what it may be.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace statescope {

/// A value as an error shows it: JSON in one line, cut where it is long.
std::string shown(const nlohmann::json& value);

class Config {
 public:
  /// Parses a JSON object; `NaN`, `Infinity` and `-Infinity`, as Python writes them, are accepted. Throws Error.
  static Config parse(std::string_view text);
  Config();  // no keys
  explicit Config(nlohmann::json object);

  /// Present and not null.
  bool has(std::string_view key) const { return find(key) != nullptr; }
  /// An integer in [low, high], which the fallback must be too; without one the key is required. Throws Error.
  std::int64_t integer(std::string_view key, std::optional<std::int64_t> fallback = {}, std::int64_t low = 1,
                       std::int64_t high = 100'000'000) const;
  /// A finite number, or infinity where `allow_infinity`. Throws Error.
  double number(std::string_view key, std::optional<double> fallback = {}, bool allow_infinity = false) const;
  /// A number whose float32 and its inverse are greater than 0: what is divided by, bases of positions. Throws Error.
  double positive(std::string_view key, double fallback) const;
  /// 0 or a greater number, finite in float32: a norm's eps, a softmax's sharpness. Throws Error.
  double not_negative(std::string_view key, double fallback) const;
  bool boolean(std::string_view key, bool fallback) const;
  /// A text, which must be one of `allowed` if that is not empty. Throws Error.
  std::string text(std::string_view key, std::optional<std::string> fallback = {},
                   std::initializer_list<std::string_view> allowed = {}) const;
  std::vector<std::int64_t> integers(std::string_view key) const;  // empty if absent
  std::vector<std::string> texts(std::string_view key) const;      // empty if absent
  std::vector<double> numbers(std::string_view key) const;         // empty if absent; infinities allowed
  /// The object under `key`; an empty one if absent. Throws Error if it is something else.
  Config object(std::string_view key) const;
  /// The objects under `key`: none if absent, one for an object, all for a list. Throws Error.
  std::vector<Config> objects(std::string_view key) const;

  /// A copy whose errors call `key` by the name that it has in the file.
  Config said(std::string_view key, std::string_view in_file) const;
  /// The name of `key` in the file.
  std::string in_file(std::string_view key) const;

  std::vector<std::string> keys() const;
  /// A copy with `key` set to `value`.
  Config with(std::string_view key, nlohmann::json value) const;
  const nlohmann::json& raw() const { return *object_; }

 private:
  const nlohmann::json* find(std::string_view key) const;
  /// A number from `low` on, finite in float32; `expected` says so.
  double from(double low, std::string_view key, double fallback, std::string_view expected) const;
  std::shared_ptr<const nlohmann::json> object_;             // every layer of a model has its config; copies are cheap
  std::map<std::string, std::string, std::less<>> in_file_;  // names in the file of keys that have another one here
};

}  // namespace statescope

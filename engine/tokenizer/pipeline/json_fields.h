// Reads one part of a tokenizer.json; what it cannot read it refuses by the part's name.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/error.h"
#include "engine/tokenizer/text/split_pattern.h"

namespace statescope {

class JsonFields {
 public:
  /// `part`: how errors call it ("normalizer"). Throws Error where `value` is no object.
  JsonFields(std::string part, const nlohmann::json& value);

  /// "type"; empty if there is none.
  std::string type() const { return type_; }
  bool has(const char* key) const;  // there, and not null
  /// Each throws Error where the value is there and of another kind.
  std::string text(const char* key, const std::string& otherwise) const;
  std::string text(const char* key) const;  // has to be there
  bool flag(const char* key, bool otherwise) const;
  std::int64_t number(const char* key, std::int64_t otherwise) const;
  std::int32_t id(const char* key) const;              // has to be there
  const nlohmann::json& list(const char* key) const;   // has to be there
  const nlohmann::json& value(const char* key) const;  // has to be there
  SplitPattern pattern(const char* key) const;         // {"Regex": …} or {"String": …}, or a text

  /// Throws Error "normalizer Replace: what is not supported".
  [[noreturn]] void refuse(std::string_view what) const;
  /// Throws Error "normalizer 'X' is not supported".
  [[noreturn]] void refuse_type() const;

 private:
  [[noreturn]] void refuse_value(const char* key, const char* expected) const;

  std::string part_, type_;
  const nlohmann::json& value_;
};

/// Throws Error where the parts of `part`, one after the other, may make a text so long that no memory holds it.
template <class Step>
void check_growth(const std::string& part, const std::vector<std::unique_ptr<Step>>& steps) {
  constexpr double most = 1000;
  double growth = 1;
  for (const auto& step : steps) growth *= std::max(1.0, step->growth());
  if (growth > most)
    throw Error(fmt::format("{}: it may make a text {:.3g} times as long; at most {} times is supported", part, growth, most));
}

}  // namespace statescope

// Reads one part of a tokenizer.json; what it cannot read it refuses by the part's name.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "engine/tokenizer/split_pattern.h"

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

}  // namespace statescope

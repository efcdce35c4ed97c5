// Reads an object of one of our JSON formats, key by key. What is missing, of another kind, out of range or left over is refused by its
// name.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/error.h"

namespace statescope {

class JsonObject {
 public:
  /// `place`: how errors call it ("f.json: panels[2]"); empty: they begin with the key. Throws Error where `value` is no object.
  JsonObject(const nlohmann::json& value, std::string place);

  const std::string& place() const { return place_; }
  /// "PLACE: what".
  [[noreturn]] void refuse(std::string_view what) const;
  /// "PLACE: "key" is not EXPECTED".
  [[noreturn]] void wrong(const char* key, std::string_view expected) const;
  /// Throws Error where the object has keys that nobody asked for. `what`: "a panel".
  void nothing_else(std::string_view what) const;

  /// Null where there is no such key.
  const nlohmann::json* find(const char* key);
  bool has(const char* key) const { return value_.contains(key); }

  /// Each of these has to be there.
  const nlohmann::json& at(const char* key);
  std::string text(const char* key) { return text_of(at(key), key); }
  bool flag(const char* key) { return flag_of(at(key), key); }
  std::int64_t integer(const char* key, std::int64_t least, std::int64_t most) { return integer_of(at(key), key, least, most); }
  double number(const char* key, double least, double most) { return number_of(at(key), key, least, most); }
  const nlohmann::json& list(const char* key);
  /// Its place is this one's and the key.
  JsonObject object(const char* key);

  /// Each of these changes nothing where the key is not there.
  void take(const char* key, bool& out);
  void take(const char* key, std::string& out);
  void take(const char* key, std::vector<std::string>& out);
  void take(const char* key, double& out, double least, double most);
  template <class Integer>
  void take(const char* key, Integer& out, std::int64_t least, std::int64_t most) {
    if (const nlohmann::json* value = find(key)) out = static_cast<Integer>(integer_of(*value, key, least, most));
  }
  template <class Integer>
  void take(const char* key, std::optional<Integer>& out, std::int64_t least, std::int64_t most) {
    if (const nlohmann::json* value = find(key)) out = static_cast<Integer>(integer_of(*value, key, least, most));
  }

  /// A value of the key, or of its list.
  std::string text_of(const nlohmann::json& value, const char* key) const;
  bool flag_of(const nlohmann::json& value, const char* key) const;
  std::int64_t integer_of(const nlohmann::json& value, const char* key, std::int64_t least, std::int64_t most) const;
  double number_of(const nlohmann::json& value, const char* key, double least, double most) const;

 private:
  const nlohmann::json& value_;
  std::string place_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace statescope

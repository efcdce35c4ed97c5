// The values of a chat template: Python's, as far as templates meet them. Lists and dicts never change once they are made (the sandbox of
// the reference refuses what would change them), so that values are shared freely.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "engine/error.h"

namespace statescope::chat {

__extension__ typedef __int128 Int;  // beyond it: an Error

class Value;
class Object;
class Runtime;
struct Text;
struct List;
struct Dict;
using Items = std::vector<Value>;
/// The next element, none at the end.
using Next = std::function<std::optional<Value>()>;

constexpr std::size_t kMostBytes = 16'000'000;  // of a text
constexpr std::size_t kMostDepth = 100;         // of lists in lists
constexpr std::size_t kMostItems = 1'000'000;   // of a list

/// Something undefined, and what to say when it is used.
struct Undefined {
  std::shared_ptr<const std::string> what;
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

class Value {
 public:
  Value() = default;  // none
  Value(bool value) : data_(value) {}
  Value(Int value) : data_(value) {}
  Value(int value) : data_(Int{value}) {}
  Value(std::size_t value) : data_(static_cast<Int>(value)) {}
  Value(double value) : data_(value) {}
  Value(std::string value);  // UTF-8; throws Error beyond kMostBytes
  Value(const char* value) : Value(std::string(value)) {}
  template <class T>
  requires std::is_convertible_v<std::shared_ptr<T>, std::shared_ptr<Object>> Value(std::shared_ptr<T> value)
      : data_(std::shared_ptr<Object>(std::move(value))) {}
  static Value undefined(std::string what);
  static Value list(Items items);
  static Value tuple(Items items);
  static Value dict(Dict entries);
  static Value from(std::shared_ptr<const List> list);

  bool is_undefined() const { return holds<Undefined>(); }
  bool is_none() const { return holds<std::monostate>(); }
  bool is_boolean() const { return holds<bool>(); }
  bool is_integer() const { return holds<Int>(); }
  bool is_float() const { return holds<double>(); }
  bool is_text() const { return holds<std::shared_ptr<const Text>>(); }
  bool is_list() const;  // not a tuple
  bool is_tuple() const;
  bool is_dict() const { return holds<std::shared_ptr<const Dict>>(); }
  bool is_number() const { return is_boolean() || is_integer() || is_float(); }

  bool boolean() const { return std::get<bool>(data_); }
  double real() const { return std::get<double>(data_); }
  const std::string& text() const;
  std::size_t length() const;  // of a text, in code points
  const Dict& dict() const { return *std::get<std::shared_ptr<const Dict>>(data_); }
  const std::string& why_undefined() const { return *std::get<Undefined>(data_).what; }
  /// Of an integer or a boolean, else none.
  std::optional<Int> integer() const;
  /// Of a list or a tuple, else null.
  const List* sequence() const;
  /// Of what is none of the kinds above, else null.
  const std::shared_ptr<Object>& object() const;
  template <class T>
  T* object_as() const {
    return dynamic_cast<T*>(object().get());
  }

  /// Python's `is`.
  bool same(const Value& other) const;
  /// Python's name of the type: "str".
  std::string type() const;
  /// Lists in lists in lists: 3.
  std::size_t depth() const;
  /// Roughly how much there is to read: elements, and texts by 256 bytes.
  std::size_t weight() const;

 private:
  template <class T>
  bool holds() const {
    return std::holds_alternative<T>(data_);
  }
  std::variant<std::monostate, Undefined, bool, Int, double, std::shared_ptr<const Text>, std::shared_ptr<const List>,
               std::shared_ptr<const Dict>, std::shared_ptr<Object>>
      data_;
};

struct Text {
  std::string bytes;   // UTF-8
  std::size_t length;  // code points
};

struct List {
  Items items;
  bool tuple = false;
  bool group = false;  // a tuple of `groupby`, with names: grouper, list
  std::size_t depth = 1, weight = 1;
};

/// In the order in which keys were first set.
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  std::size_t depth = 1, weight = 1;

  /// Throws Error where the key cannot be one.
  const Value* find(const Value& key) const;
  const Value* find(const std::string& key) const;
  void set(Value key, Value value);

 private:
  std::unordered_map<std::string, std::size_t> index_;
};

/// What a key is equal by: 1, 1.0 and true have the same. Throws Error for what cannot be a key.
std::string key_of(const Value& value);

/// Every other kind of value.
class Object {
 public:
  virtual ~Object() = default;
  virtual std::string type() const = 0;
  /// As `repr` prints it. Throws Error where that would show an address.
  virtual std::string repr() const;
  /// Python's attribute of that name.
  virtual std::optional<Value> attribute(const std::string& name);
  virtual std::optional<Value> item(const Value& key);
  virtual std::optional<std::size_t> length() const { return std::nullopt; }
  /// Null: not iterable.
  virtual Next iterate() { return nullptr; }
  virtual bool callable() const { return false; }
  virtual Value call(Runtime& runtime, const Arguments& arguments);
  virtual bool indexed() const { return false; }  // its items have numbers
  virtual std::size_t depth() const { return 1; }
  virtual std::size_t weight() const { return 1; }
};

/// Throws Error: "'int' object is not iterable".
Next iterate(const Value& value);
/// All elements. Throws Error beyond kMostItems.
Items items_of(const Value& value);
/// Of a text, list, tuple, dict, … Throws Error where it has none.
std::size_t length_of(const Value& value);
bool has_length(const Value& value);
bool truth(const Value& value);

}  // namespace statescope::chat

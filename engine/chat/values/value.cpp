#include "engine/chat/values/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/chat/values/counted.h"
#include "engine/chat/values/print.h"
#include "engine/chat/values/unicode.h"

namespace statescope::chat {
namespace {

std::size_t sum(std::size_t a, std::size_t b) { return a > SIZE_MAX - b ? SIZE_MAX : a + b; }

Value sequence_of(Items items, bool tuple) {
  if (items.size() > kMostItems) throw Error(fmt::format("a list of more than {} elements", kMostItems));
  auto list = std::make_shared<List>();
  for (const Value& item : items) {
    list->depth = std::max(list->depth, item.depth() + 1);
    list->weight = sum(list->weight, item.weight());
  }
  if (list->depth > kMostDepth) throw Error(fmt::format("lists nested more than {} deep", kMostDepth));
  list->items = std::move(items);
  list->tuple = tuple;
  return Value::from(std::move(list));
}

}  // namespace

Value::Value(std::string value) {
  if (value.size() > kMostBytes) throw Error(fmt::format("a text of more than {} MB", kMostBytes / 1'000'000));
  const std::size_t length = count_code_points(value);
  data_ = std::make_shared<const Text>(Text{std::move(value), length});
}

Value Value::undefined(std::string what) {
  Value value;
  value.data_ = Undefined{std::make_shared<const std::string>(std::move(what))};
  return value;
}

Value Value::from(std::shared_ptr<const List> list) {
  Value value;
  value.data_ = std::move(list);
  return value;
}

Value Value::list(Items items) { return sequence_of(std::move(items), false); }
Value Value::tuple(Items items) { return sequence_of(std::move(items), true); }

Value Value::dict(Dict entries) {
  for (const auto& [key, item] : entries.entries) {
    entries.depth = std::max({entries.depth, key.depth() + 1, item.depth() + 1});
    entries.weight = sum(entries.weight, sum(key.weight(), item.weight()));
  }
  if (entries.depth > kMostDepth) throw Error(fmt::format("dicts nested more than {} deep", kMostDepth));
  if (entries.entries.size() > kMostItems) throw Error(fmt::format("a dict of more than {} entries", kMostItems));
  Value value;
  value.data_ = std::make_shared<const Dict>(std::move(entries));
  return value;
}

bool Value::is_list() const { return sequence() && !sequence()->tuple; }
bool Value::is_tuple() const { return sequence() && sequence()->tuple; }
const std::string& Value::text() const { return std::get<std::shared_ptr<const Text>>(data_)->bytes; }

std::size_t Value::length() const { return std::get<std::shared_ptr<const Text>>(data_)->length; }

std::optional<Int> Value::integer() const {
  if (is_boolean()) return boolean() ? 1 : 0;
  if (is_integer()) return std::get<Int>(data_);
  return std::nullopt;
}

const List* Value::sequence() const {
  const auto* list = std::get_if<std::shared_ptr<const List>>(&data_);
  return list ? list->get() : nullptr;
}

const std::shared_ptr<Object>& Value::object() const {
  static const std::shared_ptr<Object> none;
  const auto* object = std::get_if<std::shared_ptr<Object>>(&data_);
  return object ? *object : none;
}

bool Value::same(const Value& other) const {
  if (data_.index() != other.data_.index()) return false;
  if (is_none()) return true;
  if (is_boolean()) return boolean() == other.boolean();
  // Small integers and single characters are one object in Python.
  if (is_integer()) return integer() == other.integer();
  if (is_float()) return real() == other.real();
  if (is_text()) return &text() == &other.text() || (length() <= 1 && text() == other.text());
  if (sequence()) return sequence() == other.sequence();
  if (is_dict()) return &dict() == &other.dict();
  if (is_undefined()) return std::get<Undefined>(data_).what == std::get<Undefined>(other.data_).what;
  return object() == other.object();
}

std::string Value::type() const {
  if (is_none()) return "NoneType";
  if (is_undefined()) return "Undefined";
  if (is_boolean()) return "bool";
  if (is_integer()) return "int";
  if (is_float()) return "float";
  if (is_text()) return "str";
  if (sequence()) return sequence()->tuple ? "tuple" : "list";
  return is_dict() ? "dict" : object()->type();
}

std::size_t Value::depth() const {
  if (const List* list = sequence()) return list->depth;
  if (is_dict()) return dict().depth;
  return object() ? object()->depth() : 0;
}

std::size_t Value::weight() const {
  if (is_text()) return 1 + text().size() / 256;
  if (const List* list = sequence()) return list->weight;
  if (is_dict()) return dict().weight;
  return object() ? object()->weight() : 1;
}

const Value* Dict::find(const Value& key) const {
  const auto found = index_.find(key_of(key));
  return found == index_.end() ? nullptr : &entries[found->second].second;
}

const Value* Dict::find(const std::string& key) const {
  const auto found = index_.find("s" + key);
  return found == index_.end() ? nullptr : &entries[found->second].second;
}

void Dict::set(Value key, Value value) {
  const auto [place, added] = index_.try_emplace(key_of(key), entries.size());
  if (added) {
    entries.emplace_back(std::move(key), std::move(value));
  } else {
    entries[place->second].second = std::move(value);
  }
}

std::string key_of(const Value& value) {
  if (value.is_text()) return "s" + value.text();
  if (const auto integer = value.integer()) return "n" + text_of(*integer);
  if (value.is_float()) {
    const double real = value.real();
    if (real == std::trunc(real) && std::abs(real) < 0x1p126) return "n" + text_of(static_cast<Int>(real));
    return "f" + float_text(real);
  }
  if (value.is_none()) return "0";
  if (value.is_undefined()) return "u";
  if (value.is_tuple()) {
    std::string key = "(";
    for (const Value& item : value.sequence()->items) {
      const std::string part = key_of(item);
      key += fmt::format("{}:{}", part.size(), part);
    }
    return key;
  }
  if (value.object() && !value.object()->length()) return fmt::format("@{}", fmt::ptr(value.object().get()));
  throw Error(fmt::format("unhashable type: '{}'", value.type()));
}

std::string Object::repr() const { throw Error(fmt::format("printing a {} would show an address", type())); }
std::optional<Value> Object::attribute(const std::string&) { return std::nullopt; }
std::optional<Value> Object::item(const Value&) { return std::nullopt; }
Value Object::call(Runtime&, const Arguments&) { throw Error(fmt::format("'{}' object is not callable", type())); }

namespace {

Next letters(const Value& value) {
  return [value, at = std::size_t{0}]() mutable -> std::optional<Value> {
    const std::string& text = value.text();
    if (at >= text.size()) return std::nullopt;
    const std::size_t size = code_point_size(text, at);
    at += size;
    return Value(text.substr(at - size, size));
  };
}

}  // namespace

Next iterate(const Value& value) {
  if (value.is_undefined()) return [] { return std::nullopt; };
  if (value.is_text()) return letters(value);
  if (value.sequence()) return counted(value.sequence()->items.size(), [value](std::size_t i) { return value.sequence()->items[i]; });
  if (value.is_dict()) return counted(value.dict().entries.size(), [value](std::size_t i) { return value.dict().entries[i].first; });
  Next next = value.object() ? value.object()->iterate() : nullptr;
  if (!next) throw Error(fmt::format("'{}' object is not iterable", value.type()));
  return next;
}

Items items_of(const Value& value) {
  if (value.sequence()) return value.sequence()->items;
  Items items;
  const Next next = iterate(value);
  for (auto item = next(); item; item = next()) {
    if (items.size() >= kMostItems) throw Error(fmt::format("a list of more than {} elements", kMostItems));
    items.push_back(std::move(*item));
  }
  return items;
}

bool has_length(const Value& value) {
  return value.is_undefined() || value.is_text() || value.sequence() || value.is_dict() || (value.object() && value.object()->length());
}

std::size_t length_of(const Value& value) {
  if (!has_length(value)) throw Error(fmt::format("object of type '{}' has no length", value.type()));
  if (value.is_undefined()) return 0;
  if (value.is_text()) return value.length();
  if (value.sequence()) return value.sequence()->items.size();
  return value.is_dict() ? value.dict().entries.size() : *value.object()->length();
}

bool truth(const Value& value) {
  if (value.is_none() || value.is_undefined()) return false;
  if (const auto integer = value.integer()) return *integer != 0;
  if (value.is_float()) return value.real() != 0;
  return !has_length(value) || length_of(value) > 0;
}

}  // namespace statescope::chat

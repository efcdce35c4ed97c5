#include "engine/chat/values/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/chat/values/operators.h"
#include "engine/chat/values/print.h"
#include "engine/chat/values/unicode.h"

namespace statescope::chat {
namespace {

/// Builds values while the text is read, so that no nesting of it is followed by recursion.
class Reader : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return add({}); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(Int{value}); }
  bool number_unsigned(number_unsigned_t value) override { return add(static_cast<Int>(value)); }
  bool number_float(number_float_t value, const string_t& text) override {
    return add(text.find_first_not_of("-0123456789") == std::string::npos ? Value(large_integer(text)) : Value(value));
  }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(true); }
  bool start_array(std::size_t) override { return open(false); }
  bool key(string_t& key) override {
    levels_.back().key = key;
    return true;
  }
  bool end_object() override {
    Dict dict = std::move(levels_.back().dict);
    levels_.pop_back();
    return add(Value::dict(std::move(dict)));
  }
  bool end_array() override {
    Items items = std::move(levels_.back().items);
    levels_.pop_back();
    return add(Value::list(std::move(items)));
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    throw Error(fmt::format("no valid JSON at byte {}", position));
  }
  Value take() { return std::move(value_); }

 private:
  struct Level {
    bool object;
    Dict dict;
    Items items;
    std::string key;
  };

  static Int large_integer(const std::string& text) {
    Value value = Int{0};
    for (const char c : text.substr(text[0] == '-')) value = chat::binary("+", chat::binary("*", value, 10), c - '0');
    return *(text[0] == '-' ? negative(value) : value).integer();
  }

  bool open(bool object) {
    if (levels_.size() >= kMostDepth) throw Error(fmt::format("nested more than {} deep", kMostDepth));
    levels_.push_back({object, {}, {}, {}});
    return true;
  }

  bool add(Value value) {
    if (levels_.empty()) {
      value_ = std::move(value);
    } else if (levels_.back().object) {
      levels_.back().dict.set(levels_.back().key, std::move(value));
    } else {
      levels_.back().items.push_back(std::move(value));
    }
    return true;
  }

  std::vector<Level> levels_;
  Value value_;
};

void add_unit(std::string& out, std::uint32_t unit) { out += fmt::format("\\u{:04x}", unit); }

void add_letter(std::string& out, char32_t letter, bool ascii) {
  const auto code = static_cast<std::uint32_t>(letter);
  switch (letter) {
    case U'"':
      out += "\\\"";
      return;
    case U'\\':
      out += "\\\\";
      return;
    case U'\n':
      out += "\\n";
      return;
    case U'\r':
      out += "\\r";
      return;
    case U'\t':
      out += "\\t";
      return;
    case U'\b':
      out += "\\b";
      return;
    case U'\f':
      out += "\\f";
      return;
    default:
      break;
  }
  if (code < 0x20 || (ascii && code > 0x7E && code < 0x10000)) return add_unit(out, code);
  if (!ascii || code < 0x7F) return append_utf8(out, letter);
  add_unit(out, 0xD800 + ((code - 0x10000) >> 10));
  add_unit(out, 0xDC00 + ((code - 0x10000) & 0x3FF));
}

std::string string_text(const std::string& text, bool ascii) {
  std::string out = "\"";
  for (const char32_t letter : code_points(text)) add_letter(out, letter, ascii);
  return out + "\"";
}

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  return std::isinf(value) ? (value < 0 ? "-Infinity" : "Infinity") : float_text(value);
}

std::string key_text(const Value& key) {
  if (key.is_text()) return key.text();
  if (key.is_none()) return "null";
  if (key.is_boolean()) return key.boolean() ? "true" : "false";
  if (key.is_integer()) return text_of(*key.integer());
  if (key.is_float()) return number_text(key.real());
  throw Error(fmt::format("keys must be str, int, float, bool or None, not {}", key.type()));
}

class Writer {
 public:
  explicit Writer(const JsonStyle& style) : style_(style) {}

  void add(const Value& value, std::size_t depth) {
    if (value.sequence()) return add_list(value.sequence()->items, depth);
    if (value.is_dict()) return add_dict(value.dict(), depth);
    out_.add(scalar(value));
  }
  std::string take() { return out_.take(); }

 private:
  std::string scalar(const Value& value) const {
    if (value.is_none()) return "null";
    if (value.is_boolean()) return value.boolean() ? "true" : "false";
    if (value.is_text()) return string_text(value.text(), style_.ensure_ascii);
    if (value.is_integer()) return text_of(*value.integer());
    if (value.is_float()) return number_text(value.real());
    throw Error(fmt::format("Object of type {} is not JSON serializable", value.type()));
  }

  void new_line(std::size_t depth) {
    if (!style_.indent) return;
    out_.add("\n");
    for (std::size_t i = 0; i < depth; ++i) out_.add(*style_.indent);
  }

  void add_list(const Items& items, std::size_t depth) {
    if (items.empty()) return out_.add("[]");
    out_.add("[");
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_.add(style_.item_separator);
      new_line(depth + 1);
      add(items[i], depth + 1);
    }
    new_line(depth);
    out_.add("]");
  }

  void add_dict(const Dict& dict, std::size_t depth) {
    if (dict.entries.empty()) return out_.add("{}");
    auto entries = dict.entries;
    if (style_.sort_keys) std::ranges::stable_sort(entries, [](const auto& a, const auto& b) { return less(a.first, b.first); });
    out_.add("{");
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_.add(style_.item_separator);
      new_line(depth + 1);
      out_.add(string_text(key_text(entries[i].first), style_.ensure_ascii));
      out_.add(style_.key_separator);
      add(entries[i].second, depth + 1);
    }
    new_line(depth);
    out_.add("}");
  }

  const JsonStyle& style_;
  Builder out_;
};

}  // namespace

Value parse_json(const std::string& text, const std::string& what) try {
  Reader reader;
  nlohmann::json::sax_parse(text, &reader);
  return reader.take();
} catch (const Error& error) {
  throw Error(fmt::format("{}: {}", what, error.what()));
}

std::string json_text(const Value& value, const JsonStyle& style) {
  Writer writer(style);
  writer.add(value, 0);
  return writer.take();
}

}  // namespace statescope::chat

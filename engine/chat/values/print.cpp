#include "engine/chat/values/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "engine/chat/values/unicode.h"

namespace statescope::chat {
namespace {

std::string exponent_text(std::string digits, int exponent) {
  if (digits.size() > 1) digits.insert(1, ".");
  return fmt::format("{}e{}{:02}", digits, exponent < 0 ? '-' : '+', std::abs(exponent));
}

/// 0.digits × 10^point.
std::string decimal_text(const std::string& digits, int point) {
  const auto places = static_cast<std::size_t>(std::max(point, 0));
  if (point <= 0) return "0." + std::string(static_cast<std::size_t>(-point), '0') + digits;
  if (digits.size() <= places) return digits + std::string(places - digits.size(), '0') + ".0";
  return digits.substr(0, places) + "." + digits.substr(places);
}

void add_escaped(std::string& out, char32_t letter) {
  if (letter == U'\n') {
    out += "\\n";
  } else if (letter == U'\r') {
    out += "\\r";
  } else if (letter == U'\t') {
    out += "\\t";
  } else if (is_printable(letter)) {
    append_utf8(out, letter);
  } else {
    const auto code = static_cast<std::uint32_t>(letter);
    out += code < 0x100 ? fmt::format("\\x{:02x}", code) : code < 0x10000 ? fmt::format("\\u{:04x}", code) : fmt::format("\\U{:08x}", code);
  }
}

void add_repr(Builder& out, const Value& value);

void add_sequence(Builder& out, const List& list) {
  out.add(list.tuple ? "(" : "[");
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) out.add(", ");
    add_repr(out, list.items[i]);
  }
  if (list.tuple && list.items.size() == 1) out.add(",");
  out.add(list.tuple ? ")" : "]");
}

void add_dict(Builder& out, const Dict& dict) {
  out.add("{");
  for (std::size_t i = 0; i < dict.entries.size(); ++i) {
    if (i > 0) out.add(", ");
    add_repr(out, dict.entries[i].first);
    out.add(": ");
    add_repr(out, dict.entries[i].second);
  }
  out.add("}");
}

void add_repr(Builder& out, const Value& value) {
  if (value.is_text()) return out.add(quoted(value.text()));
  if (value.sequence()) return add_sequence(out, *value.sequence());
  if (value.is_dict()) return add_dict(out, value.dict());
  if (value.object()) return out.add(value.object()->repr());
  out.add(value.is_undefined() ? "Undefined" : printed(value));
}

}  // namespace

void Builder::add(std::string_view more) {
  if (text_.size() + more.size() > kMostBytes) throw Error(fmt::format("a text of more than {} MB", kMostBytes / 1'000'000));
  text_ += more;
}

void Builder::add(std::size_t count, char letter) {
  if (count > kMostBytes) throw Error(fmt::format("a text of more than {} MB", kMostBytes / 1'000'000));
  add(std::string(count, letter));
}

std::string text_of(Int value) { return fmt::format("{}", value); }

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, std::abs(value), std::chars_format::scientific).ptr;
  const std::string shortest(buffer, end);
  const std::size_t e = shortest.find('e');
  std::string digits = shortest.substr(0, e);
  std::erase(digits, '.');
  const int exponent = std::stoi(shortest.substr(e + 1));
  const std::string sign = std::signbit(value) ? "-" : "";
  return sign + (exponent < -4 || exponent >= 16 ? exponent_text(digits, exponent) : decimal_text(digits, exponent + 1));
}

std::string quoted(const std::string& text) {
  const char mark = text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
  std::string out(1, mark);
  for (const char32_t letter : code_points(text)) {
    if (letter == static_cast<char32_t>(mark) || letter == U'\\') out += '\\';
    add_escaped(out, letter);
  }
  return out + mark;
}

std::string repr(const Value& value) {
  Builder out;
  add_repr(out, value);
  return out.take();
}

std::string printed(const Value& value) {
  if (value.is_text()) return value.text();
  if (value.is_undefined()) return "";
  if (value.is_none()) return "None";
  if (value.is_boolean()) return value.boolean() ? "True" : "False";
  if (value.is_integer()) return text_of(*value.integer());
  if (value.is_float()) return float_text(value.real());
  return repr(value);
}

}  // namespace statescope::chat

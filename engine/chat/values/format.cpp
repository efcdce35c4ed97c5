#include "engine/chat/values/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "engine/chat/values/operators.h"
#include "engine/chat/values/print.h"
#include "engine/chat/values/unicode.h"

namespace statescope::chat {
namespace {

__extension__ typedef unsigned __int128 Unsigned;
constexpr int kMostPrecision = 10'000;

struct Directive {
  std::string key;
  bool named = false, left = false, plus = false, space = false, alternate = false, zero = false;
  std::size_t width = 0;
  int precision = -1;
  char kind = 0;
};

/// Reads `%…` and takes its arguments one by one.
class Percent {
 public:
  Percent(const std::string& text, const Value& arguments) : text_(text), arguments_(arguments) {}

  std::string run() {
    Builder out;
    while (at_ < text_.size()) {
      const std::size_t mark = std::min(text_.find('%', at_), text_.size());
      out.add(std::string_view(text_).substr(at_, mark - at_));
      at_ = mark;
      if (at_ == text_.size()) break;
      ++at_;
      out.add(converted(directive()));
    }
    const bool mapping = arguments_.is_dict() || arguments_.is_list() || arguments_.is_undefined();
    if (arguments_.is_tuple() ? used_ < arguments_.sequence()->items.size() : used_ == 0 && !mapping) {
      throw Error("not all arguments converted during string formatting");
    }
    return out.take();
  }

 private:
  char next() {
    if (at_ >= text_.size()) throw Error("incomplete format");
    return text_[at_++];
  }

  Value argument() {
    if (arguments_.is_tuple()) {
      if (used_ >= arguments_.sequence()->items.size()) throw Error("not enough arguments for format string");
      return arguments_.sequence()->items[used_++];
    }
    if (used_++ > 0) throw Error("not enough arguments for format string");
    return arguments_;
  }

  std::int64_t number(char& c) {
    if (c == '*') {
      c = next();
      const Value width = argument();
      if (!width.integer()) throw Error("* wants int");
      return index_of(width);
    }
    std::int64_t value = 0;
    for (; c >= '0' && c <= '9'; c = next()) value = std::min<std::int64_t>(value * 10 + (c - '0'), INT32_MAX);
    return value;
  }

  void name(Directive& directive) {
    directive.named = true;
    std::size_t depth = 1, begin = at_;
    while (depth > 0) {
      const char c = next();
      depth += c == '(' ? 1 : 0;
      depth -= c == ')' ? 1 : 0;
    }
    directive.key = text_.substr(begin, at_ - begin - 1);
  }

  Directive directive() {
    Directive out;
    char c = next();
    if (c == '(') {
      name(out);
      c = next();
    }
    for (;; c = next()) {
      if (c == '-') {
        out.left = true;
      } else if (c == '+') {
        out.plus = true;
      } else if (c == ' ') {
        out.space = true;
      } else if (c == '#') {
        out.alternate = true;
      } else if (c == '0') {
        out.zero = true;
      } else {
        break;
      }
    }
    const std::int64_t width = number(c);
    out.left = out.left || width < 0;
    out.width = static_cast<std::size_t>(std::abs(width));
    if (c == '.') {
      c = next();
      out.precision = static_cast<int>(std::clamp<std::int64_t>(number(c), 0, INT32_MAX));
    }
    while (c == 'h' || c == 'l' || c == 'L') c = next();
    out.kind = c;
    return out;
  }

  Value argument_of(const Directive& directive) {
    if (!directive.named) return argument();
    if (!arguments_.is_dict()) throw Error("format requires a mapping");
    const Value* found = arguments_.dict().find(directive.key);
    if (!found) throw Error(fmt::format("key error: {}", quoted(directive.key)));
    ++used_;
    return *found;
  }

  std::string converted(const Directive& d) {
    if (d.kind == '%') return "%";
    if (std::string_view("diuoxXeEfFgGcrsa").find(d.kind) == std::string_view::npos)
      throw Error(fmt::format("unsupported format character '{}'", d.kind));
    const Value value = argument_of(d);
    switch (d.kind) {
      case 's':
        return text_field(printed(value), d);
      case 'r':
        return text_field(repr(value), d);
      case 'a':
        return text_field(ascii_repr(value), d);
      case 'c':
        return text_field(letter(value), d);
      default:
        return number_field(value, d);
    }
  }

  static std::string letter(const Value& value) {
    if (value.is_text() && value.length() == 1) return value.text();
    if (!value.integer()) throw Error("%c requires int or char");
    if (*value.integer() < 0 || *value.integer() > 0x10FFFF) throw Error("%c arg not in range(0x110000)");
    const auto code = static_cast<char32_t>(*value.integer());
    if (code >= 0xD800 && code < 0xE000) throw Error("a lone surrogate is not supported");
    return utf8(std::u32string(1, code));
  }

  static std::string text_field(std::string text, const Directive& d) {
    if (d.precision >= 0 && d.kind != 'c') {
      const std::u32string letters = code_points(text);
      text = utf8(letters.substr(0, static_cast<std::size_t>(d.precision)));
    }
    return aligned(text, d.width, d.left ? '<' : '>');
  }

  static Int integer_of(const Value& value, char kind) {
    if (const auto integer = value.integer()) return *integer;
    const bool decimal = kind == 'd' || kind == 'i' || kind == 'u';
    if (decimal && value.is_float()) return whole(value.real());
    throw Error(fmt::format("%{} format: {} is required, not {}", kind, decimal ? "a real number" : "an integer", value.type()));
  }

  static std::string number_field(const Value& value, const Directive& d) {
    std::string digits, prefix;
    bool below = false;
    if (std::string_view("eEfFgG").find(d.kind) != std::string_view::npos) {
      const auto real = as_float(defined(value));
      if (!real) throw Error(fmt::format("must be real number, not {}", value.type()));
      digits = float_format(*real, d.kind, d.precision < 0 ? 6 : d.precision, d.alternate);
    } else {
      const Int integer = integer_of(value, d.kind);
      const int base = d.kind == 'o' ? 8 : d.kind == 'x' || d.kind == 'X' ? 16 : 10;
      digits = digits_of(integer, base);
      if (d.precision > kMostPrecision) throw Error("a precision that is too large");
      if (d.precision > static_cast<int>(digits.size())) digits.insert(0, static_cast<std::size_t>(d.precision) - digits.size(), '0');
      if (d.alternate && base != 10) prefix = base == 8 ? "0o" : "0x";
      if (d.kind == 'X') {
        std::ranges::transform(digits, digits.begin(), [](char c) { return c >= 'a' ? static_cast<char>(c - 32) : c; });
        if (!prefix.empty()) prefix = "0X";
      }
      below = integer < 0;
    }
    if (digits.starts_with('-')) {
      below = true;
      digits.erase(0, 1);
    }
    const std::string sign = below ? "-" : d.plus ? "+" : d.space ? " " : "";
    if (d.width > kMostBytes) throw Error("a width that is too large");
    const std::size_t size = sign.size() + prefix.size() + digits.size();
    if (d.zero && !d.left && d.width > size) digits.insert(0, d.width - size, '0');
    return aligned(sign + prefix + digits, d.width, d.left ? '<' : '>');
  }

  const std::string& text_;
  const Value& arguments_;
  std::size_t at_ = 0, used_ = 0;
};

}  // namespace

Value percent_format(const std::string& text, const Value& arguments) { return Percent(text, arguments).run(); }

std::string ascii_repr(const Value& value) { return ascii_escaped(repr(value)); }

std::string float_format(double value, char kind, int precision, bool alternate) {
  if (precision > kMostPrecision) throw Error("a precision that is too large");
  const std::string pattern = std::string("%") + (alternate ? "#" : "") + ".*" + kind;
  std::string out(static_cast<std::size_t>(precision) + 400, '\0');
  const int size = std::snprintf(out.data(), out.size(), pattern.c_str(), precision, value);
  out.resize(static_cast<std::size_t>(size));
  return out;
}

std::string digits_of(Int value, int base) {
  if (base == 10) {
    const std::string text = text_of(value);
    return text.substr(text[0] == '-');
  }
  std::string digits;
  auto rest = value < 0 ? -static_cast<Unsigned>(value) : static_cast<Unsigned>(value);
  do {
    digits += "0123456789abcdef"[static_cast<std::size_t>(rest % static_cast<unsigned>(base))];
    rest /= static_cast<unsigned>(base);
  } while (rest > 0);
  std::ranges::reverse(digits);
  return digits;
}

std::string aligned(const std::string& text, std::size_t width, char align, const std::string& fill) {
  const std::size_t length = count_code_points(text);
  if (width <= length) return text;
  const std::size_t pad = width - length, left = align == '<' ? 0 : align == '>' ? pad : pad / 2;
  if (pad > kMostBytes / fill.size()) throw Error("a width that is too large");
  std::string out;
  for (std::size_t i = 0; i < left; ++i) out += fill;
  out += text;
  for (std::size_t i = left; i < pad; ++i) out += fill;
  return out;
}

}  // namespace statescope::chat

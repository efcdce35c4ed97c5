// str.format and the little language of its fields.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/chat/values/format.h"
#include "engine/chat/values/lookup.h"
#include "engine/chat/values/operators.h"
#include "engine/chat/values/print.h"
#include "engine/chat/values/unicode.h"

namespace statescope::chat {
namespace {

/// [[fill]align][sign][#][0][width][grouping][.precision][kind]
struct Spec {
  std::string fill = " ";
  char align = 0, sign = '-', grouping = 0, kind = 0;
  bool alternate = false, zero = false;
  std::size_t width = 0;
  int precision = -1;
};

bool is_align(char32_t letter) { return letter == U'<' || letter == U'>' || letter == U'^' || letter == U'='; }

class SpecReader {
 public:
  explicit SpecReader(const std::string& text) : letters_(code_points(text)) {}

  Spec read() {
    Spec spec;
    read_align(spec);
    if (here() == U'+' || here() == U'-' || here() == U' ') spec.sign = static_cast<char>(take());
    if (here() == U'#') spec.alternate = take() != 0;
    if (here() == U'0') {
      take();
      spec.zero = true;
    }
    spec.width = static_cast<std::size_t>(number(0));
    if (here() == U',' || here() == U'_') spec.grouping = static_cast<char>(take());
    if (here() == U'.') {
      take();
      spec.precision = number(-1);
      if (spec.precision < 0) throw Error("Format specifier missing precision");
    }
    if (here() != 0) spec.kind = here() < 0x80 ? static_cast<char>(take()) : '?';
    if (here() != 0) throw Error("Invalid format specifier");
    return spec;
  }

 private:
  char32_t here(std::size_t ahead = 0) const { return at_ + ahead < letters_.size() ? letters_[at_ + ahead] : 0; }
  char32_t take() { return letters_[at_++]; }

  void read_align(Spec& spec) {
    if (is_align(here(1))) {
      spec.fill = utf8(std::u32string(1, take()));
      spec.align = static_cast<char>(take());
    } else if (is_align(here())) {
      spec.align = static_cast<char>(take());
    }
  }

  int number(int otherwise) {
    int value = otherwise;
    while (here() >= U'0' && here() <= U'9') value = std::min(std::max(value, 0) * 10 + static_cast<int>(take() - U'0'), 100'000'000);
    return value;
  }

  std::u32string letters_;
  std::size_t at_ = 0;
};

std::string grouped(const std::string& digits, char mark, std::size_t every) {
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % every == 0) out += mark;
    out += digits[i];
  }
  return out;
}

/// A number's sign and digits in its field.
std::string number_field(const std::string& sign, const std::string& prefix, std::string digits, const Spec& spec, std::size_t every) {
  const std::size_t end = std::min(digits.find_first_not_of("0123456789abcdefABCDEF"), digits.size());
  std::string tail = every == 3 && end < digits.size() ? digits.substr(end) : "";
  digits.erase(digits.size() - tail.size());
  const bool zeros = spec.zero && spec.align == 0;
  if (spec.width > kMostBytes) throw Error("a width that is too large");
  if (spec.grouping) {
    const std::string plain = digits;
    digits = grouped(plain, spec.grouping, every);
    const std::size_t around = sign.size() + prefix.size() + tail.size();
    for (std::size_t more = 1; zeros && digits.size() + around < spec.width; ++more) {
      digits = grouped(std::string(more, '0') + plain, spec.grouping, every);
    }
  }
  const std::size_t size = sign.size() + prefix.size() + digits.size() + tail.size();
  if (zeros || spec.align == '=') {
    std::string fill;
    for (std::size_t i = size; i < spec.width; ++i) fill += zeros ? "0" : spec.fill;
    return sign + prefix + fill + digits + tail;
  }
  return aligned(sign + prefix + digits + tail, spec.width, spec.align ? spec.align : '>', spec.fill);
}

std::string sign_of(bool below, const Spec& spec) { return below ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign); }

std::string integer_field(Int value, const Spec& spec) {
  if (spec.precision >= 0) throw Error("Precision not allowed in integer format specifier");
  const int base = spec.kind == 'b' ? 2 : spec.kind == 'o' ? 8 : spec.kind == 'x' || spec.kind == 'X' ? 16 : 10;
  if (spec.kind == 'c') throw Error("the format 'c' is not supported");
  std::string digits = digits_of(value, base), prefix = spec.alternate && base != 10 ? std::string("0") + spec.kind : "";
  if (spec.kind == 'X') std::ranges::transform(digits, digits.begin(), [](char c) { return c >= 'a' ? static_cast<char>(c - 32) : c; });
  return number_field(sign_of(value < 0, spec), prefix, digits, spec, base == 10 ? 3 : 4);
}

/// Without a kind: as repr, or with that many digits.
std::string general_text(double value, int precision) {
  if (precision < 0) return float_text(value);
  precision = std::max(precision, 1);
  const std::string scientific = float_format(value, 'e', precision - 1, false);
  const std::size_t e = scientific.find('e');
  if (e == std::string::npos) return scientific;  // inf, nan
  const bool exponent = std::stoi(scientific.substr(e + 1)) >= precision - 1 && precision > 0;
  std::string text = float_format(value, 'g', precision, false);
  if (text.find_first_of(".e") != std::string::npos) return text;
  if (!exponent || std::stoi(scientific.substr(e + 1)) == 0) return text + ".0";
  std::string digits = scientific.substr(0, e);
  if (digits.find('.') != std::string::npos) digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.ends_with('.')) digits.pop_back();
  return digits + scientific.substr(e);
}

std::string float_field(double value, const Spec& spec) {
  std::string text;
  if (spec.kind == 0) {
    text = general_text(value, spec.precision);
  } else if (spec.kind == '%') {
    text = float_format(value * 100, 'f', spec.precision < 0 ? 6 : spec.precision, spec.alternate) + "%";
  } else {
    text = float_format(value, spec.kind == 'n' ? 'g' : spec.kind, spec.precision < 0 ? 6 : spec.precision, spec.alternate);
  }
  const bool below = text.starts_with('-');
  return number_field(sign_of(below, spec), "", text.substr(below), spec, 3);
}

std::string text_field(const std::string& text, const Spec& spec) {
  if (spec.sign != '-' || spec.alternate || spec.grouping || spec.align == '=') throw Error("a format that strings do not have");
  const std::string cut = spec.precision < 0 ? text : utf8(code_points(text).substr(0, static_cast<std::size_t>(spec.precision)));
  return aligned(cut, spec.width, spec.align ? spec.align : '<', spec.zero && spec.fill == " " ? "0" : spec.fill);
}

class Braces {
 public:
  explicit Braces(const Arguments& arguments) : arguments_(arguments) {}

  std::string run(const std::string& text, int depth) {
    if (depth > 2) throw Error("Max string recursion exceeded");
    Builder out;
    for (std::size_t at = 0; at < text.size();) {
      const char c = text[at++];
      if ((c == '{' || c == '}') && at < text.size() && text[at] == c) {
        ++at;
        out.add(std::string_view(&c, 1));
      } else if (c == '{') {
        out.add(field(inside(text, at), depth));
      } else if (c == '}') {
        throw Error("Single '}' encountered in format string");
      } else {
        out.add(std::string_view(&c, 1));
      }
    }
    return out.take();
  }

 private:
  /// What stands between `{` and its `}`; `at` moves behind that.
  static std::string inside(const std::string& text, std::size_t& at) {
    const std::size_t begin = at;
    for (int depth = 1; at < text.size(); ++at) {
      depth += text[at] == '{' ? 1 : text[at] == '}' ? -1 : 0;
      if (depth == 0) return text.substr(begin, at++ - begin);
    }
    throw Error("expected '}' before end of string");
  }

  std::string field(const std::string& text, int depth) {
    std::size_t end = 0;
    for (bool bracket = false; end < text.size(); ++end) {
      if (text[end] == '[') bracket = true;
      if (text[end] == ']') bracket = false;
      if (!bracket && (text[end] == '!' || text[end] == ':')) break;
    }
    Value value = value_of(text.substr(0, end));
    if (end < text.size() && text[end] == '!') {
      if (end + 1 >= text.size() || (end + 2 < text.size() && text[end + 2] != ':')) throw Error("expected ':' after conversion specifier");
      value = converted(value, text[end + 1]);
      end += 2;
    }
    const std::string spec = end < text.size() ? run(text.substr(end + 1), depth + 1) : "";
    return formatted(value, spec);
  }

  static Value converted(const Value& value, char kind) {
    if (kind == 's') return printed(value);
    if (kind == 'r') return repr(value);
    if (kind == 'a') return ascii_repr(value);
    throw Error(fmt::format("Unknown conversion specifier '{}'", kind));
  }

  Value value_of(const std::string& name) {
    std::size_t at = std::min(name.find_first_of(".["), name.size());
    Value value = first(name.substr(0, at));
    while (at < name.size()) {
      const bool attribute = name[at] == '.';
      const std::size_t begin = at + 1;
      at = attribute ? std::min(name.find_first_of(".[", begin), name.size()) : name.find(']', begin);
      if (at == std::string::npos) throw Error("Missing ']' in format string");
      const std::string key = name.substr(begin, at - begin);
      if (key.empty()) throw Error("Empty attribute in format string");
      value = attribute ? attribute_or_item(value, key) : item_or_attribute(value, part_of_path(key));
      at += attribute ? 0 : 1;
    }
    return value;
  }

  Value first(const std::string& name) {
    if (!name.empty() && name.find_first_not_of("0123456789") != std::string::npos) {
      for (const auto& [key, value] : arguments_.named) {
        if (key == name) return value;
      }
      throw Error(fmt::format("key error: {}", quoted(name)));
    }
    if (counted_ && *counted_ != name.empty()) throw Error("cannot switch between manual and automatic field numbering");
    counted_ = name.empty();
    if (name.size() > 6) throw Error("Too many decimal digits in format string");
    const std::size_t place = name.empty() ? next_++ : static_cast<std::size_t>(std::stoi(name));
    if (place >= arguments_.positional.size()) throw Error(fmt::format("Replacement index {} out of range", place));
    return arguments_.positional[place];
  }

  const Arguments& arguments_;
  std::size_t next_ = 0;
  std::optional<bool> counted_;
};

bool one_of(char kind, std::string_view kinds) { return kind == 0 || kinds.find(kind) != std::string_view::npos; }

}  // namespace

std::string formatted(const Value& value, const std::string& text) {
  if (text.empty()) return printed(value);
  const Spec spec = SpecReader(text).read();
  if (value.is_text() && one_of(spec.kind, "s")) return text_field(value.text(), spec);
  if (value.integer() && one_of(spec.kind, "bcdoxXn")) return integer_field(*value.integer(), spec);
  if (const auto real = as_float(value); real && one_of(spec.kind, "eEfFgGn%")) return float_field(*real, spec);
  throw Error(fmt::format("unsupported format '{}' of a value of type '{}'", text, value.type()));
}

Value brace_format(const std::string& text, const Arguments& arguments) { return Braces(arguments).run(text, 1); }

}  // namespace statescope::chat

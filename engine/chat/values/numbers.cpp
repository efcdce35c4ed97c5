#include "engine/chat/values/numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "engine/chat/values/format.h"
#include "engine/chat/values/operators.h"
#include "engine/chat/values/unicode.h"

namespace statescope::chat {
namespace {

/// Decimal digits of any script as 0–9.
std::string plain(std::string_view text) {
  std::string out;
  for (const char32_t letter : code_points(strip(text, Ends::both))) {
    char32_t zero = letter;
    while (letter >= 0x80 && is_decimal(letter) && letter - zero < 9 && is_decimal(zero - 1)) --zero;
    if (letter >= 0x80 && is_decimal(letter)) {
      out += static_cast<char>('0' + (letter - zero));
    } else {
      append_utf8(out, letter);
    }
  }
  return out;
}

/// Without the underscores between digits; none where they stand elsewhere.
std::optional<std::string> without_underscores(const std::string& text) {
  const auto is_digit_of_base = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
    } else if (i == 0 || i + 1 == text.size() || !is_digit_of_base(text[i - 1]) || !is_digit_of_base(text[i + 1])) {
      return std::nullopt;
    }
  }
  return out;
}

int digit_value(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'z' ? c - 'a' + 10 : c >= 'A' && c <= 'Z' ? c - 'A' + 10 : 99;
}

/// The base that a prefix names: 16 of "0x".
int base_of_prefix(const std::string& text) {
  if (text.size() < 3 || text[0] != '0') return 0;
  const char mark = text[1];
  return mark == 'x' || mark == 'X' ? 16 : mark == 'o' || mark == 'O' ? 8 : mark == 'b' || mark == 'B' ? 2 : 0;
}

std::string lower_ascii(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return text;
}

/// The digits before the point, of the exact decimal value, rounded at the `places`-th of them from the right.
std::string rounded_digits(const std::string& exact, std::size_t places) {
  const std::size_t point = exact.find('.');
  std::string whole = exact.substr(0, point);
  if (whole.size() < places) return "0";
  const std::size_t kept = whole.size() - places;
  const std::string rest = whole.substr(kept) + exact.substr(point + 1);
  const bool beyond = rest[0] > '5' || (rest[0] == '5' && rest.find_first_not_of('0', 1) != std::string::npos);
  const bool odd = kept > 0 && (whole[kept - 1] - '0') % 2 == 1;
  whole = "0" + whole.substr(0, kept);
  if (beyond || (rest[0] == '5' && odd)) {
    std::size_t at = whole.size() - 1;
    for (; whole[at] == '9'; --at) whole[at] = '0';
    ++whole[at];
  }
  return whole + std::string(places, '0');
}

}  // namespace

std::optional<Int> parse_integer(const std::string& source, std::int64_t base) {
  if (base != 0 && (base < 2 || base > 36)) return std::nullopt;
  std::string text = plain(source);
  const bool below = text.starts_with('-');
  if (below || text.starts_with('+')) text.erase(0, 1);
  const int prefix = base_of_prefix(text);
  if (prefix != 0 && (base == 0 || base == prefix)) {
    text.erase(0, text[2] == '_' ? 3 : 2);
    base = prefix;
  } else if (base == 0) {
    base = 10;
    if (text.starts_with('0') && text.find_first_not_of("0_") != std::string::npos) return std::nullopt;
  }
  const auto digits = without_underscores(text);
  if (!digits || digits->empty()) return std::nullopt;
  if (std::ranges::any_of(*digits, [&](char c) { return digit_value(c) >= base; })) return std::nullopt;
  Value value = Int{0};
  for (const char c : *digits) value = binary("+", binary("*", value, Int{base}), digit_value(c));
  return below ? *negative(value).integer() : *value.integer();
}

std::optional<double> parse_float(const std::string& source) {
  const auto digits = without_underscores(plain(source));
  if (!digits) return std::nullopt;
  std::string text = lower_ascii(*digits);
  const bool below = text.starts_with('-');
  if (below || text.starts_with('+')) text.erase(0, 1);
  const double sign = below ? -1 : 1;
  if (text == "inf" || text == "infinity") return sign * INFINITY;
  if (text == "nan") return NAN;
  if (text.empty() || text.find_first_not_of("0123456789.e+-") != std::string::npos) return std::nullopt;
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || text[0] == '-') return std::nullopt;
  if (problem == std::errc::result_out_of_range) return sign * std::strtod(text.c_str(), nullptr);
  return problem == std::errc() ? std::optional(sign * value) : std::nullopt;
}

double rounded(double value, std::int64_t places) {
  if (!std::isfinite(value) || places > 323 || value == 0) return value;
  if (places < -308) return std::copysign(0.0, value);
  if (places >= 0) return std::strtod(float_format(value, 'f', static_cast<int>(places), false).c_str(), nullptr);
  const std::string exact = float_format(std::abs(value), 'f', 1100, false);
  return std::copysign(std::strtod(rounded_digits(exact, static_cast<std::size_t>(-places)).c_str(), nullptr), value);
}

Int rounded(Int value, std::int64_t places) {
  if (places >= 0) return value;
  if (places < -38) return 0;
  Int unit = 1;
  for (; places < 0; ++places) unit *= 10;
  Int rest = value % unit;
  if (rest < 0) rest += unit;
  const Value down = binary("-", value, rest);
  const bool odd = *binary("%", binary("//", down, unit), 2).integer() == 1;
  const bool up = rest > unit - rest || (rest == unit - rest && odd);
  return *(up ? binary("+", down, unit) : down).integer();
}

}  // namespace statescope::chat

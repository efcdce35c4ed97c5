#include "engine/chat/values/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstring>

#include "engine/chat/values/format.h"
#include "engine/chat/values/objects.h"
#include "engine/chat/values/print.h"
#include "engine/chat/values/unicode.h"

namespace statescope::chat {
namespace {

[[noreturn]] void too_large() { throw Error("integers beyond 128 bits are not supported"); }

Int add(Int a, Int b) {
  Int out;
  if (__builtin_add_overflow(a, b, &out)) too_large();
  return out;
}

Int multiply(Int a, Int b) {
  Int out;
  if (__builtin_mul_overflow(a, b, &out)) too_large();
  return out;
}

Int subtract(Int a, Int b) {
  Int out;
  if (__builtin_sub_overflow(a, b, &out)) too_large();
  return out;
}

/// Rounded down, unlike C++'s.
Int floor_divide(Int a, Int b) {
  if (b == 0) throw Error("integer division or modulo by zero");
  if (b == -1) return subtract(0, a);
  const Int quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Int modulo(Int a, Int b) {
  if (b == 0) throw Error("integer division or modulo by zero");
  if (b == -1) return 0;
  const Int rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double modulo(double a, double b) {
  if (b == 0) throw Error("float modulo");
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

/// As CPython's float_floor_div.
double floor_divide(double a, double b) {
  if (b == 0) throw Error("float floor division by zero");
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floor = std::floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

double power(double base, double exponent) {
  if (base == 0 && exponent < 0) throw Error("0.0 cannot be raised to a negative power");
  if (base < 0 && exponent != std::trunc(exponent) && std::isfinite(exponent)) throw Error("complex numbers are not supported");
  const double out = std::pow(base, exponent);
  if (std::isinf(out) && std::isfinite(base) && std::isfinite(exponent)) throw Error("a power that is too large");
  return out;
}

Value power(Int base, Int exponent) {
  if (exponent < 0) return power(static_cast<double>(base), static_cast<double>(exponent));
  Int out = 1;
  for (Int square = base;; square = multiply(square, square)) {
    if (exponent & 1) out = multiply(out, square);
    exponent >>= 1;
    if (exponent == 0 || square == 0 || square == 1) return exponent == 0 ? out : square == 0 ? Int{0} : out;
    if (square == -1) return out;  // every further square is 1
  }
}

Value of_integers(const std::string& sign, Int a, Int b) {
  if (sign == "+") return add(a, b);
  if (sign == "-") return subtract(a, b);
  if (sign == "*") return multiply(a, b);
  if (sign == "//") return floor_divide(a, b);
  if (sign == "%") return modulo(a, b);
  if (sign == "**") return power(a, b);
  if (b == 0) throw Error("division by zero");
  return static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b));
}

Value of_floats(const std::string& sign, double a, double b) {
  if (sign == "+") return a + b;
  if (sign == "-") return a - b;
  if (sign == "*") return a * b;
  if (sign == "//") return floor_divide(a, b);
  if (sign == "%") return modulo(a, b);
  if (sign == "**") return power(a, b);
  if (b == 0) throw Error("float division by zero");
  return a / b;
}

Value repeated(const Value& value, Int times) {
  const auto count = static_cast<std::size_t>(std::clamp<Int>(times, 0, kMostBytes + 1));
  if (value.is_text()) {
    if (value.text().size() * count > kMostBytes) throw Error(fmt::format("a text of more than {} MB", kMostBytes / 1'000'000));
    std::string out;
    out.reserve(value.text().size() * count);
    for (std::size_t i = 0; i < count && !value.text().empty(); ++i) out += value.text();
    return out;
  }
  const Items& items = value.sequence()->items;
  if (items.size() * count > kMostItems) throw Error(fmt::format("a list of more than {} elements", kMostItems));
  Items out;
  for (std::size_t i = 0; i < count && !items.empty(); ++i) out.insert(out.end(), items.begin(), items.end());
  return value.is_tuple() ? Value::tuple(std::move(out)) : Value::list(std::move(out));
}

Value joined(const Value& left, const Value& right) {
  Items items = left.sequence()->items;
  items.insert(items.end(), right.sequence()->items.begin(), right.sequence()->items.end());
  return left.is_tuple() ? Value::tuple(std::move(items)) : Value::list(std::move(items));
}

bool repeatable(const Value& value) { return value.is_text() || value.sequence(); }

/// Exact, also where the integer has more digits than a float.
std::partial_ordering order(Int a, double b) {
  if (std::isnan(b)) return std::partial_ordering::unordered;
  if (b >= 0x1p126) return std::partial_ordering::less;
  if (b <= -0x1p126) return std::partial_ordering::greater;
  const auto floor = static_cast<Int>(std::floor(b));
  if (a != floor) return a < floor ? std::partial_ordering::less : std::partial_ordering::greater;
  return b > std::floor(b) ? std::partial_ordering::less : std::partial_ordering::equivalent;
}

std::partial_ordering order_of_numbers(const Value& a, const Value& b) {
  const auto m = a.integer(), n = b.integer();
  if (m && n) return *m < *n ? std::partial_ordering::less : *m > *n ? std::partial_ordering::greater : std::partial_ordering::equivalent;
  if (!m && !n) return a.real() <=> b.real();
  return m ? order(*m, b.real()) : 0 <=> order(*n, a.real());
}

bool equal_dicts(const Dict& left, const Dict& right) {
  if (left.entries.size() != right.entries.size()) return false;
  return std::ranges::all_of(left.entries, [&](const auto& entry) {
    const Value* other = right.find(entry.first);
    return other && (entry.second.same(*other) || equal(entry.second, *other));
  });
}

bool equal_lists(const List& left, const List& right) {
  if (left.tuple != right.tuple) return false;
  return std::ranges::equal(left.items, right.items, [](const Value& a, const Value& b) { return equal(a, b); });
}

[[noreturn]] void no_order(const char* sign, const Value& left, const Value& right) {
  throw Error(fmt::format("'{}' is not supported between '{}' and '{}'", sign, left.type(), right.type()));
}

/// left < right, or left <= right.
bool ordered(const Value& left, const Value& right, bool or_equal) {
  defined(left), defined(right);
  if (left.is_number() && right.is_number()) {
    const auto order = order_of_numbers(left, right);
    return order == std::partial_ordering::less || (or_equal && order == std::partial_ordering::equivalent);
  }
  // UTF-8 is ordered as its code points are.
  if (left.is_text() && right.is_text()) return or_equal ? left.text() <= right.text() : left.text() < right.text();
  if (!left.sequence() || !right.sequence() || left.is_tuple() != right.is_tuple()) no_order(or_equal ? "<=" : "<", left, right);
  const Items &a = left.sequence()->items, &b = right.sequence()->items;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!equal(a[i], b[i])) return ordered(a[i], b[i], or_equal);
  }
  return or_equal ? a.size() <= b.size() : a.size() < b.size();
}

std::int64_t clipped(Int value) { return static_cast<std::int64_t>(std::clamp<Int>(value, INT64_MIN, INT64_MAX)); }

/// Where an index of a sequence points, none outside.
std::optional<std::size_t> place(const Value& key, std::size_t length) {
  const auto index = key.integer();
  if (!index) return std::nullopt;
  const Int at = *index < 0 ? *index + static_cast<Int>(length) : *index;
  if (at < 0 || at >= static_cast<Int>(length)) return std::nullopt;
  return static_cast<std::size_t>(at);
}

std::string letter_at(const Value& text, std::size_t place) {
  const std::string& bytes = text.text();
  if (text.length() == bytes.size()) return bytes.substr(place, 1);
  std::size_t at = 0;
  for (; place > 0; --place) at += code_point_size(bytes, at);
  return bytes.substr(at, code_point_size(bytes, at));
}

/// An end of a slice, within [low, high].
std::int64_t slice_end(const Value& end, std::int64_t length, std::int64_t low, std::int64_t high, std::int64_t otherwise) {
  if (end.is_none()) return otherwise;
  if (!end.integer()) throw Error("slice indices must be integers or None");
  const Int at = *end.integer() < 0 ? *end.integer() + length : *end.integer();
  return static_cast<std::int64_t>(std::clamp<Int>(at, low, high));
}

std::string sliced(const std::string& text, const SliceRange& range) {
  const std::u32string letters = code_points(text);
  std::string out;
  for (std::size_t i = 0; i < range.count; ++i) {
    append_utf8(out, letters[static_cast<std::size_t>(range.begin + static_cast<std::int64_t>(i) * range.step)]);
  }
  return out;
}

}  // namespace

const Value& defined(const Value& value) {
  if (value.is_undefined()) throw Error(value.why_undefined());
  return value;
}

std::optional<double> as_float(const Value& value) {
  if (const auto integer = value.integer()) return static_cast<double>(*integer);
  return value.is_float() ? std::optional(value.real()) : std::nullopt;
}

Int whole(double value) {
  if (std::isnan(value)) throw Error("cannot convert float NaN to integer");
  if (std::isinf(value)) throw Error("cannot convert float infinity to integer");
  if (std::abs(value) >= 0x1p126) too_large();
  return static_cast<Int>(value);
}

std::int64_t index_of(const Value& value) {
  if (const auto integer = value.integer()) return clipped(*integer);
  throw Error(fmt::format("'{}' object cannot be interpreted as an integer", value.type()));
}

Value binary(const std::string& sign, const Value& left, const Value& right) {
  if (sign == "%" && left.is_text()) return percent_format(left.text(), right);
  defined(left), defined(right);
  const auto m = left.integer(), n = right.integer();
  if (m && n) return of_integers(sign, *m, *n);
  const auto a = as_float(left), b = as_float(right);
  if (a && b) return of_floats(sign, *a, *b);
  if (sign == "*" && repeatable(left) && n) return repeated(left, *n);
  if (sign == "*" && m && repeatable(right)) return repeated(right, *m);
  if (sign == "+" && left.is_text() && right.is_text()) return left.text() + right.text();
  if (sign == "+" && left.sequence() && right.sequence() && left.is_tuple() == right.is_tuple()) return joined(left, right);
  throw Error(fmt::format("unsupported operand types for {}: '{}' and '{}'", sign, left.type(), right.type()));
}

Value negative(const Value& value) {
  defined(value);
  if (const auto integer = value.integer()) return subtract(0, *integer);
  if (value.is_float()) return -value.real();
  throw Error(fmt::format("bad operand type for unary -: '{}'", value.type()));
}

Value positive(const Value& value) {
  defined(value);
  if (const auto integer = value.integer()) return *integer;
  if (value.is_float()) return value;
  throw Error(fmt::format("bad operand type for unary +: '{}'", value.type()));
}

bool equal(const Value& left, const Value& right) {
  if (left.is_undefined() || right.is_undefined()) return left.is_undefined() && right.is_undefined();
  if (left.is_number() && right.is_number()) return order_of_numbers(left, right) == std::partial_ordering::equivalent;
  if (left.is_text() && right.is_text()) return left.text() == right.text();
  if (left.sequence() && right.sequence()) return equal_lists(*left.sequence(), *right.sequence());
  if (left.is_dict() && right.is_dict()) return &left.dict() == &right.dict() || equal_dicts(left.dict(), right.dict());
  const auto *range = left.object_as<Range>(), *other = right.object_as<Range>();
  if (range && other) return items_equal(*range, *other);
  return left.same(right);
}

bool less(const Value& left, const Value& right) { return ordered(left, right, false); }
bool less_or_equal(const Value& left, const Value& right) { return ordered(left, right, true); }

bool compare(const std::string& sign, const Value& left, const Value& right) {
  if (sign == "==") return equal(left, right);
  if (sign == "!=") return !equal(left, right);
  if (sign == "<") return less(left, right);
  if (sign == "<=") return less_or_equal(left, right);
  if (sign == ">") return less(right, left);
  if (sign == ">=") return less_or_equal(right, left);
  return contains(right, left) == (sign == "in");
}

bool contains(const Value& container, const Value& value) {
  if (container.is_text()) {
    if (!value.is_text()) throw Error(fmt::format("'in <string>' requires string as left operand, not {}", value.type()));
    const std::string &text = container.text(), &part = value.text();
    return ::memmem(text.data(), text.size(), part.data(), part.size()) != nullptr || part.empty();
  }
  if (container.is_dict()) return container.dict().find(value) != nullptr;
  if (container.object() && !container.object()->iterate()) {
    throw Error(fmt::format("argument of type '{}' is not iterable", container.type()));
  }
  const Next next = iterate(container);
  for (auto element = next(); element; element = next()) {
    if (element->same(value) || equal(*element, value)) return true;
  }
  return false;
}

std::optional<Value> item(const Value& value, const Value& key) {
  if (value.is_dict()) {
    if (key.is_list() || key.is_dict()) return std::nullopt;
    const Value* found = value.dict().find(key);
    return found ? std::optional(*found) : std::nullopt;
  }
  if (value.object()) return value.object()->item(key);
  if (!value.is_text() && !value.sequence()) return std::nullopt;
  const auto at = place(key, length_of(value));
  if (!at) return std::nullopt;
  return value.is_text() ? Value(letter_at(value, *at)) : value.sequence()->items[*at];
}

SliceRange slice_range(std::int64_t length, const Value& from, const Value& to, const Value& step) {
  if (!step.is_none() && !step.integer()) throw Error("slice indices must be integers or None");
  const std::int64_t by = step.is_none() ? 1 : std::max(index_of(step), -INT64_MAX);
  if (by == 0) throw Error("slice step cannot be zero");
  const std::int64_t low = by < 0 ? -1 : 0, high = by < 0 ? length - 1 : length;
  const std::int64_t begin = slice_end(from, length, low, high, by < 0 ? high : low);
  const std::int64_t end = slice_end(to, length, low, high, by < 0 ? low : high);
  const std::int64_t distance = by < 0 ? begin - end : end - begin;
  return {begin, by, distance <= 0 ? 0 : static_cast<std::size_t>((distance - 1) / std::abs(by) + 1)};
}

Value slice(const Value& value, const Value& from, const Value& to, const Value& step) {
  defined(value);
  if (const auto* range = value.object_as<Range>()) return range->slice(from, to, step);
  if (!value.is_text() && !value.sequence()) throw Error(fmt::format("'{}' object cannot be sliced", value.type()));
  const SliceRange range = slice_range(static_cast<std::int64_t>(length_of(value)), from, to, step);
  if (value.is_text()) return sliced(value.text(), range);
  Items items;
  for (std::size_t i = 0; i < range.count; ++i) {
    items.push_back(value.sequence()->items[static_cast<std::size_t>(range.begin + static_cast<std::int64_t>(i) * range.step)]);
  }
  return value.is_tuple() ? Value::tuple(std::move(items)) : Value::list(std::move(items));
}

}  // namespace statescope::chat

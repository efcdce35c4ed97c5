// Filters that make numbers.
#include <fmt/format.h>

#include <cmath>

#include "engine/chat/filters/filters.h"
#include "engine/chat/values/numbers.h"
#include "engine/chat/values/operators.h"

namespace statescope::chat {
namespace {

Value int_of_float(double value, const Value& otherwise) { return std::isfinite(value) ? Value(whole(value)) : otherwise; }

Value int_filter(Runtime&, const Value& value, const Call& call) {
  const Value otherwise = call.at(0, 0);
  if (defined(value).is_text()) {
    const std::int64_t base = call.integer(1, 10);
    if (const auto integer = parse_integer(value.text(), base)) return *integer;
    const auto real = parse_float(value.text());
    return real ? int_of_float(*real, otherwise) : otherwise;
  }
  if (const auto integer = value.integer()) return *integer;
  if (!value.is_float() || std::isnan(value.real())) return otherwise;
  return whole(value.real());
}

Value float_filter(Runtime&, const Value& value, const Call& call) {
  const auto real = defined(value).is_text() ? parse_float(value.text()) : as_float(value);
  return real ? Value(*real) : call.at(0, 0.0);
}

Value abs_filter(Runtime&, const Value& value, const Call&) {
  if (const auto integer = defined(value).integer()) return *integer < 0 ? negative(value) : *integer;
  if (value.is_float()) return std::abs(value.real());
  throw Error(fmt::format("bad operand type for abs(): '{}'", value.type()));
}

/// floor or ceil of value · 10^precision, over 10^precision.
Value directed(const Value& value, std::int64_t precision, bool up) {
  const Value scale = binary("**", 10, Int{precision}), scaled = binary("*", value, scale);
  if (scaled.is_float()) return binary("/", whole(up ? std::ceil(scaled.real()) : std::floor(scaled.real())), scale);
  return binary("/", scaled, scale);
}

Value round_filter(Runtime&, const Value& value, const Call& call) {
  const std::string method = call.given(1) ? call.text(1) : "common";
  if (method != "common" && method != "ceil" && method != "floor") throw Error("method must be common, ceil or floor");
  if (!defined(value).is_number()) throw Error(fmt::format("only numbers are rounded, not '{}'", value.type()));
  const bool to_integer = call.given(0) && call.at(0).is_none() && method == "common";
  const std::int64_t precision = to_integer ? 0 : call.integer(0);
  if (method != "common") return directed(value, precision, method == "ceil");
  if (const auto integer = value.integer()) return rounded(*integer, precision);
  return to_integer ? Value(whole(rounded(value.real(), 0))) : Value(rounded(value.real(), precision));
}

Value length_filter(Runtime&, const Value& value, const Call&) { return length_of(value); }

}  // namespace

const std::map<std::string, Entry>& number_filters() {
  static const std::map<std::string, Entry> table{
      {"int", {"default= base=", int_filter}},         {"float", {"default=", float_filter}}, {"abs", {"", abs_filter}},
      {"round", {"precision= method=", round_filter}}, {"length", {"", length_filter}},       {"count", {"", length_filter}}};
  return table;
}

}  // namespace statescope::chat

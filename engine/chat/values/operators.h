// Python's operators.
#pragma once

#include <optional>
#include <string>

#include "engine/chat/values/value.h"

namespace statescope::chat {

/// +, -, *, /, //, %, **. Throws Error: "unsupported operand types for +: 'int' and 'str'".
Value binary(const std::string& sign, const Value& left, const Value& right);
Value negative(const Value& value);
Value positive(const Value& value);

bool equal(const Value& left, const Value& right);
/// Throws Error where they have no order.
bool less(const Value& left, const Value& right);
bool less_or_equal(const Value& left, const Value& right);
/// ==, !=, <, <=, >, >=, in, not in.
bool compare(const std::string& sign, const Value& left, const Value& right);
bool contains(const Value& container, const Value& value);

/// A number as a float, none for what is none.
std::optional<double> as_float(const Value& value);
/// A float without what stands behind the point. Throws Error for what does not fit, infinity and NaN.
Int whole(double value);
/// Throws Error for what is undefined: "'x' is undefined".
const Value& defined(const Value& value);
/// An integer between -2⁶³ and 2⁶³ (clipped to it). Throws Error: "'str' object cannot be interpreted as an integer".
std::int64_t index_of(const Value& value);

/// obj[key] alone: none where there is no such item.
std::optional<Value> item(const Value& value, const Value& key);
/// obj[from:to:step]; none is "not given". Throws Error as Python.
Value slice(const Value& value, const Value& from, const Value& to, const Value& step);
/// The places that a slice takes of `length`, in order.
struct SliceRange {
  std::int64_t begin, step;
  std::size_t count;
};
SliceRange slice_range(std::int64_t length, const Value& from, const Value& to, const Value& step);

}  // namespace statescope::chat

#include "app/web/numbers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

namespace statescope {

namespace {

constexpr std::size_t least_symmetric = 8;  // rows that are worth it

/// Rows of a matrix that is symmetric; 0: it is none.
std::size_t symmetric_rows(std::span<const float> values) {
  const auto rows = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(values.size()))));
  if (rows < least_symmetric || rows * rows != values.size()) return 0;
  const auto same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < r; ++c)
      if (!same(values[r * rows + c], values[c * rows + r])) return 0;
  return rows;
}

}  // namespace

Decimal decimal(float value, int digits) {
  constexpr float whole = 32767;
  if (std::isnan(value)) return {0, Decimal::none};
  if (std::isinf(value)) return {static_cast<std::int16_t>(value < 0 ? -1 : 1), Decimal::infinite};
  if (std::abs(value) <= whole && value == std::trunc(value)) return {static_cast<std::int16_t>(value), 0};
  const double exact = value;
  int exponent = static_cast<int>(std::floor(std::log10(std::abs(exact)))) + 1 - digits;
  long mantissa = std::lround(exact * std::pow(10.0, -exponent));
  if (std::abs(mantissa) >= std::lround(std::pow(10.0, digits))) {
    mantissa /= 10;
    ++exponent;
  }
  return {static_cast<std::int16_t>(mantissa), static_cast<std::int8_t>(exponent)};
}

std::size_t NumberTable::add_part(std::span<const float> values, int digits) {
  std::vector<Decimal> decimals;
  decimals.reserve(values.size());
  std::string key;
  for (const float value : values) {
    const Decimal d = decimals.emplace_back(decimal(value, digits));
    key += {static_cast<char>(d.mantissa & 0xFF), static_cast<char>((d.mantissa >> 8) & 0xFF), static_cast<char>(d.exponent)};
  }
  const auto [place, is_new] = parts_.try_emplace(std::move(key), part_list_.size());
  if (is_new) {
    numbers_ += decimals.size();
    part_list_.push_back(std::move(decimals));
  }
  return place->second;
}

std::size_t NumberTable::add(std::span<const float> values) {
  const std::size_t rows = symmetric_rows(values);
  std::vector<float> half;
  for (std::size_t r = 0; r < rows; ++r) {
    const auto row = values.subspan(r * rows, r + 1);
    half.insert(half.end(), row.begin(), row.end());
  }
  const int digits = values.size() > large ? 3 : 4;
  if (rows > 0) values = half;
  std::string words = std::to_string(rows);
  for (std::size_t begin = 0; begin < values.size(); begin += part)
    words += fmt::format(",{}", add_part(values.subspan(begin, std::min(part, values.size() - begin)), digits));
  const auto [place, is_new] = arrays_.try_emplace(words, array_list_.size());
  if (is_new) array_list_.push_back(std::move(words));
  return place->second;
}

std::string NumberTable::arrays() const {
  std::string text = "[";
  for (const std::string& words : array_list_) text += fmt::format("{}[{}]", text.size() > 1 ? "," : "", words);
  return text + "]";
}

std::string NumberTable::lengths() const {
  std::vector<std::size_t> lengths;
  for (const std::vector<Decimal>& decimals : part_list_) lengths.push_back(decimals.size());
  return fmt::format("[{}]", fmt::join(lengths, ","));
}

std::string NumberTable::bytes() const {
  std::string low, high, exponents;
  for (const std::vector<Decimal>& decimals : part_list_) {
    for (const Decimal& d : decimals) {
      low += static_cast<char>(d.mantissa & 0xFF);
      high += static_cast<char>((d.mantissa >> 8) & 0xFF);
      exponents += static_cast<char>(d.exponent);
    }
  }
  return low + high + exponents;
}

}  // namespace statescope

// The numbers of a page, to four digits, of large arrays to three: equal parts of arrays are kept once, and one half of a symmetric matrix.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace statescope {

/// mantissa · 10^exponent: a number to so many digits, whole ones up to 32767 as they are. What is not finite has an exponent of its own.
struct Decimal {
  static constexpr std::int8_t none = 127, infinite = 126;  // infinite: of the mantissa's sign
  std::int16_t mantissa = 0;
  std::int8_t exponent = 0;
  bool operator==(const Decimal&) const = default;
};
Decimal decimal(float value, int digits);

class NumberTable {
 public:
  static constexpr std::size_t part = 256;  // numbers; an array's last part may be shorter
  static constexpr std::size_t large = 1024;

  /// The array's place among all; one that is there already keeps it.
  std::size_t add(std::span<const float> values);

  /// JSON: of each array its rows, where it is symmetric and only what lies on and below the diagonal is there (else 0), then which parts
  /// it is made of.
  std::string arrays() const;
  /// All parts one behind the other: the mantissas' low bytes, their high bytes, the exponents.
  std::string bytes() const;
  /// JSON: the parts' lengths.
  std::string lengths() const;
  std::size_t numbers() const { return numbers_; }

 private:
  std::size_t add_part(std::span<const float> values, int digits);

  std::map<std::string, std::size_t> parts_, arrays_;  // by their bytes, by their parts
  std::vector<std::vector<Decimal>> part_list_;
  std::vector<std::string> array_list_;
  std::size_t numbers_ = 0;  // of all parts
};

}  // namespace statescope

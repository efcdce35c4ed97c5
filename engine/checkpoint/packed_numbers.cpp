#include "engine/checkpoint/packed_numbers.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "engine/checkpoint/blocks.h"
#include "engine/checkpoint/safetensors.h"

namespace statescope {
namespace {

template <class Number>
std::vector<float> each(std::span<const std::byte> bytes, Number number) {
  std::vector<float> all;
  all.reserve(bytes.size());
  for (const std::byte byte : bytes) all.push_back(number(std::to_integer<std::uint8_t>(byte)));
  return all;
}

}  // namespace

float from_e4m3(std::uint8_t byte) {
  const int exponent = byte >> 3 & 0xf, mantissa = byte & 7;
  const float sign = byte & 0x80 ? -1.0F : 1.0F;
  if ((byte & 0x7f) == 0x7f) return std::numeric_limits<float>::quiet_NaN();
  return sign *
         (exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9) : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10));
}

float from_e8m0(std::uint8_t byte) { return byte == 0xff ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0F, byte - 127); }

float from_e2m1(unsigned code) {
  static constexpr std::array<float, 8> magnitudes{0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
  return code & 8 ? -magnitudes[code & 7] : magnitudes[code & 7];
}

std::optional<std::vector<float>> numbers_of(std::string_view dtype, std::span<const std::byte> bytes, bool as_exponents) {
  if (const std::optional<DType> type = float_type(dtype)) {
    std::vector<float> all(bytes.size() / size_of(*type));
    convert(bytes.data(), *type, reinterpret_cast<std::byte*>(all.data()), DType::f32, all.size());
    return all;
  }
  if (dtype == "F8_E4M3") return each(bytes, from_e4m3);
  if (dtype == "F8_E8M0" || (as_exponents && dtype == "U8")) return each(bytes, from_e8m0);
  if (dtype == "I8") return each(bytes, [](std::uint8_t byte) { return static_cast<float>(std::bit_cast<std::int8_t>(byte)); });
  return std::nullopt;
}

}  // namespace statescope

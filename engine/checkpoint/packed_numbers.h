// Numbers of less than 16 bits as quantised files store them, one by one, and the scales beside them (spec §19.11, §19.16).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace statescope {

/// E4M3 "fn": bias 7, subnormals m · 2^-9, largest 448; 0x7F and 0xFF are NaN.
float from_e4m3(std::uint8_t byte);
/// An exponent alone: 2^(byte − 127); 0xFF is NaN.
float from_e8m0(std::uint8_t byte);
/// E2M1, of the lowest four bits: ±0, 0.5, 1, 1.5, 2, 3, 4, 6.
float from_e2m1(unsigned code);

/// All numbers of a tensor of one of the types F32, BF16, F16, F8_E4M3, F8_E8M0 and I8 as float32, `as_exponents` those of U8 as E8M0;
/// none for other types.
std::optional<std::vector<float>> numbers_of(std::string_view dtype, std::span<const std::byte> bytes, bool as_exponents = false);

}  // namespace statescope

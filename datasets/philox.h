// Random numbers that are the same everywhere and can be drawn in any order: Philox4x32-10 (Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011). assets/recipes/tasks.py draws the same numbers on a GPU.
#pragma once

#include <array>
#include <cstdint>

namespace statescope {

/// Training and evaluation never share a number: the split is half of the key.
enum class Split : std::uint32_t { evaluation = 0, training = 1 };

/// Ten rounds of Philox over a counter of four words with a key of two.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = 0xD2511F53ULL * counter[0], b = 0xCD9E8D57ULL * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return counter;
}

/// The numbers of one example. `stream` names what they are for, `index` counts within it.
class Draws {
 public:
  constexpr Draws(std::uint32_t seed, Split split, std::uint64_t example)
      : key_{seed, static_cast<std::uint32_t>(split)},
        example_{static_cast<std::uint32_t>(example), static_cast<std::uint32_t>(example >> 32)} {}

  /// 32 random bits.
  constexpr std::uint32_t bits(std::uint32_t stream, std::uint32_t index) const {
    return philox({index, stream, example_[0], example_[1]}, key_)[0];
  }
  /// 0 … n − 1, by multiplication: uneven by less than n / 2^32.
  constexpr std::uint32_t below(std::uint32_t n, std::uint32_t stream, std::uint32_t index) const {
    return static_cast<std::uint32_t>((std::uint64_t{bits(stream, index)} * n) >> 32);
  }

 private:
  std::array<std::uint32_t, 2> key_, example_;
};

}  // namespace statescope

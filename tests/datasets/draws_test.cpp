#include "datasets/draws.h"

#include <set>

#include "tests/catch.h"

namespace statescope::draws_test {
using Words = std::array<std::uint32_t, 4>;

// The known answers that come with Random123.
TEST_CASE("Philox4x32-10 as published") {
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}) == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("seed, split, example, stream and index each change the bits") {
  std::set<std::uint32_t> bits;
  for (const std::uint32_t seed : {1U, 2U})
    for (const Split split : {Split::evaluation, Split::training})
      for (const std::uint64_t example : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32})
        for (const std::uint32_t stream : {0U, 1U})
          for (const std::uint32_t index : {0U, 1U}) bits.insert(Draws(seed, split, example).bits(stream, index));
  CHECK(bits.size() == 48);
}

TEST_CASE("numbers below n are all drawn, about equally often") {
  const Draws draws(1, Split::evaluation, 0);
  std::array<int, 7> counts{};
  for (std::uint32_t i = 0; i < 7000; ++i) ++counts.at(draws.below(7, 0, i));
  for (const int count : counts) CHECK(std::abs(count - 1000) < 150);
  CHECK(draws.below(1, 0, 0) == 0);
}

TEST_CASE("ties are in order of number") {
  CHECK(ordered(5, [](std::uint32_t i) { return i % 2; }) == std::vector<std::uint32_t>{0, 2, 4, 1, 3});
  const std::vector<std::uint32_t> order = shuffled(100, Draws(1, Split::evaluation, 0), 3);
  CHECK(std::set<std::uint32_t>(order.begin(), order.end()).size() == 100);
}

}  // namespace statescope::draws_test

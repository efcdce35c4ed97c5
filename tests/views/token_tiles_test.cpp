#include "views/token_tiles.h"

#include <algorithm>
#include <cmath>

#include "tests/catch.h"

namespace statescope::token_tiles_test {

TEST_CASE("token tiles: what is shown holds the token, fits into 512 cells and moves by tiles") {
  for (const std::int64_t tokens : {1, 100, 512, 513, 5000, 32768}) {
    for (const std::int64_t shown : {std::int64_t{256}, std::int64_t{1000}, std::int64_t{1} << 40}) {
      for (const std::int64_t token : {std::int64_t{0}, tokens / 3, tokens - 1}) {
        INFO(tokens << " tokens, " << shown << " shown, token " << token);
        const TokenSteps steps = steps_around(token, tokens, shown);
        REQUIRE(steps.count >= 1);
        REQUIRE(steps.count <= kMostMapTokens);
        REQUIRE(steps.from >= 0);
        REQUIRE(steps.from + (steps.count - 1) * steps.step < tokens);
        REQUIRE(steps.from <= token);
        REQUIRE(token < steps.from + steps.count * steps.step);
        if (tokens <= 512) REQUIRE(steps.step == 1);
      }
    }
  }
  CHECK(steps_around(20000, 32768, 1 << 20) == TokenSteps{0, 64, 512});
  CHECK(steps_around(20000, 32768, 256) == TokenSteps{19840, 1, 256});
  CHECK(steps_around(20010, 32768, 256) == steps_around(20000, 32768, 256));
}

TEST_CASE("token tiles: a map is put together from the tiles that are known, and their mirror images") {
  const TokenSteps all{10, 2, 5};
  CHECK(tiles_of(all, 2) == std::vector<TokenSteps>{{10, 2, 2}, {14, 2, 2}, {18, 2, 1}});
  CHECK(tokens_of(all) == std::vector<std::int64_t>{10, 12, 14, 16, 18});
  CHECK(map_tiles(all, all, 2).size() == 6);
  CHECK(map_tiles(all, {0, 2, 5}, 2).size() == 9);
  std::vector<std::vector<float>> kept;
  kept.reserve(6);
  const std::vector<float> map = map_of_tiles(all, all, 2, [&](const TokenTile& tile) -> const std::vector<float>* {
    if (tile.rows.from == 10 && tile.columns.from == 18) return nullptr;
    std::vector<float>& cells = kept.emplace_back();
    for (const std::int64_t r : tokens_of(tile.rows)) {
      for (const std::int64_t c : tokens_of(tile.columns)) cells.push_back(static_cast<float>(r * c));
    }
    return &cells;
  });
  for (std::int64_t r = 0; r < 5; ++r) {
    for (std::int64_t c = 0; c < 5; ++c) {
      const float cell = map[static_cast<std::size_t>(5 * r + c)];
      if (std::max(r, c) == 4 && std::min(r, c) < 2)
        CHECK(std::isnan(cell));
      else
        CHECK(cell == static_cast<float>((10 + 2 * r) * (10 + 2 * c)));
    }
  }
}

}  // namespace statescope::token_tiles_test

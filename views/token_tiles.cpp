#include "views/token_tiles.h"

#include <algorithm>
#include <cmath>

namespace statescope {
namespace {

constexpr std::int64_t kGrid = 128;  // cells by which what is looked at moves on

std::int64_t place_in(const TokenSteps& part, const TokenSteps& whole) { return (part.from - whole.from) / whole.step; }

}  // namespace

TokenSteps steps_around(std::int64_t token, std::int64_t tokens, std::int64_t shown) {
  const std::int64_t wanted = std::min(shown, tokens);
  const auto up = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  std::int64_t step = 1;
  while (up(wanted, step) > kMostMapTokens) step *= 2;
  const std::int64_t tile = kGrid * step, last = up(std::max<std::int64_t>(0, tokens - wanted), tile) * tile;
  const std::int64_t from = std::clamp<std::int64_t>((token - wanted / 2) / tile * tile, 0, last);
  return {from, step, std::min(up(wanted, step), up(tokens - from, step))};
}

std::vector<TokenSteps> tiles_of(const TokenSteps& tokens, std::int64_t most) {
  std::vector<TokenSteps> tiles;
  for (std::int64_t i = 0; i < tokens.count; i += most)
    tiles.push_back({tokens.from + i * tokens.step, tokens.step, std::min(most, tokens.count - i)});
  return tiles;
}

std::vector<std::int64_t> tokens_of(const TokenSteps& steps) {
  std::vector<std::int64_t> tokens;
  for (std::int64_t i = 0; i < steps.count; ++i) tokens.push_back(steps.from + i * steps.step);
  return tokens;
}

std::vector<TokenTile> map_tiles(const TokenSteps& rows, const TokenSteps& columns, std::int64_t most) {
  std::vector<TokenTile> tiles;
  for (const TokenSteps& r : tiles_of(rows, most)) {
    for (const TokenSteps& c : tiles_of(columns, most)) {
      if (!(rows == columns) || c.from >= r.from) tiles.push_back({r, c});
    }
  }
  return tiles;
}

std::vector<float> map_of_tiles(const TokenSteps& rows, const TokenSteps& columns, std::int64_t most,
                                const std::function<const std::vector<float>*(const TokenTile&)>& cells_of) {
  std::vector<float> map(static_cast<std::size_t>(rows.count * columns.count), NAN);
  for (const TokenTile& tile : map_tiles(rows, columns, most)) {
    const std::vector<float>* cells = cells_of(tile);
    if (!cells) continue;
    const std::int64_t top = place_in(tile.rows, rows), left = place_in(tile.columns, columns), width = tile.columns.count;
    for (std::int64_t r = 0; r < tile.rows.count; ++r)
      std::copy_n(cells->begin() + r * width, width, map.begin() + (top + r) * columns.count + left);
    if (!(rows == columns) || tile.rows == tile.columns) continue;
    for (std::int64_t r = 0; r < tile.rows.count; ++r) {
      for (std::int64_t c = 0; c < width; ++c)
        map[static_cast<std::size_t>((left + c) * columns.count + top + r)] = (*cells)[static_cast<std::size_t>(r * width + c)];
    }
  }
  return map;
}

}  // namespace statescope

// A map of tokens × tokens that is too large to be worked out at once: which part of it is looked at, in tiles.
#pragma once

#include <functional>
#include <vector>

#include "engine/findings/findings.h"

namespace statescope {

/// Along a side of such a map: no more cells than this are looked at at once. More tokens are shown by one of every 2ⁿ.
inline constexpr std::int64_t kMostMapTokens = 512;

/// `shown` of a run's `tokens` with `token` among them; moves by tiles, so that it seldom changes. shown ≥ 256.
TokenSteps steps_around(std::int64_t token, std::int64_t tokens, std::int64_t shown);
/// In pieces of `most` tokens, the last one shorter.
std::vector<TokenSteps> tiles_of(const TokenSteps& tokens, std::int64_t most);
/// from, from + step, …
std::vector<std::int64_t> tokens_of(const TokenSteps& steps);

/// Rows and columns of a map that is symmetric.
struct TokenTile {
  TokenSteps rows, columns;
};
/// The tiles that make the map; where rows and columns are the same, those on and above the diagonal.
std::vector<TokenTile> map_tiles(const TokenSteps& rows, const TokenSteps& columns, std::int64_t most);
/// [rows, columns] of the tiles whose cells are known, their mirror images too; NaN elsewhere. `cells_of`: [rows, columns] of a tile, or
/// null.
std::vector<float> map_of_tiles(const TokenSteps& rows, const TokenSteps& columns, std::int64_t most,
                                const std::function<const std::vector<float>*(const TokenTile&)>& cells_of);

}  // namespace statescope

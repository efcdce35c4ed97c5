// How well a few typed letters fit a text.
#pragma once

#include <optional>
#include <string_view>

namespace statescope {

/// Every word of `query` must be in `text` letter by letter, in order, in large or small letters (ASCII). More is better: letters that
/// begin a word or follow each other count more, a shorter text comes before a longer one. An empty query fits everything equally.
std::optional<int> fuzzy_score(std::string_view query, std::string_view text);

}  // namespace statescope

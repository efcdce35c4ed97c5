// How well a few typed letters fit a text.
#pragma once

#include <optional>
#include <string_view>

namespace statescope {

/// Every word of `query` must be in `text` letter by letter, in order, in large or small letters (ASCII). More is better: letters that
/// begin a word or follow each other count more, a text that begins with a word more still, and one that is the word the most. An empty
/// query fits everything equally.
std::optional<int> fuzzy_fit(std::string_view query, std::string_view text);
/// Of texts that fit equally well a shorter one comes before a longer one.
std::optional<int> fuzzy_score(std::string_view query, std::string_view text);

}  // namespace statescope

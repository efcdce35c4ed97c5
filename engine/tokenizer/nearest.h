// Which known words look most like one that is not known.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace statescope {

/// At most `most`, the nearest first: those that a few single-letter changes (one for every three letters, at least one) make of `word`, by
/// inserting, leaving out, replacing, or exchanging neighbours; capitals count as small letters.
std::vector<std::string> nearest(std::string_view word, std::span<const std::string> known, std::size_t most);

}  // namespace statescope

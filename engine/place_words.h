// Places in a run, in words: layers, heads, tokens and others that are counted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace statescope {

/// "there is no head 9 (heads are 0 to 3)": of `count` that are counted from `first`.
std::string no_such(std::string_view what, std::int64_t index, std::int64_t count, std::int64_t first = 0);
/// Throws Error, which says so, unless `index` is one of them.
void check_index(std::string_view what, std::int64_t index, std::int64_t count, std::int64_t first = 0);

/// The token as a number from 0; below 0 it is counted from the prompt's end. Throws Error where a run of `tokens` has none such.
std::int64_t token_place(std::int64_t token, std::int64_t prompt_length, std::int64_t tokens);

/// "2", "1 and 2", "0, 1 and 2"
std::string listed(const std::vector<std::int64_t>& numbers);
/// "layer 1", "layers 1 and 2"; of none: empty.
std::string counted(std::string_view what, const std::vector<std::int64_t>& numbers);

}  // namespace statescope

// Python's searches in strings, in time linear in their lengths. Places are in bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/chat/values/value.h"

namespace statescope::chat {

/// The first, the last place of `part`; npos.
std::size_t find_first(std::string_view text, std::string_view part, std::size_t from = 0);
std::size_t find_last(std::string_view text, std::string_view part);
std::size_t count(std::string_view text, std::string_view part);
/// At most `most` times; below 0: all.
std::string replaced(const std::string& text, const std::string& part, const std::string& by, std::int64_t most);
/// At every `mark`, at most `most` times from the left, or from the right. Throws Error for an empty mark.
Items split_at(const std::string& text, const std::string& mark, std::int64_t most, bool from_right);
/// At runs of white space.
Items split_at_space(const std::string& text, std::int64_t most, bool from_right);
std::string joined_text(const std::string& separator, const Items& parts);

}  // namespace statescope::chat

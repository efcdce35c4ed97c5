// The lines of a JSONL file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "datasets/files.h"

namespace statescope {

inline constexpr std::string_view kWhiteInTexts = " \t\r\n";

struct Line {
  std::size_t number = 0;  // from 1
  std::string_view text;
};

/// Calls `visit` with the number (from 1) and the text of each line that is not empty, until it returns false.
template <class Visit>
void for_each_line(std::string_view text, Visit visit) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (const std::string_view line = text.substr(0, end); line.find_first_not_of(" \t\r") != line.npos && !visit(number, line)) return;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// Of those that are not empty, from 0. Throws std::runtime_error naming the file.
inline Line line_at(const std::filesystem::path& path, std::string_view text, std::size_t index) {
  std::size_t count = 0;
  Line chosen;
  for_each_line(text, [&](std::size_t number, std::string_view line) {
    chosen = {number, line};
    return count++ < index;
  });
  if (count <= index) refuse(path, "has " + std::to_string(count) + " prompts; there is no number " + std::to_string(index));
  return chosen;
}

}  // namespace statescope

// Books as a haystack: one line of text, and where a sentence may be put into it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/philox.h"

namespace statescope {

/// With each run of white space made one space: a text file, whole; or every .txt file of a folder in order of name, of which evaluation
/// has the last tenth each and training what is before, joined by one space. Throws std::runtime_error with one line naming the file.
std::string prose(const std::filesystem::path& path, Split split);

/// 0, every place after a sentence's end and its space, and the text's size: ascending, each once.
std::vector<std::size_t> sentence_boundaries(std::string_view text);

}  // namespace statescope

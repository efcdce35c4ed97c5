// Files from outside, read whole. Every failure is a std::runtime_error of one line that begins with the file's path.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace statescope {

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& what);

/// UTF-8 text of at most 64 MiB, byte for byte.
std::string read_text(const std::filesystem::path& path);

/// Whether `offset` lies within a character of UTF-8 text.
bool splits_character(std::string_view text, std::size_t offset);

/// Nested at most 16 deep. `where` says which part of the file the text is: "", or "line 3: ".
nlohmann::json parse_json(const std::filesystem::path& path, std::string_view text, const std::string& where = "");

}  // namespace statescope

// Files from outside, read whole. Every failure is a std::runtime_error of one line that begins with the file's path.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace statescope {

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& what);

/// Standard input ("-"), a pipe, a device: it can be read but once.
bool is_stream(const std::filesystem::path& path);

/// The bytes of a file, or all that a stream gives, at most 64 MiB. What a stream gave is kept: it is the same the next time.
std::string read_bytes(const std::filesystem::path& path);
/// The same as UTF-8 text, byte for byte but for a byte order mark in front, which is no part of it.
std::string read_text(const std::filesystem::path& path);

/// Whether `offset` lies within a character of UTF-8 text.
bool splits_character(std::string_view text, std::size_t offset);

/// As other programs write numbers that JSON has not: NaN, Infinity and -Infinity outside of strings become null.
std::string without_nan_literals(std::string_view json);

/// Nested at most 16 deep. `where` says which part of the file the text is: "", or "line 3: ".
nlohmann::json parse_json(const std::filesystem::path& path, std::string_view text, const std::string& where = "");

}  // namespace statescope

// Texts as Python sees them: by code point, its white space, its cases. All texts are valid UTF-8.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace statescope::chat {

std::size_t count_code_points(std::string_view text);
/// Bytes of the code point that begins at `at`.
std::size_t code_point_size(std::string_view text, std::size_t at);
std::u32string code_points(std::string_view text);
std::string utf8(std::u32string_view text);
void append_utf8(std::string& text, char32_t letter);
bool valid_utf8(std::string_view text);

bool is_space(char32_t letter);  // Unicode's White_Space, and U+001C–001F
bool is_line_break(char32_t letter);
bool is_printable(char32_t letter);
bool is_alphabetic(char32_t letter);
bool is_decimal(char32_t letter);
bool is_digit(char32_t letter);
bool is_alphanumeric(char32_t letter);
bool is_lower(char32_t letter);
bool is_upper(char32_t letter);
bool is_title(char32_t letter);
bool is_word(char32_t letter);  // `\w`

std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
std::string title(std::string_view text);  // of the method: after every letter that has no case
std::string swapcase(std::string_view text);
std::string casefold(std::string_view text);

/// Which ends: "both", "left", "right".
enum class Ends { both, left, right };
/// Without the code points of `letters` at its ends; without white space where that is null.
std::string_view strip(std::string_view text, Ends ends, const std::u32string* letters = nullptr);
/// Python's str.splitlines.
std::vector<std::string> split_lines(std::string_view text, bool keep_ends = false);

/// With Python's escapes (\xe4, \u4f60, \U0001f600) for what is beyond ASCII.
std::string ascii_escaped(std::string_view text);

}  // namespace statescope::chat

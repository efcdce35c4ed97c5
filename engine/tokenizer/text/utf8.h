// Characters of UTF-8 and what takes the place of broken ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace statescope {

inline constexpr char32_t kReplacement = 0xFFFD;

/// A character, or the longest run of bytes that begins one and goes no further (Unicode §3.9, maximal subpart).
struct Character {
  char32_t code = kReplacement;
  std::uint32_t length = 1;  // bytes
  bool valid = false;
  bool cut = false;  // not valid, but more bytes behind the text's end could make it so
};

namespace utf8 {

/// `at` < text.size().
Character broken_or_long(std::string_view text, std::size_t at);
inline Character character_at(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  return byte < 0x80 ? Character{byte, 1, true, false} : broken_or_long(text, at);
}

void append(std::string& text, char32_t code);
std::string of(char32_t code);
bool is_valid(std::string_view text);
/// How many characters it has; every byte that begins none counts as one more.
std::size_t count(std::string_view text);
/// U+FFFD for every maximal broken part.
std::string repaired(std::string_view bytes);
/// Takes the whole characters off the front of `bytes`, repaired; what stays is the beginning of one that may go on.
std::string take_whole(std::string& bytes);

}  // namespace utf8
}  // namespace statescope

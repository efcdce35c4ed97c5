// A printable character for every byte, by which byte-level vocabularies are written (GPT-2).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace statescope::byte_alphabet {

/// 33–126, 161–172 and 174–255 stand for themselves, the other 68 bytes in order for U+0100, U+0101, …
char32_t character_of(unsigned char byte);
/// -1: not of the alphabet.
int byte_of(char32_t character);
/// The bytes that a piece spells; nothing if one of its characters is not of the alphabet.
std::optional<std::string> bytes_of(std::string_view piece);

}  // namespace statescope::byte_alphabet

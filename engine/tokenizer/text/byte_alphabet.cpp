#include "engine/tokenizer/text/byte_alphabet.h"

#include <array>

#include "engine/tokenizer/text/utf8.h"

namespace statescope::byte_alphabet {
namespace {

constexpr char32_t kOthers = 0x100;  // the first of those that stand for a byte other than their own

struct Alphabet {
  std::array<char32_t, 256> characters{};
  std::array<int, kOthers + 68> bytes{};

  Alphabet() {
    bytes.fill(-1);
    char32_t other = kOthers;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool is_own = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      characters[byte] = is_own ? static_cast<char32_t>(byte) : other++;
      bytes[characters[byte]] = static_cast<int>(byte);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet alphabet;
  return alphabet;
}

}  // namespace

char32_t character_of(unsigned char byte) { return alphabet().characters[byte]; }

int byte_of(char32_t character) { return character < alphabet().bytes.size() ? alphabet().bytes[character] : -1; }

std::optional<std::string> bytes_of(std::string_view piece) {
  std::string bytes;
  bytes.reserve(piece.size());
  for (std::size_t at = 0; at < piece.size();) {
    const Character character = utf8::character_at(piece, at);
    const int byte = byte_of(character.code);
    if (byte < 0) return std::nullopt;
    bytes += static_cast<char>(byte);
    at += character.length;
  }
  return bytes;
}

}  // namespace statescope::byte_alphabet

#include "engine/tokenizer/text/utf8.h"

namespace statescope::utf8 {
namespace {

struct Lead {
  std::uint32_t length = 0;               // of the character; 0: no character begins with that byte
  unsigned char low = 0x80, high = 0xBF;  // of the second byte
};

/// Table 3-7 of the Unicode standard: well-formed byte sequences.
Lead lead_of(unsigned char byte) {
  if (byte < 0xC2 || byte > 0xF4) return {};
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {4};
}

}  // namespace

Character broken_or_long(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(at) < 0x80) return {byte(at), 1, true, false};
  Lead lead = lead_of(byte(at));
  if (lead.length == 0) return {};
  char32_t code = byte(at) & (0x7FU >> lead.length);
  for (std::uint32_t i = 1; i < lead.length; ++i) {
    if (at + i == text.size()) return {kReplacement, i, false, true};
    if (byte(at + i) < lead.low || byte(at + i) > lead.high) return {kReplacement, i, false, false};
    lead.low = 0x80, lead.high = 0xBF;
    code = code << 6 | (byte(at + i) & 0x3FU);
  }
  return {code, lead.length, true, false};
}

void append(std::string& text, char32_t code) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  const auto put_rest = [&](int shift) { put(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xE0 | code >> 12);
    } else {
      put(0xF0 | code >> 18);
      put_rest(12);
    }
    put_rest(6);
  }
  put_rest(0);
}

std::string of(char32_t code) {
  std::string text;
  append(text, code);
  return text;
}

bool is_valid(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    if (!character.valid) return false;
    at += character.length;
  }
  return true;
}

std::size_t count(std::string_view text) {
  std::size_t characters = 0;
  for (std::size_t at = 0; at < text.size(); at += character_at(text, at).length) ++characters;
  return characters;
}

std::string repaired(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size();) {
    const Character character = character_at(bytes, at);
    if (character.valid)
      text += bytes.substr(at, character.length);
    else
      append(text, kReplacement);
    at += character.length;
  }
  return text;
}

std::string take_whole(std::string& bytes) {
  std::size_t end = 0;
  while (end < bytes.size()) {
    const Character character = character_at(bytes, end);
    if (character.cut) break;
    end += character.length;
  }
  std::string text = repaired(std::string_view(bytes).substr(0, end));
  bytes.erase(0, end);
  return text;
}

}  // namespace statescope::utf8

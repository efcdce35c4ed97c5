// A text that rules change, and what every byte of it stands for in the text that was given (NormalizedString of Hugging Face tokenizers,
// whose rules for the bytes of changed characters these are).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/text/unicode.h"
#include "engine/tokenizer/text/utf8.h"

namespace statescope {

/// Bytes [begin, end) of a text.
struct Range {
  std::uint32_t begin = 0, end = 0;
  std::uint32_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

class AlignedText {
 public:
  AlignedText() = default;
  /// A part of the given text, unchanged, that begins at byte `origin` of it.
  AlignedText(std::string_view part, std::size_t origin) : text_(part), origin_(static_cast<std::uint32_t>(origin)) {}

  /// The whole given text, with U+FFFD in place of what is no UTF-8.
  static AlignedText repaired(std::string_view text);

  const std::string& text() const { return text_; }
  std::string_view part(Range range) const { return std::string_view(text_).substr(range.begin, range.size()); }
  bool is_unchanged() const { return spans_.empty(); }
  /// The bytes of the given text that a part stands for.
  Range origin_of(Range range) const;
  AlignedText slice(Range range) const;

  /// The text becomes these characters.
  void transform(const std::vector<unicode::Changed>& changed);
  /// Every match becomes `content`, which stands for the match's last character. `matches` are in order and apart.
  void replace(const std::vector<Range>& matches, std::string_view content);
  /// Puts `content` in front; it stands for the first character. Nothing happens to an empty text.
  void prepend(std::string_view content);
  /// Keeps the characters for which `keep` holds.
  template <class Keep>
  void filter(Keep keep);
  void append(const AlignedText& other);

  /// Every byte as a character of the byte alphabet.
  AlignedText in_byte_alphabet() const;

 private:
  Range character_around(std::size_t byte) const;
  Range span_of(std::size_t byte) const;
  void make_spans();
  void put(std::string_view bytes, Range span);

  std::string text_;
  std::vector<Range> spans_;  // of every byte; empty: bytes are their own
  std::uint32_t origin_ = 0;
};

template <class Keep>
void AlignedText::filter(Keep keep) {
  AlignedText kept;
  kept.origin_ = origin_;
  for (std::size_t at = 0; at < text_.size();) {
    const Character character = utf8::character_at(text_, at);
    if (keep(character.code)) kept.put(std::string_view(text_).substr(at, character.length), span_of(at));
    at += character.length;
  }
  if (kept.text_.size() < text_.size()) *this = std::move(kept);
}

}  // namespace statescope

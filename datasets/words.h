// Texts made of words, joined by single spaces.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "datasets/example.h"

namespace statescope {

struct WordText {
  std::string text;
  std::vector<TextRange> words;  // of each word, its bytes

  /// The bytes of `count` words and of the spaces between them.
  TextRange range(std::size_t first, std::size_t count = 1) const { return {words[first].begin, words[first + count - 1].end}; }
  std::string at(TextRange range) const { return text.substr(range.begin, range.end - range.begin); }
};

inline WordText join(std::span<const std::string> words) {
  WordText joined;
  for (const std::string& word : words) {
    if (!joined.text.empty()) joined.text += ' ';
    joined.words.push_back({joined.text.size(), joined.text.size() + word.size()});
    joined.text += word;
  }
  return joined;
}

}  // namespace statescope

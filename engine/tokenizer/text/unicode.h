// What Unicode says of characters and texts (utf8proc; version 14).
#pragma once

#include <string>
#include <vector>

namespace statescope::unicode {

bool is_white_space(char32_t c);         // White_Space
bool is_word(char32_t c);                // \w: letters, marks, decimal digits, letter numbers, connectors, joiners
bool is_number(char32_t c);              // Nd, Nl, No
bool is_punctuation(char32_t c);         // P*
bool is_mark_without_space(char32_t c);  // Mn
bool is_control(char32_t c);             // Cc, Cf, Co (Cn is not among them)
/// Full lower-case mapping without rules of context.
std::u32string lower(char32_t c);

enum class Form { nfc, nfd, nfkc, nfkd };

/// A character of a changed text and what it stands for of the text before: `change` 1: put in, 0: takes the place of one character,
/// -n: takes the place of one and of the n behind it.
struct Changed {
  char32_t code;
  int change;
};
std::vector<Changed> normal_form(const std::u32string& text, Form form);

/// Whether a grapheme cluster (UAX 29) ends between two characters; `state` starts as 0 and is kept along a text.
bool is_cluster_break(char32_t before, char32_t after, int& state);

}  // namespace statescope::unicode

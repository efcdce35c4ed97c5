#include "app/controls/fuzzy.h"

#include <algorithm>

namespace statescope {
namespace {

constexpr int letter_score = 1, next_score = 6, start_score = 8, whole_score = 20, first_score = 4, all_score = 4;

char small_letter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool same(char a, char b) { return small_letter(a) == small_letter(b); }

bool begins_word(std::string_view text, std::size_t at) {
  return at == 0 || text[at - 1] == ' ' || text[at - 1] == '-' || text[at - 1] == '/' || text[at - 1] == '_';
}

/// The word as it stands, if it does: as all of the text, at its beginning, at that of a word, within one.
std::optional<int> whole_word(std::string_view word, std::string_view text) {
  std::optional<int> best;
  for (std::size_t at = 0; at + word.size() <= text.size(); ++at) {
    if (!std::ranges::equal(text.substr(at, word.size()), word, same)) continue;
    const int place =
        (begins_word(text, at) ? start_score : 0) + (at == 0 ? first_score : 0) + (text.size() == word.size() ? all_score : 0);
    best = std::max(best.value_or(0), whole_score + static_cast<int>(word.size()) * next_score + place);
  }
  return best;
}

/// From left to right, each letter where it follows the one before, else where it begins a word, else where it is at all.
std::optional<int> scattered(std::string_view word, std::string_view text) {
  int score = 0;
  std::size_t at = 0;
  for (const char letter : word) {
    const auto find = [&](const auto& fits) {
      std::size_t i = at;
      while (i < text.size() && !(same(text[i], letter) && fits(i))) ++i;
      return i;
    };
    const bool follows = at > 0 && at < text.size() && same(text[at], letter);
    std::size_t found = follows ? at : find([&](std::size_t i) { return begins_word(text, i); });
    if (found == text.size()) found = find([](std::size_t) { return true; });
    if (found == text.size()) return {};
    score += follows ? next_score : begins_word(text, found) ? start_score : letter_score;
    at = found + 1;
  }
  return score;
}

}  // namespace

std::optional<int> fuzzy_fit(std::string_view query, std::string_view text) {
  int score = 0;
  for (std::size_t at = 0; at < query.size();) {
    const std::size_t end = std::min(query.find(' ', at), query.size());
    const std::string_view word = query.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    std::optional<int> fit = whole_word(word, text);
    if (!fit) fit = scattered(word, text);
    if (!fit) return {};
    score += *fit;
  }
  return score;
}

std::optional<int> fuzzy_score(std::string_view query, std::string_view text) {
  const std::optional<int> fit = fuzzy_fit(query, text);
  if (!fit) return {};
  return *fit * 100 - static_cast<int>(std::min<std::size_t>(text.size(), 99));
}

}  // namespace statescope

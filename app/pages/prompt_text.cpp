#include "app/pages/prompt_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>
#include <utility>

#include "engine/error.h"
#include "engine/tokenizer/tokenizer.h"

namespace statescope {
namespace {

constexpr std::size_t kMostNearest = 3, kMostUnknown = 50;

std::vector<std::string> words_of(const Tokenizer& tokenizer, std::int64_t vocab) {
  std::vector<std::string> words;
  for (std::int32_t id = 0; id < vocab; ++id) words.push_back(tokenizer.text_of(id));
  return words;
}

std::vector<std::string> nearest_words(std::string_view word, const std::vector<std::string>& words) {
  std::vector<std::pair<std::size_t, std::string_view>> by_distance;
  for (const std::string& known : words) by_distance.emplace_back(edit_distance(word, known), known);
  const std::size_t count = std::min(kMostNearest, by_distance.size());
  std::partial_sort(by_distance.begin(), by_distance.begin() + static_cast<std::ptrdiff_t>(count), by_distance.end());
  std::vector<std::string> nearest;
  for (const auto& [distance, known] : by_distance)
    if (nearest.size() < count && distance < std::max<std::size_t>(word.size(), 2)) nearest.emplace_back(known);
  return nearest;
}

std::vector<UnknownWord> unknown_words(const Tokenizer& tokenizer, std::int64_t vocab, std::string_view text) {
  const std::vector<std::string> words = words_of(tokenizer, vocab);
  const std::set<std::string_view> known(words.begin(), words.end());
  std::vector<UnknownWord> unknown;
  for (std::size_t begin = text.find_first_not_of(kWhiteSpace); begin != text.npos && unknown.size() < kMostUnknown;) {
    const std::size_t end = std::min(text.find_first_of(kWhiteSpace, begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    if (!known.contains(word)) unknown.push_back({begin, end, nearest_words(word, words)});
    begin = text.find_first_not_of(kWhiteSpace, end);
  }
  return unknown;
}

}  // namespace

/// Only lists of words refuse a text.
TextReading read_text(const Tokenizer& tokenizer, std::int64_t vocab, const std::string& text, bool in_chat) {
  TextReading reading;
  try {
    reading.ids = tokenizer.encode(text, {.add_specials = !in_chat, .recognise_specials = in_chat}).ids;
  } catch (const Error& error) {
    reading.unknown = unknown_words(tokenizer, vocab, text);
    if (reading.unknown.empty()) reading.refused = error.what();
  }
  return reading;
}

/// d(i, j) = min(d(i−1, j) + 1, d(i, j−1) + 1, d(i−1, j−1) + [aᵢ ≠ bⱼ])
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, changed}));
    }
  }
  return row.back();
}

std::optional<std::vector<std::int32_t>> ids_in(const std::string& text) {
  constexpr std::string_view between = " \t\n\r,;[]";
  std::vector<std::int32_t> ids;
  for (std::size_t at = text.find_first_not_of(between); at != text.npos;) {
    const std::size_t end = std::min(text.find_first_of(between, at), text.size());
    std::int32_t id = 0;
    const auto [read, error] = std::from_chars(text.data() + at, text.data() + end, id);
    if (error != std::errc() || read != text.data() + end || id < 0) return {};
    ids.push_back(id);
    at = text.find_first_not_of(between, end);
  }
  return ids;
}

std::string ids_text(const std::vector<std::int32_t>& ids) { return fmt::format("{}", fmt::join(ids, " ")); }

}  // namespace statescope

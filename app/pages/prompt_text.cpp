#include "app/pages/prompt_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "engine/error.h"
#include "engine/tokenizer/nearest.h"
#include "engine/tokenizer/tokenizer.h"

namespace statescope {
namespace {

constexpr std::size_t kMostNearest = 3, kMostUnknown = 50;

std::vector<std::string> words_of(const Tokenizer& tokenizer, std::int64_t vocab) {
  std::vector<std::string> words;
  for (std::int32_t id = 0; id < vocab; ++id) words.push_back(tokenizer.text_of(id));
  return words;
}

std::vector<UnknownWord> unknown_words(const Tokenizer& tokenizer, std::int64_t vocab, std::string_view text) {
  const std::vector<std::string> words = words_of(tokenizer, vocab);
  const std::set<std::string_view> known(words.begin(), words.end());
  std::vector<UnknownWord> unknown;
  for (std::size_t begin = text.find_first_not_of(kWhiteSpace); begin != text.npos && unknown.size() < kMostUnknown;) {
    const std::size_t end = std::min(text.find_first_of(kWhiteSpace, begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    if (!known.contains(word)) unknown.push_back({begin, end, nearest(word, words, kMostNearest)});
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

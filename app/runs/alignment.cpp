#include "app/runs/alignment.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "engine/unread.h"
#include "views/words.h"

namespace statescope {
namespace {

std::span<const TokenInfo> prompt_of(const RunInfo& run) {
  return std::span(run.tokens).first(static_cast<std::size_t>(run.prompt_length - unread(run)));
}

/// Where each token ends in the text without white space, and that text.
struct Letters {
  std::string text;
  std::vector<std::size_t> end;
};

Letters letters_of(std::span<const TokenInfo> tokens) {
  Letters letters;
  for (const TokenInfo& token : tokens) {
    std::ranges::copy_if(token.text, std::back_inserter(letters.text),
                         [](char c) { return std::string_view(" \t\r\n").find(c) == std::string_view::npos; });
    letters.end.push_back(letters.text.size());
  }
  return letters;
}

/// For each token of `from` the first of `to` that ends no earlier.
std::vector<std::int64_t> by_characters(const Letters& from, const Letters& to) {
  std::vector<std::int64_t> result;
  for (const std::size_t end : from.end) {
    const auto found = std::ranges::lower_bound(to.end, std::max<std::size_t>(end, 1));
    result.push_back(std::min<std::int64_t>(found - to.end.begin(), std::ssize(to.end) - 1));
  }
  return result;
}

void add_generated(std::vector<std::int64_t>& map, const RunInfo& from, const RunInfo& to) {
  for (std::int64_t i = from.prompt_length; i < std::ssize(from.tokens); ++i)
    map.push_back(std::min(to.prompt_length + i - from.prompt_length, std::ssize(to.tokens) - 1));
}

std::int64_t same_tokens(const RunInfo& own, const RunInfo& other) {
  const auto same = [](const TokenInfo& a, const TokenInfo& b) { return a.id == b.id && a.text == b.text; };
  return std::ranges::mismatch(own.tokens, other.tokens, same).in1 - own.tokens.begin();
}

std::vector<std::int64_t> by_place(const RunInfo& from, const RunInfo& to) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < std::ssize(from.tokens); ++i) result.push_back(std::min(i, std::ssize(to.tokens) - 1));
  return result;
}

}  // namespace

Alignment align_by_place(const RunInfo& own, const RunInfo& other) {
  return {.refused = {}, .same_until = same_tokens(own, other), .other = by_place(own, other), .own = by_place(other, own)};
}

Alignment align(const RunInfo& own, const RunInfo& other) {
  Alignment result;
  result.same_until = same_tokens(own, other);
  const bool same_prompt = own.prompt_length == other.prompt_length && result.same_until >= own.prompt_length && own.prompt_length > 0;
  if (same_prompt) {
    for (std::int64_t i = 0; i < own.prompt_length; ++i) result.other.push_back(i);
    result.own = result.other;
  } else {
    const Letters a = letters_of(prompt_of(own)), b = letters_of(prompt_of(other));
    if (a.text != b.text || a.end.empty() || b.end.empty()) {
      result.refused = Views::tr("the two have not read the same text, so no token of one stands for a token of the other");
      return result;
    }
    result.other = by_characters(a, b);
    result.own = by_characters(b, a);
  }
  add_generated(result.other, own, other);
  add_generated(result.own, other, own);
  return result;
}

}  // namespace statescope

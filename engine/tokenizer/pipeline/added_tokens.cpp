#include "engine/tokenizer/pipeline/added_tokens.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/error.h"
#include "engine/tokenizer/pipeline/json_fields.h"
#include "engine/tokenizer/text/utf8.h"

namespace statescope {
namespace {

/// The character that ends before `end`; U+FFFD at the text's beginning.
Character character_before(std::string_view text, std::size_t end) {
  std::size_t begin = end;
  while (begin > 0 && end - begin < 4) {
    --begin;
    if ((static_cast<unsigned char>(text[begin]) & 0xC0) != 0x80) break;
  }
  return begin < end ? utf8::character_at(text, begin) : Character{};
}

bool is_within_word(std::string_view text, Range range) {
  const bool before = range.begin > 0 && unicode::is_word(character_before(text, range.begin).code);
  return before || (range.end < text.size() && unicode::is_word(utf8::character_at(text, range.end).code));
}

Range with_space_before(std::string_view text, Range range, std::uint32_t least) {
  while (range.begin > least) {
    const Character character = character_before(text, range.begin);
    if (!unicode::is_white_space(character.code) || character.length > range.begin - least) break;
    range.begin -= character.length;
  }
  return range;
}

Range with_space_behind(std::string_view text, Range range) {
  while (range.end < text.size()) {
    const Character character = utf8::character_at(text, range.end);
    if (!unicode::is_white_space(character.code)) break;
    range.end += character.length;
  }
  return range;
}

}  // namespace

void AddedTokens::add(AddedToken token) {
  by_id_[token.id] = tokens_.size();
  tokens_.push_back(std::move(token));
}

void AddedTokens::build(const std::vector<std::string>& contents) {
  std::vector<Trie::Key> raw, normalized;
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (!contents[i].empty()) (tokens_[i].normalized ? normalized : raw).push_back({contents[i], static_cast<std::int32_t>(i)});
  }
  raw_ = Trie(std::move(raw));
  normalized_ = Trie(std::move(normalized));
}

std::vector<Section> AddedTokens::cut(std::string_view text, bool normalized, bool recognise_specials) const {
  const Trie& trie = normalized ? normalized_ : raw_;
  std::vector<Section> sections;
  std::uint32_t done = 0;
  const auto size = static_cast<std::uint32_t>(text.size());
  for (std::uint32_t at = 0; !trie.empty() && at < size;) {
    const Trie::Match match =
        trie.next(0, static_cast<unsigned char>(text[at])) == Trie::kNone ? Trie::Match{} : trie.longest(text.substr(at));
    if (match.length == 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<std::size_t>(match.value)];
    Range range{at, at + static_cast<std::uint32_t>(match.length)};
    at = range.end;
    if (range.begin < done || (token.special && !recognise_specials) || (token.single_word && is_within_word(text, range))) continue;
    if (token.lstrip) range = with_space_before(text, range, done);
    if (token.rstrip) range = with_space_behind(text, range);
    if (done < range.begin) sections.push_back({{done, range.begin}, nullptr});
    sections.push_back({range, &token});
    done = range.end;
  }
  if (done < size) sections.push_back({{done, size}, nullptr});
  return sections;
}

const AddedToken* AddedTokens::of_id(std::int32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

AddedTokens AddedTokens::read(const nlohmann::json& list) {
  AddedTokens tokens;
  if (list.is_null()) return tokens;
  if (!list.is_array()) throw Error("added_tokens is not a list");
  for (const nlohmann::json& one : list) {
    const JsonFields fields("added_tokens", one);
    const bool special = fields.flag("special", false);
    tokens.add({.id = fields.id("id"),
                .content = fields.text("content"),
                .special = special,
                .normalized = fields.flag("normalized", !special),
                .lstrip = fields.flag("lstrip", false),
                .rstrip = fields.flag("rstrip", false),
                .single_word = fields.flag("single_word", false)});
  }
  return tokens;
}

}  // namespace statescope

#include "engine/tokenizer/vocabularies/word_piece.h"

#include <fmt/format.h>

#include "engine/checkpoint/file.h"
#include "engine/error.h"
#include "engine/tokenizer/text/utf8.h"

namespace statescope {

void WordPiece::split(std::string_view word, std::vector<TokenPiece>& pieces) const {
  const std::size_t before = pieces.size();
  const auto size = static_cast<std::uint32_t>(word.size());
  bool is_known = word.size() <= 4 * longest_ && utf8::count(word) <= longest_;
  for (std::size_t begin = 0; is_known && begin < word.size();) {
    const TokenPiece piece = piece_at(word, begin);
    is_known = piece.id != kNoId;
    if (is_known) pieces.push_back(piece);
    begin = piece.end;
  }
  if (is_known) return;
  pieces.resize(before);
  pieces.push_back({unknown_, 0, size});
}

/// The longest one that begins there.
TokenPiece WordPiece::piece_at(std::string_view word, std::size_t begin) const {
  std::string candidate = begin > 0 ? prefix_ : "";
  candidate += word.substr(begin);
  for (std::size_t end = word.size(); end > begin; --end) {
    const bool splits_character = end < word.size() && (static_cast<unsigned char>(word[end]) & 0xC0) == 0x80;
    if (!splits_character) {
      if (const std::int32_t id = vocabulary_.find(candidate); id != kNoId)
        return {id, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
    }
    candidate.pop_back();
  }
  return {kNoId, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(word.size())};
}

void WordLevel::split(std::string_view word, std::vector<TokenPiece>& pieces) const {
  std::int32_t id = vocabulary_.find(word);
  if (id == kNoId) id = unknown_;
  if (id == kNoId) throw Error(fmt::format("text: word {} is not in the vocabulary", in_quotes(word)));
  pieces.push_back({id, 0, static_cast<std::uint32_t>(word.size())});
}

}  // namespace statescope

#include "engine/tokenizer/vocabularies/unigram.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/checkpoint/file.h"
#include "engine/error.h"
#include "engine/tokenizer/text/utf8.h"

namespace statescope {

Unigram::Unigram(const Vocabulary& vocabulary, const std::vector<Scored>& scored, double lowest, Options options)
    : vocabulary_(vocabulary), options_(options), scores_(static_cast<std::size_t>(vocabulary.size())) {
  constexpr double penalty = 10;
  unknown_score_ = lowest - penalty;
  std::vector<Trie::Key> keys;
  for (const Scored& piece : scored) {
    scores_[static_cast<std::size_t>(piece.id)] = piece.score;
    if (const std::string_view text = vocabulary.piece(piece.id); !text.empty()) keys.push_back({text, piece.id});
  }
  trie_ = Trie(std::move(keys));
  if (!options.byte_fallback) return;
  for (unsigned byte = 0; byte < 256; ++byte) byte_ids_.push_back(vocabulary.find(fmt::format("<0x{:02X}>", byte)));
  if (std::ranges::find(byte_ids_, kNoId) != byte_ids_.end()) byte_ids_.clear();
}

template <class Sum>
std::vector<TokenPiece> Unigram::best_path(std::string_view word) const {
  struct Best {
    Sum score = 0;
    std::int32_t id = kNoId;  // of the last piece; kNoId: an unknown character
    std::uint32_t begin = 0;
    bool reached = false;
  };
  std::vector<Best> best(word.size() + 1);
  const auto offer = [&](std::size_t end, Sum score, std::int32_t id, std::size_t begin) {
    if (!best[end].reached || score > best[end].score) best[end] = {score, id, static_cast<std::uint32_t>(begin), true};
  };
  for (std::size_t begin = 0; begin < word.size();) {
    const std::size_t length = utf8::character_at(word, begin).length;
    const Sum here = best[begin].score;
    bool has_character = false;
    std::int32_t node = 0;
    for (std::size_t end = begin; end < word.size();) {
      node = trie_.next(node, static_cast<unsigned char>(word[end++]));
      if (node == Trie::kNone) break;
      const std::int32_t id = trie_.value(node);
      if (id == Trie::kNone) continue;
      // best[end] = max(best[begin] + score(piece))
      offer(end, here + static_cast<Sum>(scores_[static_cast<std::size_t>(id)]), id, begin);
      has_character = has_character || end - begin == length;
    }
    if (!has_character) offer(begin + length, here + static_cast<Sum>(unknown_score_), kNoId, begin);
    begin += length;
  }
  std::vector<TokenPiece> path;
  for (std::size_t end = word.size(); end > 0; end = best[end].begin)
    path.push_back({best[end].id, best[end].begin, static_cast<std::uint32_t>(end)});
  std::ranges::reverse(path);
  return path;
}

void Unigram::split(std::string_view word, std::vector<TokenPiece>& pieces) const {
  const std::vector<TokenPiece> path = options_.sum == ScoreSum::in_float ? best_path<float>(word) : best_path<double>(word);
  for (std::size_t i = 0; i < path.size(); ++i) {
    TokenPiece piece = path[i];
    if (piece.id != kNoId || options_.keeps_unknown) {
      pieces.push_back(piece);
      continue;
    }
    while (i + 1 < path.size() && path[i + 1].id == kNoId) piece.end = path[++i].end;
    put_unknown(word, piece, pieces);
  }
}

/// Unknown characters that stand together are one piece, or their bytes.
void Unigram::put_unknown(std::string_view word, TokenPiece piece, std::vector<TokenPiece>& pieces) const {
  const std::string_view text = word.substr(piece.begin, piece.end - piece.begin);
  if (const std::int32_t id = vocabulary_.find(text); id != kNoId) {
    pieces.push_back({id, piece.begin, piece.end});
    return;
  }
  if (byte_ids_.empty()) {
    if (options_.unknown == kNoId)
      throw Error(fmt::format("text: {} has no piece, and the vocabulary none for what is unknown", in_quotes(text)));
    pieces.push_back({options_.unknown, piece.begin, piece.end});
    return;
  }
  for (const char byte : text) pieces.push_back({byte_ids_[static_cast<unsigned char>(byte)], piece.begin, piece.end});
}

}  // namespace statescope

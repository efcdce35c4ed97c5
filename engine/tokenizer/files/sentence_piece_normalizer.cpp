#include "engine/tokenizer/files/sentence_piece_normalizer.h"

#include "engine/tokenizer/text/utf8.h"

namespace statescope {

SentencePieceNormalizer::SentencePieceNormalizer(const SentencePieceFile& file)
    : file_(file), charsmap_(file.charsmap), space_(file.escape_spaces ? "▁" : " ") {
  std::vector<Trie::Key> keys;
  for (std::size_t id = 0; id < file.pieces.size(); ++id) {
    const SentencePieceFile::Piece& piece = file.pieces[id];
    if (piece.type == SentencePieceFile::Type::user_defined && !piece.text.empty())
      keys.push_back({piece.text, static_cast<std::int32_t>(id)});
  }
  if (!keys.empty()) user_ = Trie(std::move(keys));
}

/// A user-defined piece, the longest key of the table, or a character.
SentencePieceNormalizer::Chunk SentencePieceNormalizer::chunk_at(std::string_view rest) const {
  if (const Trie::Match match = user_.longest(rest); match.length > 0) return {rest.substr(0, match.length), match.length};
  if (const auto match = charsmap_.longest(rest)) return {match->value, match->length};
  const Character character = utf8::character_at(rest, 0);
  if (!character.valid) return {"\xEF\xBF\xBD", 1};
  return {rest.substr(0, character.length), character.length};
}

SentencePieceText SentencePieceNormalizer::normal(std::string_view given) const {
  SentencePieceText result;
  std::size_t at = 0;
  const auto put = [&](std::string_view bytes) {
    result.text += bytes;
    result.origin.insert(result.origin.end(), bytes.size(), static_cast<std::uint32_t>(at));
  };
  if (file_.remove_extra_spaces) {
    while (at < given.size()) {
      const Chunk chunk = chunk_at(given.substr(at));
      if (chunk.text != " ") break;
      at += chunk.length;
    }
  }
  if (at < given.size() && file_.add_dummy_prefix && !file_.space_is_suffix) put(space_);
  const bool has_text = at < given.size();
  bool follows_space = file_.remove_extra_spaces;
  while (at < given.size()) {
    Chunk chunk = chunk_at(given.substr(at));
    while (follows_space && chunk.text.starts_with(' ')) chunk.text.remove_prefix(1);
    for (const char byte : chunk.text) put(byte == ' ' ? std::string_view(space_) : std::string_view(&byte, 1));
    if (!chunk.text.empty()) follows_space = chunk.text.ends_with(' ');
    at += chunk.length;
    follows_space = follows_space && file_.remove_extra_spaces;
  }
  while (file_.remove_extra_spaces && result.text.ends_with(space_)) {
    const std::size_t size = result.text.size() - space_.size();
    at = result.origin[size];
    result.text.resize(size);
    result.origin.resize(size);
  }
  if (has_text && file_.add_dummy_prefix && file_.space_is_suffix) put(space_);
  result.origin.push_back(static_cast<std::uint32_t>(at));
  return result;
}

}  // namespace statescope

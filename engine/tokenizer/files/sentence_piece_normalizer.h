// How sentencepiece changes a text before it is split.
#pragma once

#include <string>
#include <vector>

#include "engine/tokenizer/files/sentence_piece_file.h"
#include "engine/tokenizer/text/charsmap.h"
#include "engine/tokenizer/text/trie.h"

namespace statescope {

struct SentencePieceText {
  std::string text;
  std::vector<std::uint32_t> origin;  // of each byte of the text, and of its end: the byte of the given text
};

class SentencePieceNormalizer {
 public:
  /// `file` stays where it is. Throws Error.
  explicit SentencePieceNormalizer(const SentencePieceFile& file);
  SentencePieceText normal(std::string_view given) const;
  /// The user-defined piece that begins there.
  Trie::Match user_defined(std::string_view text) const { return user_.longest(text); }
  bool has_user_defined() const { return !user_.empty(); }

 private:
  struct Chunk {
    std::string_view text;
    std::size_t length;  // bytes of what was given
  };
  Chunk chunk_at(std::string_view rest) const;

  const SentencePieceFile& file_;
  Charsmap charsmap_;
  Trie user_;
  std::string space_;  // what a space becomes
};

}  // namespace statescope

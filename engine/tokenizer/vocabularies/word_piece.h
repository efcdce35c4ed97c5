// The longest piece first (WordPiece), and whole words alone (WordLevel).
#pragma once

#include <string>

#include "engine/tokenizer/vocabularies/model.h"

namespace statescope {

class WordPiece final : public PieceModel {
 public:
  /// `vocabulary` stays where it is; `prefix` is that of all pieces but a word's first; a word of more characters than `longest` is
  /// unknown.
  WordPiece(const Vocabulary& vocabulary, std::int32_t unknown, std::string prefix, std::size_t longest)
      : vocabulary_(vocabulary), unknown_(unknown), prefix_(std::move(prefix)), longest_(longest) {}
  void split(std::string_view word, std::vector<TokenPiece>& pieces) const override;

 private:
  TokenPiece piece_at(std::string_view word, std::size_t begin) const;

  const Vocabulary& vocabulary_;
  std::int32_t unknown_;
  std::string prefix_;
  std::size_t longest_;
};

class WordLevel final : public PieceModel {
 public:
  WordLevel(const Vocabulary& vocabulary, std::int32_t unknown) : vocabulary_(vocabulary), unknown_(unknown) {}
  /// Throws Error for an unknown word where there is no piece for those.
  void split(std::string_view word, std::vector<TokenPiece>& pieces) const override;

 private:
  const Vocabulary& vocabulary_;
  std::int32_t unknown_;
};

}  // namespace statescope

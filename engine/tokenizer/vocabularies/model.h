// How one word is split into pieces of the vocabulary.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/tokenizer/vocabularies/vocabulary.h"

namespace statescope {

/// A piece of a word, and its bytes [begin, end) there; pieces that spell a character byte by byte may share its bytes.
struct TokenPiece {
  std::int32_t id;
  std::uint32_t begin, end;
};

class PieceModel {
 public:
  virtual ~PieceModel() = default;
  /// Appends the pieces of a word, which is not empty. Safe from several threads.
  virtual void split(std::string_view word, std::vector<TokenPiece>& pieces) const = 0;
  /// Whether a word that stands before ▁ in a text never joins with what comes: such a text can be split by its words.
  virtual bool ends_before_sign() const { return false; }
};

}  // namespace statescope

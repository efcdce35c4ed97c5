// Byte-pair encoding by a list of merges (Sennrich et al., 2016), as Hugging Face tokenizers have it.
#pragma once

#include <array>
#include <string>

#include "engine/tokenizer/vocabularies/merging.h"
#include "engine/tokenizer/vocabularies/model.h"

namespace statescope {

struct BpeOptions {
  std::int32_t unknown = kNoId;  // stands for characters without a piece; none: they are left out
  bool fuse_unknown = false;     // neighbouring ones are one
  bool byte_fallback = false;    // characters without a piece are spelled <0xE4>
  bool ignore_merges = false;    // a whole word in the vocabulary is that piece
  bool bytes = false;            // words are bytes, which the vocabulary writes in the byte alphabet
  std::string prefix;            // of all but a word's first symbol
  std::string suffix;            // of a word's last symbol
};

/// Pairs of ids and what they become.
class MergeTable {
 public:
  struct Value {
    std::uint32_t rank;
    std::int32_t id;
  };
  void reserve(std::size_t merges);
  /// The first of equal pairs counts.
  void add(std::int32_t left, std::int32_t right, Value value);
  /// Null if they do not merge.
  const Value* find(std::int32_t left, std::int32_t right) const;

 private:
  struct Slot {
    std::uint64_t pair = kEmpty;
    Value value;
  };
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  std::size_t slot_of(std::uint64_t pair) const;
  std::vector<Slot> slots_;
  std::size_t pairs_ = 0;
};

class Bpe final : public PieceModel {
 public:
  /// `vocabulary` stays where it is.
  Bpe(const Vocabulary& vocabulary, BpeOptions options);
  void reserve(std::size_t merges) { merges_.reserve(merges); }
  /// In the order of their ranks. Throws Error where a part or the result is not in the vocabulary.
  void add_merge(std::string_view left, std::string_view right);

  void split(std::string_view word, std::vector<TokenPiece>& pieces) const override;
  bool ends_before_sign() const override;

 private:
  std::int32_t whole_word(std::string_view word) const;
  void put_symbols(std::string_view word, std::vector<Symbol>& symbols) const;
  void put_character(std::string_view word, std::uint32_t begin, std::uint32_t end, std::vector<Symbol>& symbols) const;

  const Vocabulary& vocabulary_;
  BpeOptions options_;
  MergeTable merges_;
  std::uint32_t next_rank_ = 0;
  std::array<std::int32_t, 256> byte_ids_{};  // of single bytes, or of <0xE4>
  bool has_all_bytes_ = false;
  bool joins_before_sign_ = false;  // a merge's result has ▁ behind another character
};

}  // namespace statescope

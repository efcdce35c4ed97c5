// The most probable way to split a word into pieces (Kudo, 2018), by Viterbi's algorithm.
#pragma once

#include "engine/tokenizer/text/trie.h"
#include "engine/tokenizer/vocabularies/model.h"

namespace statescope {

/// Scores of paths are summed as Hugging Face does, in double, or as sentencepiece does, in float: where two paths are equally probable the
/// rounding decides.
enum class ScoreSum { in_double, in_float };

class Unigram final : public PieceModel {
 public:
  struct Scored {
    std::int32_t id;
    double score;
  };
  struct Options {
    std::int32_t unknown = kNoId;
    bool byte_fallback = false;
    bool keeps_unknown = false;  // unknown characters come one by one, as kNoId
    ScoreSum sum = ScoreSum::in_double;
  };
  /// `vocabulary` stays where it is; `scored`: the pieces that match text. `lowest`: of all scores.
  Unigram(const Vocabulary& vocabulary, const std::vector<Scored>& scored, double lowest, Options options);

  /// Throws Error where a character has no piece and there is no piece for unknown ones.
  void split(std::string_view word, std::vector<TokenPiece>& pieces) const override;

 private:
  template <class Sum>
  std::vector<TokenPiece> best_path(std::string_view word) const;
  void put_unknown(std::string_view word, TokenPiece piece, std::vector<TokenPiece>& pieces) const;

  const Vocabulary& vocabulary_;
  Options options_;
  Trie trie_;
  std::vector<double> scores_;  // by id
  double unknown_score_;
  std::vector<std::int32_t> byte_ids_;  // of <0x00> … <0xFF>; empty: not all are there, or they are not wanted
};

}  // namespace statescope

// What a sentencepiece model file holds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace statescope {

struct SentencePieceFile {
  enum class Type { normal = 1, unknown, control, user_defined, unused, byte };
  struct Piece {
    std::string text;
    float score = 0;
    Type type = Type::normal;
  };
  std::vector<Piece> pieces;  // by id
  bool is_bpe = false;        // else Unigram
  bool space_is_suffix = false, byte_fallback = false;
  std::int64_t unknown = 0, begin = 1, end = 2;  // ids; below 0: none
  std::string unknown_surface = " \xE2\x81\x87 ";
  std::string charsmap;
  bool add_dummy_prefix = true, remove_extra_spaces = true, escape_spaces = true;
};

/// Throws Error naming what is damaged or not supported.
SentencePieceFile parse_sentence_piece_file(std::string_view bytes);

}  // namespace statescope

// Pieces that are bytes, merged by their ranks: tiktoken's vocabularies and tekken's.
#pragma once

#include <string>

#include "engine/tokenizer/files/files.h"
#include "engine/tokenizer/pipeline/added_tokens.h"
#include "engine/tokenizer/text/split_pattern.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/vocabularies/model.h"

namespace statescope {

struct BytePieces {
  TokenizerInfo info;     // kind, begin_of_text, end_of_text; the rest is filled in
  Vocabulary vocabulary;  // the lower the id, the earlier a merge; has all single bytes
  std::string pattern;    // cuts a text into words
  AddedTokens specials;
  bool finds_specials = true;        // in a text, where it is asked for
  std::vector<std::int32_t> before;  // special tokens in front of a text
};

/// Throws Error where a single byte is missing or the pattern is not understood.
std::unique_ptr<Tokenizer> byte_piece_tokenizer(BytePieces pieces);

/// A tiktoken file: a piece in base64 and its rank in each line. It says neither pattern nor special tokens: meta.json beside it does
/// (pat_str, special_tokens), or the number of pieces tells the model. Throws Error.
std::unique_ptr<Tokenizer> read_tiktoken(const TokenizerFiles& files, const std::string& name, std::string_view text);
/// Whether the text's first line is one of such a file.
bool is_tiktoken(std::string_view text);

/// tekken.json of Mistral. Throws Error.
std::unique_ptr<Tokenizer> read_tekken(const TokenizerFiles& files, const std::string& name, const std::string& text);

}  // namespace statescope

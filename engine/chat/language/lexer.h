// A template's text as tokens, with the white space rules of trim_blocks and lstrip_blocks.
#pragma once

#include <string>
#include <vector>

#include "engine/chat/values/value.h"

namespace statescope::chat {

struct Token {
  enum class Kind { data, variable_begin, variable_end, block_begin, block_end, name, string, number, sign, end };
  Kind kind = Kind::end;
  std::string text;  // of data, names, strings (without escapes) and signs
  Value number;
  std::size_t line = 1;
};

/// A template that is not one, and where.
class SyntaxError : public Error {
 public:
  SyntaxError(std::size_t line, const std::string& what);
};

/// The last token is `end`. `source`: UTF-8. Throws SyntaxError.
std::vector<Token> tokens_of(const std::string& source);

}  // namespace statescope::chat

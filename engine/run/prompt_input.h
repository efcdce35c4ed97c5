// A prompt as it is given to a model: its text with what is marked in it, or token ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/snapshot.h"

namespace statescope {

/// Bytes [begin, end) of a prompt's text that mean something to the reader; tokens where the prompt is token ids.
struct TextSpan {
  SpanKind kind = SpanKind::needle;
  std::size_t begin = 0, end = 0;
};

/// What one of a conversation's sides says, with what is marked in it.
struct ChatTurn {
  std::string role, text;
  std::vector<TextSpan> spans = {};
};

/// What to read: a text, or, where `ids` is not empty, token ids as they are.
struct PromptInput {
  std::string text;
  std::vector<TextSpan> spans;
  std::vector<std::int32_t> ids;
  std::string expected;                  // what a right answer says; empty: unknown
  std::optional<std::int64_t> generate;  // tokens to generate (greedily) after the prompt; unset: as many as `expected` has
  bool in_chat = false;                  // the text is a chat template's: special tokens in it are those, and none come beside them
  std::vector<ChatTurn> turns = {};      // what that text was made of, where it is known
};

}  // namespace statescope

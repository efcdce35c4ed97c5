// A prompt as it is being written: what a tokenizer makes of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/session/session.h"

namespace statescope {

class Tokenizer;
namespace chat {
class TemplateFolder;
}

inline constexpr std::string_view kWhiteSpace = " \t\n\v\f\r";

/// Bytes [begin, end) of a text: a word that the model has not learned, and those of its own that are spelt most like it, the nearest
/// first.
struct UnknownWord {
  std::size_t begin = 0, end = 0;
  std::vector<std::string> nearest;
};

struct TextReading {
  std::vector<std::int32_t> ids;
  std::vector<UnknownWord> unknown;  // of a model that knows words alone; then there are no ids
  std::string refused;               // why there are none, where that is something else
  std::string chat;                  // the text that was read, where it is a chat template's
  std::vector<TextSpan> spans;       // what was marked in its turns, in it
  bool lost_marks = false;           // a template that changes the words leaves no place for them
};
/// `vocab`: ids of the model; `in_chat`: as of PromptInput. As long as the text is: not for the interface thread.
TextReading read_text(const Tokenizer& tokenizer, std::int64_t vocab, const std::string& text, bool in_chat = false);

/// "12 7 99", "[12, 7, 99]". Nothing where something else stands there.
std::optional<std::vector<std::int32_t>> ids_in(const std::string& text);
std::string ids_text(const std::vector<std::int32_t>& ids);

}  // namespace statescope

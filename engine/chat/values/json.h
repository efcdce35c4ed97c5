// JSON from outside into values, and values into JSON as Python's json.dumps writes it.
#pragma once

#include <optional>
#include <string>

#include "engine/chat/values/value.h"

namespace statescope::chat {

/// Key order, and the difference between 1 and 1.0, are kept. `what` names the text in the Error.
Value parse_json(const std::string& text, const std::string& what);

struct JsonStyle {
  bool ensure_ascii = false, sort_keys = false;
  std::optional<std::string> indent;
  std::string item_separator = ", ", key_separator = ": ";
};
/// Throws Error for what JSON has no word for.
std::string json_text(const Value& value, const JsonStyle& style);

}  // namespace statescope::chat

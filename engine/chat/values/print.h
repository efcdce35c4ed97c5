// Values as Python prints them.
#pragma once

#include <string>

#include "engine/chat/values/value.h"

namespace statescope::chat {

std::string text_of(Int value);
/// Python's repr of a float: the shortest digits that read back, an exponent below 1e-4 and from 1e16 on.
std::string float_text(double value);
/// Python's repr of a str.
std::string quoted(const std::string& text);
/// Python's repr. Throws Error for what would show an address.
std::string repr(const Value& value);
/// Python's str: what `{{ value }}` writes.
std::string printed(const Value& value);

/// A text that grows. Throws Error beyond kMostBytes.
class Builder {
 public:
  void add(std::string_view more);
  void add(std::size_t count, char letter);
  std::string take() { return std::move(text_); }
  std::size_t size() const { return text_.size(); }

 private:
  std::string text_;
};

}  // namespace statescope::chat

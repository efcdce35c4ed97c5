#include "engine/chat/values/string_literal.h"

#include <fmt/format.h>

#include "engine/chat/values/unicode.h"
#include "engine/error.h"

namespace statescope::chat {
namespace {

class LiteralReader {
 public:
  explicit LiteralReader(std::string text) : text_(std::move(text)) {}

  std::string run() {
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c != '\\') {
        out_ += c;
      } else if (at_ == text_.size()) {
        throw Error("a string ends with a backslash");
      } else {
        escape(text_[at_++]);
      }
    }
    return std::move(out_);
  }

 private:
  void escape(char c) {
    static constexpr std::string_view kNames = "abfnrtv\\'\"", kLetters = "\a\b\f\n\r\t\v\\'\"";
    const std::size_t simple = kNames.find(c);
    if (c == '\n') return;
    if (simple != std::string_view::npos) {
      out_ += kLetters[simple];
    } else if (c == 'x' || c == 'u' || c == 'U') {
      code(hexadecimal(c == 'x' ? 2 : c == 'u' ? 4 : 8));
    } else if (c >= '0' && c <= '7') {
      octal(c);
    } else if (c == 'N') {
      throw Error("\\N{…} in a string is not supported");
    } else {
      out_ += '\\';
      out_ += c;
    }
  }

  std::uint32_t hexadecimal(std::size_t digits) {
    const std::string number = text_.substr(at_, digits);
    if (number.size() < digits || number.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
      throw Error("an escape in a string is cut off");
    at_ += digits;
    return static_cast<std::uint32_t>(std::stoul(number, nullptr, 16));
  }

  void octal(char c) {
    std::uint32_t value = static_cast<std::uint32_t>(c - '0');
    for (int more = 0; more < 2 && at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '7'; ++more) {
      value = value * 8 + static_cast<std::uint32_t>(text_[at_++] - '0');
    }
    code(value);
  }

  void code(std::uint32_t value) {
    if (value > 0x10FFFF) throw Error("illegal Unicode character in a string");
    if (value >= 0xD800 && value < 0xE000) throw Error("a lone surrogate in a string is not supported");
    append_utf8(out_, static_cast<char32_t>(value));
  }

  std::string text_, out_;
  std::size_t at_ = 0;
};

}  // namespace

/// As Jinja does first: what is beyond ASCII becomes an escape, so that a backslash before it is one that stands for itself.
std::string unescaped(std::string_view text) { return LiteralReader(ascii_escaped(text)).run(); }

}  // namespace statescope::chat

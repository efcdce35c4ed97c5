#include "engine/chat/language/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "engine/chat/values/numbers.h"
#include "engine/chat/values/print.h"
#include "engine/chat/values/string_literal.h"
#include "engine/chat/values/unicode.h"

namespace statescope::chat {
namespace {

/// `\r\n` and `\r` are `\n`; one `\n` at the end goes.
std::string with_plain_lines(const std::string& source) {
  std::string out;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
    } else if (i + 1 == source.size() || source[i + 1] != '\n') {
      out += '\n';
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

bool is_number(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(const std::string& source) : source_(with_plain_lines(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) text_and_tag();
    add(Token::Kind::end);
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw SyntaxError(line_, what); }
  bool here(std::string_view text) const { return std::string_view(source_).substr(at_).starts_with(text); }
  bool here(std::string_view text, std::size_t at) const {
    return at <= source_.size() && std::string_view(source_).substr(at).starts_with(text);
  }

  void add(Token::Kind kind, std::string text = "") { tokens_.push_back({kind, std::move(text), {}, line_}); }

  /// Moves to `end`.
  void go(std::size_t end) {
    line_ += static_cast<std::size_t>(
        std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_), source_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    if (end > at_) line_begins_ = source_[end - 1] == '\n';
    at_ = end;
  }

  std::size_t after_space(std::size_t at) const { return source_.size() - strip(std::string_view(source_).substr(at), Ends::left).size(); }

  /// The text up to `begin`, where a tag stands with this sign after its brace, less the white space that goes.
  void add_text(std::size_t begin, char sign, bool variable) {
    std::string_view text = std::string_view(source_).substr(at_, begin - at_);
    if (sign == '-') {
      text = strip(text, Ends::right);
    } else if (sign != '+' && !variable) {
      const std::size_t line = text.rfind('\n') + 1;
      if ((line > 0 || line_begins_) && strip(text.substr(line), Ends::left).empty()) text = text.substr(0, line);
    }
    if (!text.empty()) add(Token::Kind::data, std::string(text));
  }

  char sign_at(std::size_t at) const { return at < source_.size() && (source_[at] == '-' || source_[at] == '+') ? source_[at] : '\0'; }

  void text_and_tag() {
    std::size_t begin = at_;
    while (begin < source_.size() && !(here("{%", begin) || here("{{", begin) || here("{#", begin))) {
      begin = std::min(source_.find('{', begin + 1), source_.size());
    }
    if (begin == source_.size()) {
      add(Token::Kind::data, source_.substr(at_));
      return go(begin);
    }
    const char sign = sign_at(begin + 2), mark = source_[begin + 1];
    add_text(begin, sign, mark == '{');
    go(begin);
    if (const std::size_t raw = mark == '%' ? raw_end(begin, sign) : 0) return raw_text(raw);
    go(begin + (sign ? 3 : 2));
    if (mark == '#') return comment();
    add(mark == '{' ? Token::Kind::variable_begin : Token::Kind::block_begin);
    while (!tag_end(mark == '{')) token();
  }

  /// Behind `{% raw %}`, 0 where that does not stand there.
  std::size_t raw_end(std::size_t begin, char sign) const {
    std::size_t at = after_space(begin + (sign ? 3 : 2));
    if (!here("raw", at)) return 0;
    at = after_space(at + 3);
    if (here("%}", at)) return at + 2;
    return here("-%}", at) ? after_space(at + 3) : 0;
  }

  void raw_text(std::size_t begin) {
    go(begin);
    for (std::size_t tag = source_.find("{%", begin); tag != std::string::npos; tag = source_.find("{%", tag + 1)) {
      const char sign = sign_at(tag + 2);
      std::size_t at = after_space(tag + (sign ? 3 : 2));
      if (!here("endraw", at)) continue;
      at = after_space(at + 6);
      const std::size_t end = block_end(at);
      if (end == 0) continue;
      add_text(tag, sign, false);
      return go(end);
    }
    fail("the end of a raw block is missing");
  }

  /// Behind `%}` and what goes with it, 0 where that does not stand there.
  std::size_t block_end(std::size_t at, std::string_view mark = "%}") const {
    const std::string m(mark);
    if (here("-" + m, at)) return after_space(at + 3);
    if (here("+" + m, at)) return at + 3;
    return here(m, at) ? at + 2 + (here("\n", at + 2) ? 1 : 0) : 0;
  }

  void comment() {
    std::size_t end = source_.find("#}", at_);
    if (end == std::string::npos) fail("the end of a comment is missing");
    if (end > at_ && (source_[end - 1] == '-' || source_[end - 1] == '+')) --end;
    go(block_end(end, "#}"));
  }

  /// Whether the tag ends here, and moves behind it then.
  bool tag_end(bool variable) {
    if (at_ >= source_.size()) fail("a tag is not closed");
    if (!open_.empty()) return false;
    const std::size_t end = !variable ? block_end(at_) : here("-}}") ? after_space(at_ + 3) : here("}}") ? at_ + 2 : 0;
    if (end == 0) return false;
    add(variable ? Token::Kind::variable_end : Token::Kind::block_end);
    go(end);
    return true;
  }

  void token() {
    const std::size_t begin = after_space(at_);
    if (begin > at_) return go(begin);
    if (is_number(source_[at_])) return number();
    if (source_[at_] == '\'' || source_[at_] == '"') return string();
    const std::size_t end = name_end();
    if (end > at_) {
      add(Token::Kind::name, source_.substr(at_, end - at_));
      return go(end);
    }
    sign();
  }

  std::size_t name_end() const {
    std::size_t end = at_;
    while (end < source_.size()) {
      const std::size_t size = code_point_size(source_, end);
      if (!is_word(code_points(std::string_view(source_).substr(end, size))[0])) break;
      end += size;
    }
    return end;
  }

  /// Digits, with single _ between them.
  std::size_t digits_end(std::size_t at, std::string_view digits, bool leading = false) const {
    const auto is = [&](std::size_t i) { return i < source_.size() && digits.find(source_[i]) != std::string_view::npos; };
    if (!is(at) && !(leading && at < source_.size() && source_[at] == '_' && is(at + 1))) return at;
    while (is(at) || (at < source_.size() && source_[at] == '_' && is(at + 1))) ++at;
    return at;
  }

  std::size_t float_end() const {
    constexpr std::string_view kDigits = "0123456789";
    if (at_ > 0 && source_[at_ - 1] == '.') return at_;
    std::size_t end = digits_end(at_, kDigits);
    bool is_float = false;
    if (here(".", end) && end + 1 < source_.size() && is_number(source_[end + 1])) {
      end = digits_end(end + 1, kDigits);
      is_float = true;
    }
    if (here("e", end) || here("E", end)) {
      const std::size_t exponent = end + 1 + (here("+", end + 1) || here("-", end + 1) ? 1 : 0);
      if (exponent < source_.size() && is_number(source_[exponent])) return digits_end(exponent, kDigits);
    }
    return is_float ? end : at_;
  }

  std::size_t integer_end() const {
    if (source_[at_] != '0') return digits_end(at_, "0123456789");
    const char mark = at_ + 1 < source_.size() ? source_[at_ + 1] : '\0';
    const std::string_view digits = mark == 'x' || mark == 'X'   ? "0123456789abcdefABCDEF"
                                    : mark == 'o' || mark == 'O' ? "01234567"
                                    : mark == 'b' || mark == 'B' ? "01"
                                                                 : "";
    const std::size_t end = digits.empty() ? at_ : digits_end(at_ + 2, digits, true);
    return end > at_ + 2 ? end : digits_end(at_, "0");
  }

  void number() {
    const bool is_float = float_end() > at_;
    const std::size_t end = is_float ? float_end() : integer_end();
    std::string text = source_.substr(at_, end - at_);
    std::erase(text, '_');
    add(Token::Kind::number, text);
    tokens_.back().number = is_float ? Value(std::strtod(text.c_str(), nullptr)) : Value(*parse_integer(text, 0));
    go(end);
  }

  void string() {
    const char mark = source_[at_];
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != mark) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail(fmt::format("unexpected character {}", mark));
    try {
      add(Token::Kind::string, unescaped(std::string_view(source_).substr(at_ + 1, end - at_ - 1)));
    } catch (const Error& error) {
      fail(error.what());
    }
    go(end + 1);
  }

  void sign() {
    static constexpr std::array<std::string_view, 26> kSigns{"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                                             "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    const auto found = std::ranges::find_if(kSigns, [&](std::string_view sign) { return here(sign); });
    if (found == kSigns.end()) fail(fmt::format("unexpected character {}", quoted(source_.substr(at_, code_point_size(source_, at_)))));
    balance((*found)[0]);
    add(Token::Kind::sign, std::string(*found));
    go(at_ + found->size());
  }

  /// Brackets open and closed; a tag does not end within.
  void balance(char c) {
    if (c == '(' || c == '[' || c == '{') open_ += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c != ')' && c != ']' && c != '}') return;
    if (open_.empty()) fail(fmt::format("unexpected '{}'", c));
    if (open_.back() != c) fail(fmt::format("unexpected '{}', expected '{}'", c, open_.back()));
    open_.pop_back();
  }

  std::string source_, open_;
  std::size_t at_ = 0, line_ = 1;
  bool line_begins_ = true;  // what was read last ended with a line
  std::vector<Token> tokens_;
};

}  // namespace

SyntaxError::SyntaxError(std::size_t line, const std::string& what) : Error(fmt::format("line {}: {}", line, what)) {}

std::vector<Token> tokens_of(const std::string& source) { return Lexer(source).run(); }

}  // namespace statescope::chat

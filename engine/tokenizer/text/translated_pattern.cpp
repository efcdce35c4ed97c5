// Where PCRE2 understands an expression in another way than the engine that it was written for, it is said in other words.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "engine/checkpoint/file.h"
#include "engine/error.h"
#include "engine/tokenizer/text/split_pattern.h"

namespace statescope {
namespace {

// White_Space: PCRE2's \s has U+180E too.
constexpr std::string_view kSpaces = R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view kNoSpaces =
    R"(\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";
// PCRE2's \w has neither marks nor all connectors.
constexpr std::string_view kWords =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189}\x{200c}\x{200d})";

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kCategories{
    {{"Letter", "L"}, {"Mark", "M"}, {"Number", "N"}, {"Punctuation", "P"}, {"Symbol", "S"}, {"Separator", "Z"}, {"Other", "C"}}};
constexpr std::array<std::string_view, 8> kProperties{"Any",       "ASCII",       "Alphabetic",  "Uppercase",
                                                      "Lowercase", "White_Space", "Ideographic", "Emoji"};

class Translator {
 public:
  Translator(std::string_view pattern, RegexFlavour flavour) : pattern_(pattern), flavour_(flavour) {}

  std::string translate() {
    while (at_ < pattern_.size()) one();
    return std::move(result_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw Error(fmt::format("the pattern {} has {}, which is not supported", in_quotes(pattern_.substr(0, 60)), what));
  }
  bool ahead(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }

  /// An atom, with the place where it begins, or what stands between atoms.
  void one() {
    const char c = pattern_[at_];
    if (c == '{') return repetition();
    if (c == '(') {
      groups_.push_back(result_.size());
      result_ += pattern_[at_++];
      return;
    }
    if (c == ')') {
      if (groups_.empty()) refuse("an unmatched parenthesis");
      atom_ = groups_.back();
      groups_.pop_back();
      result_ += pattern_[at_++];
      return;
    }
    if (c == '*' || c == '+' || c == '?' || c == '|') {
      result_ += pattern_[at_++];
      return;
    }
    atom_ = result_.size();
    if (c == '[') return character_class();
    if (c == '\\') return escape(/*in_class=*/false);
    result_ += pattern_[at_++];
  }

  /// {n,m}; with a + behind it Oniguruma repeats once more, the others do not give back.
  void repetition() {
    const std::size_t close = pattern_.find('}', at_);
    if (close == pattern_.npos) {
      result_ += pattern_[at_++];
      return;
    }
    const std::string_view count = pattern_.substr(at_, close + 1 - at_);
    const bool is_count = count.size() > 2 && count.find_first_not_of("{}0123456789,") == count.npos;
    at_ = close + 1;
    result_ += count;
    if (!is_count || flavour_ != RegexFlavour::oniguruma || !ahead("+")) return;
    result_.insert(atom_, "(?:");
    result_ += ')';
  }

  void escape(bool in_class) {
    if (at_ + 1 >= pattern_.size()) refuse("a backslash at its end");
    const char c = pattern_[at_ + 1];
    if (c == 'p' || c == 'P') return property();
    at_ += 2;
    const auto put_class = [&](std::string_view inside, bool negated) {
      result_ += in_class ? std::string(inside) : fmt::format("[{}{}]", negated ? "^" : "", inside);
    };
    if (c == 's') return put_class(kSpaces, false);
    if (c == 'S') return put_class(in_class ? kNoSpaces : kSpaces, !in_class);
    if (c == 'w') return put_class(kWords, false);
    if (c == 'W' && !in_class) return put_class(kWords, true);
    if (c == 'u') return code_point();
    if (std::string_view("WhHRXKGCgkQE").find(c) != std::string_view::npos) refuse(fmt::format("\\{}", c));
    result_ += '\\';
    result_ += c;
  }

  /// \uHHHH
  void code_point() {
    const std::string_view digits = pattern_.substr(at_, 4);
    if (digits.size() < 4 || digits.find_first_not_of("0123456789abcdefABCDEF") != digits.npos) refuse("\\u without four digits");
    result_ += fmt::format("\\x{{{}}}", digits);
    at_ += 4;
  }

  /// \p{Han} is the script, not whatever is used with it.
  void property() {
    const std::size_t open = at_ + 2, close = pattern_.find('}', at_);
    if (open >= pattern_.size() || pattern_[open] != '{' || close == pattern_.npos) {
      result_ += pattern_.substr(at_, 3);
      at_ = std::min(at_ + 3, pattern_.size());
      return;
    }
    std::string_view name = pattern_.substr(open + 1, close - open - 1);
    const bool negated = name.starts_with('^');
    if (negated) name.remove_prefix(1);
    result_ += fmt::format("\\{}{{{}{}}}", pattern_[at_ + 1], negated ? "^" : "", property_name(name));
    at_ = close + 1;
  }

  static std::string property_name(std::string_view name) {
    for (const auto& [written, category] : kCategories)
      if (name == written) return std::string(category);
    const bool is_known =
        name.size() <= 2 || name.find_first_of(":=") != name.npos || std::ranges::find(kProperties, name) != kProperties.end();
    return is_known ? std::string(name) : fmt::format("sc:{}", name);
  }

  /// [A], and [A&&[^B]] as (?:(?![B])[A]).
  void character_class() {
    const std::size_t begin = result_.size();
    result_ += pattern_[at_++];
    const bool negated = ahead("^");
    if (negated) result_ += pattern_[at_++];
    if (ahead("]")) {
      result_ += "\\]";
      ++at_;
    }
    while (at_ < pattern_.size() && pattern_[at_] != ']') {
      if (ahead("&&")) return intersection(begin, negated);
      class_member();
    }
    close_class();
  }

  void class_member() {
    if (pattern_[at_] == '\\') return escape(/*in_class=*/true);
    if (ahead("[:")) {
      const std::size_t close = pattern_.find(":]", at_);
      if (close == pattern_.npos) refuse("a class within a class");
      result_ += pattern_.substr(at_, close + 2 - at_);
      at_ = close + 2;
      return;
    }
    if (pattern_[at_] == '[') refuse("a class within a class");
    if (flavour_ == RegexFlavour::rust && (ahead("--") || ahead("~~"))) refuse("a difference of classes");
    result_ += pattern_[at_++];
  }

  void close_class() {
    if (at_ >= pattern_.size()) refuse("a class without an end");
    result_ += pattern_[at_++];
  }

  void intersection(std::size_t begin, bool negated) {
    at_ += 2;
    if (negated || !ahead("[")) refuse("&& in a class");
    const std::string first = result_.substr(begin) + ']';
    result_.resize(begin);
    ++at_;
    const bool without = ahead("^");
    if (without) ++at_;
    result_ += without ? "(?:(?![" : "(?:(?=[";
    while (at_ < pattern_.size() && pattern_[at_] != ']') {
      if (ahead("&&")) refuse("&& twice in a class");
      class_member();
    }
    close_class();
    if (!ahead("]")) refuse("&& in a class");
    ++at_;
    result_ += ')' + first + ')';
  }

  std::string_view pattern_;
  RegexFlavour flavour_;
  std::size_t at_ = 0, atom_ = 0;    // in the pattern; where the last atom begins in the result
  std::vector<std::size_t> groups_;  // where the open ones begin in the result
  std::string result_;
};

}  // namespace

std::string translated(std::string_view pattern, RegexFlavour flavour) { return Translator(pattern, flavour).translate(); }

}  // namespace statescope

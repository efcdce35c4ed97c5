#include "app/figure/print.h"

#include <algorithm>
#include <cctype>
#include <numeric>

namespace statescope {
namespace {

constexpr float kSmaller = 0.72f, kShift = 0.32f;  // of what stands above or below the line, in em

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// "⁻⁶" of "-06".
std::string superscript(std::string_view exponent) {
  static constexpr const char* digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent.front() == '-' ? "⁻" : "";
  exponent.remove_prefix(exponent.front() == '-' || exponent.front() == '+' ? 1 : 0);
  exponent.remove_prefix(std::min(exponent.find_first_not_of('0'), exponent.size() - 1));
  for (const char digit : exponent) text += digits[digit - '0'];
  return text;
}

/// How much of the text's beginning is an unsigned number: "12", "0.5", ".5".
std::size_t number_length(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && (is_digit(text[length]) || text[length] == '.')) ++length;
  return length > 0 && std::ranges::any_of(text.substr(0, length), is_digit) ? length : 0;
}

/// "e-06" at its beginning.
std::size_t exponent_length(std::string_view text) {
  if (text.size() < 3 || text[0] != 'e' || (text[1] != '-' && text[1] != '+') || !is_digit(text[2])) return 0;
  return std::min(text.find_first_not_of("0123456789", 2), text.size());
}

/// The symbols of our equations; "_" and "^" behind other letters are those letters' own.
bool is_symbol(std::string_view before) {
  for (const std::string_view symbol : {"S", "C", "G", "B", "T", "W", "e", "g", "k", "o", "p", "q", "v",   "w",      "x",
                                        "z", "α", "β", "γ", "δ", "Δ", "κ", "λ", "σ", "Σ", "Π", "ω", "max", "softmax"}) {
    if (!before.ends_with(symbol)) continue;
    const std::string_view rest = before.substr(0, before.size() - symbol.size());
    if (rest.empty() || (!std::isalnum(static_cast<unsigned char>(rest.back())) && rest.back() != '_' && rest.back() != '-')) return true;
  }
  return false;
}

/// Whether one letter alone stands there: names have no braces behind "_".
bool is_letter(std::string_view before) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-'; };
  return !before.empty() && std::isalpha(static_cast<unsigned char>(before.back())) &&
         (before.size() == 1 || !is_word(before[before.size() - 2]));
}

/// What stands behind "_" or "^": one sign or what is in braces, where words end behind it; else empty.
std::string_view index_in(std::string_view text, std::size_t& length) {
  if (text.starts_with('{')) {
    const std::size_t end = text.find('}');
    length = end == text.npos ? 0 : end + 1;
    return end == text.npos ? std::string_view() : text.substr(1, end - 1);
  }
  length = !text.empty() && std::isalnum(static_cast<unsigned char>(text.front())) ? 1 : 0;
  const bool goes_on = text.size() > 1 && (std::isalnum(static_cast<unsigned char>(text[1])) || text[1] == '_' || text[1] == '-');
  if (goes_on) length = 0;
  return text.substr(0, length);
}

float width_of(const Canvas& canvas, const SetPart& part, TextStyle style) {
  if (part.level != 0) style.size *= kSmaller;
  return canvas.text_width(part.text, style);
}

std::vector<SetPart> parts_of(std::string_view text, const TextStyle& style) {
  return set_parts(printed_numbers(text, style.font == Font::label));
}

}  // namespace

std::string printed_numbers(std::string_view text, bool words) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const bool begins = i == 0 ? !words : words ? text[i - 1] == ' ' : !is_digit(text[i - 1]) && text[i - 1] != 'e' && text[i - 1] != '.';
    const bool is_negative = text[i] == '-';
    const std::size_t sign = is_negative ? 1 : 0, length = begins ? number_length(text.substr(i + sign)) : 0;
    if (length == 0) {
      out += text[i++];
      continue;
    }
    const std::string_view digits = text.substr(i + sign, length);
    const std::size_t exponent = exponent_length(text.substr(i + sign + length));
    if (is_negative && digits.find_first_not_of("0.") != digits.npos) out += "−";
    out += digits;
    if (exponent > 0) out += "×10" + superscript(text.substr(i + sign + length + 1, exponent - 1));
    i += sign + length + exponent;
  }
  return out;
}

std::vector<SetPart> set_parts(std::string_view text) {
  std::vector<SetPart> parts{{"", 0}};
  for (std::size_t i = 0; i < text.size();) {
    std::size_t length = 0;
    const bool may_be = (text[i] == '_' || text[i] == '^') &&
                        (is_symbol(text.substr(0, i)) || (text.substr(i + 1).starts_with('{') && is_letter(text.substr(0, i))));
    const std::string_view index = may_be ? index_in(text.substr(i + 1), length) : std::string_view();
    if (index.empty()) {
      if (parts.back().level != 0) parts.push_back({"", 0});
      parts.back().text += text[i++];
      continue;
    }
    parts.push_back({std::string(index), text[i] == '^' ? 1 : -1});
    i += 1 + length;
  }
  std::erase_if(parts, [](const SetPart& part) { return part.text.empty(); });
  return parts;
}

float PrintCanvas::text_width(std::string_view text, const TextStyle& style) const {
  const std::vector<SetPart> parts = parts_of(text, style);
  return std::accumulate(parts.begin(), parts.end(), 0.0F, [&](float w, const SetPart& part) { return w + width_of(paper_, part, style); });
}

void PrintCanvas::text(Point at, std::string_view text, const TextStyle& style) {
  const std::vector<SetPart> parts = parts_of(text, style);
  if (parts.size() == 1) return paper_.text(at, parts[0].text, style);
  const float width = text_width(text, style);
  float x = style.align == Align::left ? at.x : style.align == Align::center ? at.x - width / 2 : at.x - width;
  for (const SetPart& part : parts) {
    TextStyle own = style;
    own.align = Align::left;
    if (part.level != 0) own.size *= kSmaller;
    paper_.text({x, at.y - kShift * style.size * static_cast<float>(part.level)}, part.text, own);
    x += width_of(paper_, part, style);
  }
}

}  // namespace statescope

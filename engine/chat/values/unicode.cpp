#include "engine/chat/values/unicode.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>

#include "engine/chat/values/unicode_tables.h"

namespace statescope::chat {
namespace {

/// The code point that begins at `at`, which moves behind it.
char32_t next_code_point(std::string_view text, std::size_t& at) {
  utf8proc_int32_t letter = 0;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at;
  const auto size = utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size() - at), &letter);
  at += size > 0 ? static_cast<std::size_t>(size) : 1;
  return static_cast<char32_t>(letter);
}

utf8proc_category_t category(char32_t letter) { return utf8proc_category(static_cast<utf8proc_int32_t>(letter)); }

template <class Ranges>
bool within(const Ranges& ranges, char32_t letter) {
  const auto after = std::ranges::upper_bound(ranges, letter, {}, [](const auto& range) { return range[0]; });
  return after != ranges.begin() && letter <= (*(after - 1))[1];
}

const SpecialCase* special_case(char32_t letter) {
  const auto found = std::ranges::lower_bound(kSpecialCases, letter, {}, &SpecialCase::letter);
  return found != kSpecialCases.end() && found->letter == letter ? &*found : nullptr;
}

bool is_cased(char32_t letter) { return is_lower(letter) || is_upper(letter) || is_title(letter); }

/// Apostrophes, marks, modifiers: what a word's case reaches across (Word_Break MidLetter, MidNumLet and Single_Quote; Mn, Me, Cf, Lm, Sk).
bool is_case_ignorable(char32_t letter) {
  const auto kind = category(letter);
  return kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_ME || kind == UTF8PROC_CATEGORY_CF || kind == UTF8PROC_CATEGORY_LM ||
         kind == UTF8PROC_CATEGORY_SK || std::u32string_view(U"'.:·‘’․‧∶︓﹒﹕＇．：΄՟״").find(letter) != std::u32string_view::npos;
}

/// Σ at a word's end is ς.
bool is_final_sigma(std::u32string_view text, std::size_t at) {
  std::size_t before = at;
  while (before > 0 && is_case_ignorable(text[before - 1])) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  std::size_t after = at + 1;
  while (after < text.size() && is_case_ignorable(text[after])) ++after;
  return after == text.size() || !is_cased(text[after]);
}

void add_upper(std::u32string& out, char32_t letter) {
  if (const SpecialCase* special = special_case(letter)) {
    out += special->upper;
  } else {
    out += static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(letter)));
  }
}

void add_title(std::u32string& out, char32_t letter) {
  if (const SpecialCase* special = special_case(letter)) {
    out += special->title;
  } else {
    out += static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(letter)));
  }
}

void add_lower(std::u32string& out, std::u32string_view text, std::size_t at) {
  if (text[at] == U'Σ') {
    out += is_final_sigma(text, at) ? U'ς' : U'σ';
  } else if (text[at] == U'İ') {
    out += U"i\u0307";
  } else {
    out += static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(text[at])));
  }
}

template <class Add>
std::string mapped(std::string_view text, Add add) {
  const std::u32string letters = code_points(text);
  std::u32string out;
  out.reserve(letters.size());
  for (std::size_t i = 0; i < letters.size(); ++i) add(out, letters, i);
  return utf8(out);
}

}  // namespace

std::size_t count_code_points(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::size_t code_point_size(std::string_view text, std::size_t at) {
  std::size_t end = at;
  next_code_point(text, end);
  return end - at;
}

std::u32string code_points(std::string_view text) {
  std::u32string letters;
  letters.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) letters += next_code_point(text, at);
  return letters;
}

void append_utf8(std::string& text, char32_t letter) {
  utf8proc_uint8_t bytes[4];
  const auto size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(letter), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

std::string utf8(std::u32string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (const char32_t letter : text) append_utf8(bytes, letter);
  return bytes;
}

bool valid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    utf8proc_int32_t letter = 0;
    const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at;
    const auto size = utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size() - at), &letter);
    if (size <= 0) return false;
    at += static_cast<std::size_t>(size);
  }
  return true;
}

bool is_space(char32_t letter) {
  return (letter >= 0x09 && letter <= 0x0D) || (letter >= 0x1C && letter <= 0x20) || letter == 0x85 || letter == 0xA0 || letter == 0x1680 ||
         (letter >= 0x2000 && letter <= 0x200A) || letter == 0x2028 || letter == 0x2029 || letter == 0x202F || letter == 0x205F ||
         letter == 0x3000;
}

bool is_line_break(char32_t letter) {
  return (letter >= 0x0A && letter <= 0x0D) || (letter >= 0x1C && letter <= 0x1E) || letter == 0x85 || letter == 0x2028 || letter == 0x2029;
}

bool is_printable(char32_t letter) {
  const auto kind = category(letter);
  return letter == U' ' || !(kind == UTF8PROC_CATEGORY_CN || kind >= UTF8PROC_CATEGORY_ZS);
}

bool is_alphabetic(char32_t letter) {
  const auto kind = category(letter);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t letter) { return category(letter) == UTF8PROC_CATEGORY_ND; }
bool is_digit(char32_t letter) { return is_decimal(letter) || within(kOtherDigits, letter); }

bool is_alphanumeric(char32_t letter) {
  const auto kind = category(letter);
  return is_alphabetic(letter) || (kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO);
}

bool is_lower(char32_t letter) { return category(letter) == UTF8PROC_CATEGORY_LL || within(kOtherLowercase, letter); }
bool is_upper(char32_t letter) { return category(letter) == UTF8PROC_CATEGORY_LU || within(kOtherUppercase, letter); }
bool is_title(char32_t letter) { return category(letter) == UTF8PROC_CATEGORY_LT; }
bool is_word(char32_t letter) { return letter == U'_' || is_alphanumeric(letter); }

std::string upper(std::string_view text) {
  return mapped(text, [](std::u32string& out, std::u32string_view letters, std::size_t i) { add_upper(out, letters[i]); });
}

std::string lower(std::string_view text) { return mapped(text, add_lower); }

std::string capitalize(std::string_view text) {
  return mapped(text, [](std::u32string& out, std::u32string_view letters, std::size_t i) {
    i == 0 ? add_title(out, letters[i]) : add_lower(out, letters, i);
  });
}

std::string title(std::string_view text) {
  return mapped(text, [](std::u32string& out, std::u32string_view letters, std::size_t i) {
    i > 0 && is_cased(letters[i - 1]) ? add_lower(out, letters, i) : add_title(out, letters[i]);
  });
}

std::string swapcase(std::string_view text) {
  return mapped(text, [](std::u32string& out, std::u32string_view letters, std::size_t i) {
    if (is_upper(letters[i])) {
      add_lower(out, letters, i);
    } else if (is_lower(letters[i])) {
      add_upper(out, letters[i]);
    } else {
      out += letters[i];
    }
  });
}

std::string casefold(std::string_view text) {
  return mapped(text, [](std::u32string& out, std::u32string_view letters, std::size_t i) {
    utf8proc_int32_t folded[8];
    int last = 0;
    const auto size = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(letters[i]), folded, 8, UTF8PROC_CASEFOLD, &last);
    for (utf8proc_ssize_t k = 0; k < size; ++k) out += static_cast<char32_t>(folded[k]);
  });
}

std::string_view strip(std::string_view text, Ends ends, const std::u32string* letters) {
  const auto goes = [&](std::size_t at) {
    const char32_t letter = next_code_point(text, at);
    return letters ? letters->find(letter) != std::u32string::npos : is_space(letter);
  };
  std::size_t begin = 0, end = text.size();
  while (ends != Ends::right && begin < end && goes(begin)) begin += code_point_size(text, begin);
  while (ends != Ends::left && end > begin) {
    std::size_t last = end - 1;
    while ((static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
    if (!goes(last)) break;
    end = last;
  }
  return text.substr(begin, end - begin);
}

std::vector<std::string> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = at;
    const char32_t letter = next_code_point(text, at);
    if (!is_line_break(letter)) continue;
    if (letter == U'\r' && at < text.size() && text[at] == '\n') ++at;
    lines.emplace_back(text.substr(begin, (keep_ends ? at : end) - begin));
    begin = at;
  }
  if (begin < text.size()) lines.emplace_back(text.substr(begin));
  return lines;
}

std::string ascii_escaped(std::string_view text) {
  std::string out;
  for (const char32_t letter : code_points(text)) {
    const auto code = static_cast<std::uint32_t>(letter);
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else {
      out += code < 0x100     ? fmt::format("\\x{:02x}", code)
             : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                              : fmt::format("\\U{:08x}", code);
    }
  }
  return out;
}

}  // namespace statescope::chat

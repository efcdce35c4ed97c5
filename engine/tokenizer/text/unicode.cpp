#include "engine/tokenizer/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

namespace statescope::unicode {
namespace {

utf8proc_category_t category_of(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }
int combining_class(char32_t c) { return utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class; }
bool within(char32_t c, char32_t first, char32_t last) { return c >= first && c <= last; }

/// Other_Alphabetic beyond marks: letters in circles and squares.
bool is_enclosed_letter(char32_t c) {
  return within(c, 0x24B6, 0x24E9) || within(c, 0x1F130, 0x1F149) || within(c, 0x1F150, 0x1F169) || within(c, 0x1F170, 0x1F189);
}

/// The decomposition of one character, the first part in its place, the rest put in.
void decompose(char32_t c, bool compatible, std::vector<Changed>& parts) {
  std::array<utf8proc_int32_t, 32> codes;
  int boundary = 0;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE | (compatible ? UTF8PROC_COMPAT : 0));
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), codes.data(), codes.size(), options, &boundary);
  if (count <= 0 || count > std::ssize(codes)) return parts.push_back({c, 0});
  for (int i = 0; i < count; ++i) parts.push_back({static_cast<char32_t>(codes[static_cast<std::size_t>(i)]), i > 0 ? 1 : 0});
}

/// Marks behind a starter stand in the order of their classes.
void order_marks(std::vector<Changed>& parts) {
  for (auto begin = parts.begin(); begin != parts.end();) {
    const auto is_mark = [](const Changed& part) { return combining_class(part.code) != 0; };
    begin = std::find_if(begin, parts.end(), is_mark);
    const auto end = std::find_if_not(begin, parts.end(), is_mark);
    std::stable_sort(begin, end, [](const Changed& a, const Changed& b) { return combining_class(a.code) < combining_class(b.code); });
    begin = end;
  }
}

/// The character that two become; 0: none.
char32_t composed(char32_t first, char32_t second) {
  std::array<utf8proc_int32_t, 2> pair{static_cast<utf8proc_int32_t>(first), static_cast<utf8proc_int32_t>(second)};
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  return utf8proc_normalize_utf32(pair.data(), pair.size(), options) == 1 ? static_cast<char32_t>(pair[0]) : 0;
}

/// Canonical composition (UAX 15): each character joins the last starter unless one of its own class or higher stands between.
std::vector<Changed> compose(const std::vector<Changed>& parts) {
  std::vector<Changed> result;
  std::size_t starter = parts.size();
  int last_class = -1;
  for (const Changed& part : parts) {
    const int own = combining_class(part.code);
    const bool is_free = own == 0 ? last_class == -1 : last_class < own;
    const bool may_join = starter < parts.size() && part.code >= 0x80 && is_free;
    if (const char32_t both = may_join ? composed(result[starter].code, part.code) : 0) {
      result[starter].code = both;
      result[starter].change += part.change - 1;
      continue;
    }
    if (own == 0) starter = result.size();
    last_class = own == 0 ? -1 : own;
    result.push_back(part);
  }
  return result;
}

}  // namespace

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || within(c, 9, 13);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || within(c, 0x2000, 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_word(char32_t c) {
  const auto category = category_of(c);
  const bool is_letter_or_mark = category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_ME;
  return is_letter_or_mark || category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_PC ||
         is_enclosed_letter(c) || c == 0x200C || c == 0x200D;
}

bool is_number(char32_t c) {
  const auto category = category_of(c);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(char32_t c) {
  const auto category = category_of(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool is_mark_without_space(char32_t c) { return category_of(c) == UTF8PROC_CATEGORY_MN; }

bool is_control(char32_t c) {
  const auto category = category_of(c);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CO;
}

std::u32string lower(char32_t c) {
  if (c == 0x130) return {U'i', 0x307};
  return {static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)))};
}

std::vector<Changed> normal_form(const std::u32string& text, Form form) {
  std::vector<Changed> parts;
  parts.reserve(text.size());
  for (const char32_t c : text) decompose(c, form == Form::nfkc || form == Form::nfkd, parts);
  order_marks(parts);
  return form == Form::nfc || form == Form::nfkc ? compose(parts) : parts;
}

bool is_cluster_break(char32_t before, char32_t after, int& state) {
  return utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before), static_cast<utf8proc_int32_t>(after), &state);
}

}  // namespace statescope::unicode

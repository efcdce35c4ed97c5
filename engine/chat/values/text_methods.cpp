#include "engine/chat/values/text_methods.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/chat/values/format.h"
#include "engine/chat/values/objects.h"
#include "engine/chat/values/operators.h"
#include "engine/chat/values/print.h"
#include "engine/chat/values/strings.h"
#include "engine/chat/values/unicode.h"

namespace statescope::chat {
namespace {

template <std::string (*map)(std::string_view)>
Value mapped(Runtime&, const Value& self, const Call&) {
  return map(self.text());
}

template <Ends ends>
Value stripped(Runtime&, const Value& self, const Call& call) {
  if (call.at(0).is_none()) return std::string(strip(self.text(), ends));
  const std::u32string letters = code_points(call.text(0));
  return std::string(strip(self.text(), ends, &letters));
}

template <bool from_right>
Value split(Runtime&, const Value& self, const Call& call) {
  const std::int64_t most = call.integer(1, -1);
  if (call.at(0).is_none()) return Value::list(split_at_space(self.text(), most, from_right));
  return Value::list(split_at(self.text(), call.text(0), most, from_right));
}

Value split_into_lines(Runtime&, const Value& self, const Call& call) {
  Items lines;
  for (std::string& line : split_lines(self.text(), call.flag(0))) lines.emplace_back(std::move(line));
  return Value::list(std::move(lines));
}

template <bool from_right>
Value partition(Runtime&, const Value& self, const Call& call) {
  const std::string &text = self.text(), &mark = call.text(0);
  if (mark.empty()) throw Error("empty separator");
  const std::size_t at = from_right ? find_last(text, mark) : find_first(text, mark);
  if (at == std::string::npos) return from_right ? Value::tuple({"", "", text}) : Value::tuple({text, "", ""});
  return Value::tuple({text.substr(0, at), mark, text.substr(at + mark.size())});
}

/// The part of a text between the arguments `i` and `i + 1`, in code points as a slice has them.
struct Part {
  std::string_view bytes;
  std::size_t begin;  // code points before it
  bool exists;        // it begins within the text, and not behind its end
};

Part part_of(const Value& self, const Call& call, std::size_t i) {
  const auto length = static_cast<std::int64_t>(self.length());
  const SliceRange range = slice_range(length, call.at(i), call.at(i + 1), {});
  const std::string& text = self.text();
  const auto byte_of = [&](std::size_t letter) {
    std::size_t at = 0;
    if (self.length() == text.size()) return letter;
    for (; letter > 0; --letter) at += code_point_size(text, at);
    return at;
  };
  const bool exists = call.at(i).is_none() || index_of(call.at(i)) <= length;
  const auto begin = static_cast<std::size_t>(range.begin);
  const SliceRange until = slice_range(length, {}, call.at(i + 1), {});
  const std::size_t from = byte_of(begin);
  return {std::string_view(text).substr(from, byte_of(begin + range.count) - from), begin,
          exists && range.begin <= static_cast<std::int64_t>(until.count)};
}

template <bool last>
std::optional<std::size_t> place_of(const Value& self, const Call& call) {
  const Part part = part_of(self, call, 1);
  const std::size_t at = last ? find_last(part.bytes, call.text(0)) : find_first(part.bytes, call.text(0));
  if (at == std::string_view::npos || !part.exists) return std::nullopt;
  return part.begin + count_code_points(part.bytes.substr(0, at));
}

template <bool last>
Value find_part(Runtime&, const Value& self, const Call& call) {
  const auto place = place_of<last>(self, call);
  return place ? Value(*place) : Value(-1);
}

template <bool last>
Value index_of_part(Runtime&, const Value& self, const Call& call) {
  const auto place = place_of<last>(self, call);
  if (!place) throw Error("substring not found");
  return *place;
}

Value count_parts(Runtime&, const Value& self, const Call& call) {
  const Part part = part_of(self, call, 1);
  return part.exists ? count(part.bytes, call.text(0)) : 0;
}

template <bool at_end>
Value has_affix(Runtime&, const Value& self, const Call& call) {
  const Part part = part_of(self, call, 1);
  const auto has = [&](const Value& affix) {
    if (!affix.is_text()) throw Error(fmt::format("the first argument must be str or a tuple of str, not {}", affix.type()));
    return part.exists && (at_end ? part.bytes.ends_with(affix.text()) : part.bytes.starts_with(affix.text()));
  };
  return call.at(0).is_tuple() ? std::ranges::any_of(call.at(0).sequence()->items, has) : has(call.at(0));
}

Value replace(Runtime&, const Value& self, const Call& call) {
  return replaced(self.text(), call.text(0), call.text(1), call.integer(2, -1));
}

Value join(Runtime&, const Value& self, const Call& call) { return joined_text(self.text(), items_of(call.at(0))); }

template <bool (*is)(char32_t)>
Value all_are(Runtime&, const Value& self, const Call&) {
  return !self.text().empty() && std::ranges::all_of(code_points(self.text()), is);
}

Value all_ascii(Runtime&, const Value& self, const Call&) { return self.length() == self.text().size(); }
Value all_printable(Runtime&, const Value& self, const Call&) { return std::ranges::all_of(code_points(self.text()), is_printable); }

/// At least one letter of this case, and none of another.
template <bool (*is)(char32_t), bool (*is_other)(char32_t)>
Value all_of_case(Runtime&, const Value& self, const Call&) {
  const std::u32string letters = code_points(self.text());
  const auto other = [](char32_t letter) { return is_other(letter) || is_title(letter); };
  return std::ranges::any_of(letters, is) && std::ranges::none_of(letters, other);
}

Value format(Runtime&, const Value& self, const Call& call) { return brace_format(self.text(), call.arguments()); }

Value zero_filled(Runtime&, const Value& self, const Call& call) {
  const std::string& text = self.text();
  const auto width = static_cast<std::size_t>(std::max<std::int64_t>(call.integer(0), 0));
  if (width <= self.length()) return text;
  const bool sign = text.starts_with('-') || text.starts_with('+');
  Builder out;
  out.add(text.substr(0, sign));
  out.add(width - self.length(), '0');
  out.add(text.substr(sign));
  return out.take();
}

template <char align>
Value justified(Runtime&, const Value& self, const Call& call) {
  const std::string fill = call.given(1) ? call.text(1) : " ";
  if (count_code_points(fill) != 1) throw Error("the fill character must be exactly one character long");
  auto width = static_cast<std::size_t>(std::max<std::int64_t>(call.integer(0), 0));
  if (align != '^' || width <= self.length()) return aligned(self.text(), width, align, fill);
  // Python's centre: the odd one goes to the left where the width is odd.
  const std::size_t pad = width - self.length(), left = pad / 2 + (pad & width & 1);
  return aligned(aligned(self.text(), self.length() + left, '>', fill), width, '<', fill);
}

Value without_prefix(Runtime&, const Value& self, const Call& call) {
  return self.text().starts_with(call.text(0)) ? self.text().substr(call.text(0).size()) : self.text();
}

Value without_suffix(Runtime&, const Value& self, const Call& call) {
  const std::string &text = self.text(), &suffix = call.text(0);
  return text.ends_with(suffix) ? text.substr(0, text.size() - suffix.size()) : text;
}

Value encode(Runtime&, const Value& self, const Call& call) {
  const std::string name = call.given(0) ? lower(call.text(0)) : "utf-8";
  const bool ascii = (name == "ascii" || name == "us-ascii") && self.length() == self.text().size();
  if (name != "utf-8" && name != "utf8" && !ascii) throw Error(fmt::format("str.encode('{}') is not supported", name));
  return std::make_shared<Bytes>(self.text());
}

}  // namespace

const std::map<std::string, Entry>& text_methods() {
  static const std::map<std::string, Entry> table{{"strip", {"/ chars=", stripped<Ends::both>}},
                                                  {"lstrip", {"/ chars=", stripped<Ends::left>}},
                                                  {"rstrip", {"/ chars=", stripped<Ends::right>}},
                                                  {"split", {"sep= maxsplit=", split<false>}},
                                                  {"rsplit", {"sep= maxsplit=", split<true>}},
                                                  {"splitlines", {"keepends=", split_into_lines}},
                                                  {"partition", {"/ sep", partition<false>}},
                                                  {"rpartition", {"/ sep", partition<true>}},
                                                  {"startswith", {"/ prefix start= end=", has_affix<false>}},
                                                  {"endswith", {"/ suffix start= end=", has_affix<true>}},
                                                  {"replace", {"/ old new count=", replace}},
                                                  {"upper", {"", mapped<upper>}},
                                                  {"lower", {"", mapped<lower>}},
                                                  {"title", {"", mapped<title>}},
                                                  {"capitalize", {"", mapped<capitalize>}},
                                                  {"swapcase", {"", mapped<swapcase>}},
                                                  {"casefold", {"", mapped<casefold>}},
                                                  {"find", {"/ sub start= end=", find_part<false>}},
                                                  {"rfind", {"/ sub start= end=", find_part<true>}},
                                                  {"index", {"/ sub start= end=", index_of_part<false>}},
                                                  {"rindex", {"/ sub start= end=", index_of_part<true>}},
                                                  {"count", {"/ sub start= end=", count_parts}},
                                                  {"join", {"/ iterable", join}},
                                                  {"isdigit", {"", all_are<is_digit>}},
                                                  {"isdecimal", {"", all_are<is_decimal>}},
                                                  {"isalpha", {"", all_are<is_alphabetic>}},
                                                  {"isalnum", {"", all_are<is_alphanumeric>}},
                                                  {"isspace", {"", all_are<is_space>}},
                                                  {"isupper", {"", all_of_case<is_upper, is_lower>}},
                                                  {"islower", {"", all_of_case<is_lower, is_upper>}},
                                                  {"isascii", {"", all_ascii}},
                                                  {"isprintable", {"", all_printable}},
                                                  {"format", {"*", format}},
                                                  {"zfill", {"/ width", zero_filled}},
                                                  {"ljust", {"/ width fillchar=", justified<'<'>}},
                                                  {"rjust", {"/ width fillchar=", justified<'>'>}},
                                                  {"center", {"/ width fillchar=", justified<'^'>}},
                                                  {"removeprefix", {"/ prefix", without_prefix}},
                                                  {"removesuffix", {"/ suffix", without_suffix}},
                                                  {"encode", {"encoding= errors=", encode}}};
  return table;
}

}  // namespace statescope::chat

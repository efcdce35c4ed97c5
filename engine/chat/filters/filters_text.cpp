// Filters that make texts.
#include <fmt/format.h>

#include <algorithm>

#include "engine/chat/filters/filters.h"
#include "engine/chat/values/format.h"
#include "engine/chat/values/json.h"
#include "engine/chat/values/operators.h"
#include "engine/chat/values/print.h"
#include "engine/chat/values/strings.h"
#include "engine/chat/values/unicode.h"

namespace statescope::chat {
namespace {

template <std::string (*map)(std::string_view)>
Value mapped(Runtime&, const Value& value, const Call&) {
  return map(printed(value));
}

/// Words begin after white space and - ( { [ <, all else is small.
Value title_filter(Runtime&, const Value& value, const Call&) {
  const auto splits = [](char32_t letter) {
    return is_space(letter) || std::u32string_view(U"-({[<").find(letter) != std::u32string_view::npos;
  };
  const std::u32string letters = code_points(printed(value));
  std::string out;
  for (std::size_t begin = 0, end = 0; begin < letters.size(); begin = end) {
    const bool split = splits(letters[begin]);
    while (end < letters.size() && splits(letters[end]) == split) ++end;
    out += upper(utf8(letters.substr(begin, 1))) + lower(utf8(letters.substr(begin + 1, end - begin - 1)));
  }
  return out;
}

Value trim(Runtime&, const Value& value, const Call& call) {
  const std::string text = printed(value);
  if (call.at(0).is_none()) return std::string(strip(text, Ends::both));
  const std::u32string letters = code_points(call.text(0));
  return std::string(strip(text, Ends::both, &letters));
}

Value replace(Runtime&, const Value& value, const Call& call) {
  const std::int64_t most = call.at(2).is_none() ? -1 : call.integer(2);
  return replaced(printed(value), printed(call.at(0)), printed(call.at(1)), most);
}

Value string(Runtime&, const Value& value, const Call&) { return printed(value); }

Value escape(Runtime&, const Value& value, const Call&) {
  Builder out;
  for (const char c : printed(value)) {
    const std::string_view name = c == '&'    ? "&amp;"
                                  : c == '<'  ? "&lt;"
                                  : c == '>'  ? "&gt;"
                                  : c == '\'' ? "&#39;"
                                  : c == '"'  ? "&#34;"
                                              : "";
    out.add(name.empty() ? std::string_view(&c, 1) : name);
  }
  return out.take();
}

std::string indention_of(const Call& call) {
  if (call.at(0).is_text()) return call.text(0);
  Builder out;
  out.add(static_cast<std::size_t>(std::max<std::int64_t>(call.integer(0, 4), 0)), ' ');
  return out.take();
}

Value indent(Runtime&, const Value& value, const Call& call) {
  if (!defined(value).is_text()) throw Error(fmt::format("only strings are indented, not '{}'", value.type()));
  const std::string indention = indention_of(call);
  const std::vector<std::string> lines = split_lines(value.text() + "\n");
  const bool first = call.flag(1), blank = call.flag(2);
  Builder out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.add("\n");
    if (i == 0 ? first : blank || !lines[i].empty()) out.add(indention);
    out.add(lines[i]);
  }
  return out.take();
}

Value format(Runtime&, const Value& value, const Call& call) {
  const Arguments& given = call.arguments();
  if (!given.positional.empty() && !given.named.empty()) throw Error("format takes positional or keyword arguments, not both");
  if (given.named.empty()) return percent_format(printed(value), Value::tuple(given.positional));
  Dict dict;
  for (const auto& [name, argument] : given.named) dict.set(name, argument);
  return percent_format(printed(value), Value::dict(std::move(dict)));
}

Value center(Runtime&, const Value& value, const Call& call) {
  const std::string text = printed(value);
  const std::size_t length = count_code_points(text), width = static_cast<std::size_t>(std::max<std::int64_t>(call.integer(0, 80), 0));
  if (width <= length) return text;
  const std::size_t pad = width - length, left = pad / 2 + (pad & width & 1);
  return aligned(aligned(text, length + left, '>'), width, '<');
}

Value truncate(Runtime&, const Value& value, const Call& call) {
  const auto length = call.integer(0, 255), leeway = call.at(3).is_none() ? 5 : call.integer(3);
  const Value end = call.at(2, "...");
  const auto end_length = static_cast<std::int64_t>(length_of(end));
  if (length < end_length) throw Error(fmt::format("expected length >= {}, got {}", end_length, length));
  if (leeway < 0) throw Error(fmt::format("expected leeway >= 0, got {}", leeway));
  if (static_cast<std::int64_t>(length_of(value)) <= length + leeway) return value;
  if (!value.is_text() || !end.is_text()) throw Error("only strings are truncated");
  const std::string kept = utf8(code_points(value.text()).substr(0, static_cast<std::size_t>(length - end_length)));
  const std::size_t space = call.flag(1) ? std::string::npos : kept.rfind(' ');
  return kept.substr(0, space) + end.text();
}

Value wordcount(Runtime&, const Value& value, const Call&) {
  std::size_t words = 0;
  bool inside = false;
  for (const char32_t letter : code_points(printed(value))) {
    words += is_word(letter) && !inside;
    inside = is_word(letter);
  }
  return words;
}

/// Without what stands between `begin` and `end`.
std::string without(std::string text, const std::string& begin, const std::string& end) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t open = find_first(text, begin); open != std::string::npos; open = find_first(text, begin, at)) {
    const std::size_t close = find_first(text, end, open + begin.size());
    if (close == std::string::npos) break;
    out += text.substr(at, open - at);
    at = close + end.size();
  }
  return out + text.substr(at);
}

Value striptags(Runtime&, const Value& value, const Call&) {
  const std::string plain = without(without(printed(value), "<!--", "-->"), "<", ">");
  std::string text;
  for (const Value& word : split_at_space(plain, -1, false)) text += (text.empty() ? "" : " ") + word.text();
  for (const auto& [name, letter] : std::vector<std::pair<std::string, std::string>>{
           {"&lt;", "<"}, {"&gt;", ">"}, {"&#39;", "'"}, {"&#34;", "\""}, {"&quot;", "\""}, {"&amp;", "&"}}) {
    text = replaced(text, name, letter, -1);
  }
  return text;
}

std::string url_quoted(const std::string& text, bool query) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       std::string_view("_.-~").find(c) != std::string_view::npos;
    if (plain || (c == '/' && !query)) {
      out += c;
    } else {
      out += query && c == ' ' ? "+" : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

Value urlencode(Runtime&, const Value& value, const Call&) {
  if (value.is_text() || value.is_number() || value.is_none()) return url_quoted(printed(value), false);
  std::string out;
  const auto add = [&](const Value& key, const Value& item) {
    out += fmt::format("{}{}={}", out.empty() ? "" : "&", url_quoted(printed(key), true), url_quoted(printed(item), true));
  };
  if (value.is_dict()) {
    for (const auto& [key, item] : value.dict().entries) add(key, item);
    return out;
  }
  for (const Value& pair : items_of(value)) {
    const Items parts = items_of(pair);
    if (parts.size() != 2) throw Error("pairs of key and value are needed");
    add(parts[0], parts[1]);
  }
  return out;
}

/// With the keys in order.
Value sorted_keys(const Value& value) {
  if (value.sequence()) {
    Items items;
    for (const Value& item : value.sequence()->items) items.push_back(sorted_keys(item));
    return value.is_tuple() ? Value::tuple(std::move(items)) : Value::list(std::move(items));
  }
  if (!value.is_dict()) return value;
  auto entries = value.dict().entries;
  std::ranges::stable_sort(entries, [](const auto& a, const auto& b) { return less(a.first, b.first); });
  Dict dict;
  for (const auto& [key, item] : entries) dict.set(key, sorted_keys(item));
  return Value::dict(std::move(dict));
}

Value pprint(Runtime&, const Value& value, const Call&) {
  const std::string text = repr(sorted_keys(value));
  if (count_code_points(text) > 80) throw Error("the filter 'pprint' is not supported for what does not fit on one line");
  return text;
}

std::optional<std::string> json_indent(const Value& indent) {
  if (indent.is_none()) return std::nullopt;
  if (indent.is_text()) return indent.text();
  Builder out;
  out.add(static_cast<std::size_t>(std::max<std::int64_t>(index_of(defined(indent)), 0)), ' ');
  return out.take();
}

Value tojson(Runtime&, const Value& value, const Call& call) {
  JsonStyle style{call.flag(0), call.flag(3), json_indent(call.at(1))};
  if (style.indent) style.item_separator = ",";
  if (!call.at(2).is_none()) {
    const Items separators = items_of(call.at(2));
    if (separators.size() != 2 || !separators[0].is_text() || !separators[1].is_text()) throw Error("separators are two strings");
    style.item_separator = separators[0].text();
    style.key_separator = separators[1].text();
  }
  return json_text(value, style);
}

}  // namespace

const std::map<std::string, Entry>& text_filters() {
  static const std::map<std::string, Entry> table{{"upper", {"", mapped<upper>}},
                                                  {"lower", {"", mapped<lower>}},
                                                  {"capitalize", {"", mapped<capitalize>}},
                                                  {"title", {"", title_filter}},
                                                  {"trim", {"chars=", trim}},
                                                  {"replace", {"old new count=", replace}},
                                                  {"string", {"", string}},
                                                  {"safe", {"", string}},
                                                  {"e", {"", escape}},
                                                  {"escape", {"", escape}},
                                                  {"forceescape", {"", escape}},
                                                  {"indent", {"width= first= blank=", indent}},
                                                  {"format", {"*", format}},
                                                  {"center", {"width=", center}},
                                                  {"truncate", {"length= killwords= end= leeway=", truncate}},
                                                  {"wordcount", {"", wordcount}},
                                                  {"striptags", {"", striptags}},
                                                  {"urlencode", {"", urlencode}},
                                                  {"pprint", {"", pprint}},
                                                  {"tojson", {"ensure_ascii= indent= separators= sort_keys=", tojson}}};
  return table;
}

}  // namespace statescope::chat

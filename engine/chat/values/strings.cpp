#include "engine/chat/values/strings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "engine/chat/values/print.h"
#include "engine/chat/values/unicode.h"

namespace statescope::chat {
namespace {

std::string reversed(std::string_view text) { return {text.rbegin(), text.rend()}; }

std::string between_letters(const std::string& text, const std::string& by, std::int64_t most) {
  Builder out;
  for (std::size_t at = 0; at<text.size(); most -= most> 0 ? 1 : 0) {
    if (most != 0) out.add(by);
    const std::size_t size = code_point_size(text, at);
    out.add(std::string_view(text).substr(at, size));
    at += size;
  }
  if (most != 0) out.add(by);
  return out.take();
}

}  // namespace

std::size_t find_first(std::string_view text, std::string_view part, std::size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (part.empty()) return from;
  const void* found = ::memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return found ? static_cast<std::size_t>(static_cast<const char*>(found) - text.data()) : std::string_view::npos;
}

std::size_t find_last(std::string_view text, std::string_view part) {
  const std::size_t found = find_first(reversed(text), reversed(part));
  return found == std::string_view::npos ? found : text.size() - found - part.size();
}

std::size_t count(std::string_view text, std::string_view part) {
  if (part.empty()) return count_code_points(text) + 1;
  std::size_t times = 0;
  for (std::size_t at = find_first(text, part); at != std::string_view::npos; at = find_first(text, part, at + part.size())) ++times;
  return times;
}

std::string replaced(const std::string& text, const std::string& part, const std::string& by, std::int64_t most) {
  if (part.empty()) return between_letters(text, by, most);
  Builder out;
  std::size_t begin = 0;
  for (std::size_t at = find_first(text, part); at != std::string::npos && most != 0; at = find_first(text, part, begin)) {
    out.add(std::string_view(text).substr(begin, at - begin));
    out.add(by);
    begin = at + part.size();
    most -= most > 0 ? 1 : 0;
  }
  out.add(std::string_view(text).substr(begin));
  return out.take();
}

Items split_at(const std::string& text, const std::string& mark, std::int64_t most, bool from_right) {
  if (mark.empty()) throw Error("empty separator");
  const std::string source = from_right ? reversed(text) : text, sought = from_right ? reversed(mark) : mark;
  Items parts;
  std::size_t begin = 0;
  const auto add = [&](std::size_t end) {
    const std::string_view part = std::string_view(source).substr(begin, end - begin);
    if (parts.size() >= kMostItems) throw Error(fmt::format("a list of more than {} elements", kMostItems));
    parts.push_back(from_right ? reversed(part) : std::string(part));
  };
  for (std::size_t at = find_first(source, sought); at != std::string::npos && most != 0; at = find_first(source, sought, begin)) {
    add(at);
    begin = at + sought.size();
    most -= most > 0 ? 1 : 0;
  }
  add(source.size());
  if (from_right) std::ranges::reverse(parts);
  return parts;
}

Items split_at_space(const std::string& text, std::int64_t most, bool from_right) {
  std::u32string letters = code_points(text);
  if (from_right) std::ranges::reverse(letters);
  const auto space = [](char32_t letter) { return is_space(letter); };
  Items parts;
  for (auto at = std::ranges::find_if_not(letters, space); at != letters.end();) {
    const auto end = most == 0 ? letters.end() : std::find_if(at, letters.end(), space);
    const auto next = std::find_if_not(end, letters.end(), space);
    std::u32string part(at, end);
    if (from_right) std::ranges::reverse(part);
    if (parts.size() >= kMostItems) throw Error(fmt::format("a list of more than {} elements", kMostItems));
    parts.push_back(utf8(part));
    at = next;
    most -= most > 0 ? 1 : 0;
  }
  if (from_right) std::ranges::reverse(parts);
  return parts;
}

std::string joined_text(const std::string& separator, const Items& parts) {
  Builder out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].is_text()) throw Error(fmt::format("sequence item {}: expected str instance, {} found", i, parts[i].type()));
    if (i > 0) out.add(separator);
    out.add(parts[i].text());
  }
  return out.take();
}

}  // namespace statescope::chat

#include "app/common/path_words.h"

#include <cctype>
#include <string_view>

namespace statescope {
namespace {

bool is_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.'; }

/// Neither in the middle of a longer path nor at the beginning of another name.
bool stands_alone(std::string_view text, std::size_t at, std::size_t size) {
  const bool begins = at == 0 || !(is_of_name(text[at - 1]) || text[at - 1] == '/');
  const std::size_t end = at + size;
  return begins && (end == text.size() || !is_of_name(text[end]));
}

/// From there on; npos: nowhere.
std::size_t find_path(std::string_view text, std::string_view path, std::size_t from) {
  if (path.empty() || path == "/") return text.npos;
  std::size_t at = text.find(path, from);
  while (at != text.npos && !stands_alone(text, at, path.size())) at = text.find(path, at + path.size());
  return at;
}

}  // namespace

bool says_path(const std::string& text, const std::filesystem::path& path) { return find_path(text, path.string(), 0) != text.npos; }

std::string with_path_called(const std::string& text, const std::filesystem::path& path, const std::string& name) {
  const std::string known = path.string();
  std::string result;
  std::size_t from = 0;
  for (std::size_t at = find_path(text, known, 0); at != text.npos; at = find_path(text, known, from)) {
    result += text.substr(from, at - from) + name;
    from = at + known.size();
  }
  return result + text.substr(from);
}

}  // namespace statescope

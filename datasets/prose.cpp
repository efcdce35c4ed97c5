#include "datasets/prose.h"

#include <algorithm>
#include <system_error>

#include "datasets/files.h"

namespace statescope {
namespace {

namespace fs = std::filesystem;

std::string in_one_line(std::string_view text) {
  std::string line;
  bool gap = false;
  for (const char c : text) {
    const bool space = static_cast<unsigned char>(c) <= ' ';
    if (!space && gap && !line.empty()) line += ' ';
    if (!space) line += c;
    gap = space;
  }
  return line;
}

std::string part_of(const std::string& book, Split split) {
  const std::vector<std::size_t> boundaries = sentence_boundaries(book);
  const std::size_t cut = *std::lower_bound(boundaries.begin(), boundaries.end(), book.size() * 9 / 10);
  return split == Split::training ? book.substr(0, cut) : book.substr(cut);
}

std::vector<fs::path> books_in(const fs::path& path) {
  std::error_code error;
  std::vector<fs::path> books;
  for (const auto& entry : fs::directory_iterator(path, error))
    if (entry.path().extension() == ".txt") books.push_back(entry.path());
  if (error) refuse(path, "cannot be read: " + error.message());
  if (books.empty()) refuse(path, "has no .txt file");
  std::sort(books.begin(), books.end(), [](const fs::path& a, const fs::path& b) { return a.filename().native() < b.filename().native(); });
  return books;
}

}  // namespace

std::vector<std::size_t> sentence_boundaries(std::string_view text) {
  std::vector<std::size_t> boundaries{0};
  for (std::size_t i = 2; i < text.size(); ++i)
    if (text[i - 1] == ' ' && std::string_view(".!?").find(text[i - 2]) != std::string_view::npos) boundaries.push_back(i);
  if (!text.empty()) boundaries.push_back(text.size());
  return boundaries;
}

std::string prose(const fs::path& path, Split split) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return in_one_line(read_text(path));
  std::string text;
  bool first = true;
  for (const fs::path& book : books_in(path)) {
    if (!first) text += ' ';
    first = false;
    text += part_of(in_one_line(read_text(book)), split);
  }
  return text;
}

}  // namespace statescope

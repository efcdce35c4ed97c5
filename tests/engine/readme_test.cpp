// What the texts of the repository name is there: paths of ours, and source files by their names.
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/catch.h"
#include "tests/source.h"

namespace statescope::readme_test {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 7> rooms{"app", "engine", "kernels", "views", "datasets", "tests", "assets"};

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Those of others' (copies of references, corpora) left out.
std::vector<fs::path> files_of_ours() {
  std::vector<fs::path> files{from_source("README.md")};
  for (const char* room : rooms) {
    for (auto entry = fs::recursive_directory_iterator(from_source(room)); entry != fs::recursive_directory_iterator(); ++entry) {
      const std::string name = entry->path().filename().string();
      if (name == "golden" || name == "corpus") entry.disable_recursion_pending();
      if (entry->is_regular_file()) files.push_back(entry->path());
    }
  }
  return files;
}

/// "views/plot.h" of a text; of "views/NAME.h", "tests/<name>_test.cpp" and "assets/niah-*.h5" the folder.
std::set<std::string> paths_in(const std::string& text) {
  static const std::regex path("(?:^|[^A-Za-z0-9_./-])((?:app|engine|kernels|views|datasets|tests|assets)/[A-Za-z0-9_./-]*)");
  static const std::array<std::string_view, 4> left_open{"*", "<", "{", "…"};
  std::set<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), path), end; match != end; ++match) {
    std::string name = (*match)[1];
    const std::string_view behind = std::string_view(text).substr(static_cast<std::size_t>(match->position(1) + match->length(1)));
    const bool is_open = std::ranges::any_of(left_open, [&](std::string_view mark) { return behind.starts_with(mark); });
    if (is_open || name.find("NAME") != name.npos) name.resize(name.rfind('/'));
    while (name.ends_with('.') || name.ends_with('-')) name.pop_back();
    found.insert(name);
  }
  return found;
}

/// `backend.h` of a text.
std::set<std::string> source_names_in(const std::string& text) {
  static const std::regex name("`([A-Za-z0-9_.-]+\\.(?:h|cpp|cu|py))`");
  std::set<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), name), end; match != end; ++match) found.insert((*match)[1]);
  return found;
}

/// `ops/` in the first cells of a text's tables: rooms of its folder.
std::set<std::string> rooms_in(const std::string& text) {
  static const std::regex room("`([A-Za-z0-9_/-]+/)`");
  std::set<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `")) continue;
    const std::string cell = line.substr(0, line.find('|', 1));
    for (std::sregex_iterator match(cell.begin(), cell.end(), room), end; match != end; ++match) found.insert((*match)[1]);
  }
  return found;
}

}  // namespace

TEST_CASE("texts: what they name is there") {
  CHECK(rooms_in("| `ops/`, `cuda/any/` | `none/` |\nand `others/`") == std::set<std::string>{"ops/", "cuda/any/"});
  CHECK(paths_in("(views/plot.h), `views/NAME.h`, tests/<name>_test.cpp, see engine/run/.") ==
        std::set<std::string>{"views/plot.h", "views", "tests", "engine/run/"});
  const std::vector<fs::path> files = files_of_ours();
  std::set<std::string> names;
  for (const fs::path& file : files) names.insert(file.filename().string());
  std::size_t named = 0;
  for (const fs::path& file : files) {
    if (file.extension() != ".md") continue;
    const std::string text = text_of(file);
    INFO(file);
    CHECK(text.find("../shared") == text.npos);
    for (const std::string& path : paths_in(text)) {
      INFO("names " << path);
      CHECK(fs::exists(from_source(path)));
      ++named;
    }
    for (const std::string& room : rooms_in(text)) {
      INFO("names " << room);
      CHECK(fs::is_directory(file.parent_path() / room));
      ++named;
    }
    for (const std::string& name : source_names_in(text)) {
      INFO("names " << name);
      CHECK(names.contains(name));
      ++named;
    }
  }
  CHECK(named > 100);
}

}  // namespace statescope::readme_test

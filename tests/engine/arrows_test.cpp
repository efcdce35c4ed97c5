// The arrows between the folders and between their rooms (README, "Where things are"), read off the includes.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/source.h"

namespace statescope::test::arrows_test {
namespace {

namespace fs = std::filesystem;

struct Rule {
  std::set<std::string> folders;       // of ours that may be included
  std::vector<std::string> forbidden;  // of others': beginnings that may not
};

const std::vector<std::string> kNoWindow{"Q", "imgui", "backends/"};
const std::vector<std::string> kMathematicsOnly{"Q", "imgui", "backends/", "nlohmann/", "fmt/", "hdf5", "CLI/"};

std::map<std::string, Rule> rules() {
  return {{"kernels", {{"kernels"}, kMathematicsOnly}},
          {"datasets", {{"datasets"}, kNoWindow}},
          {"engine", {{"engine", "kernels"}, kNoWindow}},
          {"views",
           {{"views", "engine/snapshot.h", "engine/accuracy.h", "engine/findings"}, {"Q", "imgui", "backends/", "hdf5", "Eigen/", "hwy/"}}},
          {"app", {{"app", "views", "engine", "datasets", "kernels"}, {}}}};
}

/// The rooms of a folder, and files that stand for themselves: each may include itself and what comes before it, nothing behind it. What is
/// in no room of its own belongs to the folder around it.
const std::vector<std::vector<std::string>> kRooms{
    {"kernels/tensor.h", "kernels/workspace.h", "kernels/device_rows.h", "kernels/cpu", "kernels/ops", "kernels", "kernels/program",
     "kernels/passes", "kernels/cuda/common", "kernels/cuda/any", "kernels/cuda/hopper", "kernels/cuda/decode", "kernels/cuda"},
    {"engine",
     "engine/findings",
     "engine/checkpoint",
     "engine/config",
     "engine/mixers",
     "engine/model",
     "engine/tokenizer/text",
     "engine/tokenizer/vocabularies",
     "engine/tokenizer/tokenizer.h",
     "engine/tokenizer/words.h",
     "engine/tokenizer/pipeline",
     "engine/tokenizer/files",
     "engine/tokenizer",
     "engine/chat/values",
     "engine/chat/filters",
     "engine/chat/language",
     "engine/chat",
     "engine/run",
     "engine/analysis",
     "engine/clinic",
     "engine/answers",
     "engine/session",
     "engine/remote"},
    {"app/assets.h", "app/common",  "app/ranks",  "app/canvas", "app/bench",  "app/eval",   "app/figure",   "app/film",
     "app/batch",    "app/inspect", "app/needle", "app/jobs",   "app/runs",   "app/remote", "app/controls", "app/pages",
     "app/panels",   "app/lesson",  "app/start",  "app/web",    "app/window", "app/cli",    "app"}};

/// Where `file` stands in the order of rooms: the longest name that holds it; −1: nowhere.
std::ptrdiff_t room_of(const std::string& file, const std::vector<std::string>& rooms) {
  std::ptrdiff_t found = -1;
  for (std::size_t i = 0; i < rooms.size(); ++i) {
    const bool holds = file == rooms[i] || file.starts_with(rooms[i] + "/");
    if (holds && (found < 0 || rooms[i].size() > rooms[static_cast<std::size_t>(found)].size())) found = static_cast<std::ptrdiff_t>(i);
  }
  return found;
}

/// What a line of a source file includes, with its first quotation mark or bracket: `"views/plot.h`, `<vector`; empty where it includes
/// nothing.
std::string included(const std::string& line) {
  const auto start = line.find_first_not_of(" \t");
  if (start == std::string::npos || line[start] != '#') return {};
  const auto word = line.find_first_not_of(" \t", start + 1);
  if (word == std::string::npos || !line.substr(word).starts_with("include")) return {};
  const auto open = line.find_first_of("<\"", word);
  return open == std::string::npos ? std::string() : line.substr(open, line.find_first_of(">\"", open + 1) - open);
}

/// Calls `see(file, what)` for every include in a folder; `what` with its first quotation mark or bracket.
template <class See>
void for_each_include(const fs::path& root, const std::string& folder, See see) {
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cpp" && extension != ".cu" && extension != ".cuh") continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      if (const std::string what = included(line); !what.empty()) see(entry.path().lexically_relative(root).string(), what);
    }
  }
}

/// What breaks a rule, as "file includes what".
std::vector<std::string> breaches(const fs::path& root, const std::string& folder, const Rule& rule) {
  std::vector<std::string> found;
  for_each_include(root, folder, [&](const std::string& file, const std::string& mark) {
    const std::string what = mark.substr(1);
    const bool allowed =
        mark[0] == '"'
            ? std::ranges::any_of(rule.folders, [&](const std::string& one) { return what == one || what.starts_with(one + "/"); })
            : std::ranges::none_of(rule.forbidden, [&](const std::string& start) { return what.starts_with(start); });
    if (!allowed) found.push_back(file + " includes " + what);
  });
  return found;
}

/// What goes back, against the order of the rooms.
std::vector<std::string> back_arrows(const fs::path& root, const std::vector<std::string>& rooms) {
  std::vector<std::string> found;
  const std::string folder = rooms.front().substr(0, rooms.front().find('/'));
  for_each_include(root, folder, [&](const std::string& file, const std::string& mark) {
    const std::string what = mark.substr(1);
    if (mark[0] == '"' && what.starts_with(folder + "/") && room_of(what, rooms) > room_of(file, rooms))
      found.push_back(file + " includes " + what);
  });
  return found;
}

}  // namespace

TEST_CASE("includes follow the arrows between the folders") {
  for (const auto& [folder, rule] : rules()) {
    INFO(folder);
    CHECK(breaches(from_source(""), folder, rule) == std::vector<std::string>{});
  }
}

TEST_CASE("includes go from a room to those before it, with no way back") {
  for (const auto& rooms : kRooms) {
    INFO(rooms.front());
    CHECK(back_arrows(from_source(""), rooms) == std::vector<std::string>{});
  }
}

/// Types that headers define, not inside of others: "statescope::Piece" → the headers.
std::map<std::string, std::set<std::string>> types_in_headers(const fs::path& root, const std::string& folder) {
  std::map<std::string, std::set<std::string>> found;
  static const std::regex space("^namespace ([\\w:]+) ?\\{.*"),
      type("^(?:struct|class|enum class) (?:alignas\\(\\w+\\) )?(\\w+)(?: final)?(?: :.*)? ?\\{.*");
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    if (entry.path().extension() != ".h") continue;
    std::ifstream file(entry.path());
    std::string name_space;
    for (std::string line; std::getline(file, line);) {
      std::smatch match;
      if (std::regex_match(line, match, space)) name_space = match[1];
      if (std::regex_match(line, match, type))
        found[name_space + "::" + match[1].str()].insert(entry.path().lexically_relative(root).string());
    }
  }
  return found;
}

TEST_CASE("a name is one type: no two headers define it") {
  std::map<std::string, std::set<std::string>> all;
  for (const std::string folder : {"kernels", "engine", "app", "views", "datasets"})
    for (auto& [name, headers] : types_in_headers(from_source(""), folder)) all[name].merge(headers);
  CHECK(all.size() > 500);
  for (const auto& [name, headers] : all) {
    INFO(name << " in " << *headers.begin() << " and " << *headers.rbegin());
    CHECK(headers.size() == 1);
  }
}

TEST_CASE("no folder is a heap: at most a dozen files at the top, and forty in a room") {
  const std::set<std::string> pairs{"views"};  // a view is a header and a source, a large one's drawing a third
  for (const std::string top : {"kernels", "engine", "app", "views", "datasets", "tests", "assets"}) {
    std::map<std::string, int> files{{top, 0}};
    for (const auto& entry : fs::recursive_directory_iterator(from_source(top))) {
      const std::string folder = entry.path().parent_path().lexically_relative(from_source("")).string();
      if (entry.is_regular_file() && !folder.starts_with("tests/golden") && !folder.starts_with("tests/fuzz/corpus")) ++files[folder];
    }
    for (const auto& [folder, count] : files) {
      INFO(folder);
      CHECK(count <= (pairs.contains(folder) ? 100 : folder == "kernels" || folder == "engine" || folder == "app" ? 12 : 40));
    }
  }
}

TEST_CASE("the arrows' reader sees a breach") {
  const fs::path root = fs::temp_directory_path() / "statescope-arrows";
  fs::create_directories(root / "kernels");
  std::ofstream(root / "kernels/wrong.h")
      << "#include \"engine/error.h\"\n  #  include <QWidget>\n#include \"kernels/tensor.h\"\n#include <vector>\n";
  CHECK(breaches(root, "kernels", rules().at("kernels")).size() == 2);
  fs::remove_all(root);
}

TEST_CASE("the reader of rooms sees an arrow that goes back") {
  const fs::path root = fs::temp_directory_path() / "statescope-rooms";
  fs::create_directories(root / "kernels/ops");
  std::ofstream(root / "kernels/ops/wrong.h") << "#include \"kernels/tensor.h\"\n#include \"kernels/backend.h\"\n";
  std::ofstream(root / "kernels/right.h") << "#include \"kernels/ops/wrong.h\"\n#include \"kernels/tensor.h\"\n";
  CHECK(back_arrows(root, kRooms.front()) == std::vector<std::string>{"kernels/ops/wrong.h includes kernels/backend.h"});
  fs::remove_all(root);
}

}  // namespace statescope::test::arrows_test

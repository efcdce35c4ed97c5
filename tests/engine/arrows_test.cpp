// The arrows between the folders (README, "Where things are"), read off the includes.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
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
          {"views", {{"views", "engine/snapshot.h", "engine/findings.h"}, {"Q", "imgui", "backends/", "hdf5", "Eigen/", "hwy/"}}},
          {"app", {{"app", "views", "engine", "datasets", "kernels"}, {}}}};
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

/// What breaks a rule, as "file includes what".
std::vector<std::string> breaches(const fs::path& root, const std::string& folder, const Rule& rule) {
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cpp" && extension != ".cu" && extension != ".cuh") continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      const std::string mark = included(line);
      if (mark.empty()) continue;
      const std::string what = mark.substr(1);
      const bool ours = mark[0] == '"';
      const bool allowed = ours ? rule.folders.contains(what) || rule.folders.contains(what.substr(0, what.find('/')))
                                : std::ranges::none_of(rule.forbidden, [&](const std::string& start) { return what.starts_with(start); });
      if (!allowed) found.push_back(entry.path().lexically_relative(root).string() + " includes " + what);
    }
  }
  return found;
}

}  // namespace

TEST_CASE("includes follow the arrows between the folders") {
  for (const auto& [folder, rule] : rules()) {
    INFO(folder);
    CHECK(breaches(from_source(""), folder, rule) == std::vector<std::string>{});
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

}  // namespace statescope::test::arrows_test

// The arrows between the folders (README, "Where things are"), read off the includes.
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "tests/catch.h"

namespace statescope::test {
namespace {

namespace fs = std::filesystem;

struct Rule {
  std::set<std::string> folders;  // of ours that may be included
  std::regex forbidden;           // of others' that may not
};

const std::regex kNothing("(?!)");
const std::regex kNoQt("Q[A-Z].*|imgui.*|backends/.*");
const std::regex kMathematicsOnly("Q[A-Z].*|imgui.*|backends/.*|nlohmann/.*|fmt/.*|hdf5.*|CLI/.*");

std::map<std::string, Rule> rules() {
  return {{"kernels", {{"kernels"}, kMathematicsOnly}},
          {"datasets", {{"datasets"}, kNoQt}},
          {"engine", {{"engine", "kernels"}, kNoQt}},
          {"views", {{"views", "engine/snapshot.h", "engine/findings.h"}, std::regex("Q[A-Z].*|imgui.*|backends/.*|hdf5.*|Eigen/.*|hwy/.*")}},
          {"app", {{"app", "views", "engine", "datasets", "kernels"}, kNothing}}};
}

/// What breaks a rule, as "file includes what".
std::vector<std::string> breaches(const fs::path& root, const std::string& folder, const Rule& rule) {
  static const std::regex include(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])");
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cpp" && extension != ".cu" && extension != ".cuh") continue;
    std::ifstream file(entry.path());
    std::smatch match;
    for (std::string line; std::getline(file, line);) {
      if (!std::regex_search(line, match, include)) continue;
      const std::string what = match[2];
      const bool ours = match[1] == "\"";
      const bool allowed = ours ? rule.folders.contains(what) || rule.folders.contains(what.substr(0, what.find('/')))
                                : !std::regex_match(what, rule.forbidden);
      if (!allowed) found.push_back(entry.path().lexically_relative(root).string() + " includes " + what);
    }
  }
  return found;
}

}  // namespace

TEST_CASE("includes follow the arrows between the folders") {
  for (const auto& [folder, rule] : rules()) {
    INFO(folder);
    CHECK(breaches(STATESCOPE_SOURCE_DIR, folder, rule) == std::vector<std::string>{});
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

}  // namespace statescope::test

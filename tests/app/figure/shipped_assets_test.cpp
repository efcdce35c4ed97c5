// What assets/ says of itself: prompts are examples of the evaluation split, no checkpoint was trained on one, README's tables are the
// scores.
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "app/assets.h"
#include "datasets/task.h"
#include "engine/checkpoint/checkpoint.h"
#include "tests/catch.h"
#include "tests/source.h"

namespace statescope::shipped_assets_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kAssets = from_source("assets");

std::vector<fs::path> files(const fs::path& folder, const std::string& extension) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == extension) paths.push_back(entry.path());
  }
  return paths;
}

json recipe_of(const fs::path& checkpoint) { return json::parse(open_checkpoint(checkpoint)->provenance.at("recipe.json")); }

/// A cell of at least one needle or pair, as cells of scores.json are written.
TaskOptions options_of(const json& cell) {
  TaskOptions options;
  options.name = cell.at("task");
  options.length = cell.at("length");
  options.needles = cell.value("needles", options.needles);
  options.pairs = cell.value("pairs", options.pairs);
  options.haystack = cell.value("haystack", options.haystack);
  return options;
}

}  // namespace

TEST_CASE("every shipped checkpoint was trained on the training split") {
  for (const fs::path& path : files(kAssets / "checkpoints", ".h5")) {
    INFO(path);
    CHECK(recipe_of(path).at("split") == "training");
  }
}

TEST_CASE("the keys of the splits differ, and with them the draws of a shipped seed") {
  CHECK(Split::training != Split::evaluation);
  std::set<std::uint32_t> seeds{TaskOptions{}.seed};
  for (const fs::path& path : files(kAssets / "checkpoints", ".h5")) seeds.insert(recipe_of(path).at("seed").get<std::uint32_t>());
  TaskOptions options;
  options.length = 128;
  options.needles = 4;
  std::set<std::string> evaluated;
  const auto evaluation = make_task(options, kAssets);
  for (std::int64_t i = 0; i < 500; ++i) evaluated.insert(evaluation->example(i).text);
  CHECK(evaluated.size() == 500);
  options.split = Split::training;
  for (const std::uint32_t seed : seeds) {
    INFO("seed " << seed);
    options.seed = seed;
    const auto training = make_task(options, kAssets);
    for (std::int64_t i = 0; i < 1000; ++i) CHECK(!evaluated.contains(training->example(i).text));
  }
}

TEST_CASE("shipped prompts are examples of the evaluation split") {
  const std::vector<fs::path> prompts = files(kAssets / "prompts", ".json");
  CHECK(!prompts.empty());
  for (const fs::path& path : prompts) {
    INFO(path);
    const json prompt = json::parse(std::ifstream(path));
    const Example example = make_task(options_of(prompt.at("cell")), kAssets)->example(prompt.at("index"));
    const ExampleQuestion& question = example.questions.at(0);
    CHECK(prompt.at("prompt") == example.text.substr(0, question.given.begin));
    CHECK(prompt.at("expected") == question.answer);
    const TextRange needle = example.needles.at(question.needles.at(0));
    CHECK(prompt.at("spans") == json{{{"part", "needle"}, {"begin", needle.begin}, {"end", needle.end}},
                                     {{"part", "question"}, {"begin", question.asked.begin}, {"end", question.asked.end}}});
  }
}

TEST_CASE("every shipped checkpoint but those of a trajectory has scores, and nothing else has") {
  std::set<std::string> shipped, scored;
  for (const fs::path& path : shipped_checkpoints()) shipped.insert(("assets" / path.lexically_relative(assets_folder())).string());
  for (const fs::path& path : files(kAssets / "scores", ".json")) {
    const json scores = json::parse(std::ifstream(path));
    CHECK(scores.at("split") == "evaluation");
    for (const json& cell : scores.at("cells")) scored.insert(cell.at("checkpoint"));
  }
  CHECK(scored == shipped);
}

TEST_CASE("a shipped model is found by its name, and where it lay before") {
  const std::filesystem::path found = assets_folder() / "checkpoints/niah/niah-gla.h5";
  for (const char* name : {"niah-gla", "niah-gla.h5"}) CHECK(checkpoint_at(name) == found);
  CHECK(checkpoint_at(assets_folder() / "checkpoints/niah-gla.h5") == found);
  CHECK(checkpoint_at(found) == found);
  for (const char* other : {"niah-gl", "", "..", "elsewhere/niah-gla.h5", "/no/such/niah-gla.h5"}) CHECK(checkpoint_at(other) == other);
}

TEST_CASE("the tables of assets/README.md are what the scores say") {
  if (std::system("python3 -c 'import h5py' 2>/dev/null") != 0) {
    WARN("skipped: no Python with h5py here");
    return;
  }
  CHECK(std::system(("python3 " + (kAssets / "recipes/table.py").string() + " --check").c_str()) == 0);
}

}  // namespace statescope::shipped_assets_test

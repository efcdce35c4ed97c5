// What the commands print of every family: the golden cases, read as people read them.
#include <fmt/format.h>

#include <algorithm>

#include "tests/app/window/place.h"

namespace statescope::golden_families_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::place::Place;

const std::string kModels = from_source("tests/golden/models/");

/// Where the program is run, with 100 token ids in the file `ids`.
struct Models : Place {
  Models() {
    std::string ids;
    for (int i = 0; i < 100; ++i) ids += fmt::format("{} ", i * 37 % 97);
    write("ids", ids);
  }
  /// What a command prints of a golden case.
  std::string said(const std::string& command, const std::string& name, const std::string& options = "") const {
    INFO(command << " " << name << options);
    const auto outcome = run(fmt::format("{} {}{}{}", command, kModels, name, options), "out");
    REQUIRE(outcome.status == 0);
    return text_of("out");
  }
};

}  // namespace

TEST_CASE("golden families: inspect has half-lives wherever a state decays") {
  const Models models;
  for (const char* name : {"mamba", "falcon_mamba", "jamba", "hymba", "zamba", "s4d", "s4_hippo"}) {
    const std::string text = models.said("inspect", name, " --ids ids --json told.json --force");
    for (const json& layer : json::parse(models.text_of("told.json"))["checkpoints"][0]["sequences"][0]["layers"]) {
      for (const json& slot : layer.value("slots", json::array())) {
        INFO(name << ": " << slot.dump());
        CHECK(slot["half_life"].is_number());
      }
    }
  }
  // As observe has it: ln 2 / (−mean log α) of each row, log α the mean over channels.
  models.said("inspect", "mamba", " --ids ids --json inspected.json");
  models.said("observe", "mamba", " --ids ids --only half_life --layer 0 --json observed.json");
  std::vector<double> lives = json::parse(models.text_of("observed.json"))["layers"][0]["quantities"][0]["values"];
  std::ranges::sort(lives);
  const json slot = json::parse(models.text_of("inspected.json"))["checkpoints"][0]["sequences"][0]["layers"][0]["slots"][0];
  CHECK(slot["half_life"].get<double>() == Approx((lives[lives.size() / 2 - 1] + lives[lives.size() / 2]) / 2));
}

TEST_CASE("golden families: inspect has a sentence in place of a table without states, and says what a layer without one is") {
  const Models models;
  const std::string attends = "  no layer has a state; softmax attention keeps the keys and values themselves";
  CHECK(models.said("inspect", "transformer", " --ids ids").find(attends + ": there is nothing to tell") != std::string::npos);
  CHECK(models.said("inspect", "lfm2", " --ids ids").find(attends + ", a short convolution its last few inputs:") != std::string::npos);
  CHECK(models.said("inspect", "transformer", " --ids ids").find("half-life receptive") == std::string::npos);
  const std::string hybrid = models.said("inspect", "nemotron_h", " --ids ids");
  CHECK(hybrid.find("  1 experts              no memory\n      2 transformer          softmax attention\n") != std::string::npos);
}

}  // namespace statescope::golden_families_test

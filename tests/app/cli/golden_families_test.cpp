// What the commands print of every family: the golden cases, read as people read them.
#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>

#include "engine/mixers/mixer.h"
#include "tests/app/cli/json_schema.h"
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

std::vector<std::string> golden_cases() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(kModels)) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

/// What a printed program says twice, or before it is said; empty: nothing. A value's parts may be said one after the other: "k[0:8]".
class Names {
 public:
  std::string wrong(const std::string& text) {
    std::istringstream lines(text);
    std::string found;
    for (std::string line; std::getline(lines, line);) {
      if (line.ends_with(":") && (line.starts_with("layer") || line.starts_with("all layers"))) known_ = {"x", "S0", "S1"};
      const std::size_t equals = line.find(" = ");
      const std::string made = line.substr(0, equals == line.npos ? 0 : equals), from = line.substr(equals == line.npos ? 0 : equals + 3);
      if (equals == line.npos && !line.starts_with("append ")) continue;
      for (const std::string& name : names_in(from))
        if (!known_.contains(name)) found += name + " is not there: " + line + "\n";
      for (const std::string& name : names_in(made)) {
        const bool is_part = made.find(name + "[") != made.npos;
        if (!known_.insert(name).second && !is_part) found += name + " is there already: " + line + "\n";
      }
    }
    return found;
  }

 private:
  /// Channels, states, and values without a name of their own.
  static std::vector<std::string> names_in(const std::string& text) {
    static const std::regex word("[A-Za-z_][A-Za-z_0-9]*"), value("[vS][0-9]+|[xy]");
    std::vector<std::string> names;
    for (std::sregex_iterator at(text.begin(), text.end(), word), end; at != end; ++at) {
      const bool is_channel = std::ranges::any_of(
          mixer_table(), [&](const MixerRow& row) { return std::ranges::find(row.channels, at->str()) != row.channels.end(); });
      if (is_channel || std::regex_match(at->str(), value)) names.push_back(at->str());
    }
    return names;
  }
  std::set<std::string> known_;
};

}  // namespace

TEST_CASE("golden families: every name in a printed program is said once, before it is used") {
  const Models models;
  for (const std::string& name : golden_cases()) {
    const std::string text = models.said("model --program", name);
    CHECK(Names().wrong(text) == "");
    for (const char* wrong : {"nothing", "identity(", "over 1 heads", "+ -1", " -0."}) {
      INFO(text);
      CHECK(text.find(wrong) == std::string::npos);
    }
  }
}

TEST_CASE("golden families: model tells what layers see and share") {
  const Models models;
  for (const auto& [name, says] : {std::pair{"zamba", "heads, attention and MLP shared by layers 1 and 2\n"},
                                   {"zamba2", "heads, attention and MLP shared by layers 1 and 2\n"},
                                   {"hymba", "heads, window of 21 tokens, the first 6, keys and values of layer 1\n"},
                                   {"sse_swa_moba_gla", "window of 16 tokens"},
                                   {"moba", "  top-3 blocks of 12 tokens\n"},
                                   {"nsa", "  top-4 blocks of 8 tokens, window of 12 tokens\n"},
                                   {"dsa", "  top-16 tokens, latent width 16, shared key part 8"},
                                   {"mla_dense", "  latent width 20, shared key part 12\n"},
                                   {"fixed_longformer", "  window of 8 tokens, dilated, the first, 1 global\n"},
                                   {"fixed_bigbird", "  window of 2 blocks of 8 tokens, the first, random ones\n"},
                                   {"lfm2", "  kernel of 3 tokens\n"},
                                   {"s4d", "state × channel, complex\n"}}) {
    INFO(name);
    CHECK_THAT(models.said("model", name), Catch::Matchers::ContainsSubstring(says));
  }
}

TEST_CASE("golden families: who wrote a state is counted in tokens; where a token writes several times, its step stands beside it") {
  const Models models;
  const std::string text = models.said("history", "gated_deltaproduct", " --ids ids --json told.json");
  CHECK_THAT(text, Catch::Matchers::ContainsSubstring("written by 100 tokens in 200 steps that add up to"));
  CHECK_THAT(text, Catch::Matchers::ContainsSubstring(", step 2\n"));
  CHECK_THAT(text, Catch::Matchers::ContainsSubstring("  188 other steps\n"));
  const json told = json::parse(models.text_of("told.json"));
  REQUIRE(told["writers"].size() == 200);
  std::set<std::pair<int, int>> seen;
  for (const json& writer : told["writers"]) seen.emplace(writer["token"].get<int>(), writer["step"].get<int>());
  CHECK((seen.size() == 200 && seen.contains({99, 1}) && seen.contains({99, 2})));
  if (test::has_jsonschema()) CHECK(test::complaint(told, "history") == "");
  CHECK_THAT(models.said("history", "log_linear_mamba2", " --ids ids"),
             Catch::Matchers::ContainsSubstring("written by 1 token that adds up to"));
  CHECK_THAT(models.said("history", "gla", " --ids ids"), Catch::Matchers::ContainsSubstring("written by 100 tokens that add up to"));
  models.said("history", "hymba", " --ids ids --json hymba.json");
  if (test::has_jsonschema()) CHECK(test::complaint(json::parse(models.text_of("hymba.json")), "history") == "");
}

TEST_CASE("golden families: a needle's numbers have no negative zero, and its share of what is read is called one") {
  const Models models;
  for (const std::string& name : golden_cases()) {
    const std::string text = models.said("needle", name, " --ids ids --needle 10:20");
    INFO(text);
    CHECK_FALSE(std::regex_search(text, std::regex("-0\\.0+([^0-9]|$)")));
    CHECK(text.find("part of what") == std::string::npos);
    CHECK((text.find("share of what is read") != std::string::npos) == (text.find("all layers: ") != std::string::npos));
  }
}

TEST_CASE("golden families: inspect has half-lives wherever a state decays") {
  const Models models;
  for (const char* name : {"mamba", "falcon_mamba", "jamba", "hymba", "zamba", "s4d", "s4_hippo"}) {
    models.said("inspect", name, " --ids ids --json told.json --force");
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

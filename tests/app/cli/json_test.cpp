// JSON of the command line: one way to ask for it, one head, a schema for each command.
#include "tests/app/cli/json_schema.h"
#include "tests/app/window/place.h"

namespace statescope::json_test {
namespace {

namespace fs = std::filesystem;
using namespace test::place;
using nlohmann::json;

const std::string kRouted = "'" + kAssets + "checkpoints/niah/niah-sse-gla-n4k1.h5' --prompt '" + kNeedle + "'";

struct JsonCommand {
  std::string schema, line;
};
/// Every command that tells what it found as JSON.
std::vector<JsonCommand> commands() {
  return {{"run", "run " + kRouted},
          {"run", "run " + kRouted + " --generate 0"},
          {"intervention", "intervene " + kRouted + " --do 'zero partition 4 at 240'"},
          {"needle", "needle " + kRouted},
          {"observables", "observe " + kRouted + " --layer 1"},
          {"history", "history " + kRouted + " --layer 1 --slot 2 --token 240"},
          {"scores", "eval '" + kAssets + "checkpoints/niah/niah-gla.h5' --task niah --samples 2"},
          {"scores", "eval '" + kAssets + "checkpoints/prose/prose-gla.h5' --task text --samples 1 --length 256"},
          {"scores", "eval '" + kAssets + "checkpoints/mqar/mqar-gla.h5' --task mqar --samples 2 --pairs 4 --length 64"},
          {"inspection", "inspect '" + kAssets + "checkpoints/niah/niah-sse-gla-n4k1-collapsed.h5' --samples 1 --length 64"},
          {"bench-sse", "bench sse --length 64 --partitions 2"}};
}

}  // namespace

TEST_CASE("json: every command writes its format and version as its schema says, to a file, or without one to standard output") {
  const Place place;
  const bool checks = test::has_jsonschema();
  for (const auto& [schema, line] : commands()) {
    INFO(line);
    REQUIRE(place.run(line + " --json told.json --force", "text").status == 0);
    REQUIRE(place.run(line + " --json", "bare").status == 0);
    REQUIRE(place.run(line + " --json -", "dash").status == 0);
    CHECK_FALSE(json::accept(place.text_of("text")));  // for people
    const json told = json::parse(place.text_of("told.json"));
    for (const char* out : {"bare", "dash"}) {
      const json same = json::parse(place.text_of(out), nullptr, false);
      REQUIRE(same.is_object());
      CHECK(same["format"] == told["format"]);
      CHECK(same.size() == told.size());
    }
    CHECK(told["format"].get<std::string>() == "statescope-" + schema);
    CHECK(told["version"].is_number_integer());
    if (!checks) continue;
    CHECK(test::complaint(told, schema) == "");
    json wrong = told;  // the schema is not so wide that anything fits
    wrong["mood"] = 1;
    CHECK_FALSE(test::complaint(wrong, schema).empty());
  }
}

TEST_CASE("json: --json in front of a checkpoint means standard output, as it always did; what is in the way is refused first") {
  const Place place;
  REQUIRE(place.run("run --json " + kRouted, "out").status == 0);
  CHECK(json::parse(place.text_of("out"))["format"] == "statescope-run");
  REQUIRE(place.run("intervene --json " + kRouted + " --do 'zero partition 4 at 240'", "out").status == 0);
  CHECK(json::parse(place.text_of("out"))["format"] == "statescope-intervention");
  place.write("there.json", "mine");
  for (const std::string& command :
       std::vector<std::string>{"run " + kRouted, "intervene " + kRouted + " --do 'zero partition 4 at 240'"}) {
    const Outcome outcome = place.run(command + " --json there.json");
    CHECK(outcome.status == 1);
    CHECK(outcome.errors == "statescope: there.json: exists already; choose another name or --force\n");
    CHECK(place.text_of("there.json") == "mine");
    CHECK(place.run(command + " --json ''").status == 2);
    CHECK(place.run(command + " --json=told.json --force").status == 0);
    CHECK(json::accept(place.text_of("told.json")));
  }
}

}  // namespace statescope::json_test

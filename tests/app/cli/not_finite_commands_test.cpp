// A model that computes no numbers: every command says where, and none gives a score, a verdict or a picture of it.
#include <set>

#include "tests/app/window/place.h"

namespace statescope::not_finite_commands_test {
namespace {

using namespace test::place;
using nlohmann::json;

const std::string kTensor = "model.layers.0.attn.k_proj.weight";
const std::string kWhere =
    "tensor " + kTensor + ", element [0, 0], is NaN; the model computes NaN from layer 0 on, at token 0 (residual stream)";

}  // namespace

TEST_CASE("not finite: no score, verdict, comparison or picture, one line, status 1") {
  const Place place;
  write_broken(place, "broken", kTensor);
  const std::string prompt = " --prompt " + kNeedle;
  const std::vector<std::pair<std::string, std::string>> commands{
      {"eval broken --task niah --length 64 --samples 2 --json out.json --csv out.csv", "score"},
      {"needle broken" + prompt + " --json out.json", "verdict"},
      {"intervene broken" + prompt + " --do 'freeze decay of layer 0 at 3' --json", "comparison"},
      {"figure state broken" + prompt + " -o out.pdf", "figure"},
      {"figure routing_entropy broken" + prompt + " -o out.pdf", ""},
  };
  for (const auto& [arguments, wanted] : commands) {
    INFO(arguments);
    const Outcome outcome = place.run(arguments, "printed");
    CHECK(outcome.status == 1);
    if (!wanted.empty()) CHECK(outcome.errors == "statescope: broken: " + kWhere + "; so there is no " + wanted + "\n");
    CHECK(place.text_of("printed").empty());
  }
  const std::vector<std::string> names = place.names();
  CHECK(std::set<std::string>(names.begin(), names.end()) == std::set<std::string>{"broken", "printed"});
}

TEST_CASE("not finite: run, observe and history show what there is, and say it") {
  const Place place;
  write_broken(place, "broken", kTensor);
  const std::string prompt = " --prompt " + kNeedle;
  for (const std::string& arguments : std::vector<std::string>{"run broken" + prompt, "run broken" + prompt + " --generate 0",
                                                               "run broken" + prompt + " --session s.scope",
                                                               "observe broken" + prompt + " --layer 0", "history broken" + prompt}) {
    INFO(arguments);
    const Outcome outcome = place.run(arguments, "printed");
    CHECK(outcome.status == 0);
    CHECK(outcome.errors.find("note: " + kWhere) != std::string::npos);
    CHECK(place.text_of("printed").find("-nan") == std::string::npos);
  }
  REQUIRE(place.run("run broken" + prompt + " --json", "run.json").status == 0);
  const json run = json::parse(place.text_of("run.json"));
  CHECK(run["generated"][0]["probability"].is_null());
  CHECK(run["not_finite"]["weight"]["tensor"] == kTensor);
  CHECK(run["not_finite"]["activation"]["layer"] == 0);
  CHECK(run["notes"].back() == kWhere);
  REQUIRE(place.run("observe broken" + prompt + " --layer 0 --only effective_rank,state_norm --json observe.json").status == 0);
  const json observed = json::parse(place.text_of("observe.json"));
  CHECK(observed["not_finite"]["activation"]["value"] == "nan");
  for (const json& quantity : observed["layers"][0]["quantities"]) {
    INFO(quantity);
    CHECK(quantity["values"][0].is_null());  // of the head that the element belongs to
  }
}

TEST_CASE("not finite: sound checkpoints beside a broken one have their scores, and the end is 1") {
  const Place place;
  write_broken(place, "broken", kTensor);
  const Outcome scored = place.run("eval " + kCheckpoint + " broken --task niah --length 64 --samples 2 --json scores.json");
  CHECK(scored.status == 1);
  CHECK(scored.errors.find("statescope: broken: tensor ") != std::string::npos);
  const json cells = json::parse(place.text_of("scores.json"))["cells"];
  REQUIRE(cells.size() == 2);
  CHECK(cells[0].contains("exact"));
  CHECK(!cells[1].contains("exact"));
  CHECK(cells[1]["impossible"].get<std::string>().find("is NaN") != std::string::npos);
  const Outcome inspected = place.run("inspect broken " + kCheckpoint + " --prompt " + kNeedle + " --json inspected.json");
  CHECK(inspected.status == 1);
  CHECK(inspected.errors.find("broken: " + kWhere) != std::string::npos);
  const json checkpoints = json::parse(place.text_of("inspected.json"))["checkpoints"];
  REQUIRE(checkpoints.size() == 2);
  CHECK(checkpoints[0]["sequences"].empty());
  REQUIRE(checkpoints[0]["verdicts"].size() == 1);
  CHECK(checkpoints[0]["verdicts"][0]["id"] == "not_finite");
  CHECK(checkpoints[1]["verdicts"].empty());
  CHECK(place.run("inspect broken --prompt " + kNeedle + " --check").status == 3);
}

TEST_CASE("not finite: nothing is said of a sound model") {
  const Place place;
  CHECK(place.run("run " + kReading).errors.find("NaN") == std::string::npos);
  REQUIRE(place.run("run " + kReading + " --json", "run.json").status == 0);
  CHECK(!json::parse(place.text_of("run.json")).contains("not_finite"));
}

TEST_CASE("not finite: a picture of the window shows it, with the line and status 1") {
  const Place place;
  write_broken(place, "broken", kTensor);
  const Outcome outcome = place.run("--open broken --prompt " + kNeedle + " --screenshot out.png");
  INFO(outcome.errors);
  CHECK(outcome.status == 1);
  CHECK(outcome.errors.starts_with("statescope: "));
  CHECK(outcome.errors.find("tensor " + kTensor) != std::string::npos);
  CHECK(std::filesystem::file_size(place.folder / "out.png") > 10'000);
}

}  // namespace statescope::not_finite_commands_test

// statescope observe and statescope history: what a layer is at a token, and who wrote its state, as JSON.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/assets.h"
#include "app/cli/commands.h"
#include "engine/error.h"
#include "tests/catch.h"
#include "tests/source.h"

namespace statescope::ask_test {
namespace {

using nlohmann::json;

const std::string kAssets = from_source("assets/");

/// A file name that is free, and is so again at the end.
struct Scratch {
  std::filesystem::path path = std::filesystem::temp_directory_path() / "statescope-ask-test.json";
  Scratch() { std::filesystem::remove(path); }
  ~Scratch() { std::filesystem::remove(path); }
  json read() const { return json::parse(std::ifstream(path)); }
};

template <class Arguments>
Arguments about(const std::string& checkpoint, const Scratch& scratch) {
  Arguments arguments;
  arguments.checkpoint = shipped_checkpoint(checkpoint).string();
  arguments.prompt.file = kAssets + "prompts/needle.json";
  arguments.json = scratch.path.string();
  arguments.force = true;
  return arguments;
}

template <class Command, class Arguments>
std::string error_of(const Command& command, const Arguments& arguments) {
  try {
    command(arguments);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

json quantity(const json& layer, const std::string& name) {
  for (const json& one : layer["quantities"]) {
    if (one["name"] == name) return one;
  }
  return {};
}

}  // namespace

TEST_CASE("observe: every quantity of every layer at a token, each with its equation, unit and accuracy") {
  const Scratch scratch;
  ObserveArguments arguments = about<ObserveArguments>("niah-sse-gla-n4k1", scratch);
  REQUIRE(observe_command(arguments) == 0);
  const json report = scratch.read();
  CHECK(report["format"] == "statescope-observables");
  CHECK(report["prompt_length"] == 252);
  CHECK(report["device"].get<std::string>().starts_with("CPU"));
  REQUIRE(report["layers"].size() == 4);
  REQUIRE(report["tokens"].size() == 1);
  for (const json& layer : report["layers"]) {
    CHECK(layer["slots"].size() == 5);
    CHECK(layer["quantities"].size() > 40);
    for (const json& one : layer["quantities"]) {
      CHECK_FALSE((one["unit"].get<std::string>().empty() || one["equation"].get<std::string>().empty()));
      CHECK_FALSE(one["accuracy"].get<std::string>().empty());
      std::size_t numbers = 1;
      for (const json& extent : one["shape"]) numbers *= extent.get<std::size_t>();
      CHECK(one["values"].size() == numbers);
    }
    double sum = 0;
    const json gate = quantity(layer, "partition_gate");
    for (const json& e : gate["values"]) sum += e.get<double>();
    CHECK(sum == Approx(1).epsilon(1e-5));
  }
}

TEST_CASE("observe: some quantities of some tokens; of a branch; what is not there is refused in a line") {
  const Scratch scratch;
  ObserveArguments arguments = about<ObserveArguments>("niah-sse-gla-n4k1", scratch);
  arguments.layer = 2;
  arguments.token = 10;
  arguments.until = 14;
  arguments.names = {"state_norm", "half_life"};
  REQUIRE(observe_command(arguments) == 0);
  const json own = scratch.read();
  CHECK(own["tokens"].size() == 5);
  CHECK(own["tokens"][4]["token"] == 14);
  REQUIRE(own["layers"].size() == 1);
  REQUIRE(own["layers"][0]["quantities"].size() == 2);
  CHECK(quantity(own["layers"][0], "state_norm")["shape"] == json{5, 5, 4});

  arguments.interventions = {"zero state of layer 2 at 12"};
  REQUIRE(observe_command(arguments) == 0);
  const json branch = scratch.read();
  const json before = quantity(own["layers"][0], "state_norm")["values"], after = quantity(branch["layers"][0], "state_norm")["values"];
  CHECK(after[0] == before[0]);
  CHECK(before[2 * 20].get<double>() > 0);
  CHECK(after[2 * 20] == 0);

  arguments.interventions.clear();
  arguments.names = {"decay_since"};
  arguments.since = 14;
  REQUIRE(observe_command(arguments) == 0);
  const json since = scratch.read()["layers"][0]["quantities"][0]["values"];
  CHECK((since.front().is_null() && since.back() == 1));
  arguments.until = 3;
  CHECK(error_of(observe_command, arguments) == "--until 3: it is before --token 10");
  arguments.until.reset();
  arguments.layer = 9;
  CHECK(error_of(observe_command, arguments) == "there is no layer 9 (layers are 0 to 3)");
  arguments.layer = 0;
  arguments.names = {"loudness"};
  CHECK(error_of(observe_command, arguments).starts_with("there is no quantity \"loudness\""));
  arguments.token = 100000;
  CHECK(error_of(observe_command, arguments).starts_with("--token: there is no token 100000 (tokens are 0 to "));
  ObserveArguments list;
  list.list = true;
  CHECK(observe_command(list) == 0);
}

TEST_CASE("history: the writers of a partition, a row and a cell add up to it, in every family that is shipped") {
  const Scratch scratch;
  for (const char* name : {"niah-gla", "niah-sse-gla-n4k1", "niah-sse-gdn-n4k1", "niah-gated-deltanet", "niah-mom", "niah-mamba2",
                           "niah-retnet", "niah-delta-net", "niah-sla-gdn", "niah-gla-row-sparse"}) {
    HistoryArguments arguments = about<HistoryArguments>(name, scratch);
    arguments.layer = 1;
    for (const bool of_row : {false, true}) {
      for (const bool of_cell : {false, true}) {
        if (of_cell && !of_row) continue;
        INFO(name << (of_cell ? ", cell" : of_row ? ", row" : ", partition"));
        arguments.row = of_row ? std::optional<std::int64_t>(2) : std::nullopt;
        arguments.column = of_cell ? std::optional<std::int64_t>(3) : std::nullopt;
        REQUIRE(history_command(arguments) == 0);
        const json report = scratch.read();
        CHECK(report["format"] == "statescope-history");
        CHECK(report["prompt_length"] == 252);
        CHECK(report["row"].is_null() == !of_row);
        CHECK(report["column"].is_null() == !of_cell);
        double sum = 0, size = 0, last = INFINITY;
        for (const json& writer : report["writers"]) {
          sum += writer["contribution"].get<double>();
          size += std::abs(writer["contribution"].get<double>());
          CHECK(std::abs(writer["contribution"].get<double>()) <= last);
          last = std::abs(writer["contribution"].get<double>());
        }
        CHECK(sum == Approx(report["sum"].get<double>()).margin(1e-5 * size));
        CHECK(sum == Approx(report["shown"].get<double>()).epsilon(1e-4).margin(1e-5 * size));
      }
    }
  }
  HistoryArguments arguments = about<HistoryArguments>("niah-gla", scratch);
  arguments.read = true;
  REQUIRE(history_command(arguments) == 0);
  const json read = scratch.read();
  CHECK(read["read"] == true);
  CHECK(read["sum"].get<double>() == Approx(read["shown"].get<double>()).epsilon(1e-4));
  arguments.slot = 7;
  CHECK(error_of(history_command, arguments) == "there is no slot 7 (the only one is 0)");
  arguments.checkpoint = kAssets + "checkpoints/niah/niah-transformer.h5";
  CHECK(error_of(history_command, arguments) == "layer 0 (transformer) keeps no matrix state, nor does any other of this model");
}

}  // namespace statescope::ask_test

// statescope inspect: from checkpoints to verdicts, without being told which is which.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "app/cli_commands.h"
#include "app/inspect/report.h"
#include "engine/error.h"
#include "tests/catch.h"
#include "tests/source.h"

namespace statescope::inspect_test {
namespace {

using nlohmann::json;

std::string shipped(const std::string& name) { return from_source("assets/checkpoints/") + name + ".h5"; }

/// A file name that is free, and is so again at the end.
struct Scratch {
  std::filesystem::path path = std::filesystem::temp_directory_path() / "statescope-inspect-test.json";
  Scratch() { std::filesystem::remove(path); }
  ~Scratch() { std::filesystem::remove(path); }
};

std::string error_of(const InspectArguments& arguments) {
  try {
    inspect_command(arguments);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("inspect: the collapsed model is told from the healthy one by its routing, at every length") {
  const Scratch scratch;
  InspectArguments arguments;
  arguments.checkpoints = {shipped("niah-sse-gla-n4k1"), shipped("niah-sse-gla-n4k1-collapsed"), shipped("mqar-gated-deltanet")};
  arguments.json = scratch.path.string();
  CHECK(inspect_command(arguments) == 0);
  const json written = json::parse(std::ifstream(scratch.path));
  CHECK(written["format"] == "statescope-inspection");
  std::vector<std::string> unhealthy;
  for (const json& checkpoint : written["checkpoints"]) {
    CHECK(checkpoint["sequences"].size() == 3);
    for (const json& verdict : checkpoint["verdicts"]) {
      if (!verdict["healthy"]) unhealthy.push_back(checkpoint["checkpoint"].get<std::string>() + " " + verdict["name"].get<std::string>());
    }
  }
  CHECK(unhealthy == std::vector<std::string>{shipped("niah-sse-gla-n4k1-collapsed") + " routing"});
  const json& first = written["checkpoints"][0];
  CHECK(first["trained_length"] == 1024);
  CHECK(first["sequences"][2]["tokens"] == 2048);
  CHECK(first["sequences"][0]["layers"][3]["routing"]["load"].size() == 4);
  CHECK(first["sequences"][0]["layers"][3]["slots"][0]["name"] == "shared");
  CHECK(written["checkpoints"][2]["sequences"][0]["layers"][0]["routing"].is_null());
}

TEST_CASE("inspect: two checkpoints stand side by side, each figure with its difference") {
  const LayerReport layer{.mixer = "gla", .residual_norm = 2, .heads = {}, .slots = {}, .routing = {}};
  Inspected a{.checkpoint = "a.h5", .names = {"niah"}, .sequences = {{.tokens = 64, .nll_by_eighth = {}, .layers = {layer, layer}}}}, b = a;
  b.checkpoint = "b.h5";
  b.sequences[0].layers[1].residual_norm = 3.5;
  CHECK(
      comparison_text(a, b).starts_with("A: a.h5\n"
                                        "B: b.h5\n"
                                        "niah, 64 and 64 tokens\n"
                                        "                                              A          B      B - A\n"
                                        "  layer 0 residual norm                       2          2         +0\n"
                                        "  layer 1 residual norm                       2        3.5       +1.5\n"));
  b.names = {"mqar"};
  CHECK(comparison_text(a, b).empty());
}

TEST_CASE("inspect: a folder is a trajectory, in order of its steps; the page holds every checkpoint and loads nothing") {
  const Scratch scratch;
  InspectArguments arguments;
  arguments.checkpoints = {from_source("assets/checkpoints/trajectories")};
  arguments.lengths = {64};
  arguments.html = scratch.path.string();
  CHECK(inspect_command(arguments) == 0);
  std::ifstream file(scratch.path);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  std::size_t last = 0;
  for (const char* name :
       {"mqar-gla-step1000", "mqar-gla-step5000", "mqar-sse-gla-n4k1-step1000", "niah-gla-step8333", "niah-sse-gla-n4k1-step8333"}) {
    const std::size_t row = page.find("<td>" + std::string(name) + "</td>");
    CHECK(row != std::string::npos);
    CHECK(row > last);
    last = row;
  }
  for (const char* outside : {"http", "src=", "href=", "<script", "@import", "url("}) CHECK(page.find(outside) == std::string::npos);
  CHECK(page.find("niah, 64 words: 64 tokens") != std::string::npos);

  arguments.html.clear();
  arguments.checkpoints = {std::filesystem::temp_directory_path().string() + "/statescope-no-such-folder"};
  CHECK(error_of(arguments).find("statescope-no-such-folder") != std::string::npos);
}

TEST_CASE("inspect: a prompt or lengths of one's own; errors in one line, and no file") {
  const Scratch scratch;
  InspectArguments arguments;
  arguments.checkpoints = {shipped("niah-gla")};
  arguments.json = scratch.path.string();
  arguments.prompt.text = "the code of ivan 1 8 1 5 .";
  CHECK(inspect_command(arguments) == 0);
  CHECK(json::parse(std::ifstream(scratch.path))["checkpoints"][0]["sequences"][0]["tokens"] == 9);
  CHECK(error_of(arguments).find("exists already") != std::string::npos);
  std::filesystem::remove(scratch.path);

  arguments.prompt.text = "unheardof";
  CHECK(error_of(arguments).find("unheardof") != std::string::npos);
  arguments.prompt = {};
  arguments.checkpoints = {"nowhere.h5"};
  CHECK(error_of(arguments).find("nowhere.h5") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(scratch.path));
  arguments.checkpoints = {shipped("niah-gla")};
  arguments.lengths = {100};
  CHECK(inspect_command(arguments) == 0);
}

}  // namespace statescope::inspect_test

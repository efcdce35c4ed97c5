// statescope intervene: shipped models whose answers hang on what is changed.
#include <filesystem>
#include <fstream>

#include "app/cli_commands.h"
#include "engine/error.h"
#include "tests/catch.h"
#include "tests/source.h"

namespace statescope::intervene_test {
namespace {

const std::string kAssets = from_source("assets/");

InterveneArguments with(const std::string& model, std::vector<std::string> interventions) {
  InterveneArguments arguments;
  arguments.checkpoint = kAssets + "checkpoints/" + model + ".h5";
  arguments.prompt.file = kAssets + "prompts/needle.json";
  arguments.interventions = std::move(interventions);
  return arguments;
}

std::string error_of(const InterveneArguments& arguments) {
  try {
    intervene_command(arguments);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("intervene: every kind on shipped models, as text and as JSON") {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"niah-sse-gla-n4k1", "zero state at 60"},
      {"niah-sse-gla-n4k1", "zero partition 2 of layer 1 at 60"},
      {"niah-sse-gla-n4k1", "route to partition 1 from 20"},
      {"niah-sse-gla-n4k1", "topk 2 from 20 until 30"},
      {"niah-gla", "freeze decay from 20"},
      {"niah-sla-gdn", "sharpen gates by 4 from 20"},
      {"niah-transformer", "replace token by 7 at 20"},
      {"niah-sse-gla-n4k1", "scale state by 1 at 60"},
  };
  for (const auto& [model, text] : cases) {
    INFO(model << ": " << text);
    InterveneArguments arguments = with(model, {text});
    CHECK(intervene_command(arguments) == 0);
    arguments.json = true;
    CHECK(intervene_command(arguments) == 0);
  }
  InterveneArguments other = with("niah-gla", {"import run 1 at 60"});
  other.others = {kAssets + "prompts/needles-512.json"};
  CHECK(intervene_command(other) == 0);
}

TEST_CASE("intervene: what the model or the run does not have is refused in one line") {
  CHECK(error_of(with("niah-gla", {"zero partition 1 at 5"})).find("it has no partitions") != std::string::npos);
  CHECK(error_of(with("niah-gla", {"zero head 0 of layer 9 at 5"})).find("the model has layers 0 to 3") != std::string::npos);
  CHECK(error_of(with("niah-gla", {"zero head 0 at 100000"})).find("the run has tokens 0 to ") != std::string::npos);
  CHECK(error_of(with("niah-gla", {"import run 1 at 5"})).find("there are runs 0 to 0") != std::string::npos);
  CHECK(error_of(with("niah-gla", {"nonsense"})).find("\"nonsense\" is not understood") != std::string::npos);
}

}  // namespace statescope::intervene_test

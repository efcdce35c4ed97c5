// statescope needle: a shipped model and prompt, and prompts without a needle.
#include <filesystem>
#include <fstream>

#include "app/cli_commands.h"
#include "engine/error.h"
#include "tests/catch.h"

namespace statescope {
namespace {

const std::string kAssets = std::string(STATESCOPE_SOURCE_DIR) + "/assets/";

std::string error_of(const NeedleArguments& arguments) {
  try {
    needle_command(arguments);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("needle: every kind of memory of the shipped models has something to tell") {
  NeedleArguments arguments;
  arguments.prompt.file = kAssets + "prompts/needle.json";
  for (const char* name :
       {"niah-gla", "niah-gated-deltanet", "niah-sse-h-n4k1", "niah-mom", "niah-mamba2", "niah-transformer", "niah-sla-gdn"}) {
    INFO(name);
    arguments.checkpoint = kAssets + "checkpoints/" + name + ".h5";
    CHECK(needle_command(arguments) == 0);
  }
}

TEST_CASE("needle: a prompt without a needle, or with nothing behind it, is refused in one line") {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "statescope-needle-test.json";
  NeedleArguments arguments;
  arguments.checkpoint = kAssets + "checkpoints/niah-gla.h5";
  arguments.prompt.file = path.string();
  std::ofstream(path) << R"({"prompt": "the code of ivan 1 8 1 5 ."})";
  CHECK(error_of(arguments).find("no span of it is a needle") != std::string::npos);
  std::ofstream(path) << R"({"prompt": "the code of ivan 1 8 1 5 .", "spans": [{"part": "needle", "begin": 0, "end": 26}]})";
  CHECK(error_of(arguments).find("nothing stands behind its needle") != std::string::npos);
  std::filesystem::remove(path);
}

}  // namespace statescope

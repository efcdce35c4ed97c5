// statescope needle: a shipped model and prompt, and prompts without a needle.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "app/assets.h"
#include "app/cli/commands.h"
#include "engine/error.h"
#include "tests/catch.h"
#include "tests/source.h"

namespace statescope::needle_test {
namespace {

using nlohmann::json;

const std::string kAssets = from_source("assets/");

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
    arguments.checkpoint = shipped_checkpoint(name).string();
    CHECK(needle_command(arguments) == 0);
  }
}

TEST_CASE("needle: all of it as JSON, and as a page that loads nothing") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "statescope-needle-reports";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  NeedleArguments arguments;
  arguments.checkpoint = kAssets + "checkpoints/niah/niah-sse-gla-n4k1.h5";
  arguments.prompt.file = kAssets + "prompts/needle.json";
  arguments.json = (folder / "needle.json").string();
  arguments.html = (folder / "needle.html").string();
  REQUIRE(needle_command(arguments) == 0);

  const json report = json::parse(std::ifstream(arguments.json));
  CHECK(report["format"] == "statescope-needle");
  CHECK(report["needle"]["end"] > report["needle"]["begin"]);
  REQUIRE(report["layers"].size() == 4);
  double share = 0, clear = 0;
  for (const json& layer : report["layers"]) {
    clear += layer["clear"].get<double>() / 4;
    CHECK(layer["heads"][0]["slot"].is_string());
    for (const json& head : layer["heads"]) {
      double parts = 0;
      for (const char* part : {"clear", "decay", "erasure", "overwriting", "misrouting"}) parts += head[part].get<double>();
      CHECK(std::abs(parts - 1) < 1e-9);
      const std::vector<double> kept = head["survival"]["kept"];
      REQUIRE((!kept.empty() && kept.size() == head["survival"]["tokens"].size()));
      CHECK(kept.front() == 1);
      CHECK(kept.back() == Approx(head["kept"].get<double>()));
      CHECK(head["survival"]["tokens"].back() <= report["question"]);
      if (head["reads"]) share = std::max(share, head["read_share"].get<double>());
    }
  }
  CHECK(std::abs(report["verdict"]["clear"].get<double>() - clear) < 1e-9);
  CHECK(report["verdict"]["read"]["share"] == share);
  CHECK(report["verdict"]["losses"][0]["text"].is_string());

  std::ifstream file(arguments.html);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const char* outside : {"http", "src=", "href=", "<script", "@import", "url("}) CHECK(page.find(outside) == std::string::npos);
  for (const char* inside : {"What became of the needle?", "<h2>Layer 3: sse</h2>", "not a diagnosis", "</html>"})
    CHECK(page.find(inside) != std::string::npos);
  CHECK(error_of(arguments).find("exists already") != std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST_CASE("needle: a prompt without a needle, or with nothing behind it, is refused in one line") {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "statescope-needle-test.json";
  NeedleArguments arguments;
  arguments.checkpoint = kAssets + "checkpoints/niah/niah-gla.h5";
  arguments.prompt.file = path.string();
  std::ofstream(path) << R"({"prompt": "the code of ivan 1 8 1 5 ."})";
  CHECK(error_of(arguments).find("no span of it is a needle") != std::string::npos);
  std::ofstream(path) << R"({"prompt": "the code of ivan 1 8 1 5 .", "spans": [{"part": "needle", "begin": 0, "end": 26}]})";
  CHECK(error_of(arguments).find("nothing follows its needle") != std::string::npos);
  std::filesystem::remove(path);
}

}  // namespace statescope::needle_test

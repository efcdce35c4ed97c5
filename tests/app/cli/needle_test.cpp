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
#include "tests/engine/model/small_models.h"
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

TEST_CASE("needle: states of S4 and levels of log-linear attention have a fate, said where it lies; so is who wrote them") {
  namespace fs = std::filesystem;
  using namespace statescope::test;
  const fs::path folder = fs::temp_directory_path() / "statescope-needle-families";
  fs::remove_all(folder);
  fs::create_directory(folder);
  std::ofstream(folder / "prompt.json")
      << R"({"prompt": "the code of ivan is 1815. what is it?", "spans": [{"part": "needle", "begin": 20, "end": 24}]})";
  const json bytes{{"vocab_size", 256}};
  struct Family {
    json config;
    std::int64_t slot;               // asked about
    const char *name, *read, *lies;  // it, where it is read, where the needle lies
  };
  for (const auto& [config, slot, name, read_name, lies] : {Family{s4_config("diag", bytes), 1, "imaginary part", "state", "state"},
                                                            {s4_config("hippo", bytes), 0, "state", "state", "state"},
                                                            {log_linear_config(bytes), 6, "level 6", "level 6", "level 6"}}) {
    INFO(config.dump());
    const fs::path file = folder / "model.h5", out = folder / "report.json";
    fs::remove(file);
    write_checkpoint(*random_checkpoint(Config(config), 5), file);
    NeedleArguments needle;
    needle.checkpoint = file.string();
    needle.prompt.file = (folder / "prompt.json").string();
    needle.json = out.string();
    needle.force = true;
    REQUIRE(needle_command(needle) == 0);
    const json report = json::parse(std::ifstream(out));
    REQUIRE(!report["layers"][1]["heads"].empty());
    for (const json& head : report["layers"][1]["heads"]) {
      CHECK((head["slot"] == lies && head["reads"] == true && head["erasure"] == 0 && head["misrouting"] == 0));
      CHECK(head["clear"].get<double>() + head["decay"].get<double>() + head["overwriting"].get<double>() == Approx(1));
    }
    HistoryArguments history;
    history.checkpoint = file.string();
    history.prompt.file = needle.prompt.file;
    history.json = out.string();
    history.force = true;
    history.slot = slot;
    for (const bool read : {false, true}) {
      history.read = read;
      REQUIRE(history_command(history) == 0);
      const json written = json::parse(std::ifstream(out));
      CHECK(written["slot"] == (read ? read_name : name));
      CHECK(written["sum"].get<double>() == Approx(written["shown"].get<double>()).epsilon(1e-4));
      CHECK(written["shown"] > 0);
    }
  }
  fs::remove_all(folder);
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

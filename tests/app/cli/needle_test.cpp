// statescope needle: a shipped model and prompt, and prompts without a needle.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "app/assets.h"
#include "app/cli/commands.h"
#include "engine/error.h"
#include "tests/app/cli/json_schema.h"
#include "tests/app/window/place.h"
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

TEST_CASE("needle: token ids have their spans in tokens, on the command line or in a prompt file") {
  const test::place::Place place;
  const std::string gla = "needle " + from_source("tests/golden/models/gla");
  std::ofstream(place.folder / "ids") << "3 1 4 1 5 9 2 6 5 3 5 8 9 7 9 3";
  std::ofstream(place.folder / "ids.json") << R"({"prompt": [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3],
    "spans": [{"part": "needle", "begin": 2, "end": 5}, {"part": "question", "begin": 8, "end": 9}, {"part": "answer", "begin": 12, "end": 14}]})";
  const std::string said = "tokens 2 to 4, \"<4> <1> <5>\"; asked by token 8, after token 11\n";
  for (const char* prompt : {" --ids ids --needle 2:5 --question 8:9 --answer 12:14", " --prompt ids.json"}) {
    INFO(prompt);
    REQUIRE(place.run(gla + prompt, "out").status == 0);
    CHECK(place.text_of("out").find(said) != std::string::npos);
  }
  const std::string golden = from_source("tests/golden/models/gla");
  CHECK(place.run("run " + golden + " --prompt ids.json --session a.scope --generate 1").status == 0);
  CHECK(place.run("run --session a.scope --generate 2").status == 0);
  REQUIRE(place.run(gla + " --ids ids --needle 2:3", "out").status == 0);
  CHECK(place.text_of("out").find("token 2, \"<4>\"; asked after token 15\n") != std::string::npos);
  for (const auto& [wrong, why] : {std::pair{" --ids ids --needle 2:17", "tokens 2:17 are asked for; ids has 16"},
                                   {" --ids ids --needle 5:5", "5:5 has no token: END is the first behind it"},
                                   {" --ids ids --needle 2-5", "2-5 is not BEGIN:END"},
                                   {" --ids ids", "--ids requires --needle"},
                                   {" --ids ids --needle 2:16", "nothing follows its needle"},
                                   {" --text a", "or --ids FILE with --needle BEGIN:END"}}) {
    INFO(wrong);
    const auto outcome = place.run(gla + wrong);
    CHECK(outcome.status != 0);
    CHECK(outcome.errors.find(why) != std::string::npos);
  }
}

TEST_CASE("needle: a model without a memory says what it has in its place") {
  const test::place::Place place;
  std::ofstream(place.folder / "ids") << "3 1 4 1 5 9 2 6 5 3 5 8 9 7 9 3";
  const std::string none = "no layer has a memory in which a needle fades: ",
                    attends = "softmax attention keeps keys and values as they are";
  for (const auto& [name, says] :
       {std::pair{"transformer", none + attends},
        {"nsa", none + attends},
        {"lfm2", none + "a short convolution holds its last few inputs alone, " + attends},
        {"gla_hybrid", std::string("layer 1 transformer: softmax attention, which keeps keys and values as they are\n")}}) {
    INFO(name);
    const std::string needle =
        "needle " + from_source("tests/golden/models/") + name + " --ids ids --needle 2:5 --force --out page.html --json told.json";
    REQUIRE(place.run(needle, "out").status == 0);
    CHECK(place.text_of("out").find(says) != std::string::npos);
    CHECK(place.text_of("page.html").find(says.substr(says.find(": ") + 3, 20)) != std::string::npos);
    const bool has_memory = std::string_view(name) == "gla_hybrid";
    const json told = json::parse(place.text_of("told.json"));
    CHECK((told["verdict"]["clear"].is_null() != has_memory));
    CHECK((place.text_of("page.html").find("Of what it wrote") != std::string::npos) == has_memory);
    if (test::has_jsonschema()) CHECK(test::complaint(told, "needle") == "");
  }
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

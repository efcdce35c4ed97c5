// Commands whose runs an engine reads: what they write is the same, to the byte.
#include <QProcess>
#include <QStandardPaths>
#include <algorithm>
#include <csignal>

#include "app/cli/engine.h"
#include "tests/app/cli/piece_model.h"
#include "tests/app/remote/engine_rig.h"
#include "tests/app/window/place.h"

namespace statescope::engine_commands_test {
namespace {

using namespace test::place;
using Catch::Matchers::ContainsSubstring;

const std::string kProse = kAssets + "checkpoints/prose/prose-gla.h5";
const std::string kRouted = kAssets + "checkpoints/niah/niah-sse-gla-n4k1.h5";

/// `statescope serve` in the folder of a place.
class Engine {
 public:
  explicit Engine(const Place& place, const QStringList& more = {}) {
    process_.start(QString::fromStdString(program_path()),
                   QStringList{"serve", "--listen", "127.0.0.1:0", "--root", QString::fromStdString(place.folder.path().string())} + more);
    REQUIRE(process_.waitForReadyRead(kLongMs));
    address = "127.0.0.1:" + QString(process_.readLine()).section("127.0.0.1:", 1).section(',', 0, 0).toStdString();
  }
  ~Engine() {
    ::kill(static_cast<pid_t>(process_.processId()), SIGINT);
    process_.waitForFinished(kLongMs);
  }
  std::string address;

 private:
  QProcess process_;
};

/// Everything that the same command writes here and with the engine.
struct Both {
  std::string here, there;
};
Both written(const Place& place, const Engine& engine, const std::string& command, const std::vector<std::string>& files) {
  Both both;
  for (const bool elsewhere : {false, true}) {
    const Outcome outcome = place.run(command + (elsewhere ? " --engine " + engine.address : ""), "standard-output");
    INFO(command << "\n" << outcome.errors);
    CHECK(outcome.status == 0);
    std::string& all = elsewhere ? both.there : both.here;
    for (const std::string& file : files) {
      all += place.text_of(file);
      std::filesystem::remove_all(place.folder / file);
    }
  }
  return both;
}

}  // namespace

TEST_CASE("engine: commands write the same bytes as with the model here") {
  test_application();
  const Place place;
  const Engine engine(place);
  const std::string reading = kRouted + " --prompt " + kNeedle;
  std::filesystem::create_directories(place.folder / "runs/checkpoint-300");
  for (const char* step : {"100", "200"}) std::filesystem::copy_file(kCheckpoint, place.folder / fmt::format("runs/gla-step{}.h5", step));
  place.write("asked.jsonl", R"({"prompt": "the code of ivan 1 8 1 5 . what is the code of ivan", "expected": "1 8 1 5"})");
  std::string text;
  for (int i = 0; i < 40; ++i) text += fmt::format("It was day {} of the voyage. ", i);
  place.write("text.txt", text);
  place.write("spec.json", R"({"size": "400x380mm", "defaults": {"prompt": "needle.json"}, "panels": [
    {"view": "routing", "checkpoint": ["niah-sse-gla-n4k1.h5", "niah-sse-gla-n16k4.h5"]},
    {"view": "difference", "checkpoints": ["niah-sse-gla-n4k1.h5", "niah-sse-gla-n4k1-collapsed.h5"]},
    {"chart": "entropy_by_layer", "checkpoints": ["niah-gla.h5", "niah-sse-gla-n4k1.h5"]}]})");
  const std::vector<std::pair<std::string, std::vector<std::string>>> commands{
      {"figure similarity " + reading + " --layer 1 -o a.svg --data a.csv --caption a.txt", {"a.svg", "a.csv", "a.txt"}},
      {"figure state niah-gla.h5 -o a.pdf", {"a.pdf"}},
      {"figure needle " + reading + " --do 'zero partition 4 at 240' -o a.svg", {"a.svg"}},
      {"figure --spec spec.json -o a.svg", {"a.svg"}},
      {"page " + reading + " --tokens 250..255 --layer 1 -o a.html", {"a.html"}},
      {"observe " + reading + " --layer 1 --token 240 --until 243 --do 'zero partition 2 at 100' --generate 2 --json a.json",
       {"standard-output", "a.json"}},
      {"run " + reading, {"standard-output"}},
      {"run " + kRouted + " --text 'the glass was' --generate 0", {"standard-output"}},
      {"run " + kRouted + " --text 'the glass was' --generate 40", {"standard-output"}},
      {"history " + reading + " --layer 1 --slot 2 --token 240 --json -", {"standard-output"}},
      {"needle " + reading + " --json a.json --html a.html", {"standard-output", "a.json", "a.html"}},
      {"needle " + kReading + " --heads 1 --events 0", {"standard-output"}},
      {"intervene " + reading + " --do 'zero partition 4 at 240' --do 'freeze decay from 230'", {"standard-output"}},
      {"intervene " + kCheckpoint + " --text 'the glass was' --generate 3 --other " + kNeedle + " --do 'import run 1 at 2'",
       {"standard-output"}},
      {"model " + kRouted, {"standard-output"}},
      {"inspect " + kRouted + " --length 64,128 --samples 2 --json a.json --csv a.csv", {"standard-output", "a.json", "a.csv"}},
      {"inspect " + kRouted + " " + kCheckpoint + " --prompt " + kNeedle, {"standard-output"}},
      {"inspect runs --length 64 --samples 1", {"standard-output"}},
      {"eval " + kRouted + " " + kCheckpoint + " --task niah --length 64,128 --needles 1,2 --samples 5 --json a.json --csv a.csv",
       {"standard-output", "a.json", "a.csv"}},
      {"eval " + kCheckpoint + " --prompt asked.jsonl", {"standard-output"}},
      {"eval " + kProse + " --task text --haystack text.txt --length 64 --samples 3", {"standard-output"}},
      {"model " + kRouted + " --program --after-passes --one-token --layer 1", {"standard-output"}}};
  for (const auto& [command, files] : commands) {
    const Both both = written(place, engine, command, files);
    INFO(command);
    CHECK(both.here.size() > 20);
    CHECK(both.here == both.there);
  }
}

TEST_CASE("engine: what interventions did is the same as JSON, where a recording may take as much") {
  test_application();
  const Place place;
  const Engine engine(place, {"--memory", "512", "--max-clients", "8"});
  const std::string command = "intervene " + kReading + " --do 'freeze decay from 200' --json ";
  CHECK(place.run(command + "here.json --memory 64").status == 0);
  const Outcome there = place.run(command + "there.json --engine " + engine.address);
  INFO(there.errors);
  CHECK(there.status == 0);
  CHECK_THAT(there.errors, ContainsSubstring("of 64.0 MB of memory"));
  CHECK(place.text_of("here.json").size() > 1000);
  CHECK(place.text_of("here.json") == place.text_of("there.json"));
}

TEST_CASE("engine: a page of an inspection leads to the window on the engine") {
  test_application();
  const Place place;
  const Engine engine(place);
  const Outcome outcome = place.run("inspect niah-gla.h5 --length 64 --samples 1 --html a.html --engine " + engine.address);
  INFO(outcome.errors);
  CHECK(outcome.status == 0);
  CHECK_THAT(place.text_of("a.html"),
             ContainsSubstring(" --engine " + engine.address + " niah-gla.h5 ") && ContainsSubstring("--example 64 --number 0"));
}

TEST_CASE("engine: prompts that a model's files make are made there") {
  test_application();
  const Place place;
  test::write_piece_model(place.folder / "pieces", test::kPieceTemplate);
  place.write("turns.json",
              R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}, {"role": "user", "content": "Hu"}])");
  const Engine engine(place);
  for (const std::string& command :
       std::vector<std::string>{"run pieces --chat 'Hi there' --generate 5", "run pieces --chat-file turns.json --generate 5",
                                "run pieces --chat Hi --chat-set enable_thinking=true --generate 5",
                                "run pieces --text 'Hi<|im_end|>' --special --generate 5", "observe pieces --chat Hi --layer 0 --json -"}) {
    INFO(command);
    const Both both = written(place, engine, command, {"standard-output"});
    CHECK(both.here.size() > 3);
    CHECK(both.here == both.there);
  }
  const Outcome figure = place.run("figure state pieces --chat Hi -o a.svg --engine " + engine.address);
  INFO(figure.errors);
  CHECK(figure.status == 0);
}

TEST_CASE("engine: a film is the same") {
  test_application();
  if (QStandardPaths::findExecutable("ffmpeg").isEmpty()) {
    WARN("skipped: ffmpeg is not installed");
    return;
  }
  const Place place;
  const Engine engine(place);
  const Both both = written(
      place, engine, "film state " + kReading + " --first 250 --last 252 --seconds 0.1 --width 320 --height 200 -o a.gif", {"a.gif"});
  CHECK(both.here.size() > 1000);
  CHECK(both.here == both.there);
}

TEST_CASE("engine: a figure is made again with the engine that has its models, and a batch of them") {
  test_application();
  const Place place;
  const Engine engine(place);
  const std::string elsewhere = " --engine " + engine.address;
  REQUIRE(place.run("figure state niah-gla.h5 -o a.svg" + elsewhere).status == 0);
  REQUIRE(place.run("figure --from a.svg -o b.svg" + elsewhere).status == 0);
  REQUIRE(place.run("figure --from a.svg -o c.svg").status == 0);
  CHECK(place.text_of("a.svg") == place.text_of("b.svg"));
  CHECK(place.text_of("a.svg") == place.text_of("c.svg"));
  place.write("one.json", R"({"panels": [{"view": "decay", "checkpoint": "niah-gla.h5", "prompt": "needle.json"}]})");
  place.write("batch.json", R"({"figures": ["one.json"], "checkpoints": ["niah-gla.h5", "niah-gated-deltanet.h5"], "format": "svg"})");
  const Outcome batch = place.run("batch batch.json" + elsewhere, "told");
  INFO(batch.errors);
  CHECK(batch.status == 0);
  CHECK_THAT(place.text_of("told"), ContainsSubstring("2 made, 0 there already, 0 failed"));
  CHECK(place.text_of("figures/one-niah-gated-deltanet.svg").size() > 1000);
}

TEST_CASE("engine: what a command cannot have of it is said") {
  test_application();
  const Place place;
  const Engine engine(place);
  const auto said = [&](const std::string& command, int status) {
    const Outcome outcome = place.run(command + " --engine " + engine.address);
    INFO(command);
    CHECK(outcome.status == status);
    CHECK(std::ranges::count(outcome.errors.substr(0, outcome.errors.find("\nRun with")), '\n') <= 1);
    return outcome.errors;
  };
  CHECK_THAT(said("check niah-gla.h5 --text a", 2),
             ContainsSubstring("check works with the model itself: start it on the engine's machine"));
  CHECK_THAT(said("run " + kReading + " --dump a.h5", 2), ContainsSubstring("--dump does not go with --engine"));
  CHECK_THAT(said("run " + kReading + " --temperature 1", 2), ContainsSubstring("--temperature does not go with --engine"));
  CHECK_THAT(said("dataset copy -o x.jsonl", 2), ContainsSubstring("dataset does not use an engine; leave the option out"));
  CHECK_THAT(said("page forgetting -o a.html", 2), ContainsSubstring("a lesson is about models that come with the program"));
  CHECK_THAT(said("observe " + kReading + " --device auto", 2), ContainsSubstring("--device does not go with --engine"));
  CHECK_THAT(said("figure state niah-gla.h5 --chat Hi -o a.svg", 1), ContainsSubstring("chat template"));
  CHECK_THAT(said("observe nowhere.h5 --text a", 1),
             ContainsSubstring("'nowhere.h5' is neither in the folder that the engine shows nor a shipped"));
  CHECK_THAT(said("observe /etc/passwd --text a", 1), ContainsSubstring("lies outside of the folder that the engine shows"));
  CHECK_THAT(said("observe " + kReading + " --token 999", 1), ContainsSubstring("--token: there is no token 999 (tokens are 0 to"));
  CHECK_THAT(said("observe " + kReading + " --layer 9", 1), ContainsSubstring("there is no layer 9 (layers are 0 to"));
  CHECK_THAT(said("model nowhere.h5", 1), ContainsSubstring("'nowhere.h5' is neither in the folder that the engine shows nor a shipped"));
  CHECK_THAT(said("model niah-gla.h5 --program --layer 9", 1), ContainsSubstring("there is no layer 9 (layers are 0 to 3)"));
  CHECK_THAT(said("intervene " + kReading + " --do 'zero partition 1 at 5'", 1), ContainsSubstring("there are no partitions"));
  CHECK_THAT(said("eval niah-gla.h5 --task niah --haystack " + kNeedle, 2), ContainsSubstring("does not go with --engine"));
  CHECK_THAT(said("eval niah-gla.h5 --task niah --length 8 --needles 4 --samples 2", 2), ContainsSubstring("needles"));
  CHECK_THAT(said("inspect niah-gla.h5 --watch", 2), ContainsSubstring("--watch does not go with --engine"));
  CHECK_THAT(said("inspect nowhere", 1), ContainsSubstring("'nowhere' is neither in the folder that the engine shows nor a shipped"));
  CHECK_THAT(said("inspect nowhere niah-gla.h5 --length 64 --samples 1", 1), ContainsSubstring("'nowhere' is neither in the folder"));
  CHECK_THAT(said("inspect niah-gla.h5 --text 'a qwertz'", 1), ContainsSubstring("word 'qwertz'"));
  CHECK_THAT(said("intervene " + kReading + " --do 'zero state at 5' --memory 64", 2),
             ContainsSubstring("--memory does not go with --engine"));
  CHECK(place.names().empty());
}

TEST_CASE("engine: a model is called what it was called on the command line, here and there") {
  test_application();
  const Place place;
  std::filesystem::create_directories(place.folder / "models");
  std::filesystem::copy_file(kCheckpoint, place.folder / "models/own.h5");
  place.write("text.txt", "It was the first day of the voyage. It was the second day of the voyage, and a good one.");
  const Engine engine(place);
  for (const std::string& command : std::vector<std::string>{"model niah-gla.h5", "needle niah-gla.h5 --prompt " + kNeedle + " --json -",
                                                             "intervene niah-gla.h5 --text 'the glass was' --do 'zero state at 1'",
                                                             "observe niah-gla.h5 --text 'the glass was' --layer 1 --json -",
                                                             "eval niah-gla.h5 --task niah --length 64 --samples 2 --json -",
                                                             "inspect niah-gla.h5 --length 64 --samples 1 --json -"}) {
    INFO(command);
    const Both both = written(place, engine, command, {"standard-output"});
    CHECK(both.here == both.there);
    CHECK_THAT(both.here, !ContainsSubstring("/niah-gla.h5"));
  }
  for (const std::string& model : std::vector<std::string>{"niah-gla.h5", "models/own.h5", (place.folder / "models/own.h5").string()}) {
    for (const std::string& command : std::vector<std::string>{"run {} --chat Hi", "eval {} --task text --haystack text.txt --length 64"}) {
      const std::string asked = fmt::format(fmt::runtime(command), model);
      INFO(asked);
      const Outcome here = place.run(asked), there = place.run(asked + " --engine " + engine.address);
      CHECK(here.status == 1);
      CHECK(here.errors == there.errors);
      CHECK_THAT(there.errors, ContainsSubstring("statescope: " + model + ": "));
    }
  }
  for (const char* folder : {".", "models"}) {
    const Outcome there = place.run(fmt::format("model {} --engine {}", folder, engine.address));
    CHECK_THAT(there.errors, ContainsSubstring(fmt::format("statescope: {}: has no config.json", folder)));
  }
}

TEST_CASE("engine: the help of each command that takes an engine names it") {
  const Place place;
  for (const std::string_view command : commands_of_engine()) {
    INFO(command);
    REQUIRE(place.run(fmt::format("{} --help", command), "help").status == 0);
    CHECK_THAT(place.text_of("help"), ContainsSubstring("--engine"));
  }
}

TEST_CASE("engine: a model whose numbers are not finite is refused there as here") {
  test_application();
  const Place place;
  write_broken(place, "broken", "model.layers.1.attn.q_proj.weight");
  const Engine engine(place);
  const Outcome here = place.run("figure state broken --prompt " + kNeedle + " -o a.svg");
  const Outcome there = place.run("figure state broken --prompt " + kNeedle + " -o a.svg --engine " + engine.address);
  CHECK(here.status == 1);
  CHECK(there.status == 1);
  CHECK_THAT(there.errors, ContainsSubstring("broken: ") && ContainsSubstring("model.layers.1.attn.q_proj.weight"));
  CHECK_FALSE(std::filesystem::exists(place.folder / "a.svg"));
}

TEST_CASE("engine: more runs than an engine's places have are read one after the other") {
  test_application();
  const Place place;
  const Engine engine(place, {"--max-clients", "4"});
  place.write("spec.json", R"({"size": "400x380mm", "columns": 1, "defaults": {"prompt": "needle.json"}, "panels": [
    {"view": "state", "checkpoint": ["niah-gla.h5", "niah-gated-deltanet.h5", "niah-sse-gla-n4k1.h5", "niah-sse-gla-n16k4.h5", "niah-gla.h5"]}]})");
  const Both both = written(place, engine, "figure --spec spec.json -o a.svg", {"a.svg"});
  CHECK(both.here.size() > 1000);
  CHECK(both.here == both.there);
}

}  // namespace statescope::engine_commands_test

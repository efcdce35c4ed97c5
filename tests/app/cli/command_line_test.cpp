// What a person's files go through on the command line, whatever the command: nothing is lost, and what is wrong stands in a line.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/common/running.h"
#include "engine/error.h"
#include "tests/app/window/place.h"

namespace statescope::command_line_test {
namespace {

namespace fs = std::filesystem;
using namespace test::place;

}  // namespace

TEST_CASE("command line: a folder is not replaced by a file, with --force neither") {
  const Place place;
  fs::create_directories(place.folder / "results/sub");
  for (const std::string& arguments :
       {std::string("dataset niah --samples 2 --length 512 -o results --force"), "inspect " + kReading + " --json results --force",
        "run " + kReading + " --dump results --force", "figure state " + kReading + " -o results --force"}) {
    INFO(arguments);
    CHECK(place.run(arguments).status != 0);
    CHECK(fs::is_directory(place.folder / "results/sub"));
  }
  CHECK(place.run("dataset niah --samples 2 --length 512 -o results --force").errors ==
        "statescope: results: is a folder; a file does not take its place\n");
  CHECK(place.names() == std::vector<std::string>{"results"});
}

TEST_CASE("command line: a dump does not replace its own checkpoint, with --force neither") {
  const Place place;
  const fs::path model = place.folder.path() / "model.h5";
  fs::copy_file(kCheckpoint, model);
  const auto size = fs::file_size(model);
  const Outcome outcome = place.run("run model.h5 --prompt " + kNeedle + " --dump ./model.h5 --force");
  CHECK(outcome.status == 1);
  CHECK(outcome.errors == "statescope: ./model.h5: is the checkpoint itself, or in it; --dump needs another file\n");
  CHECK(fs::file_size(model) == size);
  REQUIRE(place.run("convert model.h5 folder").status == 0);
  const auto weights = fs::file_size(place.folder.path() / "folder/model.safetensors");
  CHECK(place.run("run folder --prompt " + kNeedle + " --dump folder/model.safetensors --force").status == 1);
  CHECK(fs::file_size(place.folder.path() / "folder/model.safetensors") == weights);
}

TEST_CASE("command line: results that cannot be written are not passed over") {
  const Place place;
  for (const char* json : {"", " --json"}) {
    const Outcome full = place.run("run " + kReading + json, "/dev/full");
    CHECK(full.status == 1);
    CHECK(full.errors.find("statescope: standard output: cannot be written: No space left on device\n") != full.errors.npos);
  }
  const Outcome large = place.run("observe niah-sse-gla-n4k1.h5 --prompt " + kNeedle + " --layer 1 --json -", "/dev/full");
  CHECK(large.status == 1);
  CHECK(large.errors == "statescope: standard output: cannot be written: No space left on device\n");
  CHECK(place.run("inspect " + kReading + " --json ''").status == 2);
  CHECK(place.run("run " + kReading + " --session ''").status == 2);
  CHECK(place.run("--open " + kCheckpoint + " --screenshot my.h5").errors.starts_with("--screenshot: my.h5 does not end in .png"));
}

TEST_CASE("command line: a signal that ends the program leaves no half-written file") {
  const Place place;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string program = program_path();
    const pid_t child = ::fork();
    if (child == 0) {
      if (::chdir(place.folder.path().c_str()) == 0)
        ::execl(program.c_str(), "statescope", "dataset", "niah", "--samples", "100000", "--length", "4000", "-o", "out.jsonl", nullptr);
      ::_exit(127);
    }
    for (int i = 0; i < 500 && place.names().empty(); ++i) ::usleep(10'000);
    REQUIRE(place.names().size() == 1);  // .out.jsonl.….part
    ::kill(child, signal);
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK((WIFSIGNALED(status) && WTERMSIG(status) == signal));
    CHECK(place.names().empty());
  }
}

TEST_CASE("command line: a command that was told to end says so, and ends as a shell expects") {
  const Place place;
  const auto hears = [](pid_t child, int signal) {  // a handler of its own
    std::error_code error;
    if (fs::read_symlink(fmt::format("/proc/{}/exe", child), error) != program_path()) return false;
    std::ifstream status(fmt::format("/proc/{}/status", child));
    for (std::string name; status >> name; std::getline(status, name)) {
      if (name == "SigCgt:" && status >> name) return (std::stoull(name, nullptr, 16) >> (signal - 1) & 1) != 0;
    }
    return false;
  };
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string program = program_path(), checkpoint = kCheckpoint;
    const pid_t child = ::fork();
    if (child == 0) {
      if (::chdir(place.folder.path().c_str()) == 0)
        ::execl(program.c_str(), "statescope", "eval", checkpoint.c_str(), "--task", "niah", "--samples", "100000", "--csv", "out.csv",
                nullptr);
      ::_exit(127);
    }
    for (int i = 0; i < 500 && !hears(child, signal); ++i) ::usleep(10'000);
    CHECK(hears(child, signal));
    ::kill(child, signal);
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 128 + signal));
    CHECK(place.names().empty());
  }
}

TEST_CASE("command line: a figure of a row or a column that the state has not is none") {
  const Place place;
  for (const std::string wrong : {"--row 64", "--row 3 --column 999"}) {
    const Outcome outcome = place.run("figure state " + kReading + " " + wrong + " -o out.png");
    INFO(outcome.errors);
    CHECK(outcome.status == 1);
    CHECK(outcome.errors.find("there is no ") != std::string::npos);
    CHECK(place.names().empty());
  }
}

TEST_CASE("command line: what comes from outside does not drive the terminal") {
  const Place place;
  const Outcome found = place.run("run " + kCheckpoint + " --text \"$(printf '\\033]0;pwn\\007')\"");
  CHECK(found.status == 1);
  CHECK(found.errors.find('\033') == found.errors.npos);
  CHECK(place.run("run loop --prompt " + kNeedle).errors == "statescope: loop: cannot be opened: No such file or directory\n");
}

TEST_CASE("command line: what is said of a file is one line, whatever stands in it") {
  const Place place;
  REQUIRE(place.run("convert " + kCheckpoint + " model").status == 0);
  nlohmann::json config = nlohmann::json::parse(std::ifstream(place.folder / "model/config.json"));
  config["evil\033]0;pwn\007\nstatescope: all fine"] = 1;
  std::ofstream(place.folder / "model/config.json") << config;
  const std::string said = place.run("run model --prompt " + kNeedle).errors;
  CHECK(said.find(R"("evil\x1b]0;pwn\x07 statescope: all fine" is 1, a key that)") != said.npos);
  CHECK(std::ranges::count(said, '\n') == 1);
  CHECK(said.find('\033') == said.npos);
}

TEST_CASE("command line: where a device that was chosen by itself fails the CPU does it") {
  std::vector<std::string> asked;
  DeviceChoice device{.name = "auto", .threads = 1, .precision = Precision::bfloat16};
  const auto fails_with = [&](const auto& error) {
    return [&asked, &device, error] {
      asked.push_back(device.name);
      if (device.name != "cpu") throw error;
      CHECK(device.precision == Precision::bfloat16);
      return 7;
    };
  };
  CHECK(run_with_fallback(device, fails_with(DeviceError("cuda: the device is lost"))) == 7);
  CHECK(asked == std::vector<std::string>{"auto", "cpu"});
  // Asked for by name it is not replaced, nor is the CPU where it has no memory left.
  device = {.name = "cuda"};
  CHECK_THROWS_AS(run_with_fallback(device, fails_with(DeviceError("cuda: the device is lost"))), DeviceError);
  device = {.name = "auto"};
  CHECK_THROWS_AS(run_with_fallback(device, fails_with(Error("no such file"))), Error);
  if (open_cuda_device(device)) return;
  CHECK_THROWS_AS(run_with_fallback(device, fails_with(std::bad_alloc())), std::bad_alloc);
  CHECK(device.name == "auto");
}

TEST_CASE("command line: where no window can be opened the reason is a line") {
  const Place place;
  const Outcome outcome = place.run("--version >/dev/null; QT_QPA_PLATFORM=nowhere '" + program_path() + "' " + kCheckpoint);
  INFO(outcome.errors);
  CHECK(outcome.status == 1);
  CHECK(outcome.errors.starts_with("statescope: no window can be opened: "));
  CHECK(std::ranges::count(outcome.errors, '\n') == 1);
}

TEST_CASE("command line: a picture of what cannot be opened ends with the reason") {
  const Place place;
  std::ofstream(place.folder / "junk.png") << "junk";
  const Outcome found = place.run("--open junk.png --screenshot out.png");
  CHECK(found.status == 1);
  CHECK(found.errors.find("junk.png") != found.errors.npos);
  CHECK(!fs::exists(place.folder / "out.png"));
}

TEST_CASE("command line: an empty prompt's file is named") {
  const Place place;
  place.write("empty.txt", "");
  CHECK_THROWS_WITH(load_prompt({.text = {}, .ids = {}, .file = (place.folder / "empty.txt").string()}),
                    Catch::Matchers::ContainsSubstring("empty.txt: the prompt is empty"));
}

TEST_CASE("command line: a checkpoint that was trained on something else than needles begins with an example of it") {
  const PromptInput usual = first_prompt({}, kCheckpoint), none = first_prompt({}, "");
  CHECK((usual.text == none.text && !usual.text.empty()));
  const PromptInput own = first_prompt({}, kAssets + "checkpoints/mqar/mqar-gla.h5");
  CHECK((own.text != usual.text && !own.expected.empty()));
  CHECK(first_prompt({.text = "the"}, kAssets + "checkpoints/mqar/mqar-gla.h5").text == "the");
}

TEST_CASE("command line: the window opens at a view and a place, on an example of what the checkpoint was trained on") {
  const Place place;
  const std::string open = "'" + kAssets + "checkpoints/niah/niah-sse-gla-n4k1.h5' --screenshot";
  REQUIRE(place.run(open + " a.png --example 64 --layer 1 --token 40 --view routing --view 'spectrum/Rank of partitions'").status == 0);
  REQUIRE(
      place.run(open + " b.png --example 64 --number 3 --layer 1 --token 40 --view routing --view 'spectrum/Rank of partitions'").status ==
      0);
  REQUIRE(place.run(open + " c.png --example 64 --layer 1 --token 40 --view routing").status == 0);
  CHECK(place.text_of("a.png") != place.text_of("b.png"));
  CHECK(place.text_of("a.png") != place.text_of("c.png"));
  const auto refused = [&](const std::string& options, int status, const std::string& why) {
    const Outcome outcome = place.run(open + " d.png " + options);
    INFO(options << ": " << outcome.errors);
    CHECK(outcome.status == status);
    CHECK(outcome.errors.starts_with(why));
  };
  refused("--view rooting", 2, "--view: there is no view \"rooting\": there are routing, timeline, state,");
  refused("--view decay/Half", 2, "--view: decay has no mode \"Half\": it has Cumulative; Each token; Half-life; Receptive field");
  refused("--view routing/x", 2, "--view: routing has only one mode");
  refused("--view state --lesson forgetting", 2, "--lesson excludes --view");
  refused("--layer -2", 2, "--layer:");
  refused("--example 64 --token 64", 1, "statescope: there is no token 64 (tokens are 0 to 63)");
  refused("--number 2", 2, "statescope: --number is for --example and --prompt");
  refused("--example 64 --text x", 2, "Requires at most 1 options be given from [--text,");
  refused("--example 3", 2, "statescope: niah: needles and questions need 19 words; the length is 3");
  refused("--prompt '" + kNeedle + "' --number 4", 1, "statescope: " + kNeedle);
  CHECK_FALSE(fs::exists(place.folder / "d.png"));
}

}  // namespace statescope::command_line_test

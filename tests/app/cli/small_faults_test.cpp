// Small faults of the command line that people met: what is wrong is said at once, in one line that a terminal can show.
#include <sys/stat.h>

#include <set>

#include "tests/app/window/place.h"

namespace statescope::small_faults_test {
namespace {

using namespace test::place;
namespace fs = std::filesystem;

}  // namespace

TEST_CASE("small faults: without a folder for sockets Qt says nothing and leaves nothing") {
  const Place place;
  fs::create_directories(place.folder / "tmp");
  for (const std::string& without : std::vector<std::string>{"env -u XDG_RUNTIME_DIR TMPDIR=tmp", "env XDG_RUNTIME_DIR=tmp TMPDIR=tmp"}) {
    INFO(without);
    const Outcome outcome = place.run("figure state " + kReading + " --force -o state.svg", "/dev/null", "/dev/null", without);
    CHECK(outcome.status == 0);
    CHECK(outcome.errors.find("QStandardPaths") == std::string::npos);
    CHECK(outcome.errors.find("XDG_RUNTIME_DIR") == std::string::npos);
    CHECK(fs::is_empty(place.folder / "tmp"));
  }
}

TEST_CASE("small faults: one token is not several") {
  const Place place;
  const Outcome outcome = place.run("run niah-gla.h5 --text the --generate 1");
  CHECK(outcome.status == 0);
  CHECK(outcome.errors.find("read 1 token in ") != std::string::npos);
  CHECK(outcome.errors.find("generated 1 token in ") != std::string::npos);
}

TEST_CASE("small faults: a dump that is in the way is refused before anything is read") {
  const Place place;
  place.write("x.h5", "");
  const Outcome outcome = place.run("run " + kReading + " --generate 200000 --dump x.h5", "/dev/null", "/dev/null", "timeout 20");
  CHECK(outcome.status == 1);
  CHECK(outcome.errors == "statescope: x.h5: exists already; choose another name or --force\n");
}

TEST_CASE("small faults: a report takes the place of no pipe and no device") {
  const Place place;
  REQUIRE(::mkfifo((place.folder / "pipe.json").c_str(), 0600) == 0);
  const Outcome outcome = place.run("observe " + kReading + " --json pipe.json --force", "/dev/null", "/dev/null", "timeout 20");
  CHECK(outcome.status == 1);
  CHECK(outcome.errors == "statescope: pipe.json: is a device or a pipe; a file does not take its place\n");
  CHECK(fs::is_fifo(place.folder / "pipe.json"));
}

TEST_CASE("small faults: tokens that will not be there are refused before anything is read") {
  const Place place;
  const std::string long_one = kReading + " --generate 200000 ";
  for (const std::string& arguments : std::vector<std::string>{
           "observe " + long_one + "--token 300000", "observe " + long_one + "--until 999999", "observe " + long_one + "--since -999",
           "observe " + long_one + "--layer 77", "history " + long_one + "--token -999",
           "figure state " + long_one + "-o a.svg --token 300000", "film state " + long_one + "-o a.gif --first 300000",
           "observe " + kReading + " --token 99999999999999999999"}) {
    INFO(arguments);
    const Outcome outcome = place.run(arguments, "/dev/null", "/dev/null", "timeout 20");
    CHECK((outcome.status == 1 || outcome.status == 2));
    CHECK(!outcome.errors.empty());
  }
  CHECK(place.names().empty());
}

TEST_CASE("small faults: a command that there is not is told, with the one that was meant") {
  const Place place;
  const auto said = [&](const std::string& arguments) {
    const Outcome outcome = place.run(arguments);
    CHECK(outcome.status == 2);
    return outcome.errors.substr(0, outcome.errors.find('\n'));
  };
  CHECK(said("model x.h5 --engine") == "--engine: 1 required TEXT missing");
  CHECK(said("model --engine --program x.h5") == "--engine: 1 required TEXT missing");
  CHECK(said("evall x.h5") == "there is no command evall; did you mean eval?");
  CHECK(said("inspct") == "there is no command inspct; did you mean inspect?");
  CHECK(said("dataset naih").find("did you mean niah?") != std::string::npos);
  CHECK(said("frobnicate").find("there is no command frobnicate; there are run, convert,") == 0);
  CHECK(said("help evall") == "there is no command evall; did you mean eval?");
  CHECK(said("nowhere/model.h5").find("nowhere/model.h5") != std::string::npos);
}

TEST_CASE("small faults: a shipped model's name does wherever a checkpoint does") {
  const Place place;
  for (const char* command : {"run niah-gla --text ivan", "tokenize niah-gla --text ivan", "model niah-gla", "convert niah-gla folder",
                              "page niah-gla --text 'ivan the' -o page.html", "niah-gla niah-mom --screenshot window.png"}) {
    INFO(command);
    CHECK(place.run(command).status == 0);
  }
  CHECK(place.run("niah-glaa").errors.find("there is no command niah-glaa; did you mean niah-gla") == 0);
}

TEST_CASE("small faults: help and version are commands too") {
  const Place place;
  for (const auto& [words, option] : std::vector<std::pair<std::string, std::string>>{
           {"help", "--help"}, {"help eval", "eval --help"}, {"help dataset niah", "dataset niah --help"}, {"version", "--version"}}) {
    INFO(words);
    CHECK(place.run(words, "a").status == 0);
    CHECK(place.run(option, "b").status == 0);
    CHECK(place.text_of("a") == place.text_of("b"));
    CHECK(place.text_of("a").size() > 10);
  }
}

TEST_CASE("small faults: convert makes no folder that is called like a file") {
  const Place place;
  for (const std::string& name : std::vector<std::string>{"out.safetensors", "OUT.BIN", "out.gguf", "out.H5", "out.hdf5"}) {
    const Outcome outcome = place.run("convert " + kCheckpoint + " " + name);
    CHECK(outcome.status == 1);
    CHECK(outcome.errors.find(name + ": convert writes NAME.h5, or a folder") != std::string::npos);
  }
  CHECK(place.names().empty());
  CHECK(place.run("convert " + kCheckpoint + " model-1.5b").status == 0);
}

TEST_CASE("small faults: ffmpeg is given no option and no address in place of a name") {
  const Place place;
  place.write("ffmpeg", "#!/bin/sh\nfor last; do :; done\necho \"$last\" > '" + place.folder.path().string() +
                            "/given'\nexec cat > \"${last#file:}\"\n");
  fs::permissions(place.folder / "ffmpeg", fs::perms::owner_all);
  fs::create_directories(place.folder / "-report");
  fs::create_directories(place.folder / "http:/127.0.0.1:9");
  for (const std::string& name : std::vector<std::string>{"./-report/a.gif", "http://127.0.0.1:9/x.mp4"}) {
    INFO(name);
    const Outcome outcome =
        place.run("film state " + kReading + " -o " + name + " --first 0 --last 0 --seconds 0.1 --fps 10 --width 200 --height 200",
                  "/dev/null", "/dev/null", "env PATH=.:$PATH");
    INFO(outcome.errors);
    CHECK(outcome.status == 0);
    CHECK(place.text_of("given").starts_with("file:" + place.folder.path().string() + "/"));
  }
}

TEST_CASE("small faults: a PDF is the same wherever it is made") {
  const Place place;
  const auto made = [&](const std::string& zone) {
    REQUIRE(place.run("figure state " + kReading + " --force -o state.pdf", "/dev/null", "/dev/null", "env TZ=" + zone).status == 0);
    return place.text_of("state.pdf");
  };
  const std::string here = made("UTC");
  CHECK(here.find("/CreationDate (D:20000101000000Z)") != std::string::npos);
  for (const char* zone : {"Asia/Tokyo", "XXX+09", "YYY-05:30"}) {
    INFO(zone);
    CHECK(made(zone) == here);
  }
  const std::size_t start = here.rfind("startxref\n") + 10;
  CHECK(here.compare(std::stoul(here.substr(start)), 5, "xref\n") == 0);
}

TEST_CASE("small faults: what a spec or a figure says itself is refused beside it") {
  const Place place;
  const std::string spec = "--spec " + kAssets + "figures/speed.json -o a.svg ";
  REQUIRE(place.run("figure " + spec).status == 0);
  for (const char* option : {"--map grey", "--size double", "--layer 1", "--outlines", "--text words", "--generate 3", "--type 7"}) {
    for (const std::string& command : {"figure " + spec, std::string("figure --from a.svg -o b.svg "), "film " + spec}) {
      INFO(command + option);
      if (command.starts_with("film") && (std::string_view(option).starts_with("--size") || option == std::string_view("--outlines")))
        continue;
      const Outcome outcome = place.run(command + option);
      CHECK(outcome.status == 2);
      CHECK(outcome.errors.find("says that itself") != std::string::npos);
    }
  }
}

TEST_CASE("small faults: what messages quote gives a terminal no commands") {
  const Place place;
  const Outcome wrapped = place.run("dataset copy -o a.jsonl --samples \"$line\"", "printed", "/dev/null", "line=$(printf 'a\\nb'); ");
  CHECK(wrapped.status == 2);
  CHECK(std::ranges::count(wrapped.errors, '\n') == 2);
  const std::string shell = "esc=$(printf '\\033[31m'); bad=$(printf 'a\\377'); ";
  for (const std::string& arguments : std::vector<std::string>{
           "run \"$esc\" --prompt x", "run " + kCheckpoint + " --ids \"$bad\"", "observe " + kReading + " --layer \"$esc\"",
           "figure state " + kReading + " --type \"$bad\" -o a.svg", "intervene " + kReading + " --do \"$esc\"", "\"$esc\"",
           "figure state " + kReading + " -o \"$esc.svg\" --token 99999", "--lesson \"$esc\" --screenshot a.png",
           "eval " + kCheckpoint + " --grid \"$bad\"", "dataset niah --samples 1 -o \"$esc.jsonl\""}) {
    INFO(arguments);
    const Outcome outcome = place.run(arguments, "printed", "/dev/null", shell);
    const std::string all = outcome.errors + place.text_of("printed");
    CHECK(!all.empty());
    CHECK(all.find('\033') == std::string::npos);
    CHECK(nlohmann::json::accept(nlohmann::json(all).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
    CHECK(all.find('\377') == std::string::npos);
  }
}

TEST_CASE("small faults: of several processes that are started together the first alone says what is wrong") {
  const Place place;
  for (const std::string& arguments : std::vector<std::string>{"eval --nonsense", "batch", "inspct"}) {
    INFO(arguments);
    const Outcome first = place.run(arguments, "/dev/null", "/dev/null", "env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2");
    const Outcome other = place.run(arguments, "/dev/null", "/dev/null", "env OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2");
    CHECK(first.status == 2);
    CHECK(first.errors.size() > 10);
    CHECK(other.status == 2);
    CHECK(other.errors.empty());
  }
}

TEST_CASE("small faults: what stands before bench sse is not for it") {
  const Place place;
  for (const std::string& before : std::vector<std::string>{"--placement", "--device cuda", "--only x"}) {
    const Outcome outcome = place.run("bench " + before + " sse", "printed");
    CHECK(outcome.status == 2);
    CHECK(outcome.errors.find("is not for bench sse, whose options stand behind it") != std::string::npos);
  }
}

TEST_CASE("small faults: a usage line says what stands there, not how often") {
  const Place place;
  for (const auto& [command, usage] :
       std::vector<std::pair<std::string, std::string>>{{"", "statescope [OPTIONS] [checkpoints...] [SUBCOMMAND]"},
                                                        {"page ", "statescope page [OPTIONS] subject..."},
                                                        {"figure ", "statescope figure [OPTIONS] [view] [checkpoints...]"},
                                                        {"model ", "statescope model [OPTIONS] checkpoint\n"}}) {
    REQUIRE(place.run(command + "--help", "out").status == 0);
    INFO(place.text_of("out"));
    CHECK(place.text_of("out").find("Usage: " + usage) != std::string::npos);
  }
}

TEST_CASE("small faults: needle says what names a needle where it was given something else") {
  const Place place;
  for (const auto& [given, said] : std::vector<std::pair<std::string, std::string>>{
           {"", "give --prompt FILE"}, {" --ids \"3 4 5\"", "--ids requires --needle"}, {" --text the", "give --prompt FILE"}}) {
    const Outcome outcome = place.run("needle niah-gla.h5" + given);
    INFO(outcome.errors);
    CHECK(outcome.status == 2);
    CHECK(outcome.errors.find(said) != std::string::npos);
  }
}

TEST_CASE("small faults: a layer of a model is its program, which says what it leaves out") {
  const Place place;
  REQUIRE(place.run("model niah-gla.h5 --layer 1", "one").status == 0);
  REQUIRE(place.run("model niah-gla.h5 --program --layer 1", "both").status == 0);
  CHECK(place.text_of("one") == place.text_of("both"));
  CHECK(place.text_of("one").find("what lies behind a mixer (MLP or experts), ") != std::string::npos);
  CHECK(place.text_of("one").find("\nlayer 1:\n") != std::string::npos);
}

}  // namespace statescope::small_faults_test

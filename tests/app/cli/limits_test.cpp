// Where the system gives less than usual, or a file changes meanwhile: one line that says so, status 1, and nothing half-written.
#include "tests/app/window/place.h"

namespace statescope::limits_test {
namespace {

using namespace test::place;
namespace fs = std::filesystem;

const std::string kFigure = "figure --spec " + kAssets + "figures/speed.json -o a.png";

/// In a shell, where the program is $statescope.
Outcome in_shell(const Place& place, const std::string& script) {
  place.write("script", "statescope='" + program_path() + "'\nulimit -c 0\n" + script + "\n");
  return place.run("", "printed", "/dev/null", "bash script");
}

bool is_one_line(const std::string& text) { return !text.empty() && text.find('\n') == text.size() - 1; }

/// Nothing but what the test itself has put there.
bool is_clean(const Place& place) {
  for (const std::string& name : place.names())
    if (name != "script" && name != "printed") return false;
  return true;
}

}  // namespace

TEST_CASE("limits: the size of files, memory, descriptors and the stack are told as what they are") {
  for (const auto& [limit, command, words] : std::vector<std::array<std::string, 3>>{
           {"ulimit -f 8", "run " + kReading, "the limit on the size of files (ulimit -f)"},
           {"ulimit -f 8", kFigure, "a.png: cannot be written: File too large"},
           {"ulimit -f 2", "dataset niah --samples 9 -o a.jsonl", "a.jsonl: cannot be written: File too large"},
           {"ulimit -s 128", "run " + kReading, "a stack of 128 kB is too small"}}) {
    INFO(limit << ", " << command);
    const Place place;
    const Outcome outcome = in_shell(place, limit + "; exec $statescope " + command);
    CHECK(outcome.errors.find(words) != std::string::npos);
    CHECK(outcome.errors.find("damaged") == std::string::npos);
    CHECK(is_one_line(outcome.errors));
    CHECK(is_clean(place));
  }
}

TEST_CASE("limits: too few descriptors are told as that, whichever of them is missing") {
  const Place place;
  bool told = false;
  for (int descriptors = 4; descriptors <= 12; ++descriptors) {
    const Outcome outcome = in_shell(place, fmt::format("ulimit -n {}; exec $statescope run {}", descriptors, kReading));
    INFO(descriptors << ": " << outcome.errors);
    CHECK(outcome.errors.find("damaged") == std::string::npos);
    told = told || outcome.errors.find("open files") != std::string::npos;
  }
  CHECK(told);
}

TEST_CASE("limits: little memory ends a run with a line, wherever it is missing") {
  for (int kilobytes = 150'000; kilobytes <= 260'000; kilobytes += 10'000) {
    INFO(kilobytes);
    const Place place;
    const Outcome outcome =
        in_shell(place, fmt::format("ulimit -v {}; timeout 30 $statescope {}; echo ended with $? >&2", kilobytes, kFigure));
    const bool ended = outcome.errors.find("ended with 0") != std::string::npos ||
                       outcome.errors.find("ended with 1\n") != std::string::npos ||
                       outcome.errors.find("ended with 127") != std::string::npos;  // the loader of libraries had no room
    INFO(outcome.errors);
    CHECK(ended);
    CHECK(outcome.errors.find("terminate called") == std::string::npos);
    for (const std::string& name : place.names()) CHECK(!name.ends_with(".part"));
  }
}

TEST_CASE("limits: standard streams that are closed are no files of ours") {
  const Place place;
  CHECK(in_shell(place, "exec $statescope run " + kReading + " 2>&-; ").status == 0);
  CHECK(place.text_of("printed").find("1 8 1 5") != std::string::npos);
  CHECK(in_shell(place, "$statescope " + kFigure + " <&- >&- 2>&-; exit 0").status == 0);
  CHECK(place.text_of("a.png").starts_with("\x89PNG"));
  const Outcome outcome = in_shell(place, "exec $statescope run " + kReading + " >&-");
  CHECK(outcome.errors.find("standard output: cannot be written") != std::string::npos);
}

TEST_CASE("limits: a named pipe is read until its writer ends; one without a writer is refused") {
  const Place place;
  CHECK(in_shell(place, "mkfifo p; (sleep 0.3; echo 1 2; sleep 0.3; echo 3 > p.done) > p & exec $statescope run " + kCheckpoint +
                            " --ids p --json out.json")
            .status == 0);
  CHECK(nlohmann::json::parse(place.text_of("out.json")).at("prompt_tokens") == 2);
  const Outcome outcome = in_shell(place, "exec timeout 25 $statescope run " + kCheckpoint + " --ids p");
  CHECK(outcome.errors == "statescope: p: is a named pipe that nobody writes to: waited for 10 s\n");
}

TEST_CASE("limits: NaN and infinity are no numbers of an option") {
  const Place place;
  for (const std::string& option : std::vector<std::string>{"--type nan", "--aspect NaN", "--knob inf", "--dpi nan", "--line-width -nan"}) {
    INFO(option);
    CHECK(place.run("figure head_gates " + kReading + " -o a.pdf " + option).status == 2);
  }
  CHECK(place.run("run " + kReading + " --temperature nan").status == 2);
  CHECK(place.names().empty());
}

TEST_CASE("limits: a recording that is gone at the end is no success") {
  for (const std::string& what :
       std::vector<std::string>{"rm a.scope.recording", "rm a.scope*", "mv a.scope.recording b; touch a.scope.recording"}) {
    INFO(what);
    const Place place;
    const Outcome outcome = in_shell(place, "(while [ ! -s a.scope.recording ]; do sleep 0.01; done; " + what +
                                                ") & exec timeout 60 $statescope run " + kReading + " --generate 30000 --session a.scope");
    CHECK(outcome.status != 0);
    CHECK(outcome.errors.find("the session is lost") != std::string::npos);
  }
}

TEST_CASE("limits: an intervention at a token that will not be there is refused before anything is generated") {
  const Place place;
  const Outcome outcome = place.run("run " + kReading + " --generate 500000 --session a.scope --do \"zero row 1 of layer 0 at 9999999\"",
                                    "/dev/null", "/dev/null", "timeout 20");
  CHECK(outcome.status == 1);
  CHECK(outcome.errors.find("there is no token 9999999 (tokens are 0 to") != std::string::npos);
}

TEST_CASE("limits: what a killed run left of a file goes with the next one; a living one's stays") {
  const Place place;
  const std::string mine = fmt::format(".a.png.{}-0.part", ::getpid());
  for (const std::string& name : {mine, std::string(".a.png.999999999-0.part"), std::string(".b.png.999999999-0.part")})
    place.write(name, "x");
  CHECK(place.run(kFigure).status == 0);
  CHECK(fs::exists(place.folder / mine));
  CHECK(!fs::exists(place.folder / ".a.png.999999999-0.part"));
  CHECK(fs::exists(place.folder / ".b.png.999999999-0.part"));
}

TEST_CASE("limits: convert writes nothing that no model could be read from") {
  const Place place;
  REQUIRE(place.run("convert " + kCheckpoint + " folder").status == 0);
  nlohmann::json config = nlohmann::json::parse(place.text_of("folder/config.json"));
  for (const auto& [key, value] : std::vector<std::pair<std::string, nlohmann::json>>{{"hidden_size", 7}, {"model_type", "unheard_of"}}) {
    nlohmann::json wrong = config;
    wrong[key] = value;
    place.write("folder/config.json", wrong.dump());
    const Outcome outcome = place.run("convert folder out.h5");
    CHECK(outcome.status == 1);
    CHECK(is_one_line(outcome.errors));
    CHECK(!fs::exists(place.folder / "out.h5"));
  }
}

TEST_CASE("limits: - is standard output, or is refused where nothing can go there") {
  const Place place;
  const std::string view = "figure state " + kReading + " ";
  const std::vector<std::pair<std::string, std::string>> beginnings{
      {"-o -", "%PDF"}, {"-o - --format svg", "<?xml"}, {"-o - --format png", "\x89PNG"}, {"-o a.pdf --data - --force", "panel,array"}};
  for (const auto& [options, begins] : beginnings) {
    INFO(options);
    CHECK(place.run(view + options, "out").status == 0);
    CHECK(place.text_of("out").starts_with(begins));
  }
  CHECK(place.run(view + "-o - --caption -").status == 2);
  for (const std::string& arguments :
       {"run " + kReading + " --dump -", "run " + kReading + " --session -", "convert " + kCheckpoint + " -"}) {
    INFO(arguments);
    CHECK(place.run(arguments).status == 1);
  }
  place.write("ffmpeg", "#!/bin/sh\nfor last; do :; done\nexec cat > \"${last#file:}\"\n");
  const std::string fake = "mkdir -p bin; mv ffmpeg bin; chmod +x bin/ffmpeg; PATH=$PWD/bin:$PATH; ";
  const std::string film = "film state " + kReading + " --first 1 --last 1 --width 320 --height 240 --fps 8 --seconds 0.5 -o ";
  CHECK(place.run(film + "- --format gif", "film", "/dev/null", fake).status == 0);
  CHECK(place.text_of("film").size() == std::size_t{4 * 320 * 240 * 4});  // four pictures, as the encoder was given them
  CHECK(place.run(film + "a.mp4 --format gif").status == 2);
  for (const std::string& name : place.names()) CHECK(!name.starts_with("-"));
  place.write("batch.json", R"({"figures": ["speed.json"], "output": "made"})");
  CHECK(place.run("batch -", "/dev/null", "batch.json").status == 0);
  CHECK(fs::exists(place.folder / "made/speed.pdf"));
}

TEST_CASE("limits: a figure that cannot be put in place leaves none of its other files") {
  const Place place;
  fs::create_directories(place.folder / "in");
  const Outcome outcome = in_shell(place, "ulimit -f 8; exec $statescope " + kFigure + " --data a.csv --caption a.txt");
  CHECK(outcome.errors.find("cannot be written: File too large") != std::string::npos);
  CHECK(place.names().size() == 3);  // the folder, the script, what it printed
}

TEST_CASE("limits: lines of Qt and of its readers of pictures stay away from standard error") {
  const Place place;
  REQUIRE(place.run("figure --spec " + kAssets + "figures/speed.json -o a.png").status == 0);
  std::string bytes = place.text_of("a.png");
  for (const std::size_t cut : {std::size_t{20}, std::size_t{100}, bytes.size() / 2}) {
    place.write("cut.png", bytes.substr(0, cut));
    const Outcome outcome = place.run("figure --from cut.png -o b.png --force");
    INFO(outcome.errors);
    CHECK(outcome.errors.find("libpng") == std::string::npos);
    CHECK(outcome.errors.find("Qt") == std::string::npos);
  }
}

}  // namespace statescope::limits_test

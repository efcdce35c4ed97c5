// Prompts and ids as they come: from standard input, pipes, files of other programs.
#include "tests/app/window/place.h"

namespace statescope::inputs_test {
namespace {

using namespace test::place;
using nlohmann::json;

/// The shipped prompt as RULER writes it: the question's last word is the answer's prefix.
json ruler() {
  std::ifstream file(kNeedle);
  const json prompt = json::parse(file);
  std::string text = prompt.at("prompt");
  text.resize(text.find_last_not_of(' ') + 1);
  const std::size_t cut = text.rfind(' ');
  const json& expected = prompt.at("expected");
  std::string answer;
  for (const json& word : expected.is_array() ? expected : json::array({expected}))
    answer += (answer.empty() ? "" : " ") + word.get<std::string>();
  return {
      {"index", 0}, {"input", text.substr(0, cut)}, {"outputs", {answer}}, {"length", 9}, {"answer_prefix", text.substr(cut + 1) + " "}};
}

std::string verdict(const Place& place, const std::string& arguments, const std::string& in = "/dev/null") {
  const Outcome outcome = place.run(arguments, "printed", in);
  INFO(arguments << ": " << outcome.errors);
  CHECK(outcome.status == 0);
  const std::string text = place.text_of("printed");
  return text.substr(std::min(text.find("expected"), text.size()));
}

}  // namespace

TEST_CASE("inputs: a prompt is the same from a file, standard input, its device and a pipe") {
  const Place place;
  place.write("ruler.jsonl", ruler().dump() + "\n");
  const std::string from_file = verdict(place, "run " + kCheckpoint + " --prompt ruler.jsonl");
  CHECK(from_file.ends_with(", right\n"));
  for (const char* from : {"-", "/dev/stdin"})
    CHECK(verdict(place, "run " + kCheckpoint + " --prompt " + from, "ruler.jsonl") == from_file);
  place.write("pipe.sh", "cat ruler.jsonl | '" + program_path() + "' run " + kCheckpoint + " --prompt /dev/stdin\n");
  const Outcome piped = place.run("--version >/dev/null; sh pipe.sh", "printed");
  CHECK(piped.status == 0);
  CHECK(place.text_of("printed").ends_with(from_file));
}

TEST_CASE("inputs: RULER's lines are read by every command") {
  const Place place;
  place.write("ruler.ndjson", ruler().dump() + "\r\n");
  CHECK(place.run("inspect " + kCheckpoint + " --prompt ruler.ndjson").status == 0);
  CHECK(
      place.run("inspect " + kCheckpoint + " " + kAssets + "checkpoints/niah/niah-gla.h5 --prompt -", "/dev/null", "ruler.ndjson").status ==
      0);
  const Outcome needle = place.run("needle " + kCheckpoint + " --prompt ruler.ndjson", "printed");
  INFO(needle.errors);
  CHECK(needle.status == 0);
  CHECK(place.run("figure state " + kCheckpoint + " --prompt - -o state.svg", "/dev/null", "ruler.ndjson").status == 0);
}

TEST_CASE("inputs: ids from standard input, as words or JSON; a device without end is refused") {
  const Place place;
  place.write("ids.txt", "3 4 5 6\n");
  place.write("ids.json", R"({"ids": [3, 4, 5, 6]})");
  REQUIRE(place.run("run " + kCheckpoint + " --ids ids.txt --generate 4", "from_file").status == 0);
  REQUIRE(place.run("run " + kCheckpoint + " --ids - --generate 4", "from_words", "ids.txt").status == 0);
  REQUIRE(place.run("run " + kCheckpoint + " --ids - --generate 4", "from_json", "ids.json").status == 0);
  CHECK(place.text_of("from_words") == place.text_of("from_file"));
  CHECK(place.text_of("from_json") == place.text_of("from_file"));
  const Outcome endless = place.run("run " + kCheckpoint + " --ids /dev/zero", "/dev/null", "/dev/null", "ulimit -v 4000000;");
  CHECK(endless.status == 1);
  CHECK(endless.errors == "statescope: /dev/zero: has more than 67108864 bytes\n");
}

TEST_CASE("inputs: JSON goes to standard output and nothing else with it") {
  const Place place;
  const std::string prompt = " --prompt " + kNeedle;
  for (const std::string& arguments :
       std::vector<std::string>{"run " + kCheckpoint + prompt + " --json -",
                                "intervene " + kCheckpoint + prompt + " --do 'freeze decay of layer 0 at 3' --json -",
                                "eval " + kCheckpoint + " --task niah --length 64 --samples 2 --json -",
                                "inspect " + kCheckpoint + prompt + " --json -", "needle " + kCheckpoint + prompt + " --json -",
                                "observe " + kCheckpoint + prompt + " --json -", "history " + kCheckpoint + prompt + " --json -"}) {
    INFO(arguments);
    const Outcome outcome = place.run(arguments, "printed");
    INFO(outcome.errors);
    CHECK(outcome.status == 0);
    CHECK(json::accept(place.text_of("printed")));
  }
  CHECK(place.names() == std::vector<std::string>{"printed"});
}

}  // namespace statescope::inputs_test

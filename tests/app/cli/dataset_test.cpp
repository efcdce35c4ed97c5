// `statescope dataset`: what is written, and what is refused with which exit status.
#include <iostream>
#include <iterator>
#include <sstream>

#include "app/cli/cli.h"
#include "app/cli/commands.h"
#include "datasets/records.h"
#include "tests/datasets/input_file.h"
#include "tests/source.h"

namespace statescope::dataset_test {
namespace {

namespace fs = std::filesystem;
using test::contains;
using test::InputFile;

struct Outcome {
  int status;
  std::string errors;
};

Outcome run(const std::string& line) {
  std::istringstream stream("statescope dataset " + line);
  std::vector<std::string> words(std::istream_iterator<std::string>(stream), {});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  std::ostringstream errors;
  std::streambuf* const terminal = std::cerr.rdbuf(errors.rdbuf());
  const int status = run_command_line(static_cast<int>(arguments.size()), arguments.data());
  std::cerr.rdbuf(terminal);
  return {status, errors.str()};
}

}  // namespace

TEST_CASE("dataset writes what the task draws, whole or not at all") {
  const InputFile folder("note", "");
  const fs::path path = folder.folder / "d.jsonl";
  const std::string name = path.string();
  REQUIRE(run("niah --samples 3 --length 90 --needles 4 --depth 50 --seed 9 --split training -o " + name).status == 0);
  const auto task =
      make_task({.length = 90, .needles = 4, .depth_percent = 50, .seed = 9, .split = Split::training}, from_source("assets"));
  const std::vector<Record> records = read_records(path);
  REQUIRE(records.size() == 3);
  for (int i = 0; i < 3; ++i) CHECK(records[static_cast<std::size_t>(i)].example.text == task->example(i).text);

  const Outcome again = run("copy -o " + name);
  CHECK(again.status == 1);
  contains(again.errors, name + ": exists already; choose another name or --force");
  CHECK(read_records(path).size() == 3);
  CHECK(run("copy --samples 2 --force -o " + name).status == 0);
  CHECK(read_records(path).size() == 2);
  CHECK(std::distance(fs::directory_iterator(folder.folder), {}) == 2);
}

TEST_CASE("dataset in the manner of RULER") {
  const InputFile folder("note", "");
  const auto first = [&](const std::string& ruler) {
    const fs::path path = folder.folder / (ruler + ".jsonl");
    REQUIRE(run("niah --samples 1 --length 2000 --ruler " + ruler + " -o " + path.string()).status == 0);
    return read_record(path, 0).example;
  };
  REQUIRE(ruler_tasks().size() == 8);
  CHECK(first("single_1").needles.size() == 1);
  CHECK(first("single_2").questions[0].answer.size() == 7);
  CHECK(first("single_3").questions[0].answer.size() == 36);
  CHECK(first("multikey_1").needles.size() == 4);
  CHECK(first("multikey_2").needles.size() > 50);
  CHECK(first("multikey_3").needles.size() > 25);
  CHECK(first("multivalue").questions[0].needles.size() == 4);
  CHECK(first("multiquery").questions.size() == 4);
}

TEST_CASE("dataset: wrong use is status 2, failure is 1") {
  const auto refused = [](const std::string& line, int status, const std::string& why) {
    INFO(line);
    const Outcome outcome = run(line);
    CHECK(outcome.status == status);
    contains(outcome.errors, why);
  };
  refused("", 2, "subcommand is required");
  refused("niah", 2, "--output is required");
  refused("niah -o - --value uuid", 2, "niah: a uuid is no word of the filler's");
  refused("niah -o - --needles 100", 2, "need 910 words; the length is 512");
  refused("niah -o - --ruler single_1 --needles 4", 2, "excludes");
  refused("niah -o - --ruler single_9", 2, "single_9");
  refused("niah -o - --split test", 2, "test");
  refused("niah -o - --samples 0", 2, "--samples");
  refused("mqar -o - --needles 4", 2, "--needles");
  refused("copy -o - --length 8", 2, "not odd");
  refused("niah -o - --haystack /nonexistent", 1, "/nonexistent: cannot be opened");
  refused("copy -o /nonexistent/d.jsonl", 1, "cannot be written");
}

}  // namespace statescope::dataset_test

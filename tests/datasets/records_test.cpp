#include "datasets/records.h"

#include "tests/datasets/input_file.h"
#include "tests/source.h"

namespace statescope::records_test {
using test::contains;
using test::InputFile;

namespace {

const std::string sound =
    R"({"index":3,"input":"ä is 1. ä? ","outputs":["1"],"length":12,"text":"ä is 1. ä? 1","needles":[[0,8]],)"
    R"("questions":[{"asked":[9,12],"answer":"1","given":[13,14],"needles":[0],"depth":0.5}],"task":"niah","seed":1})";

std::string replaced(std::string part, const std::string& by) {
  std::string text = sound;
  REQUIRE(text.find(part) != text.npos);
  return text.replace(text.find(part), part.size(), by);
}

std::string error_of(const std::string& text) { return test::error_of(InputFile("d.jsonl", text), read_records); }

bool same(TextRange a, TextRange b) { return a.begin == b.begin && a.end == b.end; }

void check_same(const Example& a, const Example& b) {
  CHECK(a.index == b.index);
  CHECK(a.length == b.length);
  CHECK(a.text == b.text);
  CHECK(std::equal(a.needles.begin(), a.needles.end(), b.needles.begin(), b.needles.end(), same));
  REQUIRE(a.questions.size() == b.questions.size());
  for (std::size_t i = 0; i < a.questions.size(); ++i) {
    const ExampleQuestion &x = a.questions[i], &y = b.questions[i];
    CHECK((same(x.asked, y.asked) && x.answer == y.answer && same(x.given, y.given) && x.needles == y.needles && x.depth == y.depth));
  }
}

}  // namespace

TEST_CASE("what is written is read again") {
  const TaskOptions filler{.length = 200, .needles = 6, .values = 2, .queries = 3};
  const TaskOptions prose{.length = 900, .needles = 3, .haystack = "prose", .value = "uuid", .split = Split::training};
  for (const TaskOptions& options : {filler, prose, {.name = "mqar", .length = 90}, {.name = "copy", .length = 33}}) {
    INFO(options.name);
    const auto task = make_task(options, from_source("assets"));
    std::string lines;
    for (int i = 0; i < 5; ++i) lines += record_line(task->example(i), options) + "\n";
    const InputFile file("d.jsonl", lines);
    const std::vector<Record> records = read_records(file.path);
    REQUIRE(records.size() == 5);
    for (int i = 0; i < 5; ++i) {
      const Example example = task->example(i);
      const Record& record = records[static_cast<std::size_t>(i)];
      check_same(record.example, example);
      check_same(read_record(file.path, static_cast<std::size_t>(i)).example, example);
      CHECK(record.outputs.size() == example.questions.size());
      CHECK(record.outputs[0] == example.questions[0].answer);
      CHECK(record.input.size() == (options.name == "mqar" ? example.text.size() : example.questions[0].given.begin));
    }
  }
}

TEST_CASE("the keys of a line and their order") {
  TaskOptions options{.name = "copy", .length = 5};
  const Example example = make_task(options, "")->example(2);
  CHECK(
      record_line(example, options) ==
      R"({"index":2,"input":"v231 v183 n0 ","outputs":["v231 v183"],"length":5,"text":"v231 v183 n0 v231 v183","needles":[[0,9]],)"
      R"("questions":[{"asked":[10,12],"answer":"v231 v183","given":[13,22],"needles":[0],"depth":0.0}],"task":"copy","seed":1,"split":"evaluation"})");
}

TEST_CASE("RULER's lines") {
  const std::vector<Record> records =
      read_records(InputFile("d.jsonl",
                             "{\"index\": 5, \"input\": \"a b\", \"outputs\": [\"x\", \"y\"], \"length\": 9, "
                             "\"length_w_model_temp\": 12}\r\n\n")
                       .path);
  REQUIRE(records.size() == 1);
  CHECK(records[0].input == "a b");
  CHECK(records[0].outputs == std::vector<std::string>{"x", "y"});
  CHECK(records[0].example.index == 5);
  CHECK(records[0].example.length == 9);
  CHECK(records[0].example.text == "a b");
  CHECK(records[0].example.questions.empty());
}

TEST_CASE("lines that are no records are refused, by number") {
  CHECK(read_records(InputFile("d.jsonl", sound).path).size() == 1);
  contains(error_of(sound + "\n\n[]\n"), ": line 3: is not a JSON object");
  contains(error_of(replaced("\"index\":3", "\"index\":\"3\"")), "line 1: has no whole number under \"index\"");
  contains(error_of(replaced("\"length\":12", "\"length\":1.5")), "no whole number under \"length\"");
  contains(error_of(replaced("\"input\":\"ä is 1. ä? \"", "\"input\":7")), "no text under \"input\"");
  contains(error_of(replaced("\"input\":\"ä", "\"input\":\"a")), "does not begin with \"input\"");
  contains(error_of(replaced("\"outputs\":[\"1\"]", "\"outputs\":\"1\"")), "\"outputs\" is not a list");
  contains(error_of(replaced("\"outputs\":[\"1\"]", "\"outputs\":[1]")), "no list of texts under \"outputs\"");
  contains(error_of(replaced("\"outputs\":[\"1\"],", "")), "no list of texts under \"outputs\"");
  for (const char* range : {"[1,8]", "[0,99]", "[8,8]", "[8,0]", "[-1,8]", "[0,8,9]", "[0]", "7", "[0,1.5]", "[0,18446744073709551615]"})
    contains(error_of(replaced("[0,8]", range)), "has a range that is not");
  contains(error_of(replaced("\"needles\":[[0,8]]", "\"needles\":{}")), "\"needles\" is not a list");
  contains(error_of(replaced("\"needles\":[0]", "\"needles\":[1]")), "a needle that is not there");
  contains(error_of(replaced("\"depth\":0.5", "\"depth\":1.5")), "no \"depth\"");
  contains(error_of(replaced("\"depth\":0.5", "\"depth\":\"1\"")), "no \"depth\"");
  contains(error_of(replaced("\"answer\":\"1\"", "\"answer\":1")), "no text under \"answer\"");
  contains(error_of("{\"index\": " + std::string(100000, '[')), "nested more than 16 deep");
}

TEST_CASE("a record cut short at any byte is refused, or is none") {
  for (std::size_t size = 1; size < sound.size(); ++size) error_of(sound.substr(0, size));
  CHECK(read_records(InputFile("d.jsonl", "").path).empty());
  contains(test::error_of(InputFile("d.jsonl", "\n"), [](const auto& path) { read_record(path, 0); }), "has 0 prompts");
}

}  // namespace statescope::records_test

// Needles in real text: lengths in the tokens of whoever reads them, marks where the notes and the question stand, chat form.
#include "datasets/text_needles.h"

#include "datasets/files.h"
#include "datasets/prompt.h"
#include "datasets/records.h"
#include "tests/datasets/input_file.h"
#include "tests/source.h"

namespace statescope::text_needles_test {
using test::contains;
using test::InputFile;
namespace fs = std::filesystem;

namespace {

TextTemplates templates() { return read_text_templates(from_source("assets/tasks/text-needles.json")); }

/// One that reads words.
std::int64_t words(std::string_view text) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    count += text[i] != ' ' && text[i] != '\n' && (i == 0 || text[i - 1] == ' ' || text[i - 1] == '\n');
  return count;
}

const std::string kText =
    "The first sentence is here. A second one follows it! Is there a third? There is a fourth sentence, which is longer. ";

std::unique_ptr<const Task> task(const TaskOptions& options, std::function<std::string(const std::string&)> in_chat = {}) {
  return make_text_needles(options, templates(), kText, {.count = words, .in_chat = std::move(in_chat)});
}

std::string at(const Example& example, TextRange range) { return example.text.substr(range.begin, range.end - range.begin); }

std::string error_of(const TaskOptions& options, std::function<std::string(const std::string&)> in_chat = {}) {
  try {
    task(options, std::move(in_chat))->example(0);
    return "";
  } catch (const OptionsError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("text needles: as long as whole sentences allow, in the reader's tokens") {
  for (const std::int64_t length : {80, 200, 1000, 5000}) {
    for (const char* haystack : {"filler", "prose"}) {
      const auto made = task({.length = length, .needles = 2, .haystack = haystack});
      CHECK(made->unit() == "tokens");
      for (std::int64_t i = 0; i < 4; ++i) {
        const Example example = made->example(i);
        const std::string prompt = example.text.substr(0, example.questions[0].given.begin);
        CHECK(example.length == words(prompt));
        CHECK(example.length <= length);
        CHECK(example.length > length - 11);  // the longest sentence has ten words
      }
    }
  }
}

TEST_CASE("text needles: the marks are the notes, the question and the answer") {
  const Example example = task({.length = 300, .needles = 3, .values = 2, .queries = 2, .value = "number"})->example(5);
  REQUIRE(example.needles.size() == 6);
  REQUIRE(example.questions.size() == 4);
  for (const TextRange& needle : example.needles) {
    const std::string note = at(example, needle);
    CHECK((note.starts_with("Note: the number of the ") && note.ends_with(".")));
  }
  for (const ExampleQuestion& question : example.questions) {
    CHECK(at(example, question.asked).starts_with("According to the notes, what are all the numbers of the "));
    CHECK(question.answer.size() == 7);
    CHECK(at(example, question.given).ends_with(" " + question.answer));
    REQUIRE(question.needles.size() == 1);
    CHECK(at(example, example.needles[question.needles[0]]).ends_with(" is " + question.answer + "."));
    CHECK((question.depth >= 0 && question.depth <= 1));
  }
  CHECK(example.text[example.questions[0].given.begin - 1] != ' ');
  CHECK(example.questions[3].given.end == example.text.size());
}

TEST_CASE("text needles: a depth is where the note stands") {
  for (const int depth : {0, 50, 100}) {
    const Example example = task({.length = 2000, .needles = 4, .depth_percent = depth})->example(1);
    CHECK(example.questions[0].depth == Approx(depth / 100.0).margin(0.05));
  }
}

TEST_CASE("text needles: in the chat form the marks move along and the answer begins a turn") {
  const auto chat = [](const std::string& user) { return "<user> " + user + " <assistant>\n"; };
  const Example plain = task({.length = 200})->example(0), example = task({.length = 202}, chat)->example(0);
  const std::string prompt = example.text.substr(0, example.questions[0].given.begin);
  CHECK(prompt.starts_with("<user> The text below"));
  CHECK(prompt.find("? <assistant>\nAccording to the notes, the code of the ") != prompt.npos);
  CHECK(at(example, example.needles[0]) == at(plain, plain.needles[0]));
  CHECK(at(example, example.questions[0].asked) == at(plain, plain.questions[0].asked));
  contains(error_of({.length = 200}, [](const std::string&) { return std::string("lost"); }), "does not leave a user's words");
}

TEST_CASE("text needles: as many as fit, and what does not fit") {
  const Example example = task({.length = 400, .needles = 0})->example(0);
  CHECK(example.needles.size() > 20);
  CHECK(example.length <= 400);
  contains(error_of({.length = 20}), "tokens; the length is 20");
  contains(error_of({.length = 900, .needles = 2000}), "2000 keys; there are names for 0");
  contains(error_of({.length = 900, .queries = 2}), "2 queries");
  contains(error_of({.length = 900, .value = "word"}), "not word");
}

TEST_CASE("text needles: an example depends on its number and its options alone, and is read again from a line") {
  const TaskOptions options{.length = 300, .needles = 2};
  const auto a = task(options), b = task(options);
  CHECK(a->example(7).text == b->example(7).text);
  CHECK(a->example(7).text != a->example(8).text);
  const Example example = a->example(7);
  const Prompt prompt = read_prompt(InputFile("d.jsonl", record_line(example, options) + "\n").path);
  CHECK(prompt.text == example.text.substr(0, example.questions[0].given.begin));
  CHECK(prompt.expected == example.questions[0].answer);
  CHECK(prompt.spans.size() == 3);
}

TEST_CASE("text templates: damaged ones are refused") {
  const std::string sound = read_text(from_source("assets/tasks/text-needles.json"));
  const auto refused = [](const std::string& text) { return test::error_of(InputFile("t.json", text), read_text_templates); };
  const auto replaced = [&](const std::string& part, const std::string& by) {
    std::string text = sound;
    return text.replace(text.find(part), part.size(), by);
  };
  contains(refused("[]"), "is not a JSON object");
  contains(refused(replaced("\"first\": [", "\"first\": [7, ")), "\"first\" has an entry that is no word");
  contains(refused(replaced("{value}", "{worth}")), "\"needle\" needs one {value}");
  contains(refused(replaced("{value}", "{value} {x}")), "\"needle\" has other braces");
  contains(refused(replaced("\"uuid\"", "\"guid\"")), "no [one, several] under \"uuid\"");
  for (std::size_t size = 0; size + 2 < sound.size(); size += 7) refused(sound.substr(0, size));
}

}  // namespace statescope::text_needles_test

#include "datasets/task.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <sstream>

#include "tests/datasets/input_file.h"
#include "tests/source.h"

namespace statescope::task_test {
using test::InputFile;

namespace {

const std::filesystem::path assets = from_source("assets");

std::string at(const Example& example, TextRange range) { return example.text.substr(range.begin, range.end - range.begin); }

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

std::string error_of(const TaskOptions& options) {
  try {
    make_task(options, assets);
  } catch (const OptionsError& error) {
    return error.what();
  }
  FAIL("no error was thrown");
  return {};
}

/// Needles in prose as they are in `text`, all of which is for evaluation.
Example in_text(const std::string& text, std::int64_t length, std::int64_t index) {
  const InputFile file("text.txt", std::string(9 * text.size(), 'x') + ". " + text);
  return make_task({.length = length, .haystack = file.path, .value = "code"}, assets)->example(index);
}

/// What holds for every example of needles, whatever the haystack.
void check_needles(const Example& example, const TaskOptions& options, const std::string& between) {
  CHECK(example.length == options.length);
  REQUIRE(static_cast<std::int64_t>(example.needles.size()) == options.needles * options.values);
  REQUIRE(static_cast<std::int64_t>(example.questions.size()) == options.queries);
  std::set<std::string> asked;
  for (const ExampleQuestion& question : example.questions) {
    asked.insert(at(example, question.asked));
    CHECK(at(example, question.given) == question.answer);
    CHECK(question.given.begin == question.asked.end + 1);
    CHECK((question.depth >= 0 && question.depth <= 1));
    REQUIRE(static_cast<std::int64_t>(question.needles.size()) == options.values);
    std::string answer;
    std::size_t last = 0;
    for (const std::size_t needle : question.needles) {
      const std::string sentence = at(example, example.needles[needle]);
      const std::string value = sentence.substr(sentence.size() - (between == " " ? 9 : 8), 7);
      answer += (answer.empty() ? "" : between) + value;
      CHECK(example.needles[needle].begin >= last);
      last = example.needles[needle].begin;
    }
    CHECK(answer == question.answer);
  }
  CHECK(asked.size() == example.questions.size());
  CHECK(example.questions.back().given.end == example.text.size());
  std::set<std::string> sentences;
  for (const TextRange& needle : example.needles) sentences.insert(at(example, needle));
  CHECK(sentences.size() >= static_cast<std::size_t>(options.needles));
}

}  // namespace

// The same texts come from assets/recipes/tasks.py.
TEST_CASE("golden examples") {
  const auto text = [](const TaskOptions& options) { return make_task(options, assets)->example(7).text; };
  CHECK(text({.length = 60, .needles = 2}) ==
        "clever pillow . the forest was orange and the wallet was simple . the code of gustav 6 9 2 1 . the farm was sweet and "
        "the cloud was clean . the code of xavier 1 3 6 5 . soon a flat anchor was under the city . what is the code of gustav "
        "6 9 2 1");
  CHECK(text({.length = 70, .needles = 2, .values = 2, .queries = 2, .split = Split::training}) ==
        "the code of ines 6 6 1 9 . the code of olga 6 8 0 8 . the code of olga 5 2 5 3 . visits a gray bench . the code of "
        "ines 4 1 7 1 . what is the code of ines 6 6 1 9 4 1 7 1 . what is the code of olga 6 8 0 8 5 2 5 3");
  CHECK(text({.length = 60, .needles = 2, .depth_percent = 0, .seed = 5}) ==
        "the code of doris 1 3 2 2 . maria opens the leaf gladly . the code of ximena 9 2 3 5 . kenji and helga wants a little "
        "barrel . the lock of diana was near the lake . the badge of zita was near the balcony . what is the code of doris 1 3 "
        "2 2");
  CHECK(text({.name = "mqar", .length = 24, .pairs = 3}) ==
        "k141 v32 k23 v76 k242 v156 n44 n35 n37 n2 k23 n40 k242 n13 k141 n23 n3 n24 n39 n45 n39 n50 n2 n4");
  CHECK(text({.name = "mqar", .length = 24, .pairs = 6, .filler = "zero"}) ==
        "k141 v32 k23 v76 k242 v156 k57 v129 k137 v248 k60 v187 k60 n0 k242 n0 k57 n0 k141 n0 k23 n0 k137 n0");
  CHECK(text({.name = "copy", .length = 9}) == "v8 v129 v45 v215 n0 v8 v129 v45 v215");
  CHECK(text({.length = 300, .needles = 2, .haystack = "prose", .value = "number"}) ==
        "estraint. You could not hold such a carnival in every city. You could not do it in New York. The code of Xavier is "
        "1365978. The code of Gustav is 6921754. For more important even than the pageants and the balls, is the carnival "
        "frame of mind. What is the code of Gustav? The code of Gustav is 6921754");
}

TEST_CASE("needles in filler hold what they say, at any length") {
  const TaskOptions one{.length = 64}, many{.length = 300, .needles = 8, .values = 2, .queries = 3}, full{.length = 512, .needles = 0};
  for (TaskOptions options : {one, many, full}) {
    const auto task = make_task(options, assets);
    CHECK(task->unit() == "words");
    if (options.needles == 0) options.needles = static_cast<std::int64_t>(task->example(0).needles.size());
    for (int i = 0; i < 300; ++i) {
      const Example example = task->example(i);
      CHECK(std::ssize(words_of(example.text)) == options.length);
      CHECK(example.text.find("  ") == std::string::npos);
      for (const TextRange& needle : example.needles)
        CHECK((at(example, needle).starts_with("the code of ") && at(example, needle).ends_with(" .")));
      check_needles(example, options, " ");
    }
  }
  for (std::int64_t length = 19; length < 50; ++length)
    check_needles(make_task({.length = length}, assets)->example(0), {.length = length}, " ");
}

TEST_CASE("needles in prose hold what they say") {
  const TaskOptions one{.length = 512, .haystack = "prose", .value = "number"};
  const TaskOptions many{.length = 3000, .needles = 4, .values = 3, .queries = 2, .haystack = "prose", .value = "number"};
  for (const TaskOptions& options : {one, many}) {
    const auto task = make_task(options, assets);
    CHECK(task->unit() == "bytes");
    for (int i = 0; i < 100; ++i) {
      const Example example = task->example(i);
      CHECK(std::ssize(example.text) == options.length);
      for (const TextRange& needle : example.needles)
        CHECK((at(example, needle).starts_with("The code of ") && example.text[needle.end] == ' '));
      check_needles(example, options, ", ");
    }
  }
}

TEST_CASE("as many needles as fit, and no more") {
  const auto count = [](const TaskOptions& options) { return make_task(options, assets)->example(0).needles.size(); };
  CHECK(count({.length = 10 + 9 * 20, .needles = 0}) == 20);
  CHECK(count({.length = 10 + 9 * 20 + 8, .needles = 0}) == 20);
  CHECK(count({.length = 100000, .needles = 0}) == 124);
  CHECK(count({.length = 19, .needles = 0}) == 1);
}

TEST_CASE("values look as they are called") {
  const auto answer = [](const std::string& value) {
    return make_task({.length = 400, .haystack = "prose", .value = value}, assets)->example(0).questions[0].answer;
  };
  CHECK(answer("code").size() == 4);
  CHECK(answer("number").find_first_not_of("0123456789") == std::string::npos);
  CHECK(answer("number").size() == 7);
  const std::string uuid = answer("uuid");
  REQUIRE(uuid.size() == 36);
  for (std::size_t i = 0; i < uuid.size(); ++i) CHECK((uuid[i] == '-') == (i == 8 || i == 13 || i == 18 || i == 23));
  CHECK(uuid.find_first_not_of("0123456789abcdef-") == std::string::npos);
}

TEST_CASE("the asked needle stands where it is wanted") {
  for (const std::string haystack : {"filler", "prose"}) {
    for (const int percent : {0, 25, 50, 75, 100}) {
      INFO(haystack << ' ' << percent);
      const bool prose = haystack == "prose";
      const auto task = make_task({.length = prose ? 8000 : 800, .needles = 2, .depth_percent = percent, .haystack = haystack}, assets);
      double mean = 0;
      for (int i = 0; i < 40; ++i) mean += task->example(i).questions[0].depth / 40;
      CHECK(std::abs(mean - percent / 100.0) < (prose ? 0.05 : 0.03));
    }
  }
  const auto first = make_task({.length = 800, .depth_percent = 0}, assets);
  for (int i = 0; i < 20; ++i) CHECK(first->example(i).needles[0].begin == 0);
}

TEST_CASE("needles without a wanted depth stand anywhere") {
  const auto task = make_task({.length = 400}, assets);
  std::array<int, 4> quarters{};
  for (int i = 0; i < 1000; ++i) ++quarters.at(static_cast<std::size_t>(std::min(3.0, task->example(i).questions[0].depth * 4)));
  for (const int count : quarters) CHECK(std::abs(count - 250) < 60);
}

TEST_CASE("recall asks every key once, for its own value") {
  const TaskOptions few{.name = "mqar", .length = 64, .pairs = 4}, most{.name = "mqar", .length = 1025, .pairs = 256, .filler = "zero"};
  for (const TaskOptions& options : {few, most}) {
    const auto task = make_task(options, assets);
    for (int i = 0; i < 100; ++i) {
      const Example example = task->example(i);
      const std::vector<std::string> words = words_of(example.text);
      CHECK(std::ssize(words) == options.length);
      REQUIRE(std::ssize(example.questions) == options.pairs);
      std::set<std::string> keys;
      for (const ExampleQuestion& question : example.questions) {
        keys.insert(at(example, question.asked));
        CHECK(at(example, example.needles[question.needles.at(0)]) == at(example, question.asked) + " " + question.answer);
        CHECK(question.given.end == 0);
        CHECK((question.depth >= 0 && question.depth < 1));
      }
      CHECK(std::ssize(keys) == options.pairs);
      CHECK(std::count_if(words.begin(), words.end(), [](const auto& word) { return word[0] == 'k'; }) == 2 * options.pairs);
      CHECK(std::is_sorted(example.questions.begin(), example.questions.end(),
                           [](const ExampleQuestion& a, const ExampleQuestion& b) { return a.asked.begin < b.asked.begin; }));
    }
  }
}

// Slots 0, 1–2, 3–6, 7–14, …: with weights 1 / (i + 1) these octaves come about equally often; drawn evenly, the last would have half of
// all. The shares of 7000: the integral over p of Π (1 − p / (j + 1)), j ≠ i, divided by i + 1, summed over the octave's slots i.
TEST_CASE("gaps follow a power law") {
  const auto task = make_task({.name = "mqar", .length = 2 + 2 * 127, .pairs = 1}, assets);
  std::array<int, 7> octaves{};
  for (int i = 0; i < 7000; ++i) {
    const Example example = task->example(i);
    const std::string before = example.text.substr(0, example.questions[0].asked.begin);
    const auto slot = static_cast<unsigned>(std::count(before.begin(), before.end(), ' ') - 2) / 2;
    for (std::size_t octave = 0; octave < octaves.size(); ++octave) octaves.at(octave) += (slot + 1) >> octave == 1;
  }
  const std::array<int, 7> expected{1518, 1088, 948, 890, 863, 850, 843};
  for (std::size_t octave = 0; octave < octaves.size(); ++octave) CHECK(std::abs(octaves.at(octave) - expected.at(octave)) < 130);
}

TEST_CASE("copying says the same again") {
  const auto task = make_task({.name = "copy", .length = 101}, assets);
  for (int i = 0; i < 50; ++i) {
    const Example example = task->example(i);
    CHECK(words_of(example.text).size() == 101);
    CHECK(at(example, example.needles.at(0)) == at(example, example.questions.at(0).given));
    CHECK(at(example, example.questions[0].asked) == "n0");
    CHECK(example.questions[0].answer == at(example, example.questions[0].given));
  }
}

TEST_CASE("training, evaluation, seeds and numbers share no example") {
  for (TaskOptions options : {TaskOptions{.length = 40}, TaskOptions{.length = 256, .haystack = "prose"},
                              TaskOptions{.name = "mqar", .length = 64}, TaskOptions{.name = "copy", .length = 21}}) {
    INFO(options.name << ' ' << options.haystack);
    std::set<std::string> texts;
    for (options.seed = 1; options.seed < 4; ++options.seed) {
      for (const Split split : {Split::training, Split::evaluation}) {
        options.split = split;
        const auto task = make_task(options, assets);
        for (int i = 0; i < 50; ++i) texts.insert(task->example(i).text);
      }
    }
    CHECK(texts.size() == 300);
  }
}

TEST_CASE("a haystack does not begin within a character") {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "äöü ßßß €€€€€€€ 𝄞𝄞𝄞. ";
  std::set<std::int64_t> lengths;
  for (std::int64_t length = 400; length < 404; ++length) {
    for (int i = 0; i < 20; ++i) {
      const Example example = in_text(text, length, i);
      CHECK((static_cast<unsigned char>(example.text[0]) & 0xc0) != 0x80);
      CHECK(example.length == std::ssize(example.text));
      CHECK((example.length <= length && example.length > length - 4));
      lengths.insert(length - example.length);
    }
  }
  CHECK(lengths.size() > 1);
}

TEST_CASE("options that cannot be met are told in one line") {
  using test::contains;
  contains(error_of({.name = "sudoku"}), "no task sudoku; there are niah, mqar and copy");
  contains(error_of({.length = 0}), "niah: a length of 0; give 1 to");
  contains(error_of({.length = std::int64_t{1} << 40}), "give 1 to");
  contains(error_of({.length = 18}), "needles and questions need 19 words; the length is 18");
  contains(error_of({.length = 18, .needles = 0}), "need 19 words");
  contains(error_of({.needles = 125}), "125 keys; there are names for 0 (as many as fit) to 124");
  contains(error_of({.needles = -1}), "-1 keys");
  contains(error_of({.values = 0}), "0 values");
  contains(error_of({.values = std::int64_t{1} << 60}), "values per key");
  contains(error_of({.queries = 2}), "2 queries");
  contains(error_of({.length = 200, .needles = 0, .queries = 125}), "125 queries; there are fewer keys");
  contains(error_of({.length = 100, .needles = 0, .queries = 124}), "words; the length is 100");
  contains(error_of({.queries = 0}), "0 queries");
  contains(error_of({.depth_percent = 101}), "101 is not a percentage");
  contains(error_of({.needles = 2, .queries = 2, .depth_percent = 50}), "give it with 1 query");
  contains(error_of({.value = "uuid"}), "choose code, or prose");
  contains(error_of({.haystack = "prose", .value = "word"}), "a code, a number or a uuid, not word");
  contains(error_of({.length = 50, .haystack = "prose"}), "bytes; the length is 50");
  contains(error_of({.length = 1000000, .haystack = "prose"}), "bytes for this split; the length is 1000000");
  contains(error_of({.name = "mqar", .length = 31}), "8 pairs and their questions need 32 words; the length is 31");
  contains(error_of({.name = "mqar", .pairs = 257}), "257 pairs; there are 1 to 256 keys");
  contains(error_of({.name = "mqar", .pairs = 0}), "0 pairs");
  contains(error_of({.name = "mqar", .filler = "water"}), "noise or zero, not water");
  contains(error_of({.name = "copy", .length = 1}), "not odd and at least 3");
  contains(error_of({.name = "copy", .length = 512}), "not odd");
  CHECK_THROWS_WITH(make_task({}, "/nonexistent"), "/nonexistent/tasks/needles.json: cannot be opened: No such file or directory");
}

}  // namespace statescope::task_test

// Lessons as files: what a parser makes of them, and of anything else.
#include "app/lesson/lesson.h"

#include <QFile>

#include "app/assets.h"
#include "engine/error.h"
#include "tests/app/window/fake_source.h"
#include "tests/catch.h"

namespace statescope::lesson_test {
namespace {

const std::string header =
    "---\ntitle: A lesson\nminutes: 5\ncheckpoint: a.h5\nprompt: p.json\nhide: inspector, menu\nviews: state, decay\n---\n";

Lesson parse(const std::string& text) { return parse_lesson(text, "l.md"); }

std::string error_of(const std::string& text) {
  try {
    parse(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string words_of(const Prose& prose) {
  std::string text;
  for (const ProsePart& part : prose) {
    if (const auto* words = std::get_if<std::string>(&part)) text += *words;
    if (const auto* quantity = std::get_if<Quantity>(&part)) text += "<" + std::string(quantity->row->name) + ">";
    if (const auto* recall = std::get_if<Recall>(&part)) text += "<<" + recall->name + ">>";
  }
  const std::size_t end = text.find_last_not_of('\n');
  return text.substr(text.find_first_not_of('\n'), end - text.find_first_not_of('\n') + 1);
}

std::vector<std::string> lessons_of_everything() {
  return {header +
              "## One\ntoken: needle.last + 2\nplay: 3\nreference: first\nlayer: 1\nhead: 2\nslot: shared\nrow: 4\ncolumn: 5\nmode: state "
              "= Change\n"
              "caption: rows\nnote: kept = needle_clear\nholds: norm layer=1 [0.5 ..]\n\nIt says {answer}, {norm layer=1 token=last}.\n\n"
              "predict: How long?\n- short [.. 4]\n- long [4 ..]\nanswer: half_life\nviews: spectrum\n\nIt was {half_life}.\n"
              "## Two\nviews: head_gates\nknob: head_gates = 2\n\nlast\n",
          header + "## One\n\npredict: Right?\n- yes [= right]\n- no [= wrong]\nanswer: verdict\n\n{rank}\n## Two\ntext: a b c\n\nx\n"};
}

}  // namespace

TEST_CASE("lesson: steps carry their pictures on, questions their ranges, prose its gaps") {
  const Lesson lesson = parse(header +
                              "\n## First step\ntoken: needle.last - 1\nlayer: 2\nmode: decay = Half-life\nplay: needle.first\ncaption: "
                              "the rows\nnote: before = norm\n"
                              "\nThere are {length} tokens.\n\nTwo {rank head=1}.\n\n## Second\nviews: state\n\nBefore: "
                              "{before}.\n\npredict: How much?\n- little [.. 0.5]\n"
                              "- much [0.5 ..]\nanswer: norm\ntoken: last\ncaption: the end\n\nIt is {norm}.\n");
  CHECK(lesson.title == "A lesson");
  CHECK(lesson.minutes == 5);
  CHECK(lesson.hidden == std::vector{Hideable::inspector, Hideable::menu});
  REQUIRE(lesson.steps.size() == 2);
  const LessonStep &first = lesson.steps[0], &second = lesson.steps[1];
  CHECK(first.picture.caption == "the rows");
  CHECK(first.picture.checkpoint == "a.h5");
  CHECK(first.picture.token == TokenPlace{TokenPlace::Anchor::needle_last, -1});
  CHECK(first.picture.play);
  CHECK(first.picture.views[1].view->id == "decay");
  CHECK(first.picture.views[1].view->make()->modes()[first.picture.views[1].mode] == "Half-life");
  CHECK(words_of(first.prose) == "There are <length> tokens.\n\nTwo <rank>.");
  CHECK(second.picture.layer == 2);
  CHECK(second.picture.token == first.picture.token);
  CHECK_FALSE(second.picture.play);
  CHECK(second.picture.views.size() == 1);
  CHECK(second.picture.caption.empty());
  CHECK(second.revealed.caption == "the end");
  CHECK(second.revealed.token == TokenPlace{TokenPlace::Anchor::last, 0});
  CHECK(words_of(second.prose) == "Before: <<before>>.");
  REQUIRE(second.question);
  CHECK(second.question->choices[1].bounds.hold({.number = 0.5}));
  CHECK_FALSE(second.question->choices[0].bounds.hold({.number = 0.5}));
  CHECK(words_of(second.reveal) == "It is <norm>.");
  CHECK(parse(lessons_of_everything()[0]).steps[0].revealed.caption == "rows");
}

TEST_CASE("lesson: what is wrong is said with its line and what to do") {
  const auto says = [](const std::string& text, const std::string& what) {
    INFO(error_of(text));
    CHECK(error_of(text).find(what) != std::string::npos);
  };
  says("", "l.md:1: a lesson begins with a line ---");
  says("---\ntitle: x\n", "the header does not end");
  says("---\ntitle: x\n---\n## a\n", "l.md:4: the header has no checkpoint: key");
  says("---\ncolour: x\n---\n", "l.md:2: there is no key \"colour\"");
  says(header, "the lesson has no step");
  says(header + "words\n", "l.md:9: a step begins with ##");
  says(header + "## a\nviews: stat\n", "l.md:10: there is no view \"stat\": there are ");
  says(header + "## a\nmode: state = Sideways\n", "l.md:10: state cannot be looked at as \"Sideways\": there are Values, Change");
  says(header + "## a\nmode: needle = Layers\n", "needle is not among this step's views");
  says(header + "## a\nknob: state = 2\n", "state has no knob");
  says(header + "## a\ntoken: needle.middle\n", "\"needle.middle\" is not a token");
  says(header + "## a\nlayer: -1\n", "\"-1\" is not a number between 0 and");
  says(header + "## a\n\nIt is {nrom}.\n", "l.md:11: there is no quantity \"nrom\"");
  says(header + "## a\n\nIt is {norm head=1}.\n", "\"head=1\" cannot stand after \"norm\": it takes layer slot token");
  says(header + "## a\n\nIt is {norm\n", "a { has no }");
  says(header + "## a\n\nIt is {norm of=beside}.\n", "l.md:11: \"norm of=beside\" needs a second model");
  says(header + "## a\nnote: b = rank of=beside\n\nx\n", "\"rank of=beside\" needs a second model");
  says(header + "## a\nbeside: b.h5\n\n{rank of=other}\n", "\"of=other\" cannot stand after \"rank\"");
  says(header + "## a\n\npredict: x\n- a [.. 1]\n- b [2 ..]\nanswer: norm\n", "\"b\" does not begin where the option before it ends");
  says(header + "## a\n\npredict: x\n- a [.. 1]\n- b [1 .. 2]\nanswer: norm\n", "the last option ends at 2");
  says(header + "## a\n\npredict: x\n- a [.. 1]\nanswer: norm\n", "a question has 2 to 9 options");
  says(header + "## a\n\npredict: x\n- a\n- b\n", "after predict: come the options");
  says(header + "## a\n\npredict: x\n- a\n- b\nanswer: verdict\nprompt: q.json\n", "keys that change the picture but not the run");
  says(header + "## a\nholds: norm\n", "a claim is a quantity and its range");
  says(std::string("---\ntitle: \0\n", 13), "this is not a text");
}

TEST_CASE("lesson: cut off at any byte it is read or refused in one line") {
  for (const std::string& whole : lessons_of_everything()) {
    CHECK(error_of(whole) == "no error");
    for (std::size_t length = 0; length < whole.size(); ++length) {
      const std::string error = error_of(whole.substr(0, length));
      CHECK((error == "no error" || (error.starts_with("l.md:") && error.find('\n') == std::string::npos)));
    }
  }
}

TEST_CASE("lesson: places are tokens of the run or nothing") {
  const std::shared_ptr<const RunInfo> run = fake_run(20);
  const auto token = [&](const char* text) { return token_of(parse_token_place(text), *run).value_or(-1); };
  CHECK(token("7") == 7);
  CHECK(token("first + 2") == 2);
  CHECK(token("last-1") == 18);
  CHECK(token("needle.first") == 3);
  CHECK(token("needle.last + 1") == 6);
  CHECK(token("question.last") == 14);
  CHECK(token("answer.first") == -1);
  CHECK(token("20") == -1);
  for (const char* bad : {"", "+", "needle", "needle.last + x", "1 + 2 + 3", "99999999999999999999", "-3"})
    CHECK_THROWS_AS(parse_token_place(bad), Error);
}

TEST_CASE("lesson: quantities of the run and its snapshot are what a reader would count") {
  const std::shared_ptr<const RunInfo> run = fake_run(20);
  const std::shared_ptr<const Snapshot> snapshot = fake_snapshot(run, 0, 0, 14);
  const auto value = [&](const char* text, std::int64_t token = 14) {
    const Quantity quantity = parse_quantity(text);
    const auto at = place_of(quantity, *run, {.token = token});
    return at ? measure(quantity, {*run, snapshot.get(), {}, *at}).text : "no such place";
  };
  CHECK(value("length") == "20");
  CHECK(value("word token=needle.first") == "␣anna");
  CHECK(value("distance from=needle.last token=question.first") == "7");
  CHECK(value("numbers") == std::to_string(5 * 2 * 24 * 32));
  CHECK(value("rows layer=1") == "24");
  CHECK(value("partitions") == "4");
  CHECK(value("partition token=5") == std::to_string(5 % 4 + 1));
  CHECK(value("used") == "4");
  CHECK(value("load", 3) == "25 %");
  CHECK(value("resting") == "3");
  CHECK(value("rows layer=7") == "no such place");
  CHECK(value("norm slot=9") == "no such place");
  CHECK(value("norm") == "unknown");
}

TEST_CASE("lesson: the list of quantities has each of them") {
  QFile file(QString::fromStdString((assets_folder() / "lessons/README.md").string()));
  REQUIRE(file.open(QIODevice::ReadOnly));
  const std::string text = file.readAll().toStdString();
  for (const QuantityRow& row : quantities()) {
    const std::string line = "| `" + std::string(row.name) + "` | " + std::string(row.meaning) + " |";
    INFO(line);
    CHECK(text.find(line) != std::string::npos);
  }
}

TEST_CASE("lesson: those that ship are read, and name only files that are there") {
  REQUIRE(shipped_lessons().size() == 10);
  for (const std::filesystem::path& file : shipped_lessons()) {
    INFO(file.string());
    const Lesson lesson = load_lesson(file);
    CHECK(lesson.minutes >= 5);
    CHECK(lesson.minutes <= 10);
    CHECK_FALSE(lesson.about.empty());
    for (const LessonStep& step : lesson.steps) {
      CHECK(std::filesystem::exists(lesson_asset(lesson, step.picture.checkpoint, "checkpoints")));
      if (!step.picture.prompt.empty()) CHECK(std::filesystem::exists(lesson_asset(lesson, step.picture.prompt, "prompts")));
    }
  }
  CHECK(find_lesson("forgetting") == shipped_lessons().front());
  CHECK(find_lesson("real") == shipped_lessons().back());
  CHECK_THROWS_AS(find_lesson("no such lesson"), Error);
}

}  // namespace statescope::lesson_test

// The shipped lessons in the real window with the real session, by keyboard alone: to the last step and all the way back.
#include <fstream>
#include <sstream>

#include "app/assets.h"
#include "app/lesson/lesson_page.h"
#include "app/lesson/teacher_window.h"
#include "tests/app/cli/piece_model.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"
#include "tests/temporary_folder.h"

namespace statescope::lesson_player_test {
namespace {

/// What a step shows.
struct Picture {
  Cursor cursor;
  Arrangement arrangement;
  std::vector<double> knobs;
  std::string model, prose;

  bool operator==(const Picture& other) const {
    const auto place = [](const Cursor& c) { return std::tuple(c.token, c.layer, c.head, c.slot, c.row, c.column, c.reference); };
    return place(cursor) == place(other.cursor) && arrangement == other.arrangement && knobs == other.knobs && model == other.model &&
           prose == other.prose;
  }
};

/// A window over the real session that plays no motion: steps stand at once.
struct LessonWindow {
  explicit LessonWindow(QSettings* settings = nullptr)
      : source((test_application(), make_session_source(nullptr))),
        window(*source, {.theme = ThemeChoice::light, .scale = 1, .settings = settings, .autoplay = false, .make_source = [] {
                           return make_session_source(nullptr);
                         }}) {
    window.set_reduce_motion(true);
    window.resize(1280, 720);
    window.show();
    window.activateWindow();
    CHECK(QTest::qWaitForWindowActive(&window, 60'000));
  }
  void press(int key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) { QTest::keyClick(&window, static_cast<Qt::Key>(key), modifiers); }
  bool settles() {
    const auto drawn = [](const ViewPanel* panel) { return !panel->isVisible() || !panel->is_pending(); };
    const auto stands = [&] {
      return lesson().lesson() && lesson().is_ready() && window.navigator().is_current() &&
             std::ranges::all_of(window.stage().panels(), drawn);
    };
    const bool settled = QTest::qWaitFor(stands, 60'000);
    if (!settled)
      WARN("opening " << window.navigator().is_opening() << ", ready " << lesson().is_ready() << ", current "
                      << window.navigator().is_current());
    return settled;
  }
  Picture picture() {
    Picture picture{window.navigator().cursor(), window.stage().arrangement(), {}, window.navigator().run()->model.name, {}};
    for (const ViewPanel* panel : window.stage().panels()) {
      const std::optional<Knob> knob = panel->view().knob();
      picture.knobs.push_back(knob ? knob->value : 0);
    }
    picture.prose = lesson().filled(lesson().step().prose) + lesson().filled(lesson().step().reveal);
    return picture;
  }
  LessonPlayer& lesson() { return window.lesson(); }

  std::unique_ptr<RunSource> source;
  MainWindow window;
};

}  // namespace

TEST_CASE("lessons: each shipped one goes from the first key to the last and back, its numbers those of the run") {
  for (const std::filesystem::path& file : shipped_lessons()) {
    LessonWindow w;
    w.window.open_lesson(file);
    REQUIRE(w.lesson().lesson());
    const std::size_t steps = w.lesson().lesson()->steps.size();
    std::vector<Picture> pictures;
    for (std::size_t i = 0; i < steps; ++i) {
      INFO(file.filename().string() << ", step " << i + 1);
      REQUIRE(w.settles());
      CHECK(w.lesson().index() == i);
      if (w.lesson().step().question) {
        CHECK_FALSE(w.lesson().is_revealed());
        w.press(Qt::Key_1, Qt::AltModifier);
        CHECK(w.lesson().is_revealed());
        REQUIRE(w.settles());
        CHECK(w.lesson().predicted() == std::size_t{0});
        CHECK(w.lesson().right_choice());
      }
      pictures.push_back(w.picture());
      CHECK(pictures.back().prose.find("unknown") == std::string::npos);
      CHECK(pictures.back().prose.find("none:") == std::string::npos);
      CHECK(pictures.back().prose.find("…") == std::string::npos);
      CHECK(w.lesson().broken_claims() == std::vector<std::string>{});
      CHECK(w.lesson().is_at_picture());
      CHECK(w.window.comparison().is_on() != w.lesson().step().picture.beside.empty());
      w.press(i % 2 && i + 1 < steps ? Qt::Key_N : Qt::Key_PageDown);  // N would begin the next lesson
    }
    CHECK(w.lesson().index() == steps - 1);
    for (std::size_t i = steps; i-- > 0;) {
      INFO(file.filename().string() << ", back at step " << i + 1);
      REQUIRE(w.settles());
      CHECK(w.picture() == pictures[i]);
      w.press(i % 2 ? Qt::Key_P : Qt::Key_PageUp);
    }
    CHECK(w.lesson().index() == 0);
  }
}

TEST_CASE("lessons: the one about a real model takes the folder that is open, and every step can be asked of it") {
  const test::TemporaryFolder folder;
  test::write_piece_model(folder / "model", "", test::qwen_config("qwen3_5_text"));
  LessonWindow w;
  Navigator& navigator = w.window.navigator();
  w.window.open_checkpoint(folder / "model", {.text = "The sea is calm.", .spans = {}, .ids = {}, .expected = {}, .generate = 2});
  REQUIRE(QTest::qWaitFor([&] { return navigator.run() && !navigator.is_opening() && navigator.is_current(); }, 60'000));
  w.window.open_lesson(find_lesson("real"));
  REQUIRE(w.settles());
  const std::size_t steps = w.lesson().lesson()->steps.size();
  for (std::size_t i = 0; i < steps; ++i) {
    INFO("step " << i + 1);
    REQUIRE(w.settles());
    CHECK(navigator.checkpoint() == folder / "model");
    if (w.lesson().step().question) w.press(Qt::Key_N);
    REQUIRE(w.settles());
    const std::string prose = w.picture().prose;
    INFO(prose);
    CHECK(prose.find("unknown") == std::string::npos);
    CHECK(prose.find("…") == std::string::npos);
    CHECK(w.window.error_bar().isHidden());
    if (i + 1 < steps) w.press(Qt::Key_N);
  }
  // A list of words cannot read it.
  w.window.leave_lesson();
  w.window.open_shipped(default_run().checkpoint);
  REQUIRE(QTest::qWaitFor([&] { return navigator.checkpoint() == default_run().checkpoint && navigator.is_current(); }, 60'000));
  w.window.open_lesson(find_lesson("real"));
  REQUIRE(w.settles());
  CHECK(navigator.checkpoint().stem() == "prose-sse-gla-n4k1");
}

TEST_CASE("lessons: one that is left gives back the run and the place before it; its end leads to the next") {
  LessonWindow w;
  const std::filesystem::path own = assets_folder() / "checkpoints/niah/niah-sse-gla-n4k1.h5";
  w.window.open_shipped(own);
  Navigator& navigator = w.window.navigator();
  const auto own_stands = [&] {
    return navigator.run() && !navigator.is_opening() && navigator.checkpoint() == own && navigator.is_current();
  };
  REQUIRE(QTest::qWaitFor(own_stands, 60'000));
  w.window.go_to_token(77);
  const std::vector<std::string> views = w.window.stage().arrangement().views;
  w.window.open_lesson(shipped_lessons()[0]);
  REQUIRE(w.settles());
  CHECK(navigator.checkpoint() != own);
  const std::size_t steps = w.lesson().lesson()->steps.size();
  while (!w.lesson().is_at_end()) {
    w.press(Qt::Key_N);
    REQUIRE(w.settles());
  }
  CHECK(w.lesson().index() == steps - 1);
  w.press(Qt::Key_PageDown);  // a remote stays in its lesson
  CHECK(w.lesson().lesson()->file == shipped_lessons()[0]);
  w.press(Qt::Key_N);
  REQUIRE(w.settles());
  CHECK(w.lesson().lesson()->file == shipped_lessons()[1]);
  w.press(Qt::Key_L, Qt::ControlModifier | Qt::ShiftModifier);
  REQUIRE(QTest::qWaitFor([&] { return own_stands() && navigator.cursor().token == 77; }, 60'000));
  CHECK(w.window.stage().arrangement().views == views);
}

TEST_CASE("lessons: one that is opened again offers to go on where it was left, and its steps say what is done") {
  TestSettings settings;
  const std::filesystem::path file = shipped_lessons()[0];
  std::size_t asked = 0;
  {
    LessonWindow w(&settings.settings);
    w.window.open_lesson(file);
    REQUIRE(w.settles());
    CHECK_FALSE(w.lesson().left_at());
    while (!w.lesson().step().question) {
      w.press(Qt::Key_N);
      REQUIRE(w.settles());
    }
    asked = w.lesson().index();
    REQUIRE(asked > 0);
    w.press(Qt::Key_2, Qt::AltModifier);
    REQUIRE(w.settles());
    w.press(Qt::Key_N);
    REQUIRE(w.settles());
  }
  LessonWindow w(&settings.settings);
  w.window.toggle_lessons();
  const auto* list = w.window.lesson_page().findChild<QListWidget*>();
  CHECK(list->item(0)->text().endsWith(QString("up to step %1 of %2").arg(asked + 2).arg(load_lesson(file).steps.size())));
  w.window.open_lesson(file);
  REQUIRE(w.settles());
  CHECK(w.lesson().index() == 0);
  REQUIRE(w.lesson().left_at() == asked + 1);
  w.lesson().go_on();
  REQUIRE(w.settles());
  CHECK(w.lesson().index() == asked + 1);
  const LessonMarks marks = w.lesson().marks();
  for (std::size_t i = 0; i < marks.steps.size(); ++i) CHECK(marks.steps[i].done == (i <= asked));
  CHECK(marks.steps[asked].predicted == std::size_t{1});
  w.lesson().go_to_step(asked);
  REQUIRE(w.settles());
  CHECK(w.lesson().is_revealed());
  const std::size_t right = w.lesson().right_choice().value();
  const QList<QPushButton*> choices = w.window.lesson_page().findChildren<QPushButton*>("choice");
  const auto begins = [&](const QString& sign) {
    return std::ranges::count_if(choices,
                                 [&](const QPushButton* choice) { return choice->isVisible() && choice->text().startsWith(sign); });
  };
  CHECK(begins("✓") == 1);
  CHECK(begins("✗") == (right == 1 ? 0 : 1));
  w.lesson().go_to_step(0);
  REQUIRE(w.settles());
  CHECK_FALSE(w.lesson().lesson()->steps.empty());
}

TEST_CASE("lessons: what settings keep of one is nothing where it does not fit it") {
  TestSettings settings;
  LessonProgress progress(&settings.settings);
  const Lesson lesson = load_lesson(shipped_lessons()[0]);
  CHECK_FALSE(progress.of(lesson));
  LessonMarks marks{.step = 2, .steps = std::vector<LessonMarks::Step>(lesson.steps.size()), .notes = {{"before", "1"}}};
  progress.keep(lesson, marks);
  REQUIRE(progress.of(lesson));
  CHECK(progress.of(lesson)->step == 2);
  CHECK(progress.of(lesson)->notes == marks.notes);
  const QString key = settings.settings.allKeys().front(), kept = settings.settings.value(key).toString();
  for (const QString& damaged : {QString("{}"), QString("no"), QString(kept).replace("\"step\":2", "\"step\":200"), kept.chopped(3),
                                 QString(kept).replace("\"step\":2", "\"step\":\"x\"")}) {
    settings.settings.setValue(key, damaged);
    INFO(damaged.toStdString());
    CHECK_FALSE(progress.of(lesson));
  }
  for (LessonMarks::Step& step : marks.steps) step.done = true;
  progress.keep(lesson, marks);
  CHECK(progress.words(lesson.file) == "✓ done");
  CHECK(LessonProgress(nullptr).words(lesson.file).isEmpty());
}

TEST_CASE("lessons: the teacher's window has the text, the run's answer and what comes next; the class sees pictures and questions") {
  LessonWindow w;
  w.window.open_lesson(shipped_lessons()[0]);
  REQUIRE(w.settles());
  while (!w.lesson().step().question) {
    w.press(Qt::Key_N);
    REQUIRE(w.settles());
  }
  const auto prose_of = [](const QWidget& in) {
    QStringList texts;
    for (const QLabel* label : in.findChildren<QLabel*>("prose"))
      if (label->isVisibleTo(&in)) texts += label->text();
    return texts.join(' ');
  };
  const auto words_of = [](const QWidget& in) {
    QStringList texts;
    for (const QLabel* label : in.findChildren<QLabel*>())
      if (label->isVisibleTo(&in)) texts += label->text();
    return texts.join('\n');
  };
  w.press(Qt::Key_F2, Qt::ShiftModifier);
  QWidget& teacher = w.window.teacher();
  REQUIRE(teacher.isVisible());
  REQUIRE(QTest::qWaitForWindowExposed(&teacher));
  CHECK_FALSE(prose_of(w.window.lesson_page()).isEmpty());
  w.window.toggle_presenter();
  CHECK(prose_of(w.window.lesson_page()).isEmpty());
  CHECK(words_of(w.window.lesson_page()).contains(QString::fromStdString(w.lesson().step().question->words)));
  const std::size_t index = w.lesson().index();
  const std::string next = w.lesson().lesson()->steps[index + 1].title;
  CHECK(words_of(teacher).contains("Next: " + QString::fromStdString(next)));
  CHECK(words_of(teacher).contains("in the lesson"));
  CHECK_FALSE(prose_of(teacher).isEmpty());
  teacher.activateWindow();
  REQUIRE(QTest::qWaitForWindowActive(&teacher, 60'000));
  QTest::keyClick(&teacher, Qt::Key_N);  // its keys are the lesson's
  CHECK(w.lesson().is_revealed());
  REQUIRE(w.settles());
  const std::size_t right = w.lesson().right_choice().value();
  CHECK(words_of(teacher).contains("The run’s answer: " + QString::fromStdString(w.lesson().step().question->choices[right].words)));
  QTest::keyClick(&teacher, Qt::Key_PageDown);
  REQUIRE(w.settles());
  CHECK(w.lesson().index() == index + 1);
  teacher.close();
  CHECK_FALSE(prose_of(w.window.lesson_page()).isEmpty());
  CHECK_FALSE(w.window.action("teacher")->isChecked());
}

TEST_CASE("lessons: Esc says how to leave one") {
  LessonWindow w;
  w.window.open_lesson(shipped_lessons()[0]);
  REQUIRE(w.settles());
  w.press(Qt::Key_Escape);
  CHECK(w.lesson().lesson());
  CHECK(w.window.said() == "Ctrl+Shift+L leaves the lesson");
}

TEST_CASE("lessons: where there is room for one view alone a step shows its first, whichever had the focus") {
  const std::vector<std::filesystem::path> files = shipped_lessons();
  LessonWindow w;
  w.window.set_scale(1.6F);
  for (const std::filesystem::path& file : {files[0], files[1]}) {
    w.press(Qt::Key_F6);
    w.window.open_lesson(file);
    const std::size_t steps = w.lesson().lesson()->steps.size();
    for (std::size_t i = 0; i < steps; ++i) {
      INFO(file.filename().string() << ", step " << i + 1);
      REQUIRE(w.settles());
      const Stage& stage = w.window.stage();
      CHECK(stage.panels().front()->isVisible());
      CHECK(std::ranges::count_if(stage.panels(), &ViewPanel::isVisible) == 1);
      CHECK(&w.window.focused_panel() == stage.panels().front());
      w.lesson().next();
      if (w.lesson().index() == i) w.lesson().next();
    }
  }
}

TEST_CASE("lessons: in a low window with large type the text has the page, and the buttons follow it") {
  LessonWindow w;
  w.window.open_lesson(shipped_lessons()[1]);
  REQUIRE(w.settles());
  w.lesson().next();
  REQUIRE(w.settles());
  const QList<QScrollArea*> areas = w.window.findChildren<QScrollArea*>();
  const auto found = std::ranges::find(areas, "Text of the step", &QScrollArea::accessibleName);
  REQUIRE(found != areas.end());
  const QScrollArea* const scroll = *found;
  const auto next_scrolls = [&] {
    const QList<QPushButton*> buttons = scroll->widget()->findChildren<QPushButton*>();
    return std::ranges::any_of(buttons, [](const QPushButton* button) { return button->text().startsWith("Next"); });
  };
  const auto leaves = [&] {
    const QList<QToolButton*> buttons = w.window.findChildren<QToolButton*>();
    return std::ranges::any_of(buttons,
                               [](const QToolButton* button) { return button->isVisible() && button->text() == "Leave the lesson"; });
  };
  const auto lines = [&] { return scroll->viewport()->height() / scroll->fontMetrics().lineSpacing(); };
  QPushButton* next = nullptr;
  for (QPushButton* button : w.window.findChildren<QPushButton*>())
    if (button->text().startsWith("Next")) next = button;
  REQUIRE(next);
  next->setFocus();
  CHECK_FALSE(next_scrolls());
  w.window.set_scale(3);
  CHECK(QTest::qWaitFor([&] { return next_scrolls() && leaves() && lines() >= 4; }));
  CHECK(next->hasFocus());
  w.window.set_scale(1);
  CHECK(QTest::qWaitFor([&] { return !next_scrolls() && leaves() && lines() >= 20; }));
  CHECK(next->hasFocus());
}

TEST_CASE("lessons: the reader may go anywhere and comes back; leaving gives back the stage as it was") {
  LessonWindow w;
  const Arrangement before = w.window.stage().arrangement();
  w.press(Qt::Key_F2);
  CHECK(w.window.lesson_page().isVisible());
  QTest::keyClick(QApplication::focusWidget(), Qt::Key_Return);
  REQUIRE(w.settles());
  const Picture first = w.picture();
  w.press(Qt::Key_Right);
  w.press(Qt::Key_Up);
  w.press(Qt::Key_4, Qt::ControlModifier);
  CHECK_FALSE(w.lesson().is_at_picture());
  w.press(Qt::Key_H);
  REQUIRE(w.settles());
  CHECK(w.lesson().is_at_picture());
  CHECK(w.picture() == first);
  w.press(Qt::Key_P);
  CHECK(w.lesson().index() == 0);
  w.press(Qt::Key_L, Qt::ControlModifier | Qt::ShiftModifier);
  CHECK_FALSE(w.lesson().lesson());
  CHECK(w.window.stage().arrangement() == before);
  w.press(Qt::Key_F2);
  CHECK_FALSE(w.window.lesson_page().isVisible());
}

TEST_CASE("lessons: a number of the model beside is the one that the same model has alone") {
  QTemporaryDir folder;
  const std::filesystem::path file = folder.filePath("beside.md").toStdString();
  std::ofstream(file) << "---\ntitle: Beside\ncheckpoint: niah-gla.h5\nprompt: crowded.json\nviews: state\nlayer: 3\n---\n"
                         "## Alone\ntoken: question.last\nnote: said = answer\nnote: lost = lost_to_overwriting\nnote: size = norm\n\nx\n"
                         "## Beside\ncheckpoint: niah-sse-gla-n4k1.h5\nbeside: niah-gla.h5\n"
                         "holds: verdict [= right]\nholds: verdict of=beside [= wrong]\n\n"
                         "{said} {answer of=beside}, {lost} {lost_to_overwriting of=beside}, {size} {norm of=beside}.\n\n"
                         "predict: Does it stand still?\n- no [.. 1]\n- yes [1 ..]\nanswer: resting of=beside\n";
  std::filesystem::copy(assets_folder() / "lessons/crowded.json", file.parent_path() / "crowded.json");
  LessonWindow w;
  w.window.open_lesson(file);
  REQUIRE(w.settles());
  w.press(Qt::Key_N);
  REQUIRE(w.settles());
  const std::string said = w.lesson().filled(w.lesson().step().prose);
  INFO(said);
  std::vector<std::string> pairs;
  std::istringstream parts(said);
  for (std::string part; std::getline(parts, part, ',');) pairs.push_back(part);
  REQUIRE(pairs.size() == 3);
  for (std::string pair : pairs) {
    pair = pair.substr(pair.find_first_not_of(" \n"), pair.find_last_not_of(" .\n") + 1 - pair.find_first_not_of(" \n"));
    CHECK(pair.substr(0, pair.size() / 2) == pair.substr(pair.size() / 2 + 1));
  }
  w.press(Qt::Key_1, Qt::AltModifier);
  REQUIRE(w.settles());
  CHECK(w.lesson().right_choice() == std::size_t{0});
  CHECK(w.lesson().broken_claims() == std::vector<std::string>{});
  w.window.stop_comparing();
  w.press(Qt::Key_P);
  REQUIRE(w.settles());
}

TEST_CASE("lessons: a step may open a second model beside the first; leaving closes it and shows differences again") {
  LessonWindow w;
  w.window.open_lesson(find_lesson("routing"));
  REQUIRE(w.settles());
  const std::vector<LessonStep>& steps = w.lesson().lesson()->steps;
  const auto beside = std::ranges::find_if(steps, [](const LessonStep& step) { return !step.picture.beside.empty(); }) - steps.begin();
  while (static_cast<std::ptrdiff_t>(w.lesson().index()) < beside) {
    w.press(Qt::Key_N);
    REQUIRE(w.settles());
  }
  const Comparison& comparison = w.window.comparison();
  REQUIRE(comparison.peers().size() == 1);
  const auto stands = [&] { return comparison.is_settled() && comparison.peers().front()->navigator().run(); };
  REQUIRE(QTest::qWaitFor(stands, long_enough_ms));
  CHECK(comparison.peers().front()->navigator().run()->model.name == "niah-gla");
  CHECK(comparison.peers().front()->navigator().cursor().token == w.window.navigator().cursor().token);
  CHECK_FALSE(w.window.rows().is_difference_shown());
  w.window.stop_comparing();
  CHECK_FALSE(w.lesson().is_at_picture());
  w.press(Qt::Key_H);
  CHECK(w.lesson().is_at_picture());
  CHECK(comparison.is_on());
  w.press(Qt::Key_L, Qt::ControlModifier | Qt::ShiftModifier);
  CHECK_FALSE(comparison.is_on());
  CHECK(w.window.rows().is_difference_shown());
}

}  // namespace statescope::lesson_player_test

// What stands where nothing is open: what can be opened, found by typing, by keyboard alone.
#include "app/start/start_page.h"

#include <QAccessible>
#include <fstream>

#include "app/assets.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"

namespace statescope::start_page_test {
namespace {

QTreeWidget& tree_of(TestWindow& test) { return *test.window.start().findChild<QTreeWidget*>(); }

QStringList shown(TestWindow& test) {
  QStringList names;
  for (int shelf = 0; shelf < tree_of(test).topLevelItemCount(); ++shelf) {
    const QTreeWidgetItem* title = tree_of(test).topLevelItem(shelf);
    for (int row = 0; row < title->childCount(); ++row)
      if (!title->isHidden() && !title->child(row)->isHidden()) names += title->child(row)->text(0);
  }
  return names;
}

QString marked(TestWindow& test) { return tree_of(test).currentItem() ? tree_of(test).currentItem()->text(0) : QString(); }

}  // namespace

TEST_CASE("start page: lessons, models and prompts that ship are listed, the keyboard finds and opens them") {
  TestWindow test;
  REQUIRE(test.window.start().isVisible());
  const QStringList all = shown(test);
  for (const auto& paths : {shipped_checkpoints(), shipped_prompts()})
    for (const std::filesystem::path& path : paths) CHECK(all.contains(QString::fromStdString(path.stem().string())));
  CHECK(all.contains("Why a fixed state forgets"));
  test.window.start().begin();
  TestWindow::type("niah-gated");
  CHECK(marked(test) == "niah-gated-deltanet");
  CHECK(shown(test).size() < 5);
  TestWindow::type_key(Qt::Key_Escape);
  CHECK(shown(test).size() == all.size());
  TestWindow::type("zzzz");
  CHECK(shown(test).isEmpty());
  TestWindow::type_key(Qt::Key_Return);  // there is nothing to open
  CHECK(test.window.start().isVisible());
  TestWindow::type_key(Qt::Key_Escape);
  TestWindow::type("niah-gated-deltanet");
  TestWindow::type_key(Qt::Key_Return);
  CHECK_FALSE(test.window.start().isVisible());
  CHECK(test.source.opened.stem() == "niah-gated-deltanet");
}

TEST_CASE("start page: the whole name is marked first, then what begins so, of those the first of the list") {
  TestWindow test;
  test.window.start().begin();
  for (const auto& [typed, expected] : {std::pair("niah-sse", "niah-sse-gla-n4k1"), std::pair("niah-sse-h", "niah-sse-h-n4k1"),
                                        std::pair("mqar-gla", "mqar-gla"), std::pair("prose", "prose")}) {
    TestWindow::type_key(Qt::Key_Escape);
    TestWindow::type(typed);
    CHECK(marked(test) == expected);
  }
}

TEST_CASE("start page: what is typed is sought, whatever has the keyboard") {
  TestWindow test;
  for (QWidget* widget : std::initializer_list<QWidget*>{test.window.start().findChild<QPushButton*>(), &tree_of(test)}) {
    test.window.start().begin();
    TestWindow::type_key(Qt::Key_Escape);
    widget->setFocus();
    TestWindow::type("n");  // a command of the window's elsewhere
    TestWindow::type("iah-gated");
    CHECK(marked(test) == "niah-gated-deltanet");
    CHECK(test.window.start().isVisible());
  }
}

TEST_CASE("start page: a prompt without a model is read by a shipped one, a text by one that reads any") {
  CHECK(reader_of(default_run().prompt) == default_run().checkpoint);
  CHECK(reader_of(assets_folder() / "prompts/prose.json").stem() == "prose-sse-gla-n4k1");
  CHECK(reader_of("my.txt").stem() == "prose-sse-gla-n4k1");
  TestWindow test;
  test.window.start().begin();
  TestWindow::type("needles-512");
  TestWindow::type_key(Qt::Key_Return);
  CHECK(test.source.opened == default_run().checkpoint);
}

TEST_CASE("start page: each model says what it is for, from its own file, its scores and the lessons") {
  const std::vector<std::filesystem::path> models = {assets_folder() / "checkpoints/niah/niah-sse-gla-n4k1.h5",
                                                     assets_folder() / "checkpoints/mqar/mqar-transformer.h5"};
  std::vector<std::string> said;
  tell_about_models(models, [&](const std::filesystem::path&, const QString& about) {
    said.push_back(about.toStdString());
    return true;
  });
  REQUIRE(said.size() == 2);
  CHECK(said[0].find("4 partitions") != std::string::npos);
  CHECK(said[0].find("% right with 4 needles in 256 words") != std::string::npos);
  CHECK(said[0].find("What routing saves") != std::string::npos);
  CHECK(said[1].find("softmax attention") != std::string::npos);
  CHECK(said[1].find("pairs") != std::string::npos);
}

TEST_CASE("start page: hints go once something has been opened from it; recent files stand first") {
  TestSettings kept;
  const auto hints = [](TestWindow& test) {
    for (const QLabel* label : test.window.start().findChildren<QLabel*>())
      if (label->text().startsWith("Type here")) return label->isVisibleTo(&test.window.start());
    return false;
  };
  {
    TestWindow test(false, {1280, 720}, &kept.settings);
    CHECK(hints(test));
    test.window.start().begin();
    TestWindow::type("niah-mom");
    TestWindow::type_key(Qt::Key_Return);
    test.source.stand(fake_run(16));
    QTest::qWait(1);
    CHECK(test.window.focused_panel().surface().hasFocus());
    test.press(Qt::Key_Home, Qt::AltModifier);  // and back
    CHECK(test.window.start().isVisible());
    CHECK_FALSE(hints(test));
    CHECK(shown(test).front() == "niah-mom.h5");
    TestWindow::type_key(Qt::Key_Escape);
    CHECK_FALSE(test.window.start().isVisible());
    CHECK(test.window.focused_panel().surface().hasFocus());
  }
  TestWindow test(false, {1280, 720}, &kept.settings);
  CHECK_FALSE(hints(test));
}

}  // namespace statescope::start_page_test

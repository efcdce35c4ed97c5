// A training watched beside the window: its steps come, are drawn and told, and any of them opens.
#include "app/pages/training_page.h"

#include <QAccessible>
#include <QSignalSpy>
#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include "app/assets.h"
#include "app/inspect/figures.h"
#include "app/inspect/inspecting.h"
#include "engine/error.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"
#include "tests/source.h"
#include "tests/temporary_folder.h"

namespace statescope::training_test {
namespace {

namespace fs = std::filesystem;

/// A report without a checkpoint: ill from step 300 on.
Inspected made_up(const FoundCheckpoint& found) {
  LayerReport layer{
      .mixer = "sse", .residual_norm = 1, .norm_by_eighth = {1, 1, 1, 2, 2, 2, 2, 5}, .heads = {}, .slots = {}, .routing = {}};
  layer.full_rank = 4;
  layer.heads.emplace_back().stacked.rank = 2;
  layer.heads_read_effect = layer.heads_norm = layer.heads_likeness = layer.heads_same_reads = {0.1};
  layer.routing.emplace().load_entropy = found.steps < 300 ? 0.9 : 0.1;
  Inspected one{.checkpoint = found.path, .steps = found.steps, .names = {"niah"}, .sequences = {}};
  one.sequences.push_back(
      {.tokens = 64, .nll_by_eighth = std::vector<double>(8, std::log(1000.0 / static_cast<double>(found.steps))), .layers = {layer}});
  one.reread = {"--example 64"};
  if (found.steps >= 300)
    one.judgement.diagnoses.push_back(
        {.illness = Illness::routing_collapse, .layers = {1}, .heads = {}, .evidence = {{"layer", 1.0}}, .sentence = "Tokens crowd."});
  return one;
}

/// A training's folder; every file has other bytes.
struct Folder {
  test::TemporaryFolder folder;
  void write(std::int64_t step) const {
    const char* const bytes = step == 100 ? "mqar-gla" : step == 200 ? "mqar-retnet" : "mqar-gated-deltanet";
    fs::copy_file(shipped_checkpoint(bytes), folder / ("gla-step" + std::to_string(step) + ".h5"));
  }
};

/// A window whose inspections the test answers.
struct TrainingWindow {
  FakeSource source;
  std::atomic<int> reads = 0, cancelled = 0;
  std::atomic<bool> hold = false;
  MainWindow window{(test_application(), source),
                    {.opengl = false,
                     .start_words = "test",
                     .theme = ThemeChoice::light,
                     .scale = 1,
                     .settings = nullptr,
                     .autoplay = false,
                     .inspect = [this](const FoundCheckpoint& found, const TrainingWatch::Tell& tell) {
                       ++reads;
                       while (hold) {
                         if (!tell(0.5)) {
                           ++cancelled;
                           throw Cancelled();
                         }
                         std::this_thread::sleep_for(std::chrono::milliseconds(5));
                       }
                       return made_up(found);
                     }}};

  TrainingWindow() {
    window.resize(1280, 720);
    window.show();
    window.activateWindow();
    QTest::qWait(1);
  }
  TrainingPage& page() { return window.training(); }
  TrainingWatch& watch() { return page().watch(); }
  bool wait_for_steps(std::size_t count) {
    return QTest::qWaitFor([&] { return watch().steps().size() == count; }, long_enough_ms);
  }
  QString cell(int row, int column) { return page().table().model()->index(row, column).data().toString(); }
  QString label(const char* name) {
    for (const QLabel* each : page().findChildren<QLabel*>())
      if (each->accessibleName() == name) return each->isVisibleTo(&page()) ? each->text() : QString();
    return "?";
  }
};

}  // namespace

TEST_CASE("training: steps come as they are written, in their order, with verdicts, numbers of the page and a sentence for the reader") {
  const Folder folder;
  TrainingWindow test;
  folder.write(200);
  folder.write(100);
  test.window.watch_training(folder.folder.path());
  CHECK(test.window.side().page() == SidePage::training);
  REQUIRE(test.wait_for_steps(2));
  CHECK((test.cell(0, 1) == "100" && test.cell(1, 1) == "200"));
  CHECK((test.cell(0, 2) == "healthy" && test.cell(0, 3) == "10" && test.cell(0, 4) == "0.50" && test.cell(0, 5) == "0.90" &&
         test.cell(0, 6) == "2.50"));
  folder.write(300);
  REQUIRE(test.wait_for_steps(3));
  CHECK(test.cell(2, 2) == "▲ ill: routing collapse, layer 1");
  CHECK(test.window.said() == "gla-step300: ill: routing collapse, layer 1");
  const auto* plots = test.page().findChild<TrainingPlots*>();
  REQUIRE(plots);
  CHECK(plots->accessibleDescription().startsWith(
      "3 checkpoints, 1 of them ill. Perplexity: from 10 to 3.33. Relative rank: from 0.50 to 0.50."));
  CHECK(test.reads == 3);
  CHECK(QTest::qWaitFor([&] { return test.label("What the watch does").contains("Everything has been read"); }, long_enough_ms));
}

TEST_CASE("training: Enter, a click on a row and a click on a point open the step, on one prompt, at the layer of its illness") {
  const Folder folder;
  TrainingWindow test;
  for (const int step : {100, 200, 300}) folder.write(step);
  test.window.watch_training(folder.folder.path());
  REQUIRE(test.wait_for_steps(3));
  QTableView& table = test.page().table();
  table.setFocus();
  table.setCurrentIndex(table.model()->index(0, 0));
  CHECK(test.label("What was found in the chosen checkpoint").startsWith("None of "));
  QTest::keyClick(&table, Qt::Key_Return);
  CHECK(test.source.opened == folder.folder / "gla-step100.h5");
  test.source.stand(fake_run(64));
  const std::string prompt = test.source.read_prompt.text;
  CHECK_FALSE(prompt.empty());  // of what it was trained on
  QTest::mouseClick(table.viewport(), Qt::LeftButton, {}, table.visualRect(table.model()->index(2, 1)).center());
  CHECK(test.source.opened == folder.folder / "gla-step300.h5");
  CHECK(test.source.read_prompt.text == prompt);
  CHECK(test.label("What was found in the chosen checkpoint") == "routing collapse: Tokens crowd.");
  test.source.stand(fake_run(64));
  QTest::qWait(1);
  CHECK(test.window.navigator().cursor().layer == 1);

  auto* plots = test.page().findChild<TrainingPlots*>();
  QSignalSpy chosen(plots, &TrainingPlots::chosen);
  for (int x = 0; x < plots->width() / 2 && chosen.isEmpty(); x += 4) {  // the first point from the left is that of step 100
    for (int y = 0; y < plots->height() / 2 && chosen.isEmpty(); y += 4) QTest::mouseClick(plots, Qt::LeftButton, {}, {x, y});
  }
  REQUIRE(chosen.size() == 1);
  CHECK(chosen[0][0].toInt() == 0);
  CHECK(test.source.opened == folder.folder / "gla-step100.h5");
}

TEST_CASE("training: while a checkpoint is read the window answers; stopping drops that one, going on reads it and none twice") {
  const Folder folder;
  TrainingWindow test;
  folder.write(100);
  test.window.watch_training(folder.folder.path());
  REQUIRE(test.wait_for_steps(1));
  test.hold = true;
  folder.write(200);
  REQUIRE(QTest::qWaitFor([&] { return test.label("What the watch does") == "Reading gla-step200.h5: 50 %"; }, long_enough_ms));
  auto* stop = test.page().findChildren<QPushButton*>().front();
  CHECK(stop->text() == "Stop");
  QTest::keyClick(stop, Qt::Key_Space);
  CHECK_FALSE(test.watch().is_watching());
  REQUIRE(QTest::qWaitFor([&] { return test.cancelled == 1; }, long_enough_ms));
  CHECK(test.label("Checkpoints that could not be read").isEmpty());
  CHECK(stop->text() == "Go on");
  test.hold = false;
  stop->click();
  REQUIRE(test.wait_for_steps(2));
  CHECK(test.reads == 3);  // 100, 200 in vain, 200
}

TEST_CASE("training: what cannot be read is named once; another folder takes the place of the first; a file is no folder") {
  const Folder folder, other;
  TrainingWindow test;
  std::ofstream(folder.folder / "broken-step7.h5") << "no HDF5";
  fs::create_directories(folder.folder / "checkpoint-9");
  folder.write(100);
  test.window.watch_training(folder.folder.path());
  REQUIRE(test.wait_for_steps(1));
  REQUIRE(QTest::qWaitFor([&] { return test.label("Checkpoints that could not be read").count('\n') == 2; }, long_enough_ms));
  const QString skipped = test.label("Checkpoints that could not be read");
  CHECK(skipped.contains("broken-step7.h5"));
  CHECK(skipped.contains("checkpoint-9: no config.json yet"));
  other.write(200);
  test.window.watch_training(other.folder.path());
  REQUIRE(QTest::qWaitFor([&] { return test.watch().steps().size() == 1 && test.watch().steps()[0].steps == 200; }, long_enough_ms));
  CHECK(test.label("Checkpoints that could not be read").isEmpty());
  test.window.watch_training(other.folder / "gla-step200.h5");
  CHECK(test.window.error_bar().message().endsWith("gla-step200.h5 is not a folder"));
  CHECK(test.watch().folder() == other.folder.path());
}

TEST_CASE("training: the window's numbers are those of the page, for the shipped trajectory") {
  const test::TemporaryFolder folder;
  for (const char* name : {"niah-sse-gla-n4k1-step1667.h5", "niah-sse-gla-n4k1-step8333.h5"})
    fs::copy_file(from_source("assets/checkpoints/trajectories/") + name, folder / name);
  InspectArguments arguments;
  arguments.lengths = {64, 128};
  arguments.samples = 1;
  const auto inspect = [&](const FoundCheckpoint& found, const TrainingWatch::Tell& tell) {
    return inspect_checkpoint(arguments, found, tell);
  };
  test_application();
  TrainingWatch watch(inspect, {}, 0.1);
  watch.start(folder.path());
  REQUIRE(QTest::qWaitFor([&] { return watch.steps().size() == 2; }, long_enough_ms));
  const FoundCheckpoints found = find_checkpoints({folder.path().string()});
  for (std::size_t i = 0; i < 2; ++i) {
    const InspectionOverview page(inspect_checkpoint(arguments, found.checkpoints[i], [](double) { return true; }));
    const TrainingStep& step = watch.steps()[i];
    CHECK((step.name == page.name && step.steps == page.steps && step.verdict == page.verdict && step.series == "niah-sse-gla-n4k1"));
    CHECK(step.values[0] == Approx(page.ends.back().perplexity));
    CHECK((step.values[1] == Approx(page.rank) && step.values[2] == Approx(page.spread) && step.values[3] == Approx(page.growth)));
  }
}

}  // namespace statescope::training_test

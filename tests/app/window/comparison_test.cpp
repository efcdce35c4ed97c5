// Several models under one cursor: how their tokens stand to each other, rows, chips, what is different.
#include <fmt/format.h>

#include <QDropEvent>
#include <QMimeData>

#include "app/assets.h"
#include "app/canvas/text_canvas.h"
#include "app/cli/commands.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"

namespace statescope::comparison_test {
namespace {

RunInfo run_of(const std::vector<std::string>& prompt, const std::vector<std::string>& generated = {}) {
  RunInfo run;
  for (const std::vector<std::string>* words : {&prompt, &generated}) {
    for (const std::string& word : *words) run.tokens.push_back({static_cast<std::int32_t>(word.size()), word});
  }
  run.prompt_length = std::ssize(prompt);
  return run;
}

using Map = std::vector<std::int64_t>;

/// A window on a run of 64 tokens; the sources of further models answer when the test says so.
struct ComparingWindow {
  explicit ComparingWindow(QSize size = {1400, 900})
      : window((test_application(), source),
               {.opengl = false, .start_words = "test", .theme = ThemeChoice::light, .scale = 1, .autoplay = false, .make_source = [this] {
                  auto made = std::make_unique<FakeSource>();
                  peers.push_back(made.get());
                  return made;
                }}) {
    window.resize(size);
    window.show();
    window.activateWindow();
    window.open_checkpoint("own.h5", {});
    source.stand(fake_run(64, "own"));
    QTest::qWait(1);
  }
  FakeSource& compare(const std::filesystem::path& path, std::shared_ptr<const RunInfo> run = fake_run(64, "other")) {
    window.compare_with(path);
    if (run) peers.back()->stand(std::move(run));
    QTest::qWait(1);
    return *peers.back();
  }
  void press(int key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) { QTest::keyClick(&window, static_cast<Qt::Key>(key), modifiers); }
  const PeerRun& peer(std::size_t i = 0) { return *window.comparison().peers()[i]; }

  FakeSource source;
  std::vector<FakeSource*> peers;
  MainWindow window;
};

std::vector<std::string> views_of(const Stage& stage) {
  std::vector<std::string> ids;
  for (const ViewPanel* panel : stage.panels()) ids.push_back(std::string(panel->row().id) + ":" + std::to_string(panel->view().mode()));
  return ids;
}

}  // namespace

TEST_CASE("the same tokens stand for each other, and what each model wrote by its number", "[peers]") {
  const Alignment same = align(run_of({"a", " b", " c"}, {" d", " e"}), run_of({"a", " b", " c"}, {" f"}));
  CHECK(same.refused.empty());
  CHECK(same.same_until == 3);
  CHECK_FALSE(same.is_identical());
  CHECK(same.other == Map{0, 1, 2, 3, 3});
  CHECK(same.own == Map{0, 1, 2, 3});
}

TEST_CASE("other tokens of the same text stand where the same characters end", "[peers]") {
  const Alignment split = align(run_of({"the", " code"}, {" 7"}), run_of({"t", "h", "e", " ", "co", "de"}, {"7", "."}));
  CHECK(split.refused.empty());
  CHECK(split.same_until == 0);
  CHECK(split.other == Map{2, 5, 6});
  CHECK(split.own == Map{0, 0, 0, 0, 1, 1, 2, 2});
}

TEST_CASE("models that have read other texts cannot be under one cursor", "[peers]") {
  CHECK_FALSE(align(run_of({"a", " b"}), run_of({"a", " c."})).refused.empty());
  CHECK_FALSE(align(run_of({}), run_of({"a"})).refused.empty());
}

TEST_CASE("a second model reads the same prompt, follows the cursor and shows the same views", "[peers]") {
  ComparingWindow test;
  test.window.go_to_token(7);
  FakeSource& other = test.compare("other.h5");
  CHECK(other.opened == "other.h5");
  CHECK(test.peer().navigator().cursor().token == 7);
  REQUIRE(test.window.rows().peer_stages().size() == 1);
  const Stage& below = *test.window.rows().peer_stages().front();
  CHECK(views_of(below) == views_of(test.window.stage()));

  test.press(Qt::Key_Right);
  test.press(Qt::Key_Up);
  CHECK(test.peer().navigator().cursor().token == 8);
  CHECK(test.peer().navigator().cursor().layer == 1);
  CHECK(test.peer().navigator().is_current());
  test.press(Qt::Key_M);
  test.press(Qt::Key_A);
  CHECK(views_of(below) == views_of(test.window.stage()));
  CHECK(below.panels().size() == 3);

  ViewPanel& panel = *below.panels().front();
  panel.set_view(*find_view("spectrum"));  // in any row
  CHECK(test.window.stage().panels().front()->row().id == "spectrum");

  test.window.stop_comparing();
  CHECK(test.window.rows().peer_stages().empty());
  CHECK(test.window.rows().difference() == nullptr);
  QTest::qWait(1);
  test.press(Qt::Key_Right);
  CHECK(test.window.navigator().cursor().token == 9);
}

TEST_CASE("a model that lacks what the opening views show gets views that both have, until it goes", "[peers]") {
  ComparingWindow test;
  const auto open = [&test] { return test.window.stage().arrangement().views; };
  const std::vector<std::string> alone = open();
  RunInfo softmax = *fake_run(64, "softmax");
  for (LayerInfo& layer : softmax.model.layers) layer.slot_names.clear();
  test.compare("softmax.h5", std::make_shared<const RunInfo>(std::move(softmax)));
  CHECK(open() == std::vector<std::string>{"attention", "predictions"});
  CHECK(views_of(*test.window.rows().difference()) == std::vector<std::string>{"predictions:2"});
  CHECK(test.window.stage().focused_panel().surface().hasFocus());
  test.window.stop_comparing();
  CHECK(open() == alone);
  test.window.show_view(*find_view("timeline"));
  const std::vector<std::string> own = open();
  test.compare("other.h5");
  CHECK(open() == own);
}

TEST_CASE("a click in another model's row moves the one cursor", "[peers]") {
  ComparingWindow test;
  test.compare("other.h5");
  PeerRun& peer = *test.window.comparison().peers().front();
  peer.navigator().move({.token = 20, .slot = 3});
  CHECK(test.window.navigator().cursor().token == 20);
  CHECK(test.window.navigator().cursor().slot == 3);
  peer.navigator().point_at(4, 5);
  CHECK(test.window.navigator().cursor().row == 4);
  CHECK(peer.navigator().cursor().row == 4);
}

TEST_CASE("a partition that only the other model has is chosen there alone, until the cursor's changes", "[peers]") {
  ComparingWindow test;
  RunInfo many = *fake_run(64, "many");
  for (const char* name : {"5", "6", "7", "8"}) many.model.layers[0].slot_names.emplace_back(name);
  many.model.layers[0].partitions = 8;
  test.compare("many.h5", std::make_shared<const RunInfo>(many));
  PeerRun& peer = *test.window.comparison().peers().front();
  peer.navigator().move({.slot = 7});
  CHECK(peer.navigator().cursor().slot == 7);
  CHECK(test.window.navigator().cursor().slot == 4);
  test.press(Qt::Key_Right);
  CHECK(peer.navigator().cursor().slot == 7);
  test.window.choose_slot("2");
  CHECK(peer.navigator().cursor().slot == 2);
}

TEST_CASE("the text has a lane for each of the models, at the lowest place too, and keeps it while one is on its way", "[peers]") {
  ComparingWindow test({1400, 600});
  const auto lanes = [&] {
    const std::vector<std::string> columns = test.window.strip().view().table().columns;
    return std::vector(columns.begin() + 4, columns.end());
  };
  for (const char* path : {"b.h5", "c.h5", "d.h5"}) test.compare(path);
  const std::vector<std::string> all = {"partition A", "partition B", "partition C", "partition D"};
  CHECK(lanes() == all);
  CHECK(test.window.strip().view().tooltip({0, 0}).find("\npartition D = 1") != std::string::npos);
  for (FakeSource* peer : test.peers) peer->at_once = false;
  test.press(Qt::Key_Right);
  CHECK(lanes() == all);
  const auto says = [&](const char* text) {
    TextCanvas canvas(
        {static_cast<float>(test.window.strip().surface().width()), static_cast<float>(test.window.strip().surface().height())});
    test.window.strip().view().draw(canvas, {0, 0, canvas.size().w, canvas.size().h}, {light_theme(), 1});
    return std::ranges::any_of(canvas.texts(),
                               [&](const TextCanvas::Placed& placed) { return placed.text.find(text) != std::string::npos; });
  };
  CHECK(says("partition D"));
  CHECK_FALSE(says("no room"));
  test.window.stop_comparing();
  CHECK(lanes() == std::vector<std::string>{"partition"});
}

TEST_CASE("answers to an earlier place are dropped in every row", "[peers]") {
  ComparingWindow test;
  FakeSource& other = test.compare("other.h5");
  other.at_once = false;
  test.press(Qt::Key_Right);
  REQUIRE(other.requests.size() == 1);
  const FakeSource::Request late = other.requests.front();
  test.press(Qt::Key_Right);
  other.answer(late);
  CHECK_FALSE(test.peer().navigator().is_current());
  CHECK(test.window.navigator().is_current());
  CHECK_FALSE(test.window.comparison().is_settled());
  CHECK_FALSE(test.window.navigator().peer()->snapshot);
  other.answer_all();
  CHECK(test.window.comparison().is_settled());
  CHECK(test.window.navigator().peer()->snapshot->token == 2);
}

TEST_CASE("the difference of two models is the subtraction of their states", "[peers]") {
  ComparingWindow test;
  test.compare("other.h5");
  test.window.go_to_token(9);
  ViewPanel& panel = *test.window.rows().difference()->panels().front();
  REQUIRE(panel.row().id == "state");
  CHECK(panel.view().compares());
  CHECK(panel.view().describe().find("A − B") != std::string::npos);
  const Table table = panel.view().table();
  for (const std::vector<std::string>& row : table.rows)
    for (std::size_t c = 1; c < row.size(); ++c) CHECK((row[c] == "0" || row[c].empty()));  // the same made-up states in both
}

TEST_CASE("a model that cannot be opened says so in its row, and the rest goes on", "[peers]") {
  ComparingWindow test;
  test.compare("broken.h5", nullptr);
  test.peers.back()->opening.failed(Error("broken.h5 is not an HDF5 file"));
  CHECK(test.peer().problem() == "broken.h5 is not an HDF5 file");
  CHECK(test.window.comparison().is_settled());
  CHECK_FALSE(test.window.error_bar().isVisible());
  test.compare("other.h5");
  CHECK(test.peer(1).letter() == "C");
  test.press(Qt::Key_Right);
  CHECK(test.peer(1).navigator().cursor().token == 1);
  CHECK(test.window.navigator().cursor().token == 1);
}

TEST_CASE("another prompt is read by all, and a model that knows its words comes back", "[peers]") {
  ComparingWindow test;
  FakeSource& other = test.compare("other.h5");
  test.window.navigator().read({.text = "again", .spans = {}, .ids = {}, .expected = {}, .generate = {}});
  test.source.stand(fake_run(32, "own"));
  CHECK(other.read_prompt.text == "again");
  CHECK_FALSE(test.peer().follows());
  other.opening.failed(UnknownWordError("“again” is not among the words"));
  CHECK(test.peer().problem().contains("again"));
  test.window.navigator().read({.text = "the grass", .spans = {}, .ids = {}, .expected = {}, .generate = {}});
  test.source.stand(fake_run(48, "own"));
  other.stand(fake_run(48, "other"));
  CHECK(test.peer().follows());
  CHECK(test.peer().problem().isEmpty());
  CHECK(test.window.navigator().tokens() == 48);
}

TEST_CASE("a checkpoint dropped with Shift, and those dropped after a first one, stand beside it", "[peers]") {
  ComparingWindow test;
  const auto drop = [&](const QStringList& names, Qt::KeyboardModifiers modifiers) {
    QMimeData data;
    QList<QUrl> urls;
    for (const QString& name : names) urls.push_back(QUrl::fromLocalFile("/checkpoints/" + name));
    data.setUrls(urls);
    QDragEnterEvent enter({10, 10}, Qt::CopyAction, &data, Qt::LeftButton, modifiers);
    QApplication::sendEvent(&test.window, &enter);
    QDropEvent event({10, 10}, Qt::CopyAction, &data, Qt::LeftButton, modifiers);
    QApplication::sendEvent(&test.window, &event);
  };
  drop({"other.h5"}, Qt::ShiftModifier);
  REQUIRE(test.peers.size() == 1);
  CHECK(test.peers[0]->opened == "/checkpoints/other.h5");
  CHECK(test.source.opened == "own.h5");
  drop({"first.h5", "second.h5", "third.h5"}, Qt::NoModifier);
  CHECK(test.source.opened == "/checkpoints/first.h5");
  REQUIRE(test.peers.size() == 3);
  CHECK(test.peers[2]->opened == "/checkpoints/third.h5");
}

TEST_CASE("escape ends the opening of another model", "[peers]") {
  ComparingWindow test;
  FakeSource& other = test.compare("slow.h5", nullptr);
  test.press(Qt::Key_Escape);
  CHECK(other.cancelled == 1);
  other.opening.failed(Cancelled());
  CHECK_FALSE(test.peer().problem().isEmpty());
  CHECK_FALSE(test.window.comparison().is_opening());
}

TEST_CASE("there are at most four models, their letters free again when one is closed", "[peers]") {
  ComparingWindow test;
  for (const char* path : {"b.h5", "c.h5", "d.h5"}) test.compare(path);
  test.window.compare_with("e.h5");
  CHECK(test.peers.size() == 3);
  CHECK_FALSE(test.window.said().isEmpty());
  test.press(Qt::Key_N, Qt::ControlModifier | Qt::ShiftModifier);
  CHECK(test.window.comparison().chosen()->letter() == "C");
  test.window.comparison().remove(test.peer(1));
  CHECK(test.window.comparison().chosen()->letter() == "B");
  test.compare("f.h5");
  CHECK(test.peer(1).letter() == "C");
  CHECK(test.peer(1).name() == "f");
}

TEST_CASE("shipped models under one cursor: what is taken from each other are their snapshots, at any token and layer", "[peers]") {
  test_application();
  const auto make = [] { return make_session_source(nullptr); };
  const std::unique_ptr<RunSource> source = make();
  MainWindow window(*source, {.start_words = "test", .theme = ThemeChoice::light, .scale = 1, .autoplay = false, .make_source = make});
  window.resize(1600, 900);
  window.show();
  window.open_checkpoint(shipped_checkpoint("niah-sse-gla-n4k1"), load_prompt({}, default_run().prompt.string()));
  window.compare_with(shipped_checkpoint("niah-sse-gla-n4k1-step8333"));
  window.compare_with(shipped_checkpoint("niah-gla"));
  window.compare_with(shipped_checkpoint("mqar-gla"));
  const Comparison& comparison = window.comparison();
  const auto stands = [&] {
    const ViewPanel& panel = *window.rows().difference()->panels().front();
    return window.navigator().is_current() && comparison.is_settled() && !panel.is_pending();
  };
  REQUIRE(QTest::qWaitFor([&] { return window.navigator().run() && !window.navigator().is_opening() && stands(); }, 60'000));
  CHECK(answer_state(*comparison.peers()[1]->navigator().run()) == AnswerState::right);
  CHECK(comparison.peers()[2]->problem().contains("does not know every word"));  // and the others go on

  const ViewPanel& state = *window.rows().difference()->panels().front();
  for (const std::int64_t token : {std::int64_t{0}, std::int64_t{118}, std::int64_t{251}, std::int64_t{117}}) {
    for (int steps = 0; steps < 3; ++steps) window.go_to_token(token + 2 - steps);  // only the last counts
    window.navigator().move({.layer = token % 4, .head = token % 3, .slot = token % 5});
    REQUIRE(QTest::qWaitFor(stands, 60'000));
    const Cursor& at = window.navigator().cursor();
    const Snapshot &own = *window.navigator().snapshot(), &other = *comparison.peers()[0]->navigator().snapshot();
    REQUIRE(own.token == token);
    REQUIRE(other.token == token);
    REQUIRE((own.head == at.head && other.head == at.head));
    REQUIRE(other.layer == own.layer);
    const Table table = state.view().table();
    const float *a = own.state.matrix(at.slot), *b = other.state.matrix(at.slot);
    for (std::int64_t r = 0; r < own.state.rows; ++r) {
      for (std::int64_t c = 0; c < own.state.columns; ++c) {
        const std::int64_t i = r * own.state.columns + c;
        REQUIRE(table.rows[static_cast<std::size_t>(r)][static_cast<std::size_t>(c + 1)] == fmt::format("{}", a[i] - b[i]));
      }
    }
  }
  window.comparison().choose(*comparison.peers()[1]);
  REQUIRE(QTest::qWaitFor(stands, 60'000));
  CHECK(views_of(*window.rows().difference()) == std::vector<std::string>{"predictions:2"});  // states of other shapes are not subtracted

  // Every way of comparing gets what it asks for, about a model of the same shapes and one of others.
  for (const auto& peer : {comparison.peers()[0].get(), comparison.peers()[1].get()}) {
    window.comparison().choose(*peer);
    ViewPanel& panel = *window.rows().difference()->panels().front();
    for (const ViewRow& row : view_catalogue()) {
      panel.set_view(row);
      for (std::size_t mode = 0; mode < panel.view().modes().size(); ++mode, panel.next_mode()) {
        if (!panel.view().compares()) continue;
        INFO(row.id << ", mode " << mode << ", " << peer->letter().toStdString());
        const auto answered = [&] { return stands() && panel.view().describe().find("worked out") == std::string::npos; };
        REQUIRE(QTest::qWaitFor(answered, 60'000));
        CHECK_FALSE(panel.view().describe().empty());
      }
    }
  }
  window.stop_comparing();
  CHECK_FALSE(window.comparison().is_on());
}

}  // namespace statescope::comparison_test

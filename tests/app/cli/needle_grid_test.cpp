// The needle grid on shipped checkpoints: it says what `statescope eval` says, and a failed cell opens that very run where it fails.
#include "app/eval/needle_grid.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "app/assets.h"
#include "app/cli/commands.h"
#include "app/eval/score.h"
#include "engine/run/reading.h"
#include "tests/app/cli/piece_model.h"
#include "tests/app/window/piece_window.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"
#include "tests/temporary_folder.h"

namespace statescope::needle_grid_test {
namespace {

const NeedleGridQuestion kSmall{.needles = 16, .samples = 3, .lengths = {128, 256}, .depths = {0, 100}};

std::filesystem::path collapsed() { return assets_folder() / "checkpoints/niah/niah-sse-gla-n4k1-collapsed.h5"; }

NeedleGridReader::Subject loaded(const std::filesystem::path& checkpoint) {
  const std::shared_ptr<Model> model = Model::load(open_checkpoint(checkpoint), make_cpu_backend());
  return {model, make_tokenizer(model->checkpoint(), model->vocab())};
}

/// Waits for the end of what it hears.
class Listener {
 public:
  NeedleGridReader::Tell tell() {
    return [this](const NeedleGridQuestion&, Finding finding) {
      const std::lock_guard lock(mutex_);
      last_ = std::move(finding);
      changed_.notify_all();
    };
  }
  Finding end() {
    std::unique_lock lock(mutex_);
    const bool ended = changed_.wait_for(lock, std::chrono::seconds(60), [&] { return last_.progress == 1; });
    REQUIRE(ended);
    return last_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Finding last_;
};

}  // namespace

TEST_CASE("needle grid: the same prompts and the same answers as statescope eval") {
  NeedleGridReader reader(assets_folder(), {});
  Listener listener;
  reader.ask(1, loaded(collapsed()), {kSmall}, listener.tell());
  const Finding finding = listener.end();
  REQUIRE(finding.answer);
  const auto& grid = *static_cast<const NeedleGrid*>(finding.answer.get());
  CHECK(grid.unit == "words");
  REQUIRE(grid.cells.size() == 4);
  const auto checkpoint = open_checkpoint(collapsed());
  ScorerPool pool(checkpoint, {});
  const std::shared_ptr<const Tokenizer> tokenizer = make_tokenizer(*checkpoint, pool.model().vocab());
  for (std::size_t i = 0; i < 4; ++i) {
    EvalCell cell{.task = {}, .samples = kSmall.samples};
    cell.task.needles = kSmall.needles;
    cell.task.length = kSmall.lengths[i % 2];
    cell.task.depth_percent = kSmall.depths[i / 2];
    const CellScore score = score_cell(prepare(cell, assets_folder()), pool, tokenizer);
    INFO("cell " << i);
    CHECK(grid.cells[i].impossible == score.impossible);
    if (!score.task) continue;
    CHECK(grid.cells[i].read == kSmall.samples);
    CHECK(std::llround(score.task->exact.mean * 3) == grid.cells[i].right);
    CHECK(std::ssize(grid.cells[i].failures) == grid.cells[i].read - grid.cells[i].right);
  }
}

TEST_CASE("needle grid: a checkpoint with other words is refused in a line; what nobody asks for any more ends") {
  NeedleGridReader reader(assets_folder(), {});
  Listener listener, kept;
  NeedleGridQuestion endless = kSmall;
  endless.samples = 1'000'000;
  const NeedleGridReader::Subject model = loaded(collapsed());
  reader.ask(1, model, {endless}, [](const NeedleGridQuestion&, Finding) {});
  reader.ask(1, {}, {}, {});
  reader.ask(2, loaded(assets_folder() / "checkpoints/mqar/mqar-gla.h5"), {kSmall}, listener.tell());
  const Finding refused = listener.end();
  CHECK_FALSE(refused.answer);
  CHECK(refused.refused.find('\n') == std::string::npos);
  CHECK_FALSE(refused.refused.empty());
  reader.ask(3, model, {kSmall}, kept.tell());
  const Finding first = kept.end();
  Listener again;
  reader.ask(4, model, {kSmall}, again.tell());
  CHECK(static_cast<const NeedleGrid*>(again.end().answer.get())->cells[1].right ==
        static_cast<const NeedleGrid*>(first.answer.get())->cells[1].right);
  reader.ask(1, model, {endless}, [](const NeedleGridQuestion&, Finding) {});  // its end does not wait for this
}

TEST_CASE("needle grid: a failed cell opens its run at the first wrong token of the answer, and going back leads to where one was") {
  test_application();
  const std::unique_ptr<RunSource> source = make_session_source(nullptr);
  MainWindow window(*source, {.opengl = false, .start_words = "test", .theme = ThemeChoice::light, .scale = 1, .autoplay = false});
  window.resize(1400, 900);
  window.show();
  window.open_checkpoint(collapsed(), load_prompt({}, default_run().prompt.string()));
  Navigator& navigator = window.navigator();
  const auto settled = [&] { return navigator.run() && !navigator.is_opening() && navigator.is_current(); };
  REQUIRE(QTest::qWaitFor(settled, long_enough_ms));
  const PromptInput left = navigator.prompt();
  window.go_to_token(40);
  ViewPanel& panel = *window.stage().panels().front();
  panel.set_view(*find_view("needle_grid"));
  panel.surface().setFocus();
  const auto failed_cell = [&]() -> std::int64_t {
    for (std::int64_t i = 0; i < 25; ++i) {
      if (panel.view().example({0, i / 5, i % 5})) return i;
    }
    return -1;
  };
  REQUIRE(QTest::qWaitFor([&] { return failed_cell() >= 0; }, long_enough_ms));
  const std::int64_t cell = failed_cell();
  const NeedleExample example = *panel.view().example({0, cell / 5, cell % 5});
  for (std::int64_t i = 0; i < 1 + cell % 5; ++i) QTest::keyClick(&panel.surface(), Qt::Key_Right, Qt::AltModifier);
  for (std::int64_t i = 0; i < cell / 5; ++i) QTest::keyClick(&panel.surface(), Qt::Key_Down, Qt::AltModifier);
  CHECK(panel.view().marked() == Hit(0, cell / 5, cell % 5));
  QTest::keyClick(&panel.surface(), Qt::Key_Return);
  const auto is_example = [&] { return settled() && !navigator.prompt().spans.empty() && navigator.prompt().text != left.text; };
  REQUIRE(QTest::qWaitFor(is_example, long_enough_ms));
  const RunInfo& run = *navigator.run();
  const std::int64_t wrong = run.prompt_length + example.place;
  CHECK(navigator.cursor().token == wrong);
  CHECK_FALSE(navigator.is_playing());
  REQUIRE(std::ssize(run.expected) > example.place);
  for (std::int64_t i = 0; i < example.place; ++i)
    CHECK(run.tokens[static_cast<std::size_t>(run.prompt_length + i)].id == run.expected[static_cast<std::size_t>(i)].id);
  CHECK(run.tokens[static_cast<std::size_t>(wrong)].id != run.expected[static_cast<std::size_t>(example.place)].id);
  CHECK(std::ranges::count(run.spans, SpanKind::needle, &TokenSpan::kind) == 1);
  window.go_back();
  REQUIRE(QTest::qWaitFor([&] { return settled() && navigator.prompt().text == left.text; }, long_enough_ms));
  CHECK(navigator.cursor().token == 40);
}

TEST_CASE("needle grid: a model with pieces is given real text in its chat form, as statescope eval gives it") {
  for (const std::string& form : {std::string(), test::kPieceTemplate}) {
    const test::TemporaryFolder folder;
    test::write_piece_model(folder / "model", form);
    const NeedleGridQuestion question{.needles = 2, .samples = 2, .lengths = {40, 200}, .depths = {0, 100}};
    NeedleGridReader reader(assets_folder(), {});
    Listener listener;
    const NeedleGridReader::Subject subject = loaded(folder / "model");
    reader.ask(1, subject, {question}, listener.tell());
    const Finding finding = listener.end();
    INFO(finding.refused);
    REQUIRE(finding.answer);
    const auto& grid = *static_cast<const NeedleGrid*>(finding.answer.get());
    CHECK((grid.unit == "tokens" && grid.by_reply && grid.haystack == "filler"));
    CHECK(grid.cells[0].impossible.find("tokens; the length is 40") != std::string::npos);
    REQUIRE(grid.cells[1].read == 2);

    ScorerPool pool(open_checkpoint(folder / "model"), {});
    EvalCell cell{.task = {}, .samples = 2};
    cell.task.needles = 2;
    cell.task.length = 200;
    cell.task.depth_percent = 0;
    const CellScore score = score_cell(prepare(cell, assets_folder()), pool, subject.tokenizer);
    CHECK(score.task->hits == grid.cells[1].right);
    CHECK(score.task->in_chat == !form.empty());

    const PromptInput prompt = prompt_of({2, 200, 0, "filler", 1, 0}, folder / "model", subject.tokenizer, assets_folder());
    CHECK(prompt.in_chat == !form.empty());
    CHECK(prompt.text.starts_with("<|im_start|>user\n") == !form.empty());
    CHECK(std::ssize(encode(prompt, *subject.tokenizer).ids) <= 200);
    CHECK(prompt.expected.starts_with(' '));
    CHECK(prompt.generate.value_or(0) > 32);
    const TextSpan needle = prompt.spans.at(0);
    CHECK(prompt.text.substr(needle.begin, needle.end - needle.begin).find(prompt.expected) != std::string::npos);
  }
}

TEST_CASE("needle grid: a failed cell of a model with pieces opens that prompt, with the reply that fails") {
  test::PieceWindow piece;
  MainWindow& window = piece.window;
  Navigator& navigator = window.navigator();
  const auto settled = [&] { return piece.settled(); };
  REQUIRE(piece.stands());
  window.open_example({2, 200, 100, "filler", 3, 0});
  REQUIRE(QTest::qWaitFor([&] { return settled() && navigator.prompt().in_chat; }, long_enough_ms));
  const RunInfo& run = *navigator.run();
  CHECK(run.prompt_length <= 200);
  CHECK(run.tokens[0].text == "<|im_start|>");
  CHECK(navigator.cursor().token == run.prompt_length);
  CHECK(std::ssize(run.tokens) == run.prompt_length + *navigator.prompt().generate);
  CHECK(std::ranges::count(run.spans, SpanKind::needle, &TokenSpan::kind) == 1);
  CHECK(std::ranges::count(run.spans, SpanKind::question, &TokenSpan::kind) == 1);
}

}  // namespace statescope::needle_grid_test

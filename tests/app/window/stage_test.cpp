#include "app/panels/stage.h"

#include <QMenu>
#include <QPushButton>
#include <functional>
#include <set>

#include "tests/app/window/window_cases.h"
#include "tests/catch.h"

namespace statescope::stage_test {
namespace {

std::vector<std::string> shown(const Stage& stage) {
  std::vector<std::string> ids;
  for (const ViewPanel* panel : stage.panels())
    if (panel->isVisible()) ids.emplace_back(panel->row().id);
  return ids;
}

float area(const ViewPanel& panel) { return static_cast<float>(panel.width()) * static_cast<float>(panel.height()); }

}  // namespace

TEST_CASE("an arrangement survives its text, and a text from elsewhere does no harm") {
  const Arrangement three{{"state", "routing", "state"}, {1.5f, 1, 2}, 0.7f, {3, 0, 1}};
  CHECK(arrangement_from(to_text(three)) == three);
  for (const char* text : {"", "7", "{}", R"({"views": 3})", R"({"views": ["no such view"], "widths": [1]})",
                           R"({"views": ["token_strip"], "widths": [1]})", R"({"views": ["state"], "widths": [0]})"})
    CHECK_FALSE(arrangement_from(text));
  CHECK(arrangement_from(R"({"views": ["old", "state"], "widths": [1, 2], "upper": 9})") == Arrangement{{"state"}, {2}, 0.9f, {0}});
}

TEST_CASE("every preset has a name and at least one view of the catalogue, none more than the stage holds") {
  std::set<std::string> names;
  for (const Preset& preset : presets()) {
    INFO(preset.id);
    CHECK(names.insert(preset.name).second);
    const Arrangement arrangement = arrangement_of(preset.views);
    CHECK_FALSE(arrangement.views.empty());
    CHECK(arrangement.views.size() <= most_views);
    CHECK(arrangement.views.size() == arrangement.widths.size());
  }
}

TEST_CASE("in a preset, of a model that does not route, what its memories do stands in the routing's place") {
  ModelInfo model = fake_run(1)->model;
  for (const Preset& preset : presets()) CHECK(arrangement_of(preset, model) == arrangement_of(preset.views));
  for (LayerInfo& layer : model.layers) {
    layer.partitions = 0;
    if (layer.has_state()) layer.memory = "gated delta rule";
  }
  CHECK(arrangement_of(presets()[0], model).views == std::vector<std::string>{"delta_rule", "state"});
  CHECK(arrangement_of(presets()[1], model).views == std::vector<std::string>{"state", "delta_rule", "predictions"});
  CHECK(arrangement_of(presets()[5], model) == arrangement_of(presets()[5].views));
}

TEST_CASE("what is done last says which view is in focus: a preset, a click on a title, a page that is left") {
  TestWindow test;
  test.open();
  const auto& panels = test.window.stage().panels();
  test.press(Qt::Key_3, Qt::ControlModifier);
  CHECK(panels.front()->row().id == "needle");
  CHECK(&test.window.focused_panel() == panels.front());
  QTest::mouseClick(panels[2]->findChild<QLabel*>("question"), Qt::LeftButton);
  CHECK(&test.window.focused_panel() == panels[2]);
  const auto by_key = [] { TestWindow::type_key(Qt::Key_Escape); };
  const auto by_button = [&] {
    for (QPushButton* button : test.window.side().currentWidget()->findChildren<QPushButton*>())
      if (button->text() == "Back to the inspector") button->click();
  };
  for (const int width : {1400, 800}) {  // in the narrow one the inspector goes, too
    test.window.resize(width, 900);
    QTest::qWait(1);
    for (const SidePage page : {SidePage::prompt, SidePage::keys, SidePage::interventions, SidePage::figure}) {
      for (const std::function<void()>& leave : {std::function<void()>(by_key), std::function<void()>(by_button)}) {
        test.window.show_page(page);
        QTest::qWait(1);
        REQUIRE(test.window.side().isAncestorOf(QApplication::focusWidget()));
        leave();
        CHECK(test.window.side().page() == SidePage::inspector);
        CHECK(&test.window.focused_panel() == panels[2]);
        CHECK(panels[2]->surface().hasFocus());
        CHECK(test.window.side().isVisible() == (width > 900));
      }
    }
  }
}

TEST_CASE("an arrangement may name a view's way of looking; one that the view does not have is the first") {
  const std::string_view named[] = {"state/Write", "routing", "state/no such way"};
  CHECK(arrangement_of(named).views == std::vector<std::string>{"state", "routing", "state"});
  CHECK(arrangement_of(named).modes == std::vector<std::size_t>{4, 0, 0});
  TestWindow test;
  test.open();
  Arrangement arrangement = arrangement_of(named);
  arrangement.modes[2] = 99;
  test.window.arrange(arrangement);
  const auto& panels = test.window.stage().panels();
  CHECK(panels[0]->view().mode() == 4);
  CHECK(panels[2]->view().mode() == 0);
  for (const Preset& preset : presets()) {
    const Arrangement of_preset = arrangement_of(preset.views);
    for (std::size_t i = 0; i < preset.views.size(); ++i)
      CHECK((preset.views[i].find('/') != std::string_view::npos) == (of_preset.modes[i] != 0));
  }
}

TEST_CASE("a view's menu offers the other views, and to add one, close it and make it the large one") {
  TestWindow test(false, {1920, 1080});
  test.open();
  Stage& stage = test.window.stage();
  ViewPanel* const second = stage.panels()[1];
  QMenu* menu = nullptr;
  for (const QToolButton* button : second->findChildren<QToolButton*>())
    if (button->accessibleName() == "View shown here") menu = button->menu();
  REQUIRE(menu);
  const QList<QAction*> entries = menu->actions();
  for (const char* id : {"view-add", "view-close", "view-large"}) CHECK(entries.contains(test.window.action(id)));
  Q_EMIT menu->aboutToShow();
  CHECK(&test.window.focused_panel() == second);
  test.window.action("view-large")->trigger();
  CHECK(stage.panels().front() == second);
  entries.front()->trigger();
  CHECK(second->row().id == "routing");
  test.window.action("view-close")->trigger();
  CHECK(stage.panels().size() == 1);
}

TEST_CASE("views are added up to six and closed down to one, by keys") {
  TestWindow test(false, {1920, 1080});
  test.open();
  Stage& stage = test.window.stage();
  for (std::size_t count = 3; count <= most_views; ++count) {
    test.press(Qt::Key_A);
    QTest::qWait(1);
    REQUIRE(stage.panels().size() == count);
    CHECK(&stage.focused_panel() == stage.panels().back());
    CHECK(stage.focused_panel().surface().hasFocus());
    CHECK(&test.window.focused_panel() == &stage.focused_panel());
    CHECK(shown(stage).size() == count);
    CHECK(stage.focused_panel().view().describe() != "");
  }
  test.press(Qt::Key_A);
  CHECK(stage.panels().size() == most_views);
  for (std::size_t count = most_views; count > 1; --count) {
    test.press(Qt::Key_W, Qt::ControlModifier);
    QTest::qWait(1);
    CHECK(stage.panels().size() == count - 1);
    CHECK(stage.focused_panel().surface().hasFocus());
  }
  test.press(Qt::Key_W, Qt::ControlModifier);
  CHECK(stage.panels().size() == 1);
  test.press(Qt::Key_Right);  // the window still listens
  CHECK(test.token() == 1);
}

TEST_CASE("nobody waits any more for what a view has asked that was closed or gave way to another") {
  TestWindow test;
  test.open();
  ViewPanel& panel = test.window.focused_panel();
  const auto asking = [&] {
    return std::ranges::any_of(test.source.asked, [](const auto& asked) {
      return std::ranges::any_of(asked.second.questions,
                                 [](const Question& question) { return std::holds_alternative<NeedleGridQuestion>(question); });
    });
  };
  panel.set_view(*find_view("needle_grid"));
  CHECK(asking());
  panel.set_view(*find_view("state"));
  CHECK_FALSE(asking());
  panel.set_view(*find_view("needle_grid"));
  CHECK(asking());
  test.press(Qt::Key_W, Qt::ControlModifier);
  CHECK_FALSE(asking());
}

TEST_CASE("once a view knows what it shows it looks ahead to where the reader may go, until it gives way to another") {
  TestWindow test;
  test.open();
  ViewPanel& panel = test.window.focused_panel();
  panel.set_view(*find_view("spectrum"));
  const auto spectra_of = [&](bool ahead) {
    std::vector<SpectraQuestion> found;
    for (const auto& [asker, asked] : test.source.asked) {
      if ((asker < 0) != ahead) continue;
      for (const Question& question : asked.questions) {
        if (const auto* spectra = std::get_if<SpectraQuestion>(&question)) found.push_back(*spectra);
      }
    }
    return found;
  };
  const std::vector<SpectraQuestion> now = spectra_of(false);
  REQUIRE(now.size() == 1);
  CHECK(spectra_of(true).empty());
  const auto tell_all = [&] {
    const auto asked = test.source.asked;
    for (const auto& [asker, questions] : asked) {
      for (const Question& question : questions.questions)
        questions.tell(question, {.answer = nullptr, .refused = "not now", .progress = 1});
    }
  };
  tell_all();
  const std::vector<SpectraQuestion> later = spectra_of(true);
  REQUIRE(later.size() > 2);
  CHECK(later.front() == SpectraQuestion{now.front().layer, now.front().token + 1});
  CHECK(std::ranges::count(later, now.front()) == 0);
  panel.set_view(*find_view("state"));
  CHECK(spectra_of(true).empty());
}

TEST_CASE("the focused view becomes the large one, keys go from view to view and change sizes") {
  TestWindow test(false, {1920, 1080});
  test.open();
  test.press(Qt::Key_A);
  test.press(Qt::Key_A);
  Stage& stage = test.window.stage();
  ViewPanel* const last = stage.panels().back();
  test.press(Qt::Key_X);
  QTest::qWait(1);
  CHECK(stage.panels().front() == last);
  CHECK(last->surface().hasFocus());
  test.press(Qt::Key_F6);
  CHECK(&stage.focused_panel() == stage.panels()[1]);
  test.press(Qt::Key_F6, Qt::ShiftModifier);
  test.press(Qt::Key_F6, Qt::ShiftModifier);
  CHECK(&stage.focused_panel() == stage.panels().back());
  const int width = stage.focused_panel().width(), height = stage.focused_panel().height();
  test.press(Qt::Key_Right, Qt::ControlModifier | Qt::ShiftModifier);
  test.press(Qt::Key_Up, Qt::ControlModifier | Qt::ShiftModifier);
  QTest::qWait(1);
  CHECK(stage.focused_panel().width() > width + 20);
  CHECK(stage.focused_panel().height() > height + 20);
  CHECK(test.token() == 0);
}

TEST_CASE("presets by key; the first view is the largest") {
  TestWindow test(false, {1920, 1080});
  test.open();
  test.press(Qt::Key_2, Qt::ControlModifier);
  QTest::qWait(1);
  const Stage& stage = test.window.stage();
  REQUIRE(stage.panels().size() >= 2);
  CHECK(stage.panels().front()->row().id == "state");
  for (const ViewPanel* panel : stage.panels()) CHECK(area(*panel) <= area(*stage.panels().front()));
  test.press(Qt::Key_1, Qt::ControlModifier);
  CHECK(stage.arrangement() == arrangement_of({}));
  CHECK(stage.focused_panel().surface().hasFocus());
}

TEST_CASE("a run opens with a view of what its memories do, until somebody arranges the views") {
  const auto open = [](TestWindow& test, const auto& change) {
    RunInfo run = *fake_run(64);
    for (LayerInfo& layer : run.model.layers) layer.partitions = 0;
    change(run.model.layers);
    test.window.open_checkpoint("fake.h5", {});
    test.source.stand(std::make_shared<const RunInfo>(std::move(run)));
    QTest::qWait(1);
    return test.window.stage().arrangement().views;
  };
  using Views = std::vector<std::string>;
  using Layers = std::vector<LayerInfo>;
  const auto forgets = [](Layers&) {};
  const auto erases = [](Layers& layers) { layers[0].memory = "gated delta rule"; };
  const auto routes = [](Layers& layers) { layers[1].partitions = 4; };
  TestSettings kept;
  {
    TestWindow test(false, {1400, 900}, &kept.settings);
    CHECK(open(test, routes) == Views{"routing", "state"});
    CHECK(open(test, erases) == Views{"delta_rule", "state"});
    CHECK(open(test, [](Layers& layers) { layers[1].head_gates = true; }) == Views{"head_gates", "state"});
    CHECK(open(test, [](Layers& layers) {
            for (LayerInfo& layer : layers) layer.slot_names.clear();
          }) == Views{"attention", "predictions"});
    CHECK(open(test, forgets) == Views{"decay", "state"});
    test.window.close();
  }
  TestWindow next(false, {1400, 900}, &kept.settings);
  CHECK(open(next, routes) == Views{"routing", "state"});
  next.window.show_view(*find_view("predictions"));
  const Views own = next.window.stage().arrangement().views;
  CHECK(open(next, erases) == own);
  CHECK(open(next, routes) == own);
}

TEST_CASE("models beside each other open with views that all of them have") {
  const auto model_of = [](const auto& change) {
    ModelInfo model{.layers = {LayerInfo{.slot_names = {"state"}}}};
    change(model.layers[0]);
    return model;
  };
  const ModelInfo plain = model_of([](LayerInfo&) {}), softmax = model_of([](LayerInfo&layer) { layer.slot_names.clear(); });
  const ModelInfo routed = model_of([](LayerInfo& layer) { layer.partitions = 4; });
  const ModelInfo erasing = model_of([](LayerInfo& layer) { layer.memory = "gated delta rule"; });
  const auto open = [](const std::vector<const ModelInfo*>& models) { return opening_views(models); };
  CHECK(open({&routed}) == OpeningViews{"routing", "state"});
  CHECK(open({&routed, &routed}) == OpeningViews{"routing", "state"});
  CHECK(open({&routed, &plain}) == OpeningViews{"decay", "state"});
  CHECK(open({&erasing, &erasing}) == OpeningViews{"delta_rule", "state"});
  CHECK(open({&plain, &erasing}) == OpeningViews{"decay", "state"});
  CHECK(open({&routed, &softmax}) == OpeningViews{"attention", "predictions"});
}

TEST_CASE("a drawn splitter changes the shares; an arrangement comes back with the next window") {
  TestSettings kept;
  Arrangement left;
  {
    TestWindow test(false, {1920, 1080}, &kept.settings);
    test.open();
    test.press(Qt::Key_A);
    QTest::qWait(1);
    QSplitterHandle* handle = nullptr;
    for (const QSplitter* row : test.window.stage().findChildren<QSplitter*>())
      if (row->widget(0) == test.window.stage().panels().front()) handle = row->handle(1);
    REQUIRE(handle);
    const QPoint from = handle->rect().center();
    QTest::mousePress(handle, Qt::LeftButton, {}, from);
    QTest::mouseMove(handle, from + QPoint(150, 0));
    QTest::mouseRelease(handle, Qt::LeftButton, {}, from + QPoint(150, 0));
    test.press(Qt::Key_M);  // another way of looking at the last
    test.press(Qt::Key_K, Qt::ControlModifier | Qt::ShiftModifier);
    left = test.window.stage().arrangement();
    CHECK(left.widths[0] > arrangement_of({}).widths[0]);
    test.window.close();
  }
  TestWindow again(false, {1920, 1080}, &kept.settings);
  CHECK(again.window.stage().arrangement() == left);
  again.press(Qt::Key_1, Qt::ControlModifier);
  CHECK(again.window.stage().arrangement() == arrangement_of({}));
  again.press(Qt::Key_0, Qt::ControlModifier);
  CHECK(again.window.stage().arrangement() == left);
}

TEST_CASE("six views fold on a projector, and the one in focus stays") {
  TestWindow test(false, {1280, 720});
  test.open();
  for (int i = 0; i < 4; ++i) test.press(Qt::Key_A);
  const Stage& stage = test.window.stage();
  for (const float scale : {1.0f, 2.0f, 3.0f}) {
    test.window.set_scale(scale);
    for (int i = 0; i < 6; ++i) {
      test.press(Qt::Key_F6);
      QTest::qWait(1);
      INFO(scale << " " << i);
      CHECK(stage.focused_panel().isVisible());
      CHECK(stage.focused_panel().surface().hasFocus());
      CHECK(stage.focused_panel().width() >= 330 * std::min(scale, 2.0f));
      CHECK(test.window.size() == QSize(1280, 720));
    }
  }
  CHECK(shown(stage).size() == 1);
}

}  // namespace statescope::stage_test

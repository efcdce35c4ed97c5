// Enlarging what a view shows, by keys, wheel and pointer: the plot's data, while axes, title and colour bar stay.
#include <QNativeGestureEvent>
#include <QPointingDevice>
#include <QSignalSpy>
#include <QWheelEvent>

#include "app/panels/view_panel.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"
#include "tests/views/sample_answers.h"

namespace statescope::panel_zoom_test {
namespace {

struct Zooming {
  explicit Zooming(const char* view) {
    test.open();
    panel().set_view(*find_view(view));
    panel().surface().setFocus();
    const auto asked = test.source.asked;  // telling asks anew
    const Snapshot snapshot = *test.navigator().snapshot();
    for (const auto& [asker, each] : asked) {
      const Findings findings = sample_findings(each.questions, snapshot);
      for (const Question& question : each.questions)
        if (const Finding* finding = findings.find(question)) each.tell(question, *finding);
    }
    settle();
    REQUIRE_FALSE(panel().hits().plots().empty());
  }

  TestWindow test;
  ViewPanel& panel() { return *test.window.stage().panels().front(); }
  /// Until the surface has kept its size for some turns and has been drawn with it.
  void settle() {
    QSize size;
    for (int same = 0; same < 5; size == panel().surface().size() ? ++same : same = 0) {
      size = panel().surface().size();
      QTest::qWait(1);
      panel().surface().repaint();
    }
    QTest::qWait(1);
  }
  Rect plot() { return panel().hits().plots().front().rect; }
  QPointF place(double across, double down) { return {plot().x + across * plot().w, plot().y + down * plot().h}; }
  std::optional<Hit> hit(QPointF at) { return panel().hits().at({static_cast<float>(at.x()), static_cast<float>(at.y())}); }
  void wheel(QPointF at, int turn, Qt::KeyboardModifiers modifiers) {
    QWidget& surface = panel().surface();
    QWheelEvent event(at, surface.mapToGlobal(at), {}, {0, turn}, Qt::NoButton, modifiers, Qt::NoScrollPhase, false);
    QApplication::sendEvent(&surface, &event);
    settle();
  }
  void press(int key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    test.press(key, modifiers);
    settle();
  }
};

}  // namespace

TEST_CASE("zoom: Ctrl and the wheel keep the cell under the pointer there, axes and title where they are") {
  Zooming zooming("state");
  const Rect plot = zooming.plot();
  const QPointF at = zooming.place(0.7, 0.3);
  const std::optional<Hit> before = zooming.hit(at);
  const QString value = zooming.panel().value_at(before);
  REQUIRE(before.has_value());
  for (int turn = 0; turn < 6; ++turn) zooming.wheel(at, 120, Qt::ControlModifier);
  CHECK(zooming.panel().zoom() > 3);
  CHECK(zooming.hit(at) == before);
  CHECK(zooming.panel().value_at(zooming.hit(at)) == value);
  CHECK(zooming.plot().x == plot.x);
  CHECK(zooming.plot().w == plot.w);
  const std::optional<Hit> corner = zooming.hit(zooming.place(0.001, 0.001));
  REQUIRE(corner.has_value());
  CHECK(corner->at[1] > 0);
  CHECK(corner->at[2] > 0);
  CHECK_FALSE(zooming.panel().in_sight().isEmpty());
  CHECK(zooming.panel().surface().accessibleDescription().contains("In sight: "));
  for (int turn = 0; turn < 12; ++turn) zooming.wheel(at, -120, Qt::ControlModifier);
  CHECK(zooming.panel().zoom() == 1);
  CHECK(zooming.hit(at) == before);
  CHECK_FALSE(zooming.panel().surface().accessibleDescription().contains("In sight: "));
}

TEST_CASE("zoom: keys enlarge the middle, move along both axes and show all again; the status line says what is in sight") {
  Zooming zooming("state");
  QSignalSpy spoke(&zooming.panel(), &ViewPanel::spoke);
  for (int i = 0; i < 4; ++i) zooming.press(Qt::Key_Plus);
  const QString middle = zooming.panel().in_sight();
  REQUIRE_FALSE(middle.isEmpty());
  REQUIRE(spoke.size() >= 4);
  CHECK(spoke.last().first().toString().contains(middle));
  zooming.press(Qt::Key_Right, Qt::AltModifier | Qt::ShiftModifier);
  const QString right = zooming.panel().in_sight();
  CHECK(right != middle);
  zooming.press(Qt::Key_Down, Qt::AltModifier | Qt::ShiftModifier);
  CHECK(zooming.panel().in_sight() != right);
  for (int i = 0; i < 20; ++i) zooming.press(Qt::Key_Left, Qt::AltModifier | Qt::ShiftModifier);
  for (int i = 0; i < 20; ++i) zooming.press(Qt::Key_Up, Qt::AltModifier | Qt::ShiftModifier);
  CHECK((zooming.hit(zooming.place(0.001, 0.001))->at == std::array<std::int64_t, 3>{0, 0, 0}));
  zooming.press(Qt::Key_0);
  CHECK(zooming.panel().zoom() == 1);
  CHECK(spoke.last().first().toString() == "All of it is in sight.");
}

TEST_CASE("zoom: the wheel moves what is enlarged, with Shift sideways; at rest it only says how") {
  Zooming zooming("state");
  const QPointF at = zooming.place(0.5, 0.5);
  QSignalSpy spoke(&zooming.panel(), &ViewPanel::spoke);
  zooming.wheel(at, 120, Qt::NoModifier);
  REQUIRE(spoke.size() == 1);
  CHECK(spoke.first().first().toString().startsWith("Ctrl and the wheel"));
  CHECK(zooming.panel().zoom() == 1);
  for (int turn = 0; turn < 6; ++turn) zooming.wheel(at, 120, Qt::ControlModifier);
  const std::optional<Hit> before = zooming.hit(at);
  for (int turn = 0; turn < 3; ++turn) zooming.wheel(at, -120, Qt::NoModifier);
  const std::optional<Hit> below = zooming.hit(at);
  CHECK(below->at[1] > before->at[1]);
  CHECK(below->at[2] == before->at[2]);
  for (int turn = 0; turn < 3; ++turn) zooming.wheel(at, -120, Qt::ShiftModifier);
  CHECK(zooming.hit(at)->at[1] == below->at[1]);
  CHECK(zooming.hit(at)->at[2] > below->at[2]);
}

TEST_CASE("zoom: dragging moves an enlarged map with the pointer, a double click shows all of it") {
  Zooming zooming("state");
  const QPointF at = zooming.place(0.5, 0.5);
  for (int turn = 0; turn < 6; ++turn) zooming.wheel(at, 120, Qt::ControlModifier);
  QWidget& surface = zooming.panel().surface();
  const std::optional<Hit> held = zooming.hit(at);
  const QPoint from = at.toPoint(), to = zooming.place(0.2, 0.1).toPoint();
  QTest::mousePress(&surface, Qt::LeftButton, {}, from);
  QMouseEvent move(QEvent::MouseMove, QPointF(to), surface.mapToGlobal(QPointF(to)), Qt::NoButton, Qt::LeftButton, {});
  QApplication::sendEvent(&surface, &move);
  QTest::mouseRelease(&surface, Qt::LeftButton, {}, to);
  zooming.settle();
  CHECK(zooming.hit(at)->at != held->at);
  CHECK(zooming.hit(at + QPointF(to - from))->at == held->at);
  QTest::mouseDClick(&surface, Qt::LeftButton, {}, to);
  zooming.settle();
  CHECK(zooming.panel().zoom() == 1);
}

TEST_CASE("zoom: along a lane tokens alone are enlarged, dragging goes on choosing, and a step out of sight takes the sight along") {
  Zooming zooming("timeline");
  const QPointF at = zooming.place(0.25, 0.5);
  for (int turn = 0; turn < 8; ++turn) zooming.wheel(at, 120, Qt::ControlModifier);
  const std::optional<Hit> first = zooming.hit(zooming.place(0.001, 0.5)), last = zooming.hit(zooming.place(0.999, 0.5));
  REQUIRE((first && last));
  CHECK(last->at[1] - first->at[1] < 16);
  QWidget& surface = zooming.panel().surface();
  QTest::mousePress(&surface, Qt::LeftButton, {}, zooming.place(0.5, 0.5).toPoint());
  const QPointF to = zooming.place(0.75, 0.5);
  QMouseEvent move(QEvent::MouseMove, to, surface.mapToGlobal(to), Qt::NoButton, Qt::LeftButton, {});
  QApplication::sendEvent(&surface, &move);
  QTest::mouseRelease(&surface, Qt::LeftButton, {}, to.toPoint());
  zooming.settle();
  CHECK(zooming.test.token() == zooming.hit(to)->at[1]);
  CHECK(zooming.hit(zooming.place(0.001, 0.5)) == first);
  zooming.press(Qt::Key_End);
  QTest::qWait(20);
  zooming.settle();
  CHECK(zooming.hit(zooming.place(0.999, 0.5))->at[1] == 63);
  CHECK(zooming.panel().in_sight().contains("63"));
}

TEST_CASE("zoom: a pinch of the touchpad enlarges as Ctrl and the wheel do; another view begins with all of it") {
  Zooming zooming("similarity");
  QWidget& surface = zooming.panel().surface();
  const QPointF at = zooming.place(0.5, 0.5);
  QNativeGestureEvent pinch(Qt::ZoomNativeGesture, QPointingDevice::primaryPointingDevice(), 2, at, at, surface.mapToGlobal(at), 1.0, {});
  QApplication::sendEvent(&surface, &pinch);
  CHECK(zooming.panel().zoom() == 2);
  zooming.panel().set_view(*find_view("state"));
  CHECK(zooming.panel().zoom() == 1);
}

TEST_CASE("zoom: two fingers on a touch screen enlarge what lies between them, and move it") {
  Zooming zooming("state");
  QWidget& surface = zooming.panel().surface();
  const std::unique_ptr<QPointingDevice> screen(QTest::createTouchDevice());
  const QPoint middle = zooming.place(0.5, 0.5).toPoint();
  const std::optional<Hit> before = zooming.hit(middle);
  const auto fingers = [&](int apart, QPoint by) {
    QTest::touchEvent(&surface, screen.get())
        .move(0, middle - QPoint(apart, 0) + by, &surface)
        .move(1, middle + QPoint(apart, 0) + by, &surface);
    QTest::qWait(1);
  };
  QTest::touchEvent(&surface, screen.get()).press(0, middle - QPoint(20, 0), &surface).press(1, middle + QPoint(20, 0), &surface);
  for (int apart = 22; apart <= 60; apart += 2) fingers(apart, {});
  zooming.settle();
  CHECK(zooming.panel().zoom() > 2);
  CHECK(zooming.hit(middle) == before);
  for (int by = 2; by <= 40; by += 2) fingers(60, {by, 0});
  zooming.settle();
  REQUIRE(zooming.hit(middle).has_value());
  CHECK(zooming.hit(middle)->at[2] < before->at[2]);
  QTest::touchEvent(&surface, screen.get()).release(0, middle, &surface).release(1, middle, &surface);
}

TEST_CASE("zoom: the needle grid keeps its axes, and what a cell says stays in what is seen of it") {
  Zooming zooming("needle_grid");
  const Rect plot = zooming.plot();
  const QPointF at = zooming.place(0.9, 0.9);
  const std::optional<Hit> before = zooming.hit(at);
  for (int turn = 0; turn < 5; ++turn) zooming.wheel(at, 120, Qt::ControlModifier);
  CHECK(zooming.panel().zoom() > 2);
  CHECK(zooming.hit(at) == before);
  CHECK(zooming.plot().w == plot.w);
  CHECK(zooming.hit(zooming.place(0.01, 0.01))->at[0] > 0);
  CHECK_FALSE(zooming.panel().in_sight().isEmpty());
  zooming.press(Qt::Key_0);
  CHECK(zooming.hit(zooming.place(0.01, 0.01))->at[0] == 0);
}

TEST_CASE("zoom: what routing, the model map and predictions say around their pictures stays; what is in sight is named") {
  for (const char* view : {"routing", "model_map", "predictions"}) {
    INFO(view);
    Zooming zooming(view);
    const HitRegions::ZoomPlot before = zooming.panel().hits().plots().front();
    for (int turn = 0; turn < 6; ++turn) zooming.wheel(zooming.place(0.5, 0.95), 120, Qt::ControlModifier);
    CHECK(zooming.panel().zoom() > 3);
    const Rect after = zooming.plot();
    CHECK((after.x == before.rect.x && after.y == before.rect.y && after.w == before.rect.w && after.h == before.rect.h));
    CHECK_FALSE(zooming.panel().in_sight().isEmpty());
    zooming.press(Qt::Key_0);
    CHECK(zooming.panel().zoom() == 1);
  }
}

TEST_CASE("zoom: what has no plot, a message, is enlarged as a whole") {
  TestWindow test;
  test.open();
  ViewPanel& panel = *test.window.stage().panels().front();
  panel.set_view(*find_view("experts"));
  panel.surface().setFocus();
  panel.surface().repaint();
  REQUIRE(panel.hits().plots().empty());
  test.press(Qt::Key_Plus);
  CHECK(panel.zoom() == 1.25f);
  CHECK(panel.in_sight().isEmpty());
  test.press(Qt::Key_0);
  CHECK(panel.zoom() == 1);
}

}  // namespace statescope::panel_zoom_test

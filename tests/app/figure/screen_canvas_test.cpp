// The OpenGL stage against the plain one. Needs a display: `QT_QPA_PLATFORM=xcb xvfb-run -a app_tests "[opengl]"`.
#include <QMouseEvent>
#include <QOffscreenSurface>
#include <QOpenGLFramebufferObject>
#include <cmath>
#include <cstdio>
#include <limits>

#include "app/canvas/paper_canvas.h"
#include "app/canvas/screen_canvas.h"
#include "kernels/device_rows.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"

namespace statescope::screen_canvas_test {
namespace {

bool can_draw() {
  test_application();
  std::string why;
  if (opengl_is_available(why)) return true;
  WARN("skipped: " << (qEnvironmentVariableIsEmpty("DISPLAY") ? "no display" : why));
  return false;
}

/// A context of its own and a framebuffer, as a widget would have them.
class Screen {
 public:
  Screen(int width, int height) : width_(width), height_(height) {
    surface_.create();
    context_.create();
    context_.makeCurrent(&surface_);
    buffer_.emplace(width, height);
    canvas_.emplace();
  }
  ~Screen() {
    canvas_.reset();
    buffer_.reset();
  }

  QImage draw(const Paint& paint, float ratio = 1) {
    buffer_->bind();
    QOpenGLContext::currentContext()->functions()->glViewport(0, 0, width_, height_);
    canvas_->frame({static_cast<float>(width_) / ratio, static_cast<float>(height_) / ratio}, ratio, {255, 255, 255}, paint);
    return buffer_->toImage().convertToFormat(QImage::Format_RGB32);
  }
  ScreenCanvas& canvas() { return *canvas_; }

 private:
  int width_, height_;
  QOffscreenSurface surface_;
  QOpenGLContext context_;
  std::optional<QOpenGLFramebufferObject> buffer_;
  std::optional<ScreenCanvas> canvas_;
};

QImage on_paper(int width, int height, const Paint& paint) {
  QImage image(width, height, QImage::Format_RGB32);
  image.fill(Qt::white);
  QPainter painter(&image);
  PaperCanvas canvas(painter, {static_cast<float>(width), static_cast<float>(height)});
  paint(canvas);
  return image;
}

/// Mean difference per channel, 0 … 255.
double difference(const QImage& a, const QImage& b) {
  REQUIRE(a.size() == b.size());
  double sum = 0;
  for (int y = 0; y < a.height(); ++y)
    for (int x = 0; x < a.width(); ++x) {
      const QColor p = a.pixelColor(x, y), q = b.pixelColor(x, y);
      sum += std::abs(p.red() - q.red()) + std::abs(p.green() - q.green()) + std::abs(p.blue() - q.blue());
    }
  return sum / (3.0 * a.width() * a.height());
}

}  // namespace

TEST_CASE("heatmap cells have exactly the paper's colours", "[opengl][display]") {
  if (!can_draw()) return;
  constexpr int rows = 5, columns = 7, cell = 16;
  std::vector<float> values;
  for (int i = 0; i < rows * columns; ++i) values.push_back(static_cast<float>(i) * 0.1f - 1.7f);
  for (const ColorMap map : {ColorMap::viridis, ColorMap::cividis, ColorMap::diverging, ColorMap::diverging_dark}) {
    const Paint paint = [&](Canvas& canvas) {
      canvas.heatmap({0, 0, columns * cell, rows * cell}, {rows, columns, values, {map, -1.5f, 1.5f}});
    };
    Screen screen(columns * cell, rows * cell);
    const QImage drawn = screen.draw(paint), wanted = on_paper(columns * cell, rows * cell, paint);
    int worst = 0;
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c) {
        const QColor p = drawn.pixelColor(c * cell + 8, r * cell + 8), q = wanted.pixelColor(c * cell + 8, r * cell + 8);
        worst = std::max({worst, std::abs(p.red() - q.red()), std::abs(p.green() - q.green()), std::abs(p.blue() - q.blue())});
      }
    CHECK(worst <= 4);  // a step of the table, where the rounding differs
  }
}

TEST_CASE("NaN is grey, clips cut heatmaps, and equal values are uploaded once", "[opengl][display]") {
  if (!can_draw()) return;
  std::vector<float> values = {0, std::numeric_limits<float>::quiet_NaN(), 1, 0.5f};
  Screen screen(64, 64);
  const Paint paint = [&](Canvas& canvas) {
    canvas.push_clip({0, 0, 64, 32});
    canvas.heatmap({0, 0, 64, 64}, {2, 2, values, {ColorMap::viridis, 0, 1}});
    canvas.pop_clip();
  };
  const QImage first = screen.draw(paint);
  const QColor nan = first.pixelColor(48, 16);
  CHECK(nan.red() == nan.blue());
  CHECK(nan != QColor(Qt::white));
  CHECK(first.pixelColor(16, 16).blue() > 60);           // viridis' dark end, at the top left
  CHECK(first.pixelColor(16, 48) == QColor(Qt::white));  // below the clip
  screen.draw(paint);
  CHECK(screen.canvas().textures().uploads() == 1);
  values[0] = 0.25f;  // the same address, another content
  CHECK(screen.draw(paint).pixelColor(16, 16) != first.pixelColor(16, 16));
  CHECK(screen.canvas().textures().uploads() == 2);
}

namespace {

/// Numbers on a device that draws this context, which is OpenGL itself, or on one that does not.
class FakeRows final : public DeviceRows {
 public:
  enum class Willing { yes, not_to_share, not_to_copy };
  explicit FakeRows(std::vector<float> numbers, Willing willing = Willing::yes) : numbers_(std::move(numbers)), willing_(willing) {}

  std::size_t bytes() const override { return numbers_.size() * sizeof(float); }
  std::unique_ptr<SharedBuffer> share(unsigned name) const override {
    ++shares;
    return willing_ == Willing::not_to_share ? nullptr : std::make_unique<Shared>(name);
  }

  mutable int shares = 0, copies = 0;

 private:
  struct Shared final : SharedBuffer {
    explicit Shared(unsigned name_) : name(name_) {}
    bool take(const DeviceRows& rows) override {
      const auto& fake = dynamic_cast<const FakeRows&>(rows);
      ++fake.copies;
      QOpenGLExtraFunctions* gl = QOpenGLContext::currentContext()->extraFunctions();
      gl->glBindBuffer(GL_COPY_WRITE_BUFFER, name);
      gl->glBufferSubData(GL_COPY_WRITE_BUFFER, 0, static_cast<GLsizeiptr>(fake.bytes()), fake.numbers_.data());
      gl->glBindBuffer(GL_COPY_WRITE_BUFFER, 0);
      return fake.willing_ == Willing::yes;
    }
    unsigned name;
  };

  std::vector<float> numbers_;
  Willing willing_;
};

/// Two rows, wider than a tile, behind `before` other numbers.
std::vector<float> wave(std::int64_t before, float frequency) {
  std::vector<float> numbers(static_cast<std::size_t>(before), -1.0f);
  for (int i = 0; i < 2 * 1030; ++i) numbers.push_back(std::sin(frequency * static_cast<float>(i)));
  return numbers;
}
Paint two_rows(const std::vector<float>& values, std::shared_ptr<const DeviceRows> on_device = {}, std::int64_t first = 0) {
  return [&values, on_device = std::move(on_device), first](Canvas& canvas) {
    canvas.heatmap({0, 0, 1030, 16}, {2, 1030, values, {ColorMap::diverging, -1, 1}, on_device, first});
  };
}

}  // namespace

TEST_CASE("a heatmap's textures are made of the numbers that the device has, at their place, not of the host's", "[opengl][display]") {
  if (!can_draw()) return;
  const std::vector<float> zeros(2 * 1030), ones(2 * 1030, 1.0f), slow = wave(0, 0.01f), fast = wave(0, 0.3f);
  Screen expected(1030, 16), screen(1030, 16);
  const auto rows = std::make_shared<FakeRows>(wave(7, 0.01f));
  CHECK(screen.draw(two_rows(zeros, rows, 7)) == expected.draw(two_rows(slow)));
  CHECK(screen.canvas().textures().shared() == 2);  // tiles
  CHECK((rows->shares == 1 && rows->copies == 1));
  screen.draw(two_rows(zeros, rows, 7));  // the textures are still there
  CHECK(screen.canvas().textures().shared() == 2);
  const auto fewer = std::make_shared<FakeRows>(wave(3, 0.3f)), more = std::make_shared<FakeRows>(wave(99, 0.01f));
  CHECK(screen.draw(two_rows(ones, fewer, 3)) == expected.draw(two_rows(fast)));
  CHECK((fewer->shares == 0 && fewer->copies == 1));  // they fit into the same buffer
  CHECK(screen.draw(two_rows(zeros, more, 99)) == expected.draw(two_rows(slow)));
  CHECK((more->shares == 1 && more->copies == 1));
  CHECK(screen.draw(two_rows(fast)) == expected.draw(two_rows(fast)));  // the host's, where the device has none
  CHECK(screen.canvas().textures().uploads() == 2);
}

TEST_CASE("where the device does not draw the window, or refuses, textures are made of the host's numbers, and it is asked once",
          "[opengl][display]") {
  if (!can_draw()) return;
  const std::vector<float> slow = wave(0, 0.01f), fast = wave(0, 0.3f);
  for (const FakeRows::Willing willing : {FakeRows::Willing::not_to_share, FakeRows::Willing::not_to_copy}) {
    Screen expected(1030, 16), screen(1030, 16);
    const auto rows = std::make_shared<FakeRows>(wave(0, 0.7f), willing), later = std::make_shared<FakeRows>(wave(0, 0.7f), willing);
    CHECK(screen.draw(two_rows(slow, rows)) == expected.draw(two_rows(slow)));
    CHECK(screen.draw(two_rows(fast, later)) == expected.draw(two_rows(fast)));
    CHECK((rows->shares == 1 && later->shares == 0 && later->copies == 0));
    CHECK(screen.canvas().textures().shared() == 0);
    CHECK(screen.canvas().textures().uploads() == 4);
  }
}

TEST_CASE("text, lines and regions agree with the paper", "[opengl][display]") {
  if (!can_draw()) return;
  const Paint paint = [](Canvas& canvas) {
    canvas.fill_rect({10, 10, 60, 30}, {0, 114, 178}, 4);
    canvas.stroke_rect({90, 10, 60, 30}, {213, 94, 0}, 2, 0);
    canvas.line({10, 60}, {190, 60}, {0, 0, 0}, 1);
    canvas.ribbon({10, 70}, {190, 110}, {0, 158, 115}, 6);
    canvas.text({10, 130}, "S = diag(α) S + kᵀ v ␣⏎ → ▲", {Font::label, 15, {20, 20, 20}, Align::left, false});
    canvas.text({190, 155}, "-0.411516368", {Font::value, 13, {20, 20, 20}, Align::right, true});
    canvas.text({100, 180}, "", {Font::label, 13, {20, 20, 20}, Align::center, false});
    canvas.hit({10, 10, 60, 30}, {{5, 0, 0}, 1, 2});
  };
  Screen screen(200, 200);
  CHECK(difference(screen.draw(paint), on_paper(200, 200, paint)) < 4);
  CHECK(screen.canvas().hits().at({60, 20}) == Hit(5, 0, 1));
  CHECK_FALSE(screen.canvas().hits().at({80, 20}));
}

TEST_CASE("text is as wide on the screen as on paper, at every ratio", "[opengl][display]") {
  if (!can_draw()) return;
  QImage image(8, 8, QImage::Format_RGB32);
  QPainter painter(&image);
  const PaperCanvas paper(painter, {8, 8});
  for (const float ratio : {1.0f, 1.5f, 2.0f}) {
    for (const float size : {11.0f, 13.0f, 16.0f, 39.0f})
      for (const Font font : {Font::label, Font::value}) {
        const TextStyle style{font, size, {}, Align::left, false};
        const std::string_view text = "partition 12, token 4177";
        float width = 0;  // of the last pass, when the atlas has the size
        Screen(64, 64).draw([&](Canvas& canvas) { width = canvas.text_width(text, style); }, ratio);
        INFO(size << " at " << ratio);
        CHECK(width == Approx(paper.text_width(text, style)).epsilon(0.05));
      }
  }
}

TEST_CASE("fonts have whole pixels, to which Dear ImGui cuts their sizes from 1.90 on", "[opengl][display]") {
  if (!can_draw()) return;
  for (const float size : {11.0f, 13.0f, 16.0f, 39.0f}) {
    Screen screen(64, 64);
    screen.draw([&](Canvas& canvas) { canvas.text({32, 32}, "12", {Font::value, size, {}, Align::center, false}); });
    const ImFont* font = ImGui::GetIO().Fonts->Fonts.back();
    CHECK(font->FontSize == size);
    CHECK(font->CalcTextSizeA(size, INFINITY, 0, "m").x == Approx(size * 1233 / 2048));  // the advance in the file
  }
}

TEST_CASE("the stage looks the same with and without OpenGL", "[opengl][display]") {
  if (!can_draw()) return;
  const auto picture = [](bool opengl) {
    TestWindow test(opengl, {1200, 800});
    test.open();
    test.navigator().step(21);
    QTest::qWait(50);
    return test.window.grab().toImage().convertToFormat(QImage::Format_RGB32);
  };
  const QImage screen = picture(true), plain = picture(false);
  CHECK(difference(screen, plain) < 3.5);  // nearly all of it the edges of letters, which each draws in its own way
}

TEST_CASE("views that were added, moved and closed look the same with and without OpenGL", "[opengl][display]") {
  if (!can_draw()) return;
  const auto picture = [](bool opengl) {
    TestWindow test(opengl, {1500, 950});
    test.open();
    for (const int key : {Qt::Key_A, Qt::Key_A, Qt::Key_X, Qt::Key_A, Qt::Key_F6}) {
      test.press(key);
      QTest::qWait(20);
    }
    test.press(Qt::Key_W, Qt::ControlModifier);
    QTest::qWait(50);
    return test.window.grab().toImage().convertToFormat(QImage::Format_RGB32);
  };
  CHECK(difference(picture(true), picture(false)) <
        4);  // the fonts of both differ in height, which moves rows of the routing by some pixels
}

TEST_CASE("the OpenGL stage survives being hidden, moved to another window and closed", "[opengl][display]") {
  if (!can_draw()) return;
  TestWindow test(true);
  test.open();
  ViewPanel& panel = *test.window.stage().panels().back();
  panel.hide();
  test.navigator().step(3);
  panel.show();
  QTest::qWait(20);
  panel.setParent(nullptr);
  panel.show();
  QTest::qWait(20);
  CHECK(panel.surface().isVisible());
  test.window.stage().addWidget(&panel);
  QTest::qWait(20);
  CHECK(panel.hits().at({1, 1}).has_value() == false);
}

}  // namespace statescope::screen_canvas_test

#include "app/controls/surface.h"

#include <QGuiApplication>
#include <QOpenGLContext>
#include <QOpenGLWidget>
#include <QPainter>
#include <QSurfaceFormat>
#include <optional>

#include "app/canvas/paper_canvas.h"
#include "app/canvas/screen_canvas.h"

namespace statescope {
namespace {

Size size_of(const QWidget& widget) { return {static_cast<float>(widget.width()), static_cast<float>(widget.height())}; }

class OpenGlSurface final : public QOpenGLWidget, public Surface {
 public:
  OpenGlSurface(Paint paint, QWidget* parent) : QOpenGLWidget(parent), Surface(std::move(paint)) {}
  ~OpenGlSurface() override {
    if (context()) disconnect(context(), nullptr, this, nullptr);
    release();
  }

  QWidget* widget() override { return this; }
  const HitRegions& hits() const override { return canvas_ ? canvas_->hits() : no_hits_; }

 protected:
  /// Called again when the widget moves to another window and its context is a new one.
  void initializeGL() override {
    canvas_.emplace();
    connect(context(), &QOpenGLContext::aboutToBeDestroyed, this, &OpenGlSurface::release, Qt::UniqueConnection);
  }
  void paintGL() override {
    if (canvas_) canvas_->frame(size_of(*this), static_cast<float>(devicePixelRatioF()), ground_, paint_);
  }

 private:
  void release() {
    if (!canvas_) return;
    makeCurrent();
    canvas_.reset();
    doneCurrent();
  }

  std::optional<ScreenCanvas> canvas_;
  HitRegions no_hits_;
};

class PlainSurface final : public QWidget, public Surface {
 public:
  PlainSurface(Paint paint, QWidget* parent) : QWidget(parent), Surface(std::move(paint)) {}

  QWidget* widget() override { return this; }
  const HitRegions& hits() const override { return hits_; }

 protected:
  void paintEvent(QPaintEvent*) override {
    hits_.clear();
    QPainter painter(this);
    PaperCanvas canvas(painter, size_of(*this), &hits_, {.moving = true});
    canvas.fill_rect({0, 0, canvas.size().w, canvas.size().h}, ground_, 0);
    paint_(canvas);
  }

 private:
  HitRegions hits_;
};

}  // namespace

void prepare_opengl() {
  QSurfaceFormat format;
  format.setVersion(3, 3);
  format.setProfile(QSurfaceFormat::CoreProfile);
  QSurfaceFormat::setDefaultFormat(format);
  QCoreApplication::setAttribute(Qt::AA_ShareOpenGLContexts);  // or moving a canvas to another window would cost its textures
}

bool opengl_is_available(std::string& why) {
  const QString platform = QGuiApplication::platformName();
  if (platform != "xcb" && !platform.startsWith("wayland")) {
    why = "the platform " + platform.toStdString() + " has none";
    return false;
  }
  QOpenGLContext context;
  if (!context.create()) {
    why = "no OpenGL driver answers (Mesa's package is libgl1-mesa-dri)";
    return false;
  }
  const QPair<int, int> version = context.format().version();
  if (version >= qMakePair(3, 3)) return true;
  why = "OpenGL " + std::to_string(version.first) + "." + std::to_string(version.second) + " is older than 3.3";
  return false;
}

std::unique_ptr<Surface> make_surface(bool opengl, Paint paint, QWidget* parent) {
  if (opengl) return std::make_unique<OpenGlSurface>(std::move(paint), parent);
  return std::make_unique<PlainSurface>(std::move(paint), parent);
}

}  // namespace statescope

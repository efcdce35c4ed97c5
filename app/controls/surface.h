// Something to draw a view on: OpenGL where there is any, else Qt's painter.
#pragma once

#include <QWidget>
#include <functional>
#include <memory>

#include "views/hits.h"
#include "views/view.h"

namespace statescope {

using Paint = std::function<void(Canvas&)>;

/// A widget that calls `paint` when it must be drawn, and only then (QWidget::update asks for it).
class Surface {
 public:
  explicit Surface(Paint paint) : paint_(std::move(paint)) {}
  virtual ~Surface() = default;
  virtual QWidget* widget() = 0;  // the surface itself
  virtual const HitRegions& hits() const = 0;
  void set_ground(Color ground) { ground_ = ground; }

 protected:
  Paint paint_;
  Color ground_;
};

/// The kind of OpenGL that canvases want; call before there is an application object.
void prepare_opengl();

/// Whether QOpenGLWidget can be used: where it cannot, showing one crashes. Needs the application object. `why` says what is missing.
bool opengl_is_available(std::string& why);

/// With or without OpenGL; the caller destroys it before `parent`.
std::unique_ptr<Surface> make_surface(bool opengl, Paint paint, QWidget* parent);

}  // namespace statescope

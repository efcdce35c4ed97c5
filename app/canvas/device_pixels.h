// Numbers for textures straight from the device that computed them, where it draws the window too.
#pragma once

#include <QOpenGLExtraFunctions>
#include <memory>

#include "kernels/device_rows.h"

namespace statescope {

/// A pixel buffer that the device writes to. Made, used and destroyed with the same OpenGL context current.
class DevicePixels {
 public:
  DevicePixels() { gl_.initializeOpenGLFunctions(); }
  ~DevicePixels() { release(); }
  DevicePixels(const DevicePixels&) = delete;
  DevicePixels& operator=(const DevicePixels&) = delete;

  /// Textures are made of these rows from now on, number 0 at offset 0. False: something else draws this context, or the device refused
  /// once; they must come from the host.
  bool bind(const std::shared_ptr<const DeviceRows>& rows);
  void unbind();
  /// The rows need not last for textures to come.
  void end_frame() { held_.reset(); }

 private:
  bool fill(const DeviceRows& rows);
  void release();

  QOpenGLExtraFunctions gl_;
  unsigned buffer_ = 0;  // 0: none yet
  std::size_t room_ = 0;
  std::unique_ptr<SharedBuffer> shared_;
  std::shared_ptr<const DeviceRows> held_;  // what the buffer has
  bool refused_ = false;
};

}  // namespace statescope

#include "app/canvas/device_pixels.h"

namespace statescope {

bool DevicePixels::bind(const std::shared_ptr<const DeviceRows>& rows) {
  if (refused_ || !rows) return false;
  if (held_ != rows) {
    held_.reset();
    if (!fill(*rows)) {
      refused_ = true;
      release();
      return false;
    }
    held_ = rows;
  }
  gl_.glBindBuffer(GL_PIXEL_UNPACK_BUFFER, buffer_);
  return true;
}

void DevicePixels::unbind() { gl_.glBindBuffer(GL_PIXEL_UNPACK_BUFFER, 0); }

/// The buffer keeps its size while it is shared; more numbers need another one.
bool DevicePixels::fill(const DeviceRows& rows) {
  if (rows.bytes() > room_) {
    release();
    room_ = rows.bytes();
    gl_.glGenBuffers(1, &buffer_);
    gl_.glBindBuffer(GL_PIXEL_UNPACK_BUFFER, buffer_);
    gl_.glBufferData(GL_PIXEL_UNPACK_BUFFER, static_cast<GLsizeiptr>(room_), nullptr, GL_STREAM_COPY);
    unbind();
    shared_ = rows.share(buffer_);
  }
  return shared_ && shared_->take(rows);
}

void DevicePixels::release() {
  shared_.reset();
  if (buffer_ != 0) gl_.glDeleteBuffers(1, &buffer_);
  buffer_ = 0;
  room_ = 0;
}

}  // namespace statescope

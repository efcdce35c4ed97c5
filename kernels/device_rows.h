// Values that stay on a device for a window that the same device draws: they become textures without passing through the host.
#pragma once

#include <cstddef>
#include <memory>

namespace statescope {

class DeviceRows;

/// An OpenGL buffer that a device writes to. Used and destroyed while its context is current.
class SharedBuffer {
 public:
  virtual ~SharedBuffer() = default;
  /// Its first numbers become those of `rows`, before whatever OpenGL is asked for next. False: they are not of this device, have no room,
  /// or the device refuses; the buffer then holds anything.
  virtual bool take(const DeviceRows& rows) = 0;
};

/// Contiguous numbers on a device, as they were when Backend::rows_for_window was called. Last as long as they are held, whatever becomes
/// of the backend; may be held and let go by any thread.
class DeviceRows {
 public:
  virtual ~DeviceRows() = default;
  virtual std::size_t bytes() const = 0;
  /// Buffer `name` of the OpenGL context that is current, as one that this device writes to. Null where another one draws that context.
  virtual std::unique_ptr<SharedBuffer> share(unsigned name) const = 0;
};

}  // namespace statescope

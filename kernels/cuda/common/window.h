// Rows that a window draws from where they were computed.
#pragma once

#include <memory>

#include "kernels/cuda/common/cuda.h"
#include "kernels/device_rows.h"

namespace statescope::cuda {

/// A stream for copies into buffers of OpenGL: neither the computing waits for the window, nor the window for more than it shows.
class WindowRows {
 public:
  /// The device of this thread.
  explicit WindowRows(int device);
  ~WindowRows();
  WindowRows(const WindowRows&) = delete;
  WindowRows& operator=(const WindowRows&) = delete;

  /// A copy of what `rows` hold when `after` has come to this point; null where there is no memory left. Throws DeviceError.
  std::shared_ptr<const DeviceRows> keep(ConstTensor rows, cudaStream_t after);

 private:
  class CopyStream;
  class KeptRows;
  class Shared;
  std::shared_ptr<CopyStream> copies_;
};

}  // namespace statescope::cuda

// Copies to the host beside other work of the device.
#pragma once

#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/common/cuda.h"

namespace statescope::cuda {

/// A stream for copies to the host, and pinned memory that they pass through.
class Downloads {
 public:
  Downloads();
  ~Downloads();
  Downloads(const Downloads&) = delete;
  Downloads& operator=(const Downloads&) = delete;

  /// Copies what `device` holds when `after` has come to this point. Throws DeviceError.
  std::unique_ptr<Download> begin(void* host, const void* device, std::size_t bytes, cudaStream_t after);

 private:
  class CopyStream;
  class DownloadInFlight;
  std::shared_ptr<CopyStream> copies_;
};

}  // namespace statescope::cuda

// Numbers on their way to the host while the device does other work.
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
  class Lane;
  class UnderWay;
  std::shared_ptr<Lane> lane_;
};

}  // namespace statescope::cuda

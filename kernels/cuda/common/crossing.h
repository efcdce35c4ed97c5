// Copies from one CUDA device to another, in the order of both streams.
#pragma once

#include <set>

#include "kernels/cuda/common/cuda.h"

namespace statescope::cuda {

/// One device's side of such copies. Throws DeviceError.
class Crossing {
 public:
  explicit Crossing(int device);  // which is the thread's
  ~Crossing();
  Crossing(const Crossing&) = delete;
  Crossing& operator=(const Crossing&) = delete;

  /// Copies what `src`, memory of the other device, holds when `source` has come to this point; `stream` and what follows in `source` wait
  /// for that. Over the wire between the devices where there is one, else through the host.
  void copy(void* dst, cudaStream_t stream, const Crossing& other, const void* src, cudaStream_t source, std::size_t bytes);

 private:
  void open_way_from(int other);

  int device_;
  cudaEvent_t event_ = nullptr;
  std::set<int> known_;  // devices whose memory this one may read, or has been found not to
};

}  // namespace statescope::cuda

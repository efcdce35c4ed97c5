// Large copies to the device: on every core into pinned memory, from there over the bus.
#pragma once

#include <array>
#include <cstddef>

#include "kernels/cuda/common/cuda.h"

namespace statescope::cuda {

/// A few pieces of pinned memory, made with the first copy that is worth it.
class Uploads {
 public:
  Uploads() = default;
  ~Uploads();
  Uploads(const Uploads&) = delete;
  Uploads& operator=(const Uploads&) = delete;

  /// Copies behind the work of `stream`. The host's side may change or go when it returns. Throws DeviceError.
  void copy(void* device, const void* host, std::size_t bytes, cudaStream_t stream);

 private:
  static constexpr std::size_t kBytes = std::size_t{4} << 20;  // of a piece
  struct Piece {
    char* memory = nullptr;
    cudaEvent_t copied = nullptr;
  };
  /// False where there is no pinned memory.
  bool make_pieces();

  std::array<Piece, 4> pieces_;
  bool made_ = false;
};

}  // namespace statescope::cuda

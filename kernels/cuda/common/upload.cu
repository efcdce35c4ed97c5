#include "kernels/cuda/common/upload.h"

#include <algorithm>

#include "kernels/cuda/common/host_copy.h"

namespace statescope::cuda {

Uploads::~Uploads() {
  for (const Piece& piece : pieces_) {
    if (piece.copied) cudaEventDestroy(piece.copied);
    if (piece.memory) cudaFreeHost(piece.memory);
  }
}

bool Uploads::make_pieces() {
  if (made_) return pieces_.back().memory != nullptr;
  made_ = true;
  for (Piece& piece : pieces_) {
    if (cudaMallocHost(&piece.memory, kBytes) == cudaSuccess) {
      check(cudaEventCreateWithFlags(&piece.copied, cudaEventDisableTiming), "an event");
      continue;
    }
    cudaGetLastError();  // forgotten: copies go without
    piece.memory = nullptr;
    break;
  }
  return pieces_.back().memory != nullptr;
}

void Uploads::copy(void* device, const void* host, std::size_t bytes, cudaStream_t stream) {
  const auto over_the_bus = [&](void* to, const void* from, std::size_t count) {
    check(cudaMemcpyAsync(to, from, count, cudaMemcpyHostToDevice, stream), "a copy between host and device");
  };
  if (bytes < kBytes / 4 || !make_pieces()) {
    over_the_bus(device, host, bytes);
    return check(cudaStreamSynchronize(stream), "the work before");  // a copy from pageable memory need not be over when it returns
  }
  auto* const to = static_cast<char*>(device);
  const auto* const from = static_cast<const char*>(host);
  std::size_t next = 0;
  for (std::size_t at = 0; at < bytes; at += kBytes) {
    const std::size_t count = std::min(kBytes, bytes - at);
    const Piece& piece = pieces_[next++ % pieces_.size()];
    check(cudaEventSynchronize(piece.copied), "a copy between host and device");
    copy_in_pieces(piece.memory, from + at, count);
    over_the_bus(to + at, piece.memory, count);
    check(cudaEventRecord(piece.copied, stream), "an event");
  }
}

}  // namespace statescope::cuda

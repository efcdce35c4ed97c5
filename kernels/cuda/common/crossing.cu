#include "kernels/cuda/common/crossing.h"

namespace statescope::cuda {

Crossing::Crossing(int device) : device_(device) { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "an event"); }
Crossing::~Crossing() { cudaEventDestroy(event_); }

/// The other device's memory comes from its pool, which this device may then read by itself. Where it cannot, copies go through the host.
void Crossing::open_way_from(int other) {
  if (!known_.insert(other).second) return;
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, device_, other), "the way between two devices");
  if (can == 0) return;
  cudaMemPool_t pool = nullptr;
  check(cudaDeviceGetDefaultMemPool(&pool, other), "the memory pool");
  cudaMemAccessDesc access{};
  access.location.type = cudaMemLocationTypeDevice;
  access.location.id = device_;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  if (cudaMemPoolSetAccess(pool, &access, 1) != cudaSuccess) cudaGetLastError();  // forgotten
}

void Crossing::copy(void* dst, cudaStream_t stream, const Crossing& other, const void* src, cudaStream_t source, std::size_t bytes) {
  check(cudaSetDevice(other.device_), "the device");
  check(cudaEventRecord(other.event_, source), "an event");
  check(cudaSetDevice(device_), "the device");
  open_way_from(other.device_);
  check(cudaStreamWaitEvent(stream, other.event_), "an event");
  check(cudaMemcpyPeerAsync(dst, device_, src, other.device_, bytes, stream), "a copy between devices");
  check(cudaEventRecord(event_, stream), "an event");
  check(cudaSetDevice(other.device_), "the device");
  check(cudaStreamWaitEvent(source, event_), "an event");
  check(cudaSetDevice(device_), "the device");
}

}  // namespace statescope::cuda

// What all CUDA code shares: errors, launches, operands as a kernel takes them. Included by .cu files alone.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <source_location>
#include <stdexcept>
#include <string>

#include "kernels/ops/memory.h"

namespace statescope::cuda {

/// Throws std::bad_alloc where the device is out of memory, else DeviceError with one line: what failed, why, and where.
void check(cudaError_t status, const char* what, std::source_location where = std::source_location::current());

/// Raises the limit of dynamic shared memory of a kernel on this thread's device. Nothing to do up to 48 KB, static shared memory included,
/// which need not be asked for.
void allow_shared_memory(const char* name, const void* kernel, std::size_t bytes);

/// An attribute of this thread's device.
inline int attribute_of_device(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device), "the device");
  check(cudaDeviceGetAttribute(&value, attribute, device), "the device");
  return value;
}
inline std::size_t most_shared_bytes() {  // of a thread block
  return static_cast<std::size_t>(attribute_of_device(cudaDevAttrMaxSharedMemoryPerBlockOptin));
}
inline unsigned multiprocessors() { return static_cast<unsigned>(attribute_of_device(cudaDevAttrMultiProcessorCount)); }

/// Whether this thread's device supports programmatic dependent launch: a kernel may start while the one before it ends (compute capability
/// 9.0 or later).
bool can_overlap();
/// Whether it is of compute capability 9.0: kernels in hopper/ and decode/ run there alone.
bool is_hopper();

/// Whether a kernel starts once those before it in the stream have ended, or calls grid_dependency_wait itself when it needs their results
/// (`launch_overlapped`).
enum class Overlap { none, with_kernels_before };

template <class... Parameters, class... Arguments>
void launch_as(Overlap overlap, unsigned cluster, const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block,
               std::size_t shared_bytes, cudaStream_t stream, const Arguments&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  allow_shared_memory(name, reinterpret_cast<const void*>(kernel), shared_bytes);
  std::array<cudaLaunchAttribute, 2> attributes{};
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = attributes.data();
  if (overlap == Overlap::with_kernels_before && can_overlap()) {
    cudaLaunchAttribute& early = attributes[config.numAttrs++];
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
  }
  if (cluster > 0) {
    cudaLaunchAttribute& together = attributes[config.numAttrs++];
    together.id = cudaLaunchAttributeClusterDimension;
    together.val.clusterDim.x = cluster, together.val.clusterDim.y = together.val.clusterDim.z = 1;
  }
  check(cudaLaunchKernelEx(&config, kernel, arguments...), name);
}

/// Launches a kernel and throws if it could not be started.
template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
            const Arguments&... arguments) {
  launch_as(Overlap::none, 0, name, kernel, grid, block, shared_bytes, stream, arguments...);
}

/// The same with programmatic dependent launch: the kernel may start while the ones before it still run. It calls `grid_dependency_wait`
/// before it reads what they write, or writes anything.
template <class... Parameters, class... Arguments>
void launch_overlapped(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
                       cudaStream_t stream, const Arguments&... arguments) {
  launch_as(Overlap::with_kernels_before, 0, name, kernel, grid, block, shared_bytes, stream, arguments...);
}

/// The same in thread block clusters of `cluster` blocks, if that is not 0 (compute capability 9.0).
template <class... Parameters, class... Arguments>
void launch_clusters(unsigned cluster, const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
                     cudaStream_t stream, const Arguments&... arguments) {
  launch_as(Overlap::with_kernels_before, cluster, name, kernel, grid, block, shared_bytes, stream, arguments...);
}

/// In a kernel: the next kernel of the stream may start once all blocks have got here.
__device__ inline void launch_dependents() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
/// In a kernel: waits until all kernels before it have ended and their writes are visible.
__device__ inline void grid_dependency_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/// Both, for kernels that have nothing to do before.
__device__ inline void begin_overlapped() {
  launch_dependents();
  grid_dependency_wait();
}

/// In a kernel: prefetches the line at this address into L2.
__device__ inline void prefetch(const void* x) { asm volatile("prefetch.global.L2 [%0];" ::"l"(x)); }

// In a kernel: a named barrier of the block, at which `count` threads meet. Each of them waits for all, or arrives and goes on.

template <int number, int count>
__device__ void wait_at_barrier() {
  asm volatile("bar.sync %0, %1;" ::"n"(number), "n"(count) : "memory");
}
template <int number, int count>
__device__ void arrive_at_barrier() {
  asm volatile("bar.arrive %0, %1;" ::"n"(number), "n"(count) : "memory");
}

template <class Number>
Number rounded_up(Number n, Number to) {
  return (n + to - 1) / to * to;
}
/// Blocks of `block` threads for n items, one item a thread.
inline unsigned blocks_for(std::int64_t n, unsigned block) { return static_cast<unsigned>((n + block - 1) / block); }

/// Rows of numbers on the device: row t begins at data + t · stride.
template <class Number>
struct Rows {
  Number* data = nullptr;
  std::int64_t stride = 0;
  __host__ __device__ Number* row(std::int64_t t) const { return data + t * stride; }
  __host__ __device__ explicit operator bool() const { return data != nullptr; }
};

inline Rows<float> f32(Tensor x) { return {x.data ? x.f32() : nullptr, x.stride}; }
inline Rows<const float> f32(ConstTensor x) { return {x.data ? x.f32() : nullptr, x.stride}; }
inline Rows<std::int32_t> i32(Tensor x) { return {x.data ? x.i32() : nullptr, x.stride}; }
inline Rows<const std::int32_t> i32(ConstTensor x) { return {x.data ? x.i32() : nullptr, x.stride}; }

/// Segments (memory.h) whose arrays lie on the device.
struct DeviceSegments {
  const std::int32_t* cu_seqlens = nullptr;  // [count + 1]
  const std::int32_t* slot = nullptr;        // [count]; null: segment s owns slot s
  std::int64_t count = 0;
  std::int64_t longest = 0;  // rows of the longest segment
  __device__ std::int64_t slot_of(std::int64_t s) const { return slot ? slot[s] : s; }
};

}  // namespace statescope::cuda

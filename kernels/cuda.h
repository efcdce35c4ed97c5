// What the CUDA forms share: errors, launches, operands as a kernel takes them. Included by .cu files alone.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <source_location>
#include <stdexcept>
#include <string>

#include "kernels/memory.h"

namespace statescope::cuda {

/// Throws std::bad_alloc where the device is out of memory, else DeviceError with one line: what failed, why, and where.
void check(cudaError_t status, const char* what, std::source_location where = std::source_location::current());

/// Starts a kernel and throws if it could not be started.
template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
            const Arguments&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  constexpr std::size_t always_there = 48 << 10;
  if (shared_bytes > always_there) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)), name);
  }
  kernel<<<grid, block, shared_bytes, stream>>>(arguments...);
  check(cudaGetLastError(), name);
}

/// Blocks of `block` threads that n items take, one item a thread.
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

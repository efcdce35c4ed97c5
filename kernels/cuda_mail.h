// How blocks of one kernel hand numbers on without waiting for one another: each number has a place of its own, which holds `absent` until
// the number is there. Who needs it looks until it is. Included by .cu files alone.
#pragma once

#include <cuda_runtime.h>

namespace statescope::cuda {

/// The bits of no number: a NaN that no operation gives.
constexpr unsigned absent = ~0U;

__device__ inline bool is_absent(float x) { return __float_as_uint(x) == absent; }
__device__ inline bool is_absent(const float4& x) { return is_absent(x.x) || is_absent(x.y) || is_absent(x.z) || is_absent(x.w); }

__device__ inline float look(const float* place) {
  float x;
  asm volatile("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(x) : "l"(place) : "memory");
  return x;
}
/// Four neighbours, aligned; each is there or not.
__device__ inline float4 look(const float4* place) {
  float4 x;
  asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w) : "l"(place) : "memory");
  return x;
}
/// x is what was seen; `awaited`: by mail, else it lies there.
template <class Number>
__device__ void wait_for(Number& x, const Number* place, bool awaited) {
  constexpr unsigned pause = 40;  // nanoseconds: who looks without end stands in the way of those who bring
  while (awaited && is_absent(x)) {
    __nanosleep(pause);
    x = look(place);
  }
}
/// The same by a warp: while numbers of several lanes are absent, one of them looks.
template <class Number>
__device__ void wait_together(Number& x, const Number* place, bool awaited) {
  if (!awaited) return;
  unsigned missing = __ballot_sync(~0U, is_absent(x));
#pragma unroll 1
  while (missing != 0) {
    if ((missing & -missing) == 1U << threadIdx.x % 32) {
      while (is_absent(x)) x = look(place);
    }
    __syncwarp();
    if (is_absent(x)) x = look(place);
    missing = __ballot_sync(~0U, is_absent(x));
  }
}

__device__ inline void post(float* place, float x) {
  const float sent = is_absent(x) ? __uint_as_float(0x7FFFFFFF) : x;
  asm volatile("st.relaxed.gpu.global.f32 [%0], %1;" ::"l"(place), "f"(sent) : "memory");
}

}  // namespace statescope::cuda

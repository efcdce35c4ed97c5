// Decays of two neighbouring channels, as powers of two. Included by .cu files alone.
#pragma once

namespace statescope::cuda {

constexpr float log2_e = 1.44269504F;
/// The largest decay, as a power of two, between the row at which scores are computed and either end of a chunk: floating point holds the
/// factors of both sides.
constexpr float most_log2_decay = 100;

__device__ inline float2 operator+(float2 a, float2 b) { return {a.x + b.x, a.y + b.y}; }
__device__ inline float2 operator-(float2 a) { return {-a.x, -a.y}; }
__device__ inline float2 operator*(float2 a, float2 b) { return {a.x * b.x, a.y * b.y}; }
__device__ inline float2 operator*(float a, float2 b) { return {a * b.x, a * b.y}; }
__device__ inline float exp2_of(float x) {
  asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
  return x;
}
__device__ inline float2 exp2_of(float2 a) { return {exp2_of(a.x), exp2_of(a.y)}; }

}  // namespace statescope::cuda

// Decays of two neighbouring channels, as powers of two. Included by .cu files alone.
#pragma once

namespace statescope::cuda {

constexpr float log2_e = 1.44269504F;
/// From the row that products bring q and k to, to either end of a chunk: floating point holds the factors of both.
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

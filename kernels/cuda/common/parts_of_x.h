// x of products in a token's decoding as bf16 parts whose sum it is exactly (cuda_chain_input.h): how they stand in
// shared memory. Included by .cu files alone.
#pragma once

namespace statescope::cuda {

constexpr int parts_of_x = 3;

/// Where number o stands in the first two parts, in bytes: of every eight numbers 0, 1, 4, 5 before the others.
__device__ inline int place_in_part(int o) { return (o & ~7) * 2 | (o & 2) * 4 | (o & 4) | (o & 1) * 2; }
/// In the last part the others are before them.
constexpr int other_in_last_part = 8;

}  // namespace statescope::cuda

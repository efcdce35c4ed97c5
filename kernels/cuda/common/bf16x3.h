// bf16x3: the input row of a GEMV split into three bf16 terms whose sum it is exactly, and how they lie in shared memory (decode/input.h).
// Included by .cu files alone.
#pragma once

namespace statescope::cuda {

constexpr int split_terms = 3;

/// The offset of value o in the first two terms, in bytes: of every eight values 0, 1, 4, 5 come before the others.
__device__ inline int offset_in_term(int o) { return (o & ~7) * 2 | (o & 2) * 4 | (o & 4) | (o & 1) * 2; }
/// In the last term the others come first: its offsets differ in this bit.
constexpr int last_term_swap = 8;

}  // namespace statescope::cuda

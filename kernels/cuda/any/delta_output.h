// Where the delta rule in chunks leaves o: rows of any type, and what gathered items add to them. Included by .cu files alone.
#pragma once

#include "kernels/cuda/common/delta_chunk.h"

namespace statescope::cuda::delta {

/// oᵀ [16, 64] += what gathered items add to the n rows from `row` on, choice after choice; `column` is the first of the 16.
__device__ inline void add_gathered(const Problem& p, Block (&o)[row_blocks], std::int64_t row, int n, std::int64_t h,
                                    std::int64_t column) {
  const OutputRows& from = p.operands[1].o;
  const auto columns = static_cast<int>(p.V - column), choices = static_cast<int>(p.choices);
  const std::int64_t first = row * p.choices * from.stride + h * p.V + column;
  for (int choice = 0; choice < p.readers; ++choice) {
    const auto number_of = [&](int r, int c) { return first + std::int64_t{r * choices + choice} * from.stride + c; };
#pragma unroll
    for (int block = 0; block < row_blocks; ++block) {
      if (!from.bf16) {
        o[block].each([&](int c, int r, float& x) {
          if (16 * block + r < n && c < columns) x += static_cast<const float*>(from.data)[number_of(16 * block + r, c)];
        });
        continue;
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int r = 16 * block + i / 2 * 8 + g(), c = i % 2 * 8 + t();
        const bool there = r < n && c < columns;  // widths are even
        const unsigned pair = there ? *reinterpret_cast<const unsigned*>(static_cast<const Bf16*>(from.data) + number_of(r, c)) : 0;
        const unsigned added = transposed(pair);  // two neighbouring rows of a column
        float(&half)[4] = o[block].half[i / 2];
        half[2 * (i % 2)] += first_of(added), half[2 * (i % 2) + 1] += second_of(added);
      }
    }
  }
}

/// oᵀ [16, 64] of n rows, which go to row_of(0) … from `row` on, to none where that is −1; `column` is the first of the 16.
template <class RowOf>
__device__ void write_o(const OutputRows& to, Block (&o)[row_blocks], std::int64_t row, int n, std::int64_t h, std::int64_t V,
                        std::int64_t column, const RowOf& row_of) {
  const auto columns = static_cast<int>(V - column);
  const std::int64_t first = row * to.stride + h * V + column;
#pragma unroll
  for (int block = 0; block < row_blocks; ++block) {
    if (!to.bf16) {
      float* begin = static_cast<float*>(to.data) + first;
      o[block].each([&](int c, int r, float x) {
        const int o_row = 16 * block + r < n ? row_of(16 * block + r) : -1;
        if (o_row >= 0 && c < columns) begin[o_row * to.stride + c] = x;
      });
      continue;
    }
    const uint4 rows = as_b(o[block]);  // two neighbouring columns of a row
    const unsigned pairs[4] = {rows.x, rows.y, rows.z, rows.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = 16 * block + i / 2 * 8 + g(), c = i % 2 * 8 + t(), o_row = r < n ? row_of(r) : -1;
      if (o_row < 0) continue;
      Bf16* const pair = static_cast<Bf16*>(to.data) + first + o_row * to.stride + c;
      if (to.by_twos) {
        if (c < columns) *reinterpret_cast<unsigned*>(pair) = pairs[i];
      } else {
        if (c < columns) pair[0] = __float2bfloat16(first_of(pairs[i]));
        if (c + 1 < columns) pair[1] = __float2bfloat16(second_of(pairs[i]));
      }
    }
  }
}

}  // namespace statescope::cuda::delta

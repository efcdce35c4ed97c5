// Products of one row with any number of weights, made together: what the kernels (cuda_one_row_hopper.h) are told.
#pragma once

#include <cstdint>

#include "kernels/elementwise.h"

namespace statescope::cuda::one_row {

constexpr int warp_size = 32, warps = 8, threads = warps * warp_size, all_threads = threads + warp_size;
constexpr int piece = 16, eight = 8,
              numbers_of_sum = 128;  // bytes and numbers that a thread reads at once; numbers that share a sum of squares
constexpr int most_inputs = 8, most_products = 16, most_taps = 4, most_stages = 16;
constexpr int unit_rows = 8, short_unit_rows = warps * unit_rows;  // of weights, of short ones
constexpr int long_at_once = 16, short_at_once = 2;                // units whose outputs are finished together, a thread each
constexpr int short_bytes = 256;                                   // a row of at most so many is short: a warp takes all of it
constexpr int row_bytes = 2048, row_place = row_bytes + 64;        // of a row in a stage; neighbours read from different banks
constexpr int stage_bytes = unit_rows * row_place;
constexpr int warp_columns = 32, all_columns = warps * warp_columns;  // of a row, multiplied together
constexpr int x_parts = 3;                                            // bf16 parts of a number of x
constexpr int most_numbers = 12 << 10;                                // of all inputs together

/// A row [n], and the norm that it passes (projection.h).
struct Input {
  const float *x, *weight, *gate;
  int n, group, place;  // group 0: no norm; `place`: its first number in shared memory, a multiple of `numbers_of_sum`
  float eps, offset;
  Activation act;
  int sums, sums_inverse;        // of a group, in numbers of `numbers_of_sum`; 2^16 over that, rounded up
  bool made;                     // by products of the same level
  bool x_awaited, gate_awaited;  // come by mail (cuda_mail.h)
  /// Of the sum with this number.
  __device__ int group_of(int sum) const { return sum * sums_inverse >> 16; }
  /// One factor for the whole row: products take it at their end.
  __host__ __device__ bool one_group() const { return group == n; }
};

enum class End : std::uint8_t { activate, forget_gate, delta_decay, convolve, gated };

/// What one weight gives. A unit of a gated one is four rows of each weight; one of short rows has more of them.
struct Product {
  const char* weight;
  const char* up;             // gated: of the same shape, y = silu(z) ⊙ (x · upᵀ)
  std::int64_t weight_bytes;  // from one row to the next
  int out, in, input, first_unit;
  End end;
  bool short_rows;  // one behind the other
  Activation act;
  int width;
  float scale, clamp_min;

  float *y, *z;            // either may be null: nobody reads it
  float *y_mail, *z_mail;  // the same for later levels of one kernel, or null
  bool addend_awaited;
  const float *bias, *addend, *A_log, *dt_bias;
  const float *taps, *tap_bias;  // [out, width], [out]
  float* cache;                  // [width − 1, out]
};

/// Products whose outputs others take come first, those that take them last.
struct OneRow {
  int input_count, product_count, units;
  int announced, waiting;  // units before `announced` make what those from `waiting` on take
  int numbers;             // of all inputs in shared memory
  bool groups;             // whether one of them passes a norm over groups of it
  unsigned* ready;         // counts announced units that have been made,
  unsigned enough;         // up to here
  int first_unit[most_products];
  Input inputs[most_inputs];
  Product products[most_products];
};

__host__ __device__ constexpr int rows_of_unit(const Product& p) {
  return p.end == End::gated ? unit_rows / 2 : p.short_rows ? short_unit_rows : unit_rows;
}

__host__ __device__ constexpr int input_bytes(int numbers) { return x_parts * (2 * numbers + 64); }

}  // namespace statescope::cuda::one_row

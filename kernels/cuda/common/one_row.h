// Products of one row (linear_one_row_hopper.cu, chain_hopper.cu): their parameters, the norms that inputs pass, and how outputs are
// finished.
#pragma once

#include "kernels/cuda/common/activation.h"
#include "kernels/cuda/common/warp.h"

namespace statescope::cuda::one_row {

constexpr int warp_size = 32, warps = 8, threads = warps * warp_size;
constexpr int piece = 16, numbers_of_sum = 4 * warp_size;  // bytes that a thread reads at once; numbers whose squares a warp sums
constexpr int fours_at_once = 2;                           // of an input that passes a norm, by a thread
constexpr int most_inputs = 8, most_products = 16, most_taps = 4;
// Of a block: two of them and a memory's step fit a multiprocessor's shared memory; its registers hold two of the three.
constexpr std::size_t shared_bytes = 104 << 10;
constexpr int most_numbers = 14 << 10;  // of all inputs together

/// A row [n], and the norm that it passes (projection.h).
struct Input {
  const float *x, *weight, *gate;
  int n, group, place;  // group 0: no norm; `place`: its first number in shared memory, a multiple of `numbers_of_sum`
  float eps, offset;
  Activation act;
  int sums, sums_inverse;  // of a group, in numbers of `numbers_of_sum`; 2^16 over that, rounded up
  /// Of the sum with this number.
  __device__ int group_of(int sum) const { return sum * sums_inverse >> 16; }
  /// One factor for the whole row: products take it at their end.
  __host__ __device__ bool one_group() const { return group == n; }
};

enum class End : std::uint8_t { activate, forget_gate, delta_decay, convolve, gated };

/// What one weight gives. Rows are dealt out in units: one pair of rows; of rows that are shorter than a warp reads, as many pairs as it
/// reads at once. What streaming needs stands together, then what the end of a product needs: parameters come from far away, by the line.
struct alignas(64) Product {
  const char* weight;
  const char* up;             // gated: of the same shape, y = silu(z) ⊙ (x · upᵀ)
  const float* made;          // x where a product before this one in the launch makes it, else null and x is `input`
  std::int64_t weight_bytes;  // from one row to the next
  int out, in, input, first_unit;
  int lanes_log2;  // of how many share a row
  End end;
  bool announced;  // another product waits for y

  alignas(64) float* y;
  float* z;
  const float *bias, *addend, *A_log, *dt_bias;
  const float *taps, *tap_bias;  // [out, width], [out]
  float* cache;                  // [width − 1, out]
  Activation act;
  int width;
  float scale, clamp_min;
};

struct OneRow {
  int input_count, product_count, units, stages;
  unsigned* ready;     // counts the announced units that have been made, then those that have seen all of them, and is 0 again
  unsigned announced;  // units that others wait for
  unsigned last;       // of what `ready` counts
  int numbers;         // of all inputs in shared memory
  bool groups;         // whether one of them passes a norm over groups of it
  int chunk;           // bytes of a row that are fetched at once
  bool compact;        // weights of x are (cuda_compact_weights.h); in chains alone
  int first_unit[most_products];
  Input inputs[most_inputs];
  Product products[most_products];
};

// ---- in kernels ----

/// An index, not a pointer: parameters are read fast only where the compiler sees that they are parameters.
__device__ inline int product_of(const OneRow& op, int unit) {
  int n = 0;
#pragma unroll 1
  while (n + 1 < op.product_count && unit >= op.first_unit[n + 1]) ++n;
  return n;
}

/// A norm's weights, without its offset, for numbers 4 (begin + t · threads) … of the input.
struct NormWeights {
  float4 at[fours_at_once];
};
__device__ inline NormWeights norm_weights(const Input& input, int begin) {
  NormWeights weights;
#pragma unroll
  for (int t = 0; t < fours_at_once; ++t) {
    const int i = begin + t * threads;
    weights.at[t] = {1, 1, 1, 1};
    if (input.weight == nullptr || i >= input.n / 4) continue;
    const float* w = input.weight + 4 * i - input.group_of(i / warp_size) * input.group;
    weights.at[t] = {__ldg(w), __ldg(w + 1), __ldg(w + 2), __ldg(w + 3)};
  }
  return weights;
}

/// (Σ x² / group + eps)^{−1/2} of the group that begins with this sum; by a warp.
__device__ inline float norm_factor(const Input& input, const float* of_group) {
  float sum = 0;
#pragma unroll 1
  for (int j = threadIdx.x % warp_size; j < input.sums; j += warp_size) sum += of_group[j];
  return rsqrtf(sum_of_warp(sum) * (1 / static_cast<float>(input.group)) + input.eps);
}

/// Of an output of a short convolution (convolution.h): what it needs of memory.
struct Convolution {
  float4 taps{}, kept{};  // of the inputs before this one, then of this one; those inputs, then the bias
  __device__ void load(const Product& p, int o) {
    const int past = p.width - 1;
    const float* from = p.taps + static_cast<std::int64_t>(o) * p.width;
    const auto load_one = [&](int j, float& tap, float& input) {
      if (j < past) tap = from[j], input = p.cache[j * p.out + o];
    };
    load_one(0, taps.x, kept.x), load_one(1, taps.y, kept.y), load_one(2, taps.z, kept.z);
    taps.w = from[past];
    if (p.tap_bias != nullptr) kept.w = p.tap_bias[o];
  }
  /// bias + Σ_j taps[j] · input j, the last input is z
  __device__ float result(float z) const { return kept.w + taps.x * kept.x + taps.y * kept.y + taps.z * kept.z + taps.w * z; }
  /// The cache moves up by one.
  __device__ void keep(const Product& p, int o, float z) const {
    const int past = p.width - 1;
    if (past > 1) p.cache[o] = kept.y;
    if (past > 2) p.cache[p.out + o] = kept.z;
    if (past > 0) p.cache[(past - 1) * p.out + o] = z;
  }
};

/// What a lane will finish: an output of a product, with what it needs for that. Made ready before the products are.
struct Ending {
  int product = -1, o = 0;
  float *y = nullptr, *z = nullptr;
  const float* addend = nullptr;
  float bias = 0, added = 0;
  End end = End::activate;
  Activation act = Activation::identity;

  /// All that no kernel before this one makes.
  __device__ void prepare(const OneRow& op, int n, int row) {
    product = -1;
    if (n < 0 || row >= op.products[n].out) return;
    const Product& p = op.products[n];
    product = n, o = row;
    y = p.y, z = p.z, addend = p.addend, end = p.end, act = p.act;
    bias = p.bias != nullptr ? p.bias[o] : 0;
    if (end != End::convolve) return;
    // What its end reads may long have been displaced from the second cache.
    prefetch(p.taps + static_cast<std::int64_t>(o) * p.width);
#pragma unroll 1
    for (int j = 0; j < p.width - 1; ++j) prefetch(p.cache + j * p.out + o);
  }
  __device__ void load_addend() { added = product >= 0 && addend != nullptr ? addend[o] : 0; }

  /// y[o] from the product; gated: times the product with the other weight.
  __device__ void finish(const OneRow& op, float sum, float other) {
    if (product < 0) return;
    const int n = product;
    product = -1;
    float x = sum + bias;
    if (z != nullptr) z[o] = x;
    const Product& p = op.products[n];
    if (end == End::forget_gate || end == End::delta_decay) {
      y[o] = end == End::forget_gate ? log_sigmoid_decay(x, p.scale, p.clamp_min) : gated_delta_decay(x, p.A_log[o], p.dt_bias[o]);
      return;
    }
    if (end == End::convolve) {
      Convolution convolution;
      convolution.load(p, o);
      convolution.keep(p, o, x);
      x = convolution.result(x);
    }
    y[o] = activated_by_one(x + added, act) * (end == End::gated ? other : 1);
  }
};

}  // namespace statescope::cuda::one_row

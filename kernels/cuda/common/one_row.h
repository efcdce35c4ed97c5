// A GEMV: all products of one row (hopper/linear_one_row.cu, decode/): its parameters, the norms that inputs pass, and the epilogues of
// outputs.
#pragma once

#include "kernels/cuda/common/activation.h"
#include "kernels/cuda/common/warp.h"

namespace statescope::cuda::one_row {

constexpr int warp_size = 32, warps = 8, threads = warps * warp_size;
constexpr int vector_bytes = 16, values_per_sum = 4 * warp_size;  // bytes that a thread loads at once; values whose squares a warp sums
constexpr int vectors_in_flight = 2;                              // 16-byte loads of a thread, of an input that passes a norm
constexpr int most_inputs = 8, most_products = 16, most_taps = 4;
// Of a block: two blocks and a memory's step fit the shared memory of a multiprocessor; its registers hold two of the three.
constexpr std::size_t shared_bytes = 104 << 10;
constexpr int most_input_values = 14 << 10, most_queued_values = 32 << 10;  // of all inputs: of a launch of its own, in decode/

/// A row [n], and the norm that it passes (projection.h).
struct Input {
  const float *x, *weight, *gate;
  int n, group, shared_begin;  // group 0: no norm; shared_begin: index of its first value in shared memory, a multiple of `values_per_sum`
  float eps, offset;
  Activation act;
  int sums_per_group, inverse_sums_per_group;  // sums of `values_per_sum` values in a group; 2^16 over that, rounded up
  /// The group that this sum belongs to.
  __device__ int group_of(int sum) const { return sum * inverse_sums_per_group >> 16; }
  /// Whether the norm is over the whole row: its factor is applied in the epilogue.
  __host__ __device__ bool one_group() const { return group == n; }
};

enum class EpilogueKind : std::uint8_t { activate, forget_gate, delta_decay, convolve, gated };

/// One weight and what it is multiplied with. Its rows are divided into units: a pair of rows, or, of rows shorter than what a warp loads
/// at once, as many pairs as it loads at once. Members that the main loop needs come first, then those of the epilogue, each on cache lines
/// of their own: parameters are loaded from memory.
struct alignas(64) Product {
  const char* weight;
  const char* up;             // gated: of the same shape, y = silu(z) ⊙ (x · upᵀ)
  const float* intermediate;  // the y of an earlier product of the GEMV that is the input of this one; null: the input is `input`
  std::int64_t weight_bytes;  // from one row to the next
  int out, in, input, first_unit;
  int lanes_log2;  // lanes that share a row, as a power of two
  EpilogueKind epilogue;
  bool is_intermediate;  // another product of the GEMV reads y

  alignas(64) float* y;
  float* z;
  const float *bias, *addend, *A_log, *dt_bias;
  const float *taps, *tap_bias;  // [out, width], [out]
  float* cache;                  // [width − 1, out]
  Activation act;
  int width;
  float scale, clamp_min;
};

struct Gemv {
  int input_count, product_count, units, stages;
  unsigned* ready;              // counts the units of intermediates that are done, then the units that read them, and is 0 again
  unsigned intermediate_units;  // units of products that others read
  unsigned ready_wrap;          // the last value of `ready`, after which it is 0
  int input_values;             // of all inputs, in shared memory
  bool has_group_norms;         // whether an input passes a norm over groups of it
  int chunk_bytes;              // bytes of a row that are loaded at once
  bool compact;                 // weights are compact (compact_weights.h); in decode/ alone
  int first_unit[most_products];
  Input inputs[most_inputs];
  Product products[most_products];
};

// ---- in kernels ----

/// The product of a unit. An index, not a pointer: the compiler loads parameters fast only where it sees that they are parameters.
__device__ inline int product_of(const Gemv& op, int unit) {
  int n = 0;
#pragma unroll 1
  while (n + 1 < op.product_count && unit >= op.first_unit[n + 1]) ++n;
  return n;
}

/// The weights of a norm, without its offset, for the values 4 (begin + t · threads) … of the input.
struct NormWeights {
  float4 at[vectors_in_flight];
};
__device__ inline NormWeights norm_weights(const Input& input, int begin) {
  NormWeights weights;
#pragma unroll
  for (int t = 0; t < vectors_in_flight; ++t) {
    const int i = begin + t * threads;
    weights.at[t] = {1, 1, 1, 1};
    if (input.weight == nullptr || i >= input.n / 4) continue;
    const float* w = input.weight + 4 * i - input.group_of(i / warp_size) * input.group;
    weights.at[t] = {__ldg(w), __ldg(w + 1), __ldg(w + 2), __ldg(w + 3)};
  }
  return weights;
}

/// (Σ x² / group + eps)^{−1/2} of the group whose first sum is *of_group; by a warp.
__device__ inline float norm_factor(const Input& input, const float* of_group) {
  float sum = 0;
#pragma unroll 1
  for (int j = threadIdx.x % warp_size; j < input.sums_per_group; j += warp_size) sum += of_group[j];
  return rsqrtf(sum_of_warp(sum) * (1 / static_cast<float>(input.group)) + input.eps);
}

/// What the epilogue of a short convolution (convolution.h) needs of memory for one output.
struct Convolution {
  float4 taps{}, kept{};  // taps of the earlier inputs, then of this one; the earlier inputs, then the bias
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

/// The epilogue of the output that a lane will finish, prepared before its sum is there.
struct Epilogue {
  int product = -1, o = 0;
  float *y = nullptr, *z = nullptr;
  const float* addend = nullptr;
  float bias = 0, added = 0;
  EpilogueKind kind = EpilogueKind::activate;
  Activation act = Activation::identity;

  /// Loads all that no earlier kernel writes.
  __device__ void prepare(const Gemv& op, int n, int row) {
    product = -1;
    if (n < 0 || row >= op.products[n].out) return;
    const Product& p = op.products[n];
    product = n, o = row;
    y = p.y, z = p.z, addend = p.addend, kind = p.epilogue, act = p.act;
    bias = p.bias != nullptr ? p.bias[o] : 0;
    if (kind != EpilogueKind::convolve) return;
    // What it reads may have been evicted from L2.
    prefetch(p.taps + static_cast<std::int64_t>(o) * p.width);
#pragma unroll 1
    for (int j = 0; j < p.width - 1; ++j) prefetch(p.cache + j * p.out + o);
  }
  __device__ void load_addend() { added = product >= 0 && addend != nullptr ? addend[o] : 0; }

  /// y[o] from the sum; gated: times the sum of the other weight.
  __device__ void finish(const Gemv& op, float sum, float other) {
    if (product < 0) return;
    const int n = product;
    product = -1;
    float x = sum + bias;
    if (z != nullptr) z[o] = x;
    const Product& p = op.products[n];
    if (kind == EpilogueKind::forget_gate || kind == EpilogueKind::delta_decay) {
      y[o] =
          kind == EpilogueKind::forget_gate ? log_sigmoid_decay(x, p.scale, p.clamp_min) : gated_delta_decay(x, p.A_log[o], p.dt_bias[o]);
      return;
    }
    if (kind == EpilogueKind::convolve) {
      Convolution convolution;
      convolution.load(p, o);
      convolution.keep(p, o, x);
      x = convolution.result(x);
    }
    y[o] = activated_by_one(x + added, act) * (kind == EpilogueKind::gated ? other : 1);
  }
};

}  // namespace statescope::cuda::one_row

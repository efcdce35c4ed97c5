// Norms and softmax of bf16 rows over groups that a few lanes keep in registers (heads), and of float32 rows that a block keeps. They are
// bound by memory, so each thread loads several groups at once.
#include <limits>

#include "kernels/cuda/common/groups.h"
#include "kernels/cuda/common/operations.h"

namespace statescope::cuda {
namespace {

constexpr int warp_size = 32, wide = 8;  // adjacent values of a lane

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels: heads

constexpr int threads = 256, on_their_way = 2;  // packs that a thread loads at once

/// Combines x of the `lanes` lanes that own a group; all of them get the result.
template <int lanes, class Combine>
__device__ float combined(float x, Combine combine) {
#pragma unroll
  for (int offset = lanes / 2; offset > 0; offset /= 2) x = combine(x, __shfl_xor_sync(~0U, x, offset));
  return x;
}

template <int packs>
using Group = Pack<wide>[packs];

template <int packs, class Fn>
__device__ void each_number(Group<packs>& x, Fn fn) {
#pragma unroll
  for (int p = 0; p < packs; ++p) {
#pragma unroll
    for (int j = 0; j < wide; ++j) fn(x[p].at[j], p, j);
  }
}

/// A lane's columns of every group are the same ones, and so are its weights.
template <int lanes, int packs>
struct Normalised {
  InverseRoot norm;
  Group<packs> weight;
  __device__ Normalised(const InverseRoot& of, int column) : norm(of) {
    each_number<packs>(
        weight, [&](float& w, int p, int j) { w = norm.weight != nullptr ? norm.weight[column + p * lanes * wide + j] + norm.offset : 1; });
  }
  __device__ void operator()(Group<packs>& x) const {
    float sum = 0;
    each_number<packs>(x, [&](float z, int, int) { sum += norm.term(z); });
    const float factor = norm.factor(combined<lanes>(sum, Plus()));
    each_number<packs>(x, [&](float& z, int p, int j) { z = z * factor * weight[p].at[j]; });
  }
};

struct Temperature {
  float value;
};
/// As softmax_kernel in norms.cu.
template <int lanes, int packs>
struct Softmax {
  float temperature;
  __device__ Softmax(const Temperature& of, int) : temperature(of.value) {}
  __device__ void operator()(Group<packs>& x) const {
    constexpr float lowest = -std::numeric_limits<float>::infinity();
    float largest = lowest;
    each_number<packs>(x, [&](float& z, int, int) { z = __fmul_rn(temperature, z), largest = fmaxf(largest, z); });
    const float m = combined<lanes>(largest, Larger()), shift = m == lowest ? 0 : m;
    float sum = 0;
    each_number<packs>(x, [&](float& z, int, int) { z = expf(z - shift), sum += z; });
    const float total = combined<lanes>(sum, Plus()), inverse = total == 0 ? 0 : 1 / total;
    each_number<packs>(x, [&](float& z, int, int) { z *= inverse; });
  }
};

/// Rows x, or pairs of `shared` and `sparse + more`: load gives the values of row t from column i on.
struct PlainRows {
  Bf16Numbers<const void> x;
  __device__ Pack<wide> load(unsigned t, unsigned i) const { return x.load<wide>(t, i); }
};
struct SparsePairRows {
  Bf16Numbers<const void> shared, sparse, more;
  unsigned n;
  __device__ Pack<wide> load(unsigned t, unsigned i) const {
    if (i < n) return shared.load<wide>(t, i);
    return each(sparse.load<wide>(t, i - n), more.load<wide>(t, i - n), Plus());
  }
};

struct Heads {
  unsigned count, in_row;
};

/// y = step(x), where `gated` times act(gate), over groups of lanes · packs · 8 numbers. All loads come first, with no branch among them.
template <int lanes, int packs, bool gated, template <int, int> class Step, class Input, class Parameters>
__global__ void __launch_bounds__(threads)
    heads_kernel(Bf16Numbers<void> y, Input x, Heads heads, OutputGate<Bf16Numbers> gate, Parameters parameters) {
  begin_overlapped();
  constexpr unsigned at_once = on_their_way / packs, of_block = threads / lanes;
  const unsigned first = blockIdx.x * of_block * at_once + threadIdx.x / lanes, column = threadIdx.x % lanes * wide;
  Group<packs> in[at_once], open[at_once];
  unsigned row[at_once], begin[at_once];
#pragma unroll
  for (unsigned i = 0; i < at_once; ++i) {
    const unsigned head = min(first + i * of_block, heads.count - 1);
    row[i] = head / heads.in_row, begin[i] = head % heads.in_row * (lanes * packs * wide) + column;
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      in[i][p] = x.load(row[i], begin[i] + p * lanes * wide);
      if constexpr (gated) open[i][p] = gate.rows.template load<wide>(row[i], begin[i] + p * lanes * wide);
    }
  }
  const Step<lanes, packs> step(parameters, static_cast<int>(column));
#pragma unroll
  for (unsigned i = 0; i < at_once; ++i) {
    step(in[i]);
    if (first + i * of_block >= heads.count) continue;  // a repeated one
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      if constexpr (gated) in[i][p] = each(in[i][p], activated(open[i][p], gate.act), Times());
      y.store<wide>(row[i], begin[i] + p * lanes * wide, in[i][p]);
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels: whole rows

constexpr int most_threads = 1024;

/// A block owns a row of n numbers, a thread 8 of them.
__global__ void __launch_bounds__(most_threads) row_norm_kernel(Rows<__nv_bfloat16> y, Rows<const float> x, unsigned n, InverseRoot norm) {
  __shared__ float parts[most_threads / warp_size];
  begin_overlapped();
  const unsigned begin = threadIdx.x * wide;
  const bool owns = begin < n;
  alignas(16) float in[wide] = {}, weight[wide];
  const auto load = [](float(&to)[wide], const float* from) {
    reinterpret_cast<float4*>(to)[0] = reinterpret_cast<const float4*>(from)[0];
    reinterpret_cast<float4*>(to)[1] = reinterpret_cast<const float4*>(from)[1];
  };
  if (owns) load(in, x.row(blockIdx.x) + begin);
  if (owns && norm.weight != nullptr) load(weight, norm.weight + begin);
  float sum = 0;
#pragma unroll
  for (float z : in) sum += norm.term(z);
  sum = combined<warp_size>(sum, Plus());
  if (threadIdx.x % warp_size == 0) parts[threadIdx.x / warp_size] = sum;
  __syncthreads();
  sum = 0;
  for (unsigned warp = 0; warp < blockDim.x / warp_size; ++warp) sum += parts[warp];
  if (!owns) return;
  const float factor = norm.factor(sum);
  alignas(16) __nv_bfloat16 out[wide];
#pragma unroll
  for (int j = 0; j < wide; ++j)
    out[j] = __float2bfloat16(norm.weight != nullptr ? in[j] * factor * (weight[j] + norm.offset) : in[j] * factor);
  *reinterpret_cast<uint4*>(y.row(blockIdx.x) + begin) = *reinterpret_cast<const uint4*>(out);
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

bool bf16_in_packs(ConstTensor x) { return x.dtype == DType::bf16 && in_packs(x, wide); }
Bf16Numbers<const void> bf16(ConstTensor x) { return Bf16Numbers<const void>(numbers(x)); }

template <int lanes, int packs, template <int, int> class Step, class Input, class Parameters>
void start(const char* name, Tensor y, const Input& x, ConstTensor gate, Activation act, const Parameters& parameters,
           cudaStream_t stream) {
  constexpr unsigned n = lanes * packs * wide, of_block = threads / lanes * (on_their_way / packs);
  const Heads heads{static_cast<unsigned>(y.shape.size() / n), static_cast<unsigned>(y.row_size() / n)};
  const auto launch_kernel = [&](auto kernel) {
    launch_overlapped(name, kernel, blocks_for(heads.count, of_block), threads, 0, stream, Bf16Numbers<void>(numbers(y)), x, heads,
                      OutputGate<Bf16Numbers>{bf16(gate), act}, parameters);
  };
  gate ? launch_kernel(heads_kernel<lanes, packs, true, Step, Input, Parameters>)
       : launch_kernel(heads_kernel<lanes, packs, false, Step, Input, Parameters>);
}

/// False where groups of n numbers have no form.
template <template <int, int> class Step, class Input, class Parameters>
bool over_heads(const char* name, Tensor y, std::int64_t n, const Input& x, const Parameters& parameters, cudaStream_t stream,
                ConstTensor gate = {}, Activation act = Activation::identity) {
  constexpr std::int64_t most_rows = std::int64_t{1} << 31;
  if (y.row_size() % n != 0 || y.shape.size() / n >= most_rows) return false;
  switch (n) {
    case 64:
      return start<8, 1, Step>(name, y, x, gate, act, parameters, stream), true;
    case 128:
      return start<16, 1, Step>(name, y, x, gate, act, parameters, stream), true;
    case 256:
      return start<32, 1, Step>(name, y, x, gate, act, parameters, stream), true;
    case 512:
      return start<32, 2, Step>(name, y, x, gate, act, parameters, stream), true;
    default:
      return false;
  }
}

bool float32_in_packs(const float* x, std::int64_t stride) { return reinterpret_cast<std::uintptr_t>(x) % 16 == 0 && stride % 4 == 0; }

bool normalise_rows(const char* name, Tensor y, ConstTensor x, const InverseRoot& norm, cudaStream_t stream) {
  const std::int64_t n = x.row_size();
  if (n % wide != 0 || n > most_threads * wide || !float32_in_packs(x.f32(), x.stride) || !float32_in_packs(norm.weight, 0) ||
      !bf16_in_packs(y))
    return false;
  const unsigned block = blocks_for(n, wide * warp_size) * warp_size;
  launch_overlapped(name, row_norm_kernel, static_cast<unsigned>(x.rows()), block, 0, stream,
                    Rows<__nv_bfloat16>{static_cast<__nv_bfloat16*>(y.data), y.stride}, f32(x), static_cast<unsigned>(n), norm);
  return true;
}

}  // namespace

bool normalise_short_groups(const char* name, Tensor y, ConstTensor x, std::int64_t n, const InverseRoot& norm, ConstTensor gate,
                            Activation act, cudaStream_t stream) {
  if (x.dtype == DType::f32 && y.dtype == DType::bf16 && n == x.row_size() && !gate) return normalise_rows(name, y, x, norm, stream);
  if (!bf16_in_packs(y) || !bf16_in_packs(x) || (gate && !bf16_in_packs(gate))) return false;
  return over_heads<Normalised>(name, y, n, PlainRows{bf16(x)}, norm, stream, gate, act);
}

bool softmax_short_groups(Tensor y, ConstTensor x, std::int64_t n, float temperature, cudaStream_t stream) {
  if (!bf16_in_packs(y) || !bf16_in_packs(x)) return false;
  return over_heads<Softmax>("softmax", y, n, PlainRows{bf16(x)}, Temperature{temperature}, stream);
}

bool softmax_pair_short_groups(Tensor pair, ConstTensor shared, ConstTensor sparse, ConstTensor more, std::int64_t n, cudaStream_t stream) {
  if (!bf16_in_packs(pair) || !bf16_in_packs(shared) || !bf16_in_packs(sparse) || !bf16_in_packs(more)) return false;
  const SparsePairRows input{bf16(shared), bf16(sparse), bf16(more), static_cast<unsigned>(shared.row_size())};
  return over_heads<Softmax>("softmax", pair, n, input, Temperature{1}, stream);
}

}  // namespace statescope::cuda

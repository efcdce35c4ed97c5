// The CUDA forms of the small steps that work on each row alone. Clamps compare, for fmaxf and fminf would drop a NaN, which is to stay
// one.
#include <algorithm>
#include <limits>

#include "kernels/cuda_groups.h"
#include "kernels/cuda_operations.h"

namespace statescope::cuda {
namespace {

constexpr unsigned most_threads = 256;  // of a block
constexpr int warp_size = 32;

// ---- kernels -------------------------------------------------------------------------------------------------------------------------

/// A thread's row and first column where blocks cover a matrix (`cover` below); its next column is `all_columns()` further on.
__device__ std::int64_t own_row() { return std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y; }
__device__ unsigned own_column() { return blockIdx.y * blockDim.x + threadIdx.x; }
__device__ unsigned all_columns() { return gridDim.y * blockDim.x; }

/// A step that takes all neighbours at once.
template <class Fn>
concept OfNeighbours = requires { typename Fn::TakesNeighbours; };

/// fn(t, i, x...) of numbers i … of row t, or fn.of(x...).
template <int Width, class Fn, class... Inputs>
__device__ Pack<Width> applied(const Fn& fn, std::int64_t t, unsigned i, const Inputs&... x) {
  if constexpr (OfNeighbours<Fn>) {
    return fn.of(x...);
  } else {
    Pack<Width> out;
#pragma unroll
    for (int j = 0; j < Width; ++j) out.at[j] = fn(t, i + j, x.at[j]...);
    return out;
  }
}

/// y[t, i] = fn(t, i, x[t, i]...). A thread owns `Width` neighbours of a row at a time, reads them all, then writes: y may be any x.
template <int Width, class Output, class Fn, class... Inputs>
__global__ void map_kernel(Output y, std::int64_t rows, unsigned n, Fn fn, Inputs... x) {
  begin_overlapped();
  const std::int64_t t = own_row();
  if (t >= rows) return;
  for (unsigned begin = own_column() * Width; begin < n; begin += all_columns() * Width)
    y.template store<Width>(t, begin, applied<Width>(fn, t, begin, x.template load<Width>(t, begin)...));
}

struct Constant {
  float value;
  __device__ float operator()(std::int64_t, unsigned) const { return value; }
};

struct Same {
  __device__ float operator()(std::int64_t, unsigned, float x) const { return x; }
};

struct Activated {
  using TakesNeighbours = void;
  Activation act;
  template <int Width>
  __device__ Pack<Width> of(const Pack<Width>& x) const {
    return activated(x, act);
  }
};

struct Gated {
  using TakesNeighbours = void;
  Activation act;
  template <int Width>
  __device__ Pack<Width> of(const Pack<Width>& a, const Pack<Width>& b) const {
    return each(a, activated(b, act), Times());
  }
};

struct WeightedSum {
  float factor;
  __device__ float operator()(std::int64_t, unsigned, float a, float b) const { return a + factor * b; }
};

struct ScaledHead {
  Numbers<const void> g;
  unsigned n;
  float scale;
  __device__ float operator()(std::int64_t t, unsigned i, float x) const { return scale * g.number(t, i / n) * x; }
};

struct DividedHead {
  Numbers<const void> d;
  unsigned n;
  float eps;
  __device__ float operator()(std::int64_t t, unsigned i, float x) const { return x / (d.number(t, i / n) + eps); }
};

struct LogSigmoidDecay {
  float scale, clamp_min;
  __device__ float operator()(std::int64_t, unsigned, float x) const { return log_sigmoid_decay(x, scale, clamp_min); }
};

struct GatedDeltaDecay {
  const float *A_log, *dt_bias;
  __device__ float operator()(std::int64_t, unsigned h, float a) const { return gated_delta_decay(a, A_log[h], dt_bias[h]); }
};

struct SoftplusClamp {
  const float* dt_bias;
  float dt_min, dt_max;
  __device__ float operator()(std::int64_t, unsigned h, float x) const {
    const float dt = softplus(x + dt_bias[h]);
    return dt < dt_min ? dt_min : dt > dt_max ? dt_max : dt;
  }
};

struct OneMinusExp {
  __device__ float operator()(std::int64_t, unsigned, float x) const { return -expm1f(x); }
};

/// Combines x of the `Threads` threads that own a group (a warp, or a whole block); all of them get the result.
template <unsigned Threads, class Combine>
__device__ float combined(float x, Combine combine) {
#pragma unroll
  for (int offset = warp_size / 2; offset > 0; offset /= 2) x = combine(x, __shfl_xor_sync(~0U, x, offset));
  if constexpr (Threads > warp_size) {
    __shared__ float parts[Threads / warp_size];
    if (threadIdx.x % warp_size == 0) parts[threadIdx.x / warp_size] = x;
    __syncthreads();
    x = parts[0];
    for (unsigned warp = 1; warp < Threads / warp_size; ++warp) x = combine(x, parts[warp]);
    __syncthreads();  // before the next call writes to parts
  }
  return x;
}

/// Groups of n numbers, `in_row` of them a row.
struct Groups {
  std::int64_t count, in_row, n;
  /// The group of `Threads` threads; all of a warp have the same.
  template <unsigned Threads>
  __device__ std::int64_t own() const {
    return std::int64_t{blockIdx.x} * (most_threads / Threads) + threadIdx.x / Threads;
  }
  __device__ std::int64_t row(std::int64_t group) const { return group / in_row; }
  __device__ std::int64_t column(std::int64_t group) const { return group % in_row * n; }
};

/// y = x / (Σ x + eps)
struct ShareOfSum {
  float eps;
  __device__ float term(float x) const { return x; }
  __device__ float factor(float sum) const { return sum + eps; }
  __device__ float value(float x, std::int64_t, float factor) const { return x / factor; }
};

/// pair[t, 0] = act(shared[t]), pair[t, 1] = act(sparse[t] + more[t]), rows of n. A thread owns `Width` neighbours of both.
template <int Width, template <class> class Rows>
__global__ void sum_pair_kernel(Rows<void> pair, Rows<const void> shared, Rows<const void> sparse, Rows<const void> more, std::int64_t rows,
                                unsigned n, Activation act) {
  begin_overlapped();
  const std::int64_t t = own_row();
  if (t >= rows) return;
  for (unsigned begin = own_column() * Width; begin < n; begin += all_columns() * Width) {
    const Pack<Width> first = shared.template load<Width>(t, begin),
                      second = each(sparse.template load<Width>(t, begin), more.template load<Width>(t, begin), Plus());
    pair.template store<Width>(t, begin, activated(first, act));
    pair.template store<Width>(t, n + begin, activated(second, act));
  }
}

/// What is added to x, where x is kept, before the norm.
struct Addend {
  Numbers<const void> rows;  // absent: nothing
  Numbers<void> sum;
};

/// `Threads` threads own a group. y may be x: nobody writes before `combined` has got the terms of all.
template <unsigned Threads, int Width, class Norm, template <class> class Rows>
__global__ void norm_kernel(Rows<void> y, Rows<const void> x, Groups groups, Norm norm, OutputGate<Rows> gate, Addend addend) {
  begin_overlapped();
  const std::int64_t group = groups.own<Threads>();
  if (group >= groups.count) return;
  const std::int64_t t = groups.row(group), first = groups.column(group), begin = threadIdx.x % Threads * Width;
  float sum = 0;
  for (std::int64_t i = begin; i < groups.n; i += Threads * Width) {
    Pack<Width> in = x.template load<Width>(t, first + i);
    if (addend.rows) {
      in = each(in, addend.rows.load<Width>(t, first + i), Plus());
      addend.sum.store(t, first + i, in);
    }
#pragma unroll
    for (int j = 0; j < Width; ++j) sum += norm.term(in.at[j]);
  }
  const float factor = norm.factor(combined<Threads>(sum, Plus()));
  for (std::int64_t i = begin; i < groups.n; i += Threads * Width) {
    Pack<Width> out = x.template load<Width>(t, first + i);
#pragma unroll
    for (int j = 0; j < Width; ++j) out.at[j] = norm.value(out.at[j], i + j, factor);
    if (gate.rows) out = each(out, gate.template factors<Width>(t, first + i), Times());
    y.template store<Width>(t, first + i, out);
  }
}

/// y = e^{temperature · x − m} / Σ, m the largest exponent. A group that allows nothing (−∞ only) gives zeros. `Threads` threads own a
/// group. The product is rounded before m is taken away: fused, 1e30 · 0.3 − m would be the rounding error of m, not 0.
template <unsigned Threads, int Width>
__global__ void softmax_kernel(Numbers<void> y, Numbers<const void> x, Groups groups, float temperature) {
  begin_overlapped();
  const std::int64_t group = groups.own<Threads>();
  if (group >= groups.count) return;
  const std::int64_t t = groups.row(group), first = groups.column(group), begin = threadIdx.x % Threads * Width;
  const auto exponents = [&](std::int64_t i, float shift) {
    Pack<Width> z = x.load<Width>(t, first + i);
#pragma unroll
    for (int j = 0; j < Width; ++j) z.at[j] = __fmul_rn(temperature, z.at[j]) - shift;
    return z;
  };
  constexpr float lowest = -std::numeric_limits<float>::infinity();
  float largest = lowest;
  for (std::int64_t i = begin; i < groups.n; i += Threads * Width) {
    const Pack<Width> z = exponents(i, 0);
#pragma unroll
    for (int j = 0; j < Width; ++j) largest = fmaxf(largest, z.at[j]);
  }
  const float m = combined<Threads>(largest, Larger()), shift = m == lowest ? 0 : m;

  float sum = 0;
  for (std::int64_t i = begin; i < groups.n; i += Threads * Width) {
    const Pack<Width> z = exponents(i, shift);
#pragma unroll
    for (int j = 0; j < Width; ++j) sum += expf(z.at[j]);
  }
  const float total = combined<Threads>(sum, Plus()), inverse = total == 0 ? 0 : 1 / total;
  for (std::int64_t i = begin; i < groups.n; i += Threads * Width) {
    Pack<Width> out = exponents(i, shift);
#pragma unroll
    for (int j = 0; j < Width; ++j) out.at[j] = expf(out.at[j]) * inverse;
    y.store(t, first + i, out);
  }
}

/// cos and sin of position · ω_j, ω_j = θ^{−2j / rotary}; in float32 as the models were trained, in float64 where float32 no longer tells
/// positions apart.
__device__ void rotation(float& cosine, float& sine, std::int64_t position, unsigned j, double theta, unsigned rotary) {
  const double frequency = pow(theta, -2.0 * static_cast<double>(j) / static_cast<double>(rotary));
  if (position < (1 << 20)) {
    const float angle = __fmul_rn(static_cast<float>(position), static_cast<float>(frequency));
    sincosf(angle, &sine, &cosine);
  } else {
    double precise_sine = 0, precise_cosine = 0;
    sincos(static_cast<double>(position) * frequency, &precise_sine, &precise_cosine);
    sine = static_cast<float>(precise_sine);
    cosine = static_cast<float>(precise_cosine);
  }
}

constexpr unsigned heads_each = 4;  // an angle serves four heads, whose numbers are on their way at the same time

/// A thread owns channels j and j + half (j < half), or channel j + half alone (not rotated), of `heads_each` heads of row t. y may be x.
__global__ void rope_kernel(Numbers<void> y, Numbers<const void> x, std::int64_t rows, unsigned own_channels, unsigned heads, unsigned d,
                            unsigned rotary, std::int64_t first_position, double theta) {
  const std::int64_t t = own_row();
  const unsigned j = own_column(), half = rotary / 2, first_head = blockIdx.z * heads_each;
  if (t >= rows || j >= own_channels) return;
  const unsigned count = min(heads_each, heads - first_head);
  const std::int64_t first = std::int64_t{first_head} * d + j;
  const auto in = [&](unsigned i) { return x.number(t, first + i); };
  const auto put = [&](unsigned i, float value) { y.store<1>(t, first + i, {value}); };
  if (j >= half) {
    for (unsigned h = 0; h < count; ++h) put(h * d + half, in(h * d + half));
    return;
  }
  float a[heads_each] = {}, b[heads_each] = {};
#pragma unroll
  for (unsigned h = 0; h < heads_each; ++h) {
    if (h < count) a[h] = in(h * d), b[h] = in(h * d + half);
  }
  float cosine = 0, sine = 0;
  rotation(cosine, sine, first_position + t, j, theta, rotary);
#pragma unroll
  for (unsigned h = 0; h < heads_each; ++h) {
    if (h < count) put(h * d, a[h] * cosine - b[h] * sine), put(h * d + half, b[h] * cosine + a[h] * sine);
  }
}

/// dst[t] = src[rows[t]], without rows src[t]. A thread owns a unit (bytes that are moved at once) of row t of dst, in long rows more.
template <class Unit>
__global__ void copy_rows_kernel(Rows<Unit> dst, Rows<const Unit> src, const std::int32_t* rows, std::int64_t count, unsigned units) {
  begin_overlapped();
  const std::int64_t t = own_row();
  if (t >= count) return;
  const Unit* from = src.row(rows != nullptr ? rows[t] : t);
  for (unsigned i = own_column(); i < units; i += all_columns()) dst.row(t)[i] = from[i];
}

/// dst[t] = src[rows[t]], without rows src[t], from one type to another. A thread owns a number of row t of dst, in long rows more.
__global__ void convert_rows_kernel(Numbers<void> dst, Numbers<const void> src, const std::int32_t* rows, std::int64_t count, unsigned n) {
  begin_overlapped();
  const std::int64_t t = own_row();
  if (t >= count) return;
  const std::int64_t from = rows != nullptr ? rows[t] : t;
  for (unsigned i = own_column(); i < n; i += all_columns()) dst.store(t, i, src.load<1>(from, i));
}

/// dst[rows[t]] += weight[t] · src[t]. The block of the first t that names a row of dst owns this row and adds all that belongs there, in
/// the order of t: the same numbers every time. Blocks of later t that name it have nothing to do.
__global__ void scatter_add_rows_kernel(Numbers<void> dst, Numbers<const void> src, const std::int32_t* rows, Rows<const float> weight,
                                        std::int64_t count, std::int64_t n) {
  __shared__ unsigned mine[most_threads / warp_size];  // bit s of mine[w]: rows[begin + 32 w + s] is the block's row
  const std::int64_t own = blockIdx.x;
  const std::int32_t row = rows[own];
  bool named_before = false;
  for (std::int64_t t = threadIdx.x; t < own; t += most_threads) named_before |= rows[t] == row;
  if (__syncthreads_or(named_before)) return;

  for (std::int64_t begin = own; begin < count; begin += most_threads) {
    const bool named = begin + threadIdx.x < count && rows[begin + threadIdx.x] == row;
    const unsigned bits = __ballot_sync(~0U, named);
    if (threadIdx.x % warp_size == 0) mine[threadIdx.x / warp_size] = bits;
    if (__syncthreads_or(named)) {
      for (unsigned w = 0; w < most_threads / warp_size; ++w) {
        for (unsigned left = mine[w]; left != 0; left &= left - 1) {
          const std::int64_t t = begin + w * warp_size + __ffs(static_cast<int>(left)) - 1;
          const float factor = weight ? *weight.row(t) : 1;
          for (std::int64_t i = threadIdx.x; i < n; i += most_threads)
            dst.store<1>(row, i, {dst.number(row, i) + factor * src.number(t, i)});
        }
      }
    }
    __syncthreads();  // before mine is written again
  }
}

// ---- launchers -----------------------------------------------------------------------------------------------------------------------

[[noreturn]] void fail(const char* operation, ConstTensor y, ConstTensor x) {
  throw std::invalid_argument(std::string(operation) + ": " + y.shape.to_string() + " and " + x.shape.to_string() + " do not fit");
}

void require_same_rows(const char* operation, ConstTensor y, ConstTensor x) {
  if (y.rows() != x.rows() || y.row_size() != x.row_size()) fail(operation, y, x);
}

std::int64_t last_axis(ConstTensor x) { return x.shape.rank() > 1 ? x.shape[x.shape.rank() - 1] : 1; }

/// Threads over a matrix, one a number (more in rows of millions): in a block x runs along the columns, in the grid y does.
struct Cover {
  dim3 grid{0}, block;
};

Cover cover(std::int64_t rows, std::int64_t n) {
  if (n == 0) return {};
  constexpr unsigned most_across = 65535;  // of a grid
  const unsigned width = blocks_for(n, blocks_for(n, most_threads)), height = most_threads / width;
  return {dim3(blocks_for(rows, height), std::min(most_across, blocks_for(n, width))), dim3(width, height)};
}

template <class... Tensors>
bool all_bf16(Tensors... x) {
  return ((x.dtype == DType::bf16) && ...);
}

/// y = fn(x...), number by number; y's rows are as long as those of every x.
template <class Fn, class... Inputs>
void map(const char* name, Tensor y, cudaStream_t stream, Fn fn, Inputs... x) {
  constexpr int wide = 8;
  const std::int64_t n = y.row_size();
  const auto start = [&]<template <class> class Rows, int width>() {
    const auto [grid, block] = cover(y.rows(), n / width);
    launch_overlapped(name, map_kernel<width, Rows<void>, Fn, std::conditional_t<true, Rows<const void>, Inputs>...>, grid, block, 0,
                      stream, Rows<void>(numbers(y)), y.rows(), static_cast<unsigned>(n), fn, Rows<const void>(numbers(ConstTensor(x)))...);
  };
  const bool packs = n % wide == 0 && in_packs(y, wide) && (in_packs(x, wide) && ...);
  if (packs && all_bf16(y, x...)) return start.template operator()<Bf16Numbers, wide>();
  packs ? start.template operator()<Numbers, wide>() : start.template operator()<Numbers, 1>();
}

/// Starts `of_warp` with a warp a group or `of_block` with a block a group: a warp reads up to 1024 numbers faster than a block meets.
template <template <class> class Rows = Numbers, class Kernel, class... Parameters>
void for_groups(const char* name, Kernel of_warp, Kernel of_block, Tensor y, ConstTensor x, std::int64_t n, cudaStream_t stream,
                Parameters... parameters) {
  require_same_rows(name, y, x);
  if (n <= 0 || x.row_size() % n != 0) fail(name, y, x);
  constexpr std::int64_t most_of_a_warp = 1024;
  const Groups groups{x.shape.size() / n, x.row_size() / n, n};
  const bool warps = n <= most_of_a_warp;
  const unsigned blocks = blocks_for(groups.count, warps ? most_threads / warp_size : 1);
  launch_overlapped(name, warps ? of_warp : of_block, blocks, most_threads, 0, stream, Rows<void>(numbers(y)), Rows<const void>(numbers(x)),
                    groups, parameters...);
}

template <class Norm>
void normalise(const char* name, Tensor y, ConstTensor x, std::int64_t n, cudaStream_t stream, Norm norm, ConstTensor gate = {},
               Activation act = {}, Addend addend = {}) {
  require_same_rows(name, y, x);
  if constexpr (std::is_same_v<Norm, InverseRoot>) {
    if (!addend.rows && normalise_short_groups(name, y, x, n, norm, gate, act, stream)) return;
  }
  const auto start = [&]<template <class> class Rows, int width>() {
    for_groups<Rows>(name, norm_kernel<warp_size, width, Norm, Rows>, norm_kernel<most_threads, width, Norm, Rows>, y, x, n, stream, norm,
                     OutputGate<Rows>{Rows<const void>(numbers(gate)), act}, addend);
  };
  const auto packs = [&](int width) {
    return n % width == 0 && in_packs(y, width) && in_packs(x, width) && in_packs(gate, width) && addend.rows.in_packs(width);
  };
  const auto is_bf16 = [](ConstTensor z) { return !z || z.dtype == DType::bf16; };
  constexpr int wide = 4, widest = 8;  // 16 bytes of float32, of bf16
  if (packs(widest) && is_bf16(y) && is_bf16(x) && is_bf16(gate) && !addend.rows) return start.template operator()<Bf16Numbers, widest>();
  packs(wide) ? start.template operator()<Numbers, wide>() : start.template operator()<Numbers, 1>();
}

void require_heads(const char* name, Tensor y, ConstTensor x, ConstTensor g) {
  require_same_rows(name, y, x);
  if (g.rows() != x.rows() || g.row_size() == 0 || x.row_size() % g.row_size() != 0) fail(name, x, g);
}

unsigned head_size(ConstTensor x, ConstTensor g) { return static_cast<unsigned>(x.row_size() / g.row_size()); }

/// The rows of x as `Unit`s, of which a number and a stride must be a multiple.
template <class Unit, class Byte>
auto units_of(BasicTensor<Byte> x, std::int64_t bytes) {
  using Element = std::conditional_t<std::is_const_v<Byte>, const Unit, Unit>;
  return Rows<Element>{static_cast<Element*>(x.data), x.stride * bytes / static_cast<std::int64_t>(sizeof(Unit))};
}

template <class Unit>
void copy_units(const char* name, Tensor dst, ConstTensor src, const std::int32_t* device_rows, cudaStream_t stream) {
  const auto bytes = static_cast<std::int64_t>(size_of(src.dtype));
  const std::int64_t units = src.row_size() * bytes / static_cast<std::int64_t>(sizeof(Unit));
  const auto [grid, block] = cover(dst.rows(), units);
  launch_overlapped(name, copy_rows_kernel<Unit>, grid, block, 0, stream, units_of<Unit>(dst, bytes), units_of<Unit>(src, bytes),
                    device_rows, dst.rows(), static_cast<unsigned>(units));
}

void copy_rows(const char* name, Tensor dst, ConstTensor src, const std::int32_t* device_rows, cudaStream_t stream) {
  if (dst.dtype != src.dtype) {
    const auto [grid, block] = cover(dst.rows(), dst.row_size());
    return launch_overlapped(name, convert_rows_kernel, grid, block, 0, stream, numbers(dst), numbers(src), device_rows, dst.rows(),
                             static_cast<unsigned>(dst.row_size()));
  }
  const auto bytes = static_cast<std::int64_t>(size_of(src.dtype));
  const auto starts_aligned = [&](ConstTensor x) {
    return reinterpret_cast<std::uintptr_t>(x.data) % sizeof(uint4) == 0 && x.stride * bytes % sizeof(uint4) == 0;
  };
  if (src.row_size() * bytes % sizeof(uint4) == 0 && starts_aligned(dst) && starts_aligned(src))
    return copy_units<uint4>(name, dst, src, device_rows, stream);
  if (bytes == sizeof(std::uint16_t)) return copy_units<std::uint16_t>(name, dst, src, device_rows, stream);
  copy_units<std::uint32_t>(name, dst, src, device_rows, stream);
}

}  // namespace

void fill(Tensor x, float value, cudaStream_t stream) { map("fill", x, stream, Constant{value}); }

void copy(Tensor dst, ConstTensor src, cudaStream_t stream) {
  require_same_rows("copy", dst, src);
  if (dst.data == src.data && dst.stride == src.stride) return;
  if (dst.dtype != src.dtype) return map("copy", dst, stream, Same(), src);
  copy_rows("copy", dst, src, nullptr, stream);
}

void gather_rows(Tensor dst, ConstTensor src, const std::int32_t* device_rows, cudaStream_t stream) {
  if (dst.row_size() != src.row_size()) fail("gather_rows", dst, src);
  copy_rows("gather_rows", dst, src, device_rows, stream);
}

void scatter_add_rows(Tensor dst, ConstTensor src, const std::int32_t* device_rows, ConstTensor weight, cudaStream_t stream) {
  if (dst.row_size() != src.row_size()) fail("scatter_add_rows", dst, src);
  launch("scatter_add_rows", scatter_add_rows_kernel, static_cast<unsigned>(src.rows()), most_threads, 0, stream, numbers(dst),
         numbers(src), device_rows, f32(weight), src.rows(), src.row_size());
}

void rms_norm(Tensor y, ConstTensor x, ConstTensor weight, float eps, float offset, cudaStream_t stream) {
  const std::int64_t n = weight.shape.size();
  normalise("rms_norm", y, x, n, stream, InverseRoot{static_cast<float>(n), eps, f32(weight).data, offset});
}

void rms_norm_plain(Tensor y, ConstTensor x, std::int64_t group, float eps, cudaStream_t stream) {
  normalise("rms_norm_plain", y, x, group, stream, InverseRoot{static_cast<float>(group), eps, nullptr, 0});
}

void add_rms_norm(Tensor y, Tensor x, ConstTensor added, ConstTensor weight, float eps, float offset, cudaStream_t stream) {
  require_same_rows("add_rms_norm", x, added);
  const std::int64_t n = x.row_size();
  if (weight && weight.shape.size() != n) fail("add_rms_norm", x, weight);
  normalise("add_rms_norm", y, x, n, stream, InverseRoot{static_cast<float>(n), eps, f32(weight).data, offset}, {}, {},
            {numbers(added), numbers(x)});
}

void gated_rms_norm(Tensor y, ConstTensor x, ConstTensor weight, std::int64_t group, float eps, ConstTensor gate, Activation act,
                    cudaStream_t stream) {
  require_same_rows("gated_rms_norm", y, gate);
  normalise("gated_rms_norm", y, x, group, stream, InverseRoot{static_cast<float>(group), eps, f32(weight).data, 0}, gate, act);
}

void l2_norm(Tensor y, ConstTensor x, cudaStream_t stream) {
  normalise("l2_norm", y, x, last_axis(x), stream, InverseRoot{1, l2_norm_eps, nullptr, 0});
}

void sum_norm(Tensor y, ConstTensor x, float eps, cudaStream_t stream) {
  normalise("sum_norm", y, x, last_axis(x), stream, ShareOfSum{eps});
}

void softmax(Tensor y, ConstTensor x, float temperature, cudaStream_t stream) {
  const std::int64_t n = last_axis(x);
  if (temperature == 0) return fill(y, 1 / static_cast<float>(n), stream);  // 0 · ∞ has no value
  require_same_rows("softmax", y, x);
  if (softmax_short_groups(y, x, n, temperature, stream)) return;
  const auto start = [&](auto of_warp, auto of_block) { for_groups("softmax", of_warp, of_block, y, x, n, stream, temperature); };
  constexpr int wide = 4;
  if (n % wide == 0 && in_packs(y, wide) && in_packs(x, wide))
    return start(softmax_kernel<warp_size, wide>, softmax_kernel<most_threads, wide>);
  start(softmax_kernel<warp_size, 1>, softmax_kernel<most_threads, 1>);
}

void activate(Tensor y, ConstTensor x, Activation act, cudaStream_t stream) {
  require_same_rows("activate", y, x);
  map("activate", y, stream, Activated{act}, x);
}

void gate(Tensor y, ConstTensor a, ConstTensor b, Activation act, cudaStream_t stream) {
  require_same_rows("gate", y, a);
  require_same_rows("gate", y, b);
  map("gate", y, stream, Gated{act}, a, b);
}

void add(Tensor y, ConstTensor a, ConstTensor b, float factor, cudaStream_t stream) {
  require_same_rows("add", y, a);
  require_same_rows("add", y, b);
  map("add", y, stream, WeightedSum{factor}, a, b);
}

void scale_heads(Tensor y, ConstTensor x, ConstTensor g, float scale, cudaStream_t stream) {
  require_heads("scale_heads", y, x, g);
  map("scale_heads", y, stream, ScaledHead{numbers(g), head_size(x, g), scale}, x);
}

void sum_pair(Tensor pair, ConstTensor shared, ConstTensor sparse, ConstTensor more, Activation act, cudaStream_t stream) {
  constexpr int wide = 8;
  const std::int64_t n = shared.row_size();
  for (const ConstTensor& x : {shared, sparse, more}) require_same_rows("sum_pair", pair.columns(n, {n}), x);
  const auto start = [&]<template <class> class Rows, int width>() {
    const auto [grid, block] = cover(pair.rows(), n / width);
    launch_overlapped("sum_pair", sum_pair_kernel<width, Rows>, grid, block, 0, stream, Rows<void>(numbers(pair)),
                      Rows<const void>(numbers(shared)), Rows<const void>(numbers(sparse)), Rows<const void>(numbers(more)), pair.rows(),
                      static_cast<unsigned>(n), act);
  };
  const bool packs = n % wide == 0 && in_packs(pair, wide) && in_packs(shared, wide) && in_packs(sparse, wide) && in_packs(more, wide);
  if (packs && all_bf16(pair, shared, sparse, more)) return start.template operator()<Bf16Numbers, wide>();
  packs ? start.template operator()<Numbers, wide>() : start.template operator()<Numbers, 1>();
}

void softmax_pair(Tensor pair, ConstTensor shared, ConstTensor sparse, ConstTensor more, cudaStream_t stream) {
  for (const ConstTensor& x : {shared, sparse, more}) require_same_rows("softmax_pair", pair.columns(x.row_size(), {x.row_size()}), x);
  if (softmax_pair_short_groups(pair, shared, sparse, more, last_axis(pair), stream)) return;
  sum_pair(pair, shared, sparse, more, Activation::identity, stream);
  softmax(pair, pair, 1, stream);
}

void divide_heads(Tensor y, ConstTensor x, ConstTensor d, float eps, cudaStream_t stream) {
  require_heads("divide_heads", y, x, d);
  map("divide_heads", y, stream, DividedHead{numbers(d), head_size(x, d), eps}, x);
}

void log_sigmoid_decay(Tensor y, ConstTensor x, float normalizer, float clamp_min, cudaStream_t stream) {
  require_same_rows("log_sigmoid_decay", y, x);
  map("log_sigmoid_decay", y, stream, LogSigmoidDecay{1 / normalizer, clamp_min}, x);
}

void gated_delta_decay(Tensor y, ConstTensor a, ConstTensor A_log, ConstTensor dt_bias, cudaStream_t stream) {
  require_same_rows("gated_delta_decay", y, a);
  if (A_log.shape.size() != a.row_size() || dt_bias.shape.size() != a.row_size()) fail("gated_delta_decay", a, A_log);
  map("gated_delta_decay", y, stream, GatedDeltaDecay{f32(A_log).data, f32(dt_bias).data}, a);
}

void softplus_clamp(Tensor y, ConstTensor x, ConstTensor dt_bias, float dt_min, float dt_max, cudaStream_t stream) {
  require_same_rows("softplus_clamp", y, x);
  if (dt_bias.shape.size() != x.row_size()) fail("softplus_clamp", x, dt_bias);
  map("softplus_clamp", y, stream, SoftplusClamp{f32(dt_bias).data, dt_min, dt_max}, x);
}

void one_minus_exp(Tensor y, ConstTensor x, cudaStream_t stream) {
  require_same_rows("one_minus_exp", y, x);
  map("one_minus_exp", y, stream, OneMinusExp(), x);
}

void rope(Tensor y, ConstTensor x, std::int64_t first, double theta, std::int64_t rotary, cudaStream_t stream) {
  const std::int64_t d = last_axis(x);
  if (rotary < 0 || rotary > d || rotary % 2 != 0)
    throw std::invalid_argument("rope: " + std::to_string(rotary) + " channels of " + x.shape.to_string());
  require_same_rows("rope", y, x);
  if (x.row_size() == 0) return;
  const bool in_place = y.data == x.data;
  const std::int64_t heads = x.row_size() / d, own_channels = in_place ? rotary / 2 : d - rotary / 2;
  auto [grid, block] = cover(y.rows(), own_channels);
  grid.z = blocks_for(heads, heads_each);
  launch("rope", rope_kernel, grid, block, 0, stream, numbers(y), numbers(x), y.rows(), static_cast<unsigned>(own_channels),
         static_cast<unsigned>(heads), static_cast<unsigned>(d), static_cast<unsigned>(rotary), first, theta);
}

}  // namespace statescope::cuda

// A token's operations by one kernel that stays on all multiprocessors. Weights do not depend on what is computed, so every warp has the
// next few kilobytes of what it will multiply on their way at all times, also while the blocks wait for each other between two levels.
#include "kernels/cuda_step.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/cuda_activation.h"

namespace statescope::cuda {
namespace {

using Limits = StepLimits;

constexpr int warp_size = 32, warps = Limits::warps_of_block, threads = warps * warp_size;
constexpr int groups = Limits::groups_of_block, group_warps = warps / groups, group_threads = threads / groups;
constexpr int halves = Limits::halves_of_block, half_warps = warps / halves, half_threads = threads / halves;
constexpr int rows_together = Limits::outputs_together;
constexpr int part_bytes = 512, stages = 5;  // of a row in a stage: 16 bytes a lane; stages of a warp
constexpr int code_buffers = 3;              // the level at work, the next one, and the one that is being fetched
constexpr int chunk = 128;                   // numbers that a warp holds at four a lane

/// How far a warp is with what it fetches: the next part to fetch (of a unit of rows of a stream) and its place, and the next place to
/// read.
struct IncomingState {
  int streams, stream, unit, part, in, slot;
  unsigned parity;
};

struct alignas(128) Shared {
  char ring[warps][stages][rows_together][part_bytes];
  float x[Limits::inputs];  // the input of streamed products, or what memories work with
  StepStream streams[Limits::streams];
  StepInstruction code[code_buffers][Limits::level_instructions];
  std::int32_t levels[Limits::levels + 8];
  std::uint64_t full[warps][stages];
  IncomingState incoming[warps];
  int buffer[warps];  // which of `partial` comes next
  float partial[groups][2][group_warps * rows_together];
  float sums[Limits::inputs / chunk];
};

struct StepLaunch {
  const StepInstruction* code;
  const std::int32_t* levels;  // [count + 1]: twice the first instruction, plus one where blocks wait for each other before
  const StepStream* streams;
  int level_count, stream_count;
  unsigned* arrivals;
  unsigned waited;
  std::int32_t ids[Limits::ids];
};

// ---- kernels -------------------------------------------------------------------------------------------------------------------------

__device__ int lane() { return static_cast<int>(threadIdx.x) % warp_size; }
__device__ int warp() { return static_cast<int>(threadIdx.x) / warp_size; }
__device__ Shared& of_block() {
  extern __shared__ __align__(128) char memory[];
  return *reinterpret_cast<Shared*>(memory);
}
__device__ int blocks() { return static_cast<int>(gridDim.x); }

/// The first piece of work of a worker; the next one is all workers further on. Neighbouring pieces lie on different multiprocessors.
__device__ int first_piece(int worker_of_block, int workers_of_block, int offset) {
  const int own = worker_of_block * blocks() + static_cast<int>(blockIdx.x) - offset;
  return own < 0 ? own + workers_of_block * blocks() : own;
}

template <class Combine>
__device__ float over_warp(float x, Combine combine) {
#pragma unroll
  for (int distance = warp_size / 2; distance > 0; distance /= 2) x = combine(x, __shfl_xor_sync(~0U, x, distance));
  return x;
}
__device__ float sum_over_warp(float x) {
  return over_warp(x, [](float a, float b) { return a + b; });
}
__device__ float largest_of_warp(float x) {
  return over_warp(x, [](float a, float b) { return fmaxf(a, b); });
}

__device__ const float* floats(const void* p) { return static_cast<const float*>(p); }
__device__ float* floats(void* p) { return static_cast<float*>(p); }
__device__ const std::int32_t* indices(const void* p) { return static_cast<const std::int32_t*>(p); }
/// What other blocks may have written: never from the first cache.
__device__ float number_at(const void* p, std::int64_t i) { return __ldcg(floats(p) + i); }
__device__ float4 four_at(const void* p, std::int64_t i) { return __ldcg(reinterpret_cast<const float4*>(floats(p) + i)); }

__device__ float stored_number(const void* row, std::int64_t i, DType dtype) {
  if (dtype == DType::f32) return __ldcg(floats(row) + i);
  const unsigned short bits = __ldcg(static_cast<const unsigned short*>(row) + i);
  if (dtype == DType::bf16) return __uint_as_float(static_cast<unsigned>(bits) << 16);
  return __half2float(__ushort_as_half(bits));
}

// -- maps: what happens to a number

__device__ __noinline__ float softplus(float x) { return (x < 0 ? 0 : x) + log1pf(expf(-fabsf(x))); }

/// Called, not inlined: what a level runs has to stay small, or the multiprocessor waits for instructions.
__device__ __noinline__ float activated_number(float x, Activation act) { return activated(x, act); }
__device__ __noinline__ float exponential(float x) { return expf(x); }

/// Numbers that a thread need not read from memory: the one that it wrote last, and one that it has asked for in advance.
struct Known {
  const float *last_at, *ahead_at;
  float last, ahead;
};

__device__ float taken(const void* p, int i, const Known& known) {
  const float* at = floats(p) + i;
  return at == known.last_at ? known.last : at == known.ahead_at ? known.ahead : __ldcg(at);
}

/// y[c] = act( bias[c] + Σ_j weight[c, j] · input_j ): all but the last input are the cache's, which moves up by one.
template <int Taps>
__device__ float convolved(const StepInstruction& op, int c, float x) {
  const float* weight = floats(op.b) + std::int64_t{c} * Taps;
  float sum = op.d != nullptr ? number_at(op.d, c) : 0, input[Taps];
#pragma unroll
  for (int j = 0; j < Taps; ++j) input[j] = j + 1 < Taps ? number_at(op.from, std::int64_t{j} * op.n + c) : x;
#pragma unroll
  for (int j = 0; j < Taps; ++j) sum += __ldcg(weight + j) * input[j];
#pragma unroll
  for (int j = 0; j + 1 < Taps; ++j) floats(op.to)[std::int64_t{j} * op.n + c] = input[j + 1];
  return activated_number(sum, op.act);
}

/// Any number of taps. Oldest first: where old and new cache are the same memory, each number is read before it is overwritten.
template <>
__device__ float convolved<0>(const StepInstruction& op, int c, float x) {
  const int w = op.m;
  float sum = op.d != nullptr ? number_at(op.d, c) : 0, input = number_at(op.from, c);
  for (int j = 0; j < w; ++j) {
    const float next = j + 2 < w ? number_at(op.from, (j + std::int64_t{1}) * op.n + c) : x;
    sum += number_at(op.b, std::int64_t{c} * w + j) * input;
    if (j + 1 < w) floats(op.to)[std::int64_t{j} * op.n + c] = next;
    input = next;
  }
  return activated_number(sum, op.act);
}

/// max(logσ(x) / normalizer, clamp_min),  logσ(x) = −softplus(−x)
__device__ float log_sigmoid_decay(const StepInstruction& op, float x) {
  const float y = -softplus(-x) / op.number[0];
  return y < op.number[1] ? op.number[1] : y;
}

__device__ float mapped(const StepInstruction& op, int i, const Known& known, const std::int32_t* ids) {
  if (op.code == StepCode::fill) return op.number[0];
  if (op.code == StepCode::embed) return stored_number(static_cast<const char*>(op.a) + ids[op.m] * op.stride, i, op.dtype);
  const float a = taken(op.a, i, known);
  switch (op.code) {
    case StepCode::activate:
      return activated_number(a, op.act);
    case StepCode::gate:
      return a * activated_number(taken(op.b, i, known), op.act);
    case StepCode::add:
      return a + op.number[0] * taken(op.b, i, known);
    case StepCode::scale_heads:
      return op.number[0] * taken(op.b, i / op.m, known) * a;
    case StepCode::divide_heads:
      return a / (taken(op.b, i / op.m, known) + op.number[0]);
    case StepCode::log_sigmoid_decay:
      return log_sigmoid_decay(op, a);
    case StepCode::gated_delta_decay:
      return -expf(taken(op.b, i, known)) * softplus(a + taken(op.c, i, known));
    case StepCode::softplus_clamp: {
      const float dt = softplus(a + taken(op.b, i, known));
      return dt < op.number[0] ? op.number[0] : dt > op.number[1] ? op.number[1] : dt;
    }
    case StepCode::one_minus_exp:
      return -expm1f(a);
    case StepCode::convolution:
      return op.m == 4 ? convolved<4>(op, i, a) : convolved<0>(op, i, a);
    default:
      return a;
  }
}

/// Number i of `count` maps, one after the other.
__device__ __noinline__ void run_maps(const StepInstruction* op, int count, int i, Known known, const std::int32_t* ids) {
  for (int j = 0; j < count; ++j, ++op) {
    const float y = mapped(*op, i, known, ids);
    float* to = floats(op->y) + i;
    *to = y;
    known = {to, nullptr, y, 0};  // what was asked for may have been written since
  }
}

/// A warp owns 32 neighbours at a time.
__device__ __noinline__ void run_map(const StepInstruction& op, const std::int32_t* ids) {
  const int pieces = (op.n - 1) / warp_size + 1;
  for (int piece = first_piece(warp(), warps, op.offset); piece < pieces; piece += warps * blocks()) {
    const int i = piece * warp_size + lane();
    if (i < op.n) run_maps(&op, 1 + op.followers, i, {}, ids);
  }
}

// -- rows: what happens to a group of numbers, each by a warp

/// y = x · (Σ x² / divisor + eps)^{−1/2} ⊙ (weight + offset), where there is a weight
__device__ float root_factor(const StepInstruction& op, float sum) { return 1 / sqrtf(sum / op.number[0] + op.number[1]); }
__device__ float root_value(const StepInstruction& op, float x, int i, float factor) {
  return op.b != nullptr ? x * factor * (number_at(op.b, i) + op.number[2]) : x * factor;
}

/// visit(i, x_i) for the numbers of a group that a lane owns; eight of them are on their way at a time.
template <class Visit>
__device__ void for_group(const float* x, int m, const Visit& visit) {
  constexpr int together = 8;
#pragma unroll 1
  for (int first = lane(); first < m; first += together * warp_size) {
    float value[together];
#pragma unroll
    for (int j = 0; j < together; ++j) value[j] = first + j * warp_size < m ? __ldcg(x + first + j * warp_size) : 0;
#pragma unroll
    for (int j = 0; j < together; ++j) {
      if (first + j * warp_size < m) visit(first + j * warp_size, value[j]);
    }
  }
}

__device__ __noinline__ void norm_group(const StepInstruction& op, int begin) {
  const float* x = floats(op.a) + begin;
  float* y = floats(op.y) + begin;
  const bool root = op.code == StepCode::inverse_root_norm;
  float sum = 0;
  for_group(x, op.m, [&](int, float value) { sum += root ? value * value : value; });
  sum = sum_over_warp(sum);
  const float factor = root ? root_factor(op, sum) : sum + op.number[0];
  for_group(x, op.m, [&](int i, float value) { y[i] = root ? root_value(op, value, i, factor) : value / factor; });
}

/// y = e^{temperature · x − m} / Σ, m the largest exponent. The product is rounded before m is taken away: fused, 1e30 · 0.3 − m would be
/// the rounding error of m, not 0.
__device__ __noinline__ void softmax_group(const StepInstruction& op, int begin) {
  const float* x = floats(op.a) + begin;
  float* y = floats(op.y) + begin;
  constexpr float lowest = -std::numeric_limits<float>::infinity();
  const float temperature = op.number[0];
  float largest = lowest, sum = 0;
  for_group(x, op.m, [&](int, float value) { largest = fmaxf(largest, __fmul_rn(temperature, value)); });
  largest = largest_of_warp(largest);
  const float shift = largest == lowest ? 0 : largest;
  for_group(x, op.m, [&](int, float value) { sum += expf(__fmul_rn(temperature, value) - shift); });
  sum = sum_over_warp(sum);
  const float inverse = sum == 0 ? 0 : 1 / sum;
  for_group(x, op.m, [&](int i, float value) { y[i] = expf(__fmul_rn(temperature, value) - shift) * inverse; });
}

/// A number for score n of a row: the larger, the earlier its place (a NaN last, of equals the lowest index). None is 0 or `before_all`.
using Order = unsigned long long;
constexpr Order before_all = ~Order{0};

__device__ Order order_of(float score, int n) {
  const std::uint32_t bits = __float_as_uint(score + 0.0F), sign = 0x80000000U;
  const std::uint32_t size = isnan(score) ? 0 : (bits & sign) != 0 ? ~bits : bits | sign;
  return (Order{size} << 32) | ~static_cast<std::uint32_t>(n);
}

/// Choice w is the first in order after choice w − 1.
__device__ void choose(const StepInstruction& op) {
  Order last = before_all;
  for (int w = 0; w < op.m; ++w) {
    Order next = 0;
    for (int i = lane(); i < op.n; i += warp_size) {
      const Order order = order_of(number_at(op.a, i), i);
      if (order < last && order > next) next = order;
    }
    for (int distance = warp_size / 2; distance > 0; distance /= 2) {
      const Order other = __shfl_xor_sync(~0U, next, distance);
      next = other > next ? other : next;
    }
    last = next;
    if (lane() == 0) static_cast<std::int32_t*>(op.y)[w] = static_cast<std::int32_t>(~static_cast<std::uint32_t>(last));
  }
}

/// y_n = gate_n / Σ_{m chosen} gate_m for those chosen, else 0. y may be gate: every lane has the sum before one of them writes.
__device__ void renormalise_row(const StepInstruction& op) {
  const std::int32_t* chosen = indices(op.selected);
  float sum = 0;
  for (int w = 0; w < op.m; ++w) sum += number_at(op.a, __ldcg(chosen + w));
  __syncwarp();
  for (int i = lane(); i < op.n; i += warp_size) {
    bool is_chosen = false;
    for (int w = 0; w < op.m; ++w) is_chosen |= __ldcg(chosen + w) == i;
    floats(op.y)[i] = is_chosen ? number_at(op.a, i) / sum : 0;
  }
}

/// k_r = exp(z_r) / Σ_{j∈R} exp(z_j) for the topk largest, else 0; their log decay stays, that of the others becomes 0. k may be z: every
/// lane keeps what it needs of it in registers before one of them writes.
__device__ __noinline__ void row_sparse_head(const StepInstruction& op, int begin) {
  constexpr int most = Limits::head / warp_size;
  const float* z = floats(op.a) + begin;
  float own[most], largest = __ldcg(z);
  unsigned chosen = 0;  // bit j: number j
#pragma unroll
  for (int j = 0; j < most; ++j) {
    const int r = j * warp_size + lane();
    own[j] = r < op.m ? __ldcg(z + r) : 0;
    if (r >= op.m) continue;
    largest = largest < own[j] ? own[j] : largest;
    const Order order = order_of(own[j], r);
    int rank = 0;
    for (int i = 0; i < op.m; ++i) rank += order_of(__ldcg(z + i), i) > order;
    if (rank < op.writers) chosen |= 1U << j;
  }
  // Every lane began with z_0: a NaN there stays with all of them, one elsewhere is the smallest, as in the CPU form.
  largest = over_warp(largest, [](float a, float b) { return a < b ? b : a; });
  float sum = 0;
#pragma unroll
  for (int j = 0; j < most; ++j) {
    own[j] = (chosen >> j & 1U) != 0 ? expf(own[j] - largest) : 0;
    sum += own[j];
  }
  sum = sum_over_warp(sum);
#pragma unroll
  for (int j = 0; j < most; ++j) {
    const int r = j * warp_size + lane();
    if (r >= op.m) continue;
    floats(op.y)[begin + r] = own[j] / sum;
    if (op.flags != 0 && (chosen >> j & 1U) == 0) floats(op.to)[begin + r] = 0;
  }
}

__device__ void run_row_group(const StepInstruction& op, int group) {
  switch (op.code) {
    case StepCode::softmax:
      return softmax_group(op, group * op.m);
    case StepCode::top_k:
      return choose(op);
    case StepCode::renormalise:
      return renormalise_row(op);
    case StepCode::row_sparse:
      return row_sparse_head(op, group * op.m);
    default:
      return norm_group(op, group * op.m);
  }
}

__device__ __noinline__ void run_row(const StepInstruction& op) {
  const int count = op.code == StepCode::top_k || op.code == StepCode::renormalise ? 1 : op.n / op.m;
  for (int group = first_piece(warp(), warps, op.offset); group < count; group += warps * blocks()) {
    for (int j = 0; j <= op.followers; ++j) {
      run_row_group((&op)[j], group);
      __syncwarp();
    }
  }
}

// -- small products: weights are read where they lie

/// Two numbers of a weight.
__device__ float2 widened(unsigned pair, DType dtype) {
  if (dtype == DType::f16) return __half22float2(*reinterpret_cast<const __half2*>(&pair));
  return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xFFFF0000U)};
}

/// Adds to `sum` the product of 16 bytes of a weight and the numbers x (the first half of them `low`).
__device__ float multiplied(float sum, uint4 words, float4 low, float4 high, DType dtype) {
  if (dtype == DType::f32) {
    sum = fmaf(low.x, __uint_as_float(words.x), sum);
    sum = fmaf(low.y, __uint_as_float(words.y), sum);
    sum = fmaf(low.z, __uint_as_float(words.z), sum);
    return fmaf(low.w, __uint_as_float(words.w), sum);
  }
  const float x[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  const unsigned pair[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 w = widened(pair[i], dtype);
    sum = fmaf(x[2 * i], w.x, sum);
    sum = fmaf(x[2 * i + 1], w.y, sum);
  }
  return sum;
}

/// How a warp is dealt out over the rows of a small product: `lanes` a row, which read 16 bytes at a time where rows are `wide`.
struct SmallRows {
  int lanes, pieces;
  bool wide;
  __device__ int together() const { return warp_size / lanes; }
};

__device__ SmallRows small_rows(const StepInstruction& op) {
  const auto bits = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p); };
  const int numbers = op.dtype == DType::f32 ? 4 : 8;
  const bool wide = ((bits(op.a) | bits(op.b) | bits(op.c) | static_cast<std::uintptr_t>(op.stride)) & 15U) == 0 && op.m % numbers == 0;
  const int turns = wide ? op.m / numbers : op.m;
  int lanes = 1;
  while (lanes < warp_size && lanes < turns) lanes *= 2;
  const int together = warp_size / lanes;
  return {lanes, (op.n - 1) / together + 1, wide};
}

/// The lane's part of the product of a row and the input.
__device__ __noinline__ float small_product(const void* row, const StepInstruction& op, const SmallRows& rows) {
  float sum = 0;
  const int l = lane() % rows.lanes;
  if (!rows.wide) {
    for (int i = l; i < op.m; i += rows.lanes) sum = fmaf(number_at(op.a, i), stored_number(row, i, op.dtype), sum);
    return sum;
  }
  const int numbers = op.dtype == DType::f32 ? 4 : 8;
  for (int i = l * numbers; i < op.m; i += rows.lanes * numbers) {
    const uint4 words = __ldcg(static_cast<const uint4*>(row) + i / numbers);
    const float4 low = four_at(op.a, i), high = numbers > 4 ? four_at(op.a, i + 4) : low;
    sum = multiplied(sum, words, low, high, op.dtype);
  }
  return sum;
}

/// A warp owns the outputs of `together` rows at a time.
__device__ __noinline__ void run_linear(const StepInstruction& op, const std::int32_t* ids) {
  const SmallRows rows = small_rows(op);
  for (int piece = first_piece(warp(), warps, op.offset); piece < rows.pieces; piece += warps * blocks()) {
    const int o = piece * rows.together() + lane() / rows.lanes;
    const std::int64_t at = min(o, op.n - 1) * op.stride;
    float y = small_product(static_cast<const char*>(op.b) + at, op, rows);
    float second = op.c != nullptr ? small_product(static_cast<const char*>(op.c) + at, op, rows) : 0;
    for (int distance = rows.lanes / 2; distance > 0; distance /= 2) {
      y += __shfl_xor_sync(~0U, y, distance);
      second += __shfl_xor_sync(~0U, second, distance);
    }
    if (lane() % rows.lanes == 0 && o < op.n) {
      if (op.d != nullptr) y += number_at(op.d, o);
      if (op.c != nullptr) y = activated_number(y, Activation::silu) * second;
      floats(op.y)[o] = y;
      run_maps(&op + 1, op.followers, o, {floats(op.y) + o, nullptr, y, 0}, ids);
    }
    __syncwarp();
  }
}

#if __CUDA_ARCH__ >= 900

// -- streamed products

__device__ unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

/// The parts of weights that a warp will multiply next, in shared memory or on their way there. Rows, or pairs of rows, of a weight are
/// dealt out four at a time to groups of four warps; of these, each has every fourth part (of 512 bytes) of the rows, which warp begins
/// turning with the rows. What it is to fetch does not wait for what is computed, so it runs ahead through all weights of the program.
class Incoming {
 public:
  __device__ Incoming(Shared& shared, const IncomingState& state) : shared_(shared), state_(state), from_(nullptr), row_bytes_(0) {
    if (state_.stream < state_.streams) point();
  }
  /// At the start of a program.
  static __device__ void begin(Shared& shared, int streams) {
    if (lane() == 0) {
      for (int s = 0; s < stages; ++s)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&shared.full[warp()][s])));
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncwarp();
    Incoming incoming(shared, {streams, streams, 0, 0, 0, 0, 0});
    incoming.state_.stream = -1;
    incoming.enter_stream();
    for (int s = 0; s < stages; ++s) incoming.fetch();
    incoming.keep();
  }
  /// For who comes next.
  __device__ void keep() const {
    __syncwarp();
    if (lane() == 0) shared_.incoming[warp()] = state_;
    __syncwarp();
  }

  /// The oldest part, once it is there.
  __device__ const char* wait() const {
    asm volatile(
        "{\n"
        ".reg .pred there;\n"
        "again:\n"
        "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 there, "
        "[%0], %1;\n"
        "@!there bra again;\n"
        "}" ::"r"(shared_address(&shared_.full[warp()][state_.slot])),
        "r"(state_.parity)
        : "memory");
    return &shared_.ring[warp()][state_.slot][0][0];
  }
  /// Gives its place to a new one.
  __device__ void release() {
    __syncwarp();
    fetch();
    if (++state_.slot == stages) {
      state_.slot = 0;
      state_.parity ^= 1;
    }
  }

  static __device__ int first_unit(int offset) { return first_piece(warp() / group_warps, groups, offset); }
  static __device__ int first_part(int unit) { return (warp() - unit) & (group_warps - 1); }
  static __device__ int all_groups() { return groups * blocks(); }

 private:
  /// To the first part of the next weight that the warp has any of.
  __device__ void enter_stream() {
    while (++state_.stream < state_.streams) {
      state_.unit = first_unit(shared_.streams[state_.stream].offset);
      if (find_part()) return;
    }
  }
  /// From the current unit on, within the weight.
  __device__ bool find_part() {
    const StepStream& s = shared_.streams[state_.stream];
    const int together = s.second != nullptr ? rows_together / 2 : rows_together;
    for (; state_.unit * together < s.rows; state_.unit += all_groups()) {
      state_.part = first_part(state_.unit);
      if (state_.part * part_bytes >= s.row_bytes) continue;
      point();
      return true;
    }
    return false;
  }
  /// Lane r brings row r.
  __device__ void point() {
    const StepStream& s = shared_.streams[state_.stream];
    const bool pairs = s.second != nullptr;
    const int row = min(pairs ? state_.unit * 2 + lane() % 2 : state_.unit * rows_together + lane() % rows_together, s.rows - 1);
    from_ = static_cast<const char*>(pairs && lane() % rows_together >= 2 ? s.second : s.weight) + std::int64_t{row} * s.stride_bytes;
    row_bytes_ = s.row_bytes;
  }
  /// Weights are read once: the second cache may drop them first.
  __device__ void fetch() {
    if (state_.stream >= state_.streams) return;
    const int begin = state_.part * part_bytes, bytes = min(part_bytes, row_bytes_ - begin);
    const unsigned barrier = shared_address(&shared_.full[warp()][state_.in]);
    if (lane() == 0)
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes * rows_together) : "memory");
    __syncwarp();
    if (lane() < rows_together) {
      constexpr std::uint64_t evict_first = 0x12F0000000000000;
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes."
          "L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(shared_address(&shared_.ring[warp()][state_.in][lane()][0])),
          "l"(from_ + begin), "r"(bytes), "r"(barrier), "l"(evict_first)
          : "memory");
    }
    state_.in = state_.in + 1 == stages ? 0 : state_.in + 1;
    state_.part += group_warps;
    if (state_.part * part_bytes < row_bytes_) return;
    state_.unit += all_groups();
    if (!find_part()) enter_stream();
  }

  Shared& shared_;
  IncomingState state_;
  const char* from_;  // the lane's row
  int row_bytes_;
};

/// How a weight meets its input. Tensor cores multiply bfloat16, and a float32 number is the sum of two of them (and 2⁻¹⁷ of it). A product
/// of 16 × 16 and 16 × 8 numbers takes 2 rows × 128 columns of the weight: its 16 rows are (row, eighth s), its 8 columns the eighths of
/// one term of the input, its depth 16 numbers of an eighth; of the results those with the same s on both sides mean something. Other types
/// are multiplied by float32 arithmetic.
__device__ bool on_tensor_cores(const StepInstruction& op) { return op.dtype == DType::bf16 && op.m % 128 == 0; }

/// Where four numbers of an input begin that 16 bytes of a weight are multiplied by, at once or, with two bytes a number, in two goes: so
/// that the lanes of a warp read side by side.
__device__ int place_of_four(int i, int n, bool two_bytes) { return two_bytes ? (i / 4 % 2) * (n / 2) + i / 8 * 4 : i; }

/// The two terms of neighbours, as pairs.
__device__ void split(unsigned (&terms)[2], float a, float b) {
  const __nv_bfloat162 first = __floats2bfloat162_rn(a, b);
  const float rest_a = isfinite(a) ? a - __low2float(first) : 0, rest_b = isfinite(b) ? b - __high2float(first) : 0;
  const __nv_bfloat162 second = __floats2bfloat162_rn(rest_a, rest_b);
  terms[0] = *reinterpret_cast<const unsigned*>(&first);
  terms[1] = *reinterpret_cast<const unsigned*>(&second);
}

/// Puts numbers i to i + 3 where the lanes of a warp find what they multiply a part of a row by: of the 32 pieces of eight numbers that a
/// part has, pieces 16 j + s and 16 j + 8 + s are the depth of eighth s in product j. Lane 4 s + q has numbers 2 q and 2 q + 1 of each,
/// term by term.
__device__ void place_terms(float* x, int i, float4 v) {
  const int part = i / 256, piece = i / 8 % 32, j = piece / 16, upper = piece / 8 % 2, owner = piece % 8 * 4 + i % 8 / 2;
  unsigned* to = reinterpret_cast<unsigned*>(x) + part * 256 + j * 128 + owner * 4 + upper;
  unsigned low[2], high[2];
  split(low, v.x, v.y);
  split(high, v.z, v.w);
#pragma unroll
  for (int t = 0; t < 2; ++t) {
    to[t * 2] = low[t];
    to[t * 2 + 4] = high[t];
  }
}

__device__ float4 operator*(float4 a, float4 b) { return {a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w}; }
__device__ float4 operator*(float4 a, float b) { return {a.x * b, a.y * b, a.z * b, a.w * b}; }
__device__ float4 operator+(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }
__device__ float4 activated(float4 x, Activation act) {
  return {activated_number(x.x, act), activated_number(x.y, act), activated_number(x.z, act), activated_number(x.w, act)};
}

/// What a step reads beside numbers i to i + 3 of its first operand.
__device__ float4 second_operand(const StepInstruction& step, int i) {
  if (step.b == nullptr) return {};
  if (step.code == StepCode::inverse_root_norm) return four_at(step.b, i % step.m);
  if (step.code == StepCode::gate) return four_at(step.b, i);
  const float g = number_at(step.b, i / step.m);
  return {g, g, g, g};
}

/// Of each group (Σ x² / divisor + eps)^{−1/2}, for the group of each of a thread's fours. A warp holds 128 neighbours of every four.
template <int fours>
__device__ void root_factors(float (&factor)[fours], const StepInstruction& step, const float4 (&v)[fours], Shared& shared) {
  const int n = step.n, m = step.m;
  const bool within_warp = m < chunk && m < n;
#pragma unroll
  for (int j = 0; j < fours; ++j) {
    const float4 square = v[j] * v[j];
    float sum = (square.x + square.y) + (square.z + square.w);
#pragma unroll
    for (int distance = 1; distance < warp_size; distance *= 2) {
      const float other = __shfl_xor_sync(~0U, sum, distance);
      if (!within_warp || distance < m / 4) sum += other;
    }
    factor[j] = sum;
    if (!within_warp && lane() == 0) shared.sums[warp() + j * warps] = sum;
  }
  if (!within_warp) __syncthreads();
#pragma unroll
  for (int j = 0; j < fours; ++j) {
    const int i = (static_cast<int>(threadIdx.x) + j * threads) * 4;
    if (!within_warp && i < n) {
      const int count = m == n ? (n - 1) / chunk + 1 : m / chunk, first = m == n ? 0 : i / m * count;
      factor[j] = 0;
      for (int c = 0; c < count; ++c) factor[j] += shared.sums[first + c];
    }
    factor[j] = root_factor(step, factor[j]);
  }
}

template <int fours>
__device__ void apply_step(float4 (&v)[fours], const StepInstruction& step, const float4 (&operand)[fours], Shared& shared) {
  if (step.code == StepCode::inverse_root_norm) {
    float factor[fours];
    root_factors(factor, step, v, shared);
    const float offset = step.number[2];
#pragma unroll
    for (int j = 0; j < fours; ++j) {
      v[j] = v[j] * factor[j];
      if (step.b != nullptr) v[j] = v[j] * (operand[j] + float4{offset, offset, offset, offset});
    }
    return;
  }
#pragma unroll
  for (int j = 0; j < fours; ++j) {
    if (step.code == StepCode::gate) v[j] = v[j] * activated(operand[j], step.act);
    if (step.code == StepCode::scale_heads) v[j] = v[j] * (operand[j] * step.number[0]);
    if (step.code == StepCode::activate) v[j] = activated(v[j], step.act);
  }
}

/// The input of a product, through its steps, into shared memory. A thread owns four neighbours out of every 2048.
template <int fours>
__device__ __noinline__ void take_input(const StepInstruction& op) {
  Shared& shared = of_block();
  __syncthreads();  // nobody needs the one before it any more
  const int n = op.m, count = op.q_steps;
  const StepInstruction *first = &op + 1 + op.followers, *second = first + 1;
  float4 v[fours], of_first[fours], of_second[fours];
#pragma unroll
  for (int j = 0; j < fours; ++j) {
    const int i = (static_cast<int>(threadIdx.x) + j * threads) * 4;
    v[j] = of_first[j] = of_second[j] = {};
    if (i < n) {
      v[j] = four_at(op.a, i);
      if (count > 0) of_first[j] = second_operand(*first, i);
      if (count > 1) of_second[j] = second_operand(*second, i);
    }
  }
  if (count > 0) apply_step(v, *first, of_first, shared);
  if (count > 1) apply_step(v, *second, of_second, shared);
#pragma unroll
  for (int j = 0; j < fours; ++j) {
    const int i = (static_cast<int>(threadIdx.x) + j * threads) * 4;
    if (i >= n) break;
    if (on_tensor_cores(op)) {
      place_terms(shared.x, i, v[j]);
    } else {
      *reinterpret_cast<float4*>(shared.x + place_of_four(i, n, op.dtype != DType::f32)) = v[j];
    }
  }
  __syncthreads();
}

/// The same without steps.
__device__ __noinline__ void copy_input(const StepInstruction& op) {
  Shared& shared = of_block();
  __syncthreads();  // nobody needs the one before it any more
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x) * 4; i < op.m; i += threads * 4) {
    const float4 v = four_at(op.a, i);
    if (on_tensor_cores(op)) {
      place_terms(shared.x, i, v);
    } else {
      *reinterpret_cast<float4*>(shared.x + place_of_four(i, op.m, op.dtype != DType::f32)) = v;
    }
  }
  __syncthreads();
}

/// Sums four numbers over the lanes; lane l ends with the sum of number l / 8.
__device__ float four_sums(const float (&x)[rows_together]) {
  const bool upper = (lane() & 16) != 0, second = (lane() & 8) != 0;
  const float a = (upper ? x[2] : x[0]) + __shfl_xor_sync(~0U, upper ? x[0] : x[2], 16);
  const float b = (upper ? x[3] : x[1]) + __shfl_xor_sync(~0U, upper ? x[1] : x[3], 16);
  float sum = (second ? b : a) + __shfl_xor_sync(~0U, second ? a : b, 8);
#pragma unroll
  for (int distance = 4; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0U, sum, distance);
  return sum;
}

__device__ void group_sync() { asm volatile("bar.sync %0, %1;" ::"r"(1 + warp() / group_warps), "n"(group_threads) : "memory"); }

/// By float32 arithmetic: lane l multiplies 16 bytes of each row.
template <DType dtype>
struct ExactSums {
  float sum[rows_together] = {};
  static constexpr bool two_bytes = dtype != DType::f32;

  __device__ void add(const char* stage, const Shared& shared, int part, int m) {
    constexpr int numbers = two_bytes ? 8 : 4;
    const int piece = part * warp_size + lane();
    if (piece * numbers >= m) return;
    const float4 low = *reinterpret_cast<const float4*>(shared.x + piece * 4);
    const float4 high = two_bytes ? *reinterpret_cast<const float4*>(shared.x + m / 2 + piece * 4) : low;
#pragma unroll
    for (int r = 0; r < rows_together; ++r)
      sum[r] = multiplied(sum[r], *reinterpret_cast<const uint4*>(stage + r * part_bytes + lane() * 16), low, high, dtype);
  }
  /// The sum of row l / 8 in lane l.
  __device__ float of_row() const { return four_sums(sum); }
};

/// By tensor cores, see `on_tensor_cores`.
struct TensorSums {
  float sum[2][4] = {};  // of rows 0 and 1, of rows 2 and 3

  __device__ void add(const char* stage, const Shared& shared, int part, int m) {
    // Lane l says where row l % 8 of matrix l / 8 begins: eighth l % 8 of a row of the weight, of its depth the half l / 16.
    const unsigned from = shared_address(stage + lane() / 8 % 2 * part_bytes + (lane() % 8 + lane() / 16 * 8) * 16);
    const auto* x = reinterpret_cast<const uint4*>(shared.x) + part * 64 + lane();
    const int products = min(2, m / 128 - part * 2);
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      if (j >= products) break;
      const uint4 terms = x[j * warp_size];
#pragma unroll
      for (int rows = 0; rows < 2; ++rows) {
        unsigned w[4];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                     : "r"(from + rows * 2 * part_bytes + j * 256)
                     : "memory");
        multiply(sum[rows], w, terms.x, terms.y);
        multiply(sum[rows], w, terms.z, terms.w);
      }
    }
  }
  static __device__ void multiply(float (&sum)[4], const unsigned (&w)[4], unsigned lower, unsigned upper) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "r"(lower), "r"(upper));
  }
  /// The sum of row l / 8 in lane l. Lane l has, of eighth s = l / 4 of a row, the products with eighths 2 (l % 4) and 2 (l % 4) + 1.
  __device__ float of_row() const {
    const int s = lane() / 4;
    float own[rows_together];
#pragma unroll
    for (int r = 0; r < rows_together; ++r) {
      const float* both = sum[r / 2] + r % 2 * 2;
      own[r] = s / 2 != lane() % 4 ? 0 : s % 2 != 0 ? both[1] : both[0];
    }
    return four_sums(own);
  }
};

/// A group of four warps owns four rows, or two pairs, at a time; warp r of it ends with output r.
template <class Sums>
__device__ __noinline__ void multiply_streamed(const StepInstruction& op, const std::int32_t* ids) {
  Shared& shared = of_block();
  Incoming incoming(shared, shared.incoming[warp()]);
  int buffer = shared.buffer[warp()];
  const bool pairs = op.c != nullptr;
  const int together = pairs ? rows_together / 2 : rows_together, n = op.n, m = op.m, r = warp() % group_warps;
  const int parts = (m * static_cast<int>(size_of(op.dtype)) - 1) / part_bytes + 1;
  for (int unit = Incoming::first_unit(op.offset); unit * together < n; unit += Incoming::all_groups()) {
    const int o = unit * together + r;
    const bool owns = lane() == 0 && r < together && o < n;
    // What the first map behind reads besides y is on its way meanwhile.
    const float* ahead_at = op.followers > 0 ? floats((&op)[1].a == op.y ? (&op)[1].b : (&op)[1].a) : nullptr;
    ahead_at = owns && ahead_at != nullptr && (&op)[1].code == StepCode::add ? ahead_at + o : nullptr;
    const float ahead = ahead_at != nullptr ? __ldcg(ahead_at) : 0;
    Sums sums;
    for (int part = Incoming::first_part(unit); part < parts; part += group_warps) {
      sums.add(incoming.wait(), shared, part, m);
      incoming.release();
    }
    float* partial = shared.partial[warp() / group_warps][buffer];
    buffer ^= 1;
    const float of_row = sums.of_row();
    if (lane() % 8 == 0) partial[r * rows_together + lane() / 8] = of_row;
    group_sync();
    const auto total = [&](int row) {
      return (partial[row] + partial[rows_together + row]) + (partial[2 * rows_together + row] + partial[3 * rows_together + row]);
    };
    if (owns) {
      float y = total(r);
      if (op.d != nullptr) y += number_at(op.d, o);
      if (pairs) y = activated_number(y, Activation::silu) * total(together + r);
      floats(op.y)[o] = y;
      run_maps(&op + 1, op.followers, o, {floats(op.y) + o, ahead_at, y, ahead}, ids);
    }
    __syncwarp();
  }
  incoming.keep();
  shared.buffer[warp()] = buffer;
}

__device__ void run_streamed(const StepInstruction& op, const std::int32_t* ids) {
  constexpr int at_once = 4 * threads;
  if (op.flags == 0) {
    if (op.q_steps == 0) {
      copy_input(op);
    } else if (op.m <= at_once) {
      take_input<1>(op);
    } else if (op.m <= 2 * at_once) {
      take_input<2>(op);
    } else {
      take_input<Limits::inputs / at_once>(op);
    }
  }
  if (on_tensor_cores(op)) return multiply_streamed<TensorSums>(op, ids);
  if (op.dtype == DType::bf16) return multiply_streamed<ExactSums<DType::bf16>>(op, ids);
  if (op.dtype == DType::f16) return multiply_streamed<ExactSums<DType::f16>>(op, ids);
  multiply_streamed<ExactSums<DType::f32>>(op, ids);
}

// -- memories: half a block owns 16 columns of a head's state, a thread four columns of every 64th row

__device__ void half_sync() { asm volatile("bar.sync %0, %1;" ::"r"(1 + groups + warp() / half_warps), "n"(half_threads) : "memory"); }

/// What half a block works with.
struct HalfShared {
  float q[Limits::head], k[Limits::head], decay[Limits::head];
  float4 sums[half_warps][2][4];  // of each warp: q S and k S, by four columns
  float products[half_warps];     // q · k
};
static_assert(halves * sizeof(HalfShared) <= sizeof(Shared::x));

/// How q or k of a state is made: its norm, then y = f x; for the delta rule of sparse states y = L2(f x) or f L2(x)   (spec §4.3)
struct KeyForm {
  const StepInstruction* norm;
  float factor;
  bool l2, before_l2;
};

/// A warp brings q or k of a head.
__device__ __noinline__ void take_key(float* to, const float* from, int K, const KeyForm& form) {
  float sum = 0, factor = form.factor;
  for_group(from, K, [&](int i, float value) { to[i] = value; });
  const auto each = [&](auto fn) {
#pragma unroll 1
    for (int i = lane(); i < K; i += warp_size) fn(to[i], i);
  };
  if (form.norm != nullptr && form.norm->code == StepCode::inverse_root_norm) {
    each([&](float v, int) { sum += v * v; });
    const float root = root_factor(*form.norm, sum_over_warp(sum));
    each([&](float& v, int i) { v = root_value(*form.norm, v, i, root); });
  } else if (form.norm != nullptr && form.norm->code == StepCode::sum_norm) {
    each([&](float v, int) { sum += v; });
    const float divisor = sum_over_warp(sum) + form.norm->number[0];
    each([&](float& v, int) { v /= divisor; });
  } else if (form.norm != nullptr) {
    constexpr float lowest = -std::numeric_limits<float>::infinity();
    const float temperature = form.norm->number[0];
    float largest = lowest;
    each([&](float v, int) { largest = fmaxf(largest, __fmul_rn(temperature, v)); });
    largest = largest_of_warp(largest);
    const float shift = largest == lowest ? 0 : largest;
    each([&](float& v, int) {
      v = exponential(__fmul_rn(temperature, v) - shift);
      sum += v;
    });
    sum = sum_over_warp(sum);
    const float inverse = sum == 0 ? 0 : 1 / sum;
    each([&](float& v, int) { v *= inverse; });
  }
  if (form.l2) {
    const float inner = form.before_l2 ? factor : 1;
    sum = 0;
    each([&](float v, int) { sum += inner * v * (inner * v); });
    constexpr float eps = 1e-6F;
    factor /= sqrtf(sum_over_warp(sum) + eps);
  }
  if (factor != 1) each([&](float& v, int) { v *= factor; });
}

/// What remains of the rows of a head: e^{log decay}, which may have to be computed first, from a small product.
__device__ __noinline__ void take_decays(float* to, const StepInstruction& op, const float* log_decay, int count, int h) {
  const int t = static_cast<int>(threadIdx.x) % half_threads;
  if (op.decay_steps == 0) {
    for (int i = t; i < op.K; i += half_threads) to[i] = count == 0 ? 1 : expf(__ldcg(log_decay + (count == 1 ? 0 : i)));
    return;
  }
  const StepInstruction *product = &op + op.size() - op.decay_steps, *decay = product + 1;
  const SmallRows alone{1, 0, small_rows(*product).wide};
  for (int i = t; i < op.K; i += half_threads) {
    const std::int64_t o = producer_head(h, op.heads[3], op.H) * op.K + i;
    float y = small_product(static_cast<const char*>(product->b) + o * product->stride, *product, alone);
    if (product->d != nullptr) y += number_at(product->d, o);
    to[i] = expf(log_sigmoid_decay(*decay, y));
  }
}

/// One state of a head: where it is, and what a token does to it.
struct StateOfHead {
  const float *from, *q, *k, *log_decay;
  float* to;
  KeyForm q_form, k_form;
  int decays;          // numbers of log_decay
  bool column_decays;  // along the columns
  float beta;
  bool writes, reads;
};

/// State c of a head: of sparse states 0 is the shared one, c the token's choice c − 1.
__device__ StateOfHead state_of_head(const StepInstruction& op, int h, int c) {
  const StepInstruction* steps = &op + 1 + op.followers;
  const std::int64_t size = std::int64_t{op.K} * op.V;
  StateOfHead s{};
  s.q_form = {op.q_steps > 0 ? steps : nullptr, 1, false, false};
  s.k_form = {op.k_steps > 0 ? steps + op.q_steps : nullptr, 1, false, false};
  s.beta = 1;
  s.writes = s.reads = true;
  if (op.code != StepCode::sparse_state) {
    const auto head = [&](const void* p, int operand, int width) {
      return p == nullptr ? nullptr : floats(p) + producer_head(h, op.heads[operand], op.H) * width;
    };
    s.from = floats(op.from) + h * size;
    s.to = floats(op.to) + h * size;
    s.q = head(op.a, 0, op.K);
    s.k = head(op.b, 1, op.K);
    s.log_decay = op.decay_steps == 0 ? head(op.d, 3, op.m) : nullptr;
    s.decays = op.d != nullptr ? op.m : 0;
    s.column_decays = op.flags != 0;
    if (op.e != nullptr) s.beta = __ldcg(head(op.e, 4, 1));
    return s;
  }
  const int row = (c > 0 ? op.H : 0) + h;
  std::int64_t slot = 0;
  s.q_form.l2 = s.k_form.l2 = op.e != nullptr;
  s.q_form.before_l2 = s.k_form.before_l2 = (op.flags & 4) != 0;
  if (c > 0) {
    // What only reads has k = 0 and keeps its state, what only writes q = 0.
    const std::int32_t partition = __ldcg(indices(op.selected) + c - 1);
    const float e = number_at(op.gate, partition);
    slot = 1 + partition;
    s.reads = c <= op.readers;
    s.writes = c <= op.writers;
    s.q_form.factor = !s.reads ? 0 : (op.flags & 1) != 0 ? e : 1;
    s.k_form.factor = !s.writes ? 0 : (op.flags & 2) != 0 ? op.number[1] * e : op.number[1];
  }
  s.to = floats(op.to) + (slot * op.H + h) * size;
  s.from = s.to;
  s.q = floats(op.a) + std::int64_t{row} * op.K;
  s.k = floats(op.b) + std::int64_t{row} * op.K;
  if (op.d != nullptr && s.writes) {
    s.log_decay = floats(op.d) + std::int64_t{row} * op.heads[3];
    s.decays = op.heads[3];
  }
  if (op.e != nullptr) s.beta = s.writes ? number_at(op.e, row) : 0;
  return s;
}

/// The sum over the rows that the lanes of a warp have of the same columns.
__device__ float over_rows(float x) {
#pragma unroll
  for (int distance = 4; distance < warp_size; distance *= 2) x += __shfl_xor_sync(~0U, x, distance);
  return x;
}
__device__ float4 over_rows(float4 x) { return {over_rows(x.x), over_rows(x.y), over_rows(x.z), over_rows(x.w)}; }

__device__ float4 over_warps(const HalfShared& shared, int which, int column) {
  float4 all{0, 0, 0, 0};
#pragma unroll
  for (int w = 0; w < half_warps; ++w) all = all + shared.sums[w][which][column];
  return all;
}

/// A head's K ≤ 64 · rows_of_thread rows.
template <int rows_of_thread>
__device__ __noinline__ void run_memory_columns(const StepInstruction& op, int h, int first_column) {
  HalfShared& shared = reinterpret_cast<HalfShared*>(of_block().x)[warp() / half_warps];
  constexpr int rows_apart = half_threads / 4;
  const int t = static_cast<int>(threadIdx.x) % half_threads, w = t / warp_size, own = t % 4, K = op.K, V = op.V;
  const int column = first_column + own * 4;
  const bool exists = column < V, sparse = op.code == StepCode::sparse_state;
  const bool delta = op.code == StepCode::gated_delta_rule || (sparse && op.e != nullptr);
  const float4 v = exists ? four_at(op.c, producer_head(h, sparse ? op.H : op.heads[2], op.H) * V + column) : float4{0, 0, 0, 0};
  const int states = sparse ? 1 + op.m : 1;
  float4 o{0, 0, 0, 0};  // of the column; without the delta rule the part of the thread's rows

  for (int c = 0; c < states; ++c) {
    const StateOfHead s = state_of_head(op, h, c);
    float4 S[rows_of_thread];
#pragma unroll
    for (int j = 0; j < rows_of_thread; ++j) {
      const int row = t / 4 + j * rows_apart;
      S[j] = row < K && exists ? four_at(s.from, std::int64_t{row} * V + column) : float4{0, 0, 0, 0};
    }
    if (w == 0) take_key(shared.q, s.q, K, s.q_form);
    if (w == 1) take_key(shared.k, s.k, K, s.k_form);
    if (!s.column_decays) take_decays(shared.decay, op, s.log_decay, s.decays, h);
    float4 decay{1, 1, 1, 1};
    if (s.column_decays && exists) {
      const float4 log_decay = four_at(s.log_decay, column);
      decay = {expf(log_decay.x), expf(log_decay.y), expf(log_decay.z), expf(log_decay.w)};
    }
    half_sync();
    const auto each_row = [&](auto fn) {
#pragma unroll
      for (int j = 0; j < rows_of_thread; ++j) {
        const int row = t / 4 + j * rows_apart;
        if (row < K) fn(S[j], row);
      }
    };
    float4 update = v;  // what k writes
    if (delta) {
      // u = β (v − k S̄),  S̄ = α S,  o = q (S̄ + kᵀ u) = α q S + (q · k) u
      float4 predicted{0, 0, 0, 0}, read{0, 0, 0, 0};
      float product = 0;
      each_row([&](const float4& x, int row) {
        predicted = predicted + x * shared.k[row];
        read = read + x * shared.q[row];
        product = fmaf(shared.q[row], shared.k[row], product);
      });
      predicted = over_rows(predicted);
      read = over_rows(read);
      product = over_rows(product);
      if (lane() < 4) shared.sums[w][0][own] = read, shared.sums[w][1][own] = predicted;
      if (lane() == 0) shared.products[w] = product;
      half_sync();
      read = over_warps(shared, 0, own);
      predicted = over_warps(shared, 1, own);
      product = 0;
      for (int i = 0; i < half_warps; ++i) product += shared.products[i];
      const float alpha = shared.decay[0];
      update = (v + predicted * -alpha) * s.beta;
      if (s.reads) o = o + read * alpha + update * product;
    }
    // S_r = a_r S_r + k_r v  (delta rule: k_r u),  o = o + q_r S_r
    each_row([&](float4& x, int row) {
      const float4 kept = s.column_decays ? x * decay : x * shared.decay[row];
      x = kept + update * shared.k[row];
      if (!delta && s.reads) o = o + x * shared.q[row];
      if (exists && (s.writes || s.from != s.to)) *reinterpret_cast<float4*>(s.to + std::int64_t{row} * V + column) = x;
    });
    half_sync();  // before the next state's operands come
  }
  if (!delta) {
    o = over_rows(o);
    if (lane() < 4) shared.sums[w][0][own] = o;
    half_sync();
    o = over_warps(shared, 0, own);
  }
  if (t < 4 && exists) *reinterpret_cast<float4*>(floats(op.y) + std::int64_t{h} * V + column) = o * op.number[0];
  half_sync();
}

/// visit(head, first column) for the pieces of a memory that half a block owns.
template <class Visit>
__device__ void for_columns(const StepInstruction& op, const Visit& visit) {
  constexpr int columns = Limits::columns_together;
  const int tiles = (op.V - 1) / columns + 1;
  for (int piece = first_piece(warp() / half_warps, halves, op.offset); piece < op.H * tiles; piece += halves * blocks())
    visit(piece / tiles, piece % tiles * columns);
}

__device__ void run_memory(const StepInstruction& op) {
  __syncthreads();  // nobody needs the input of a product any more
  constexpr int few = 4, many = Limits::head / (half_threads / 4);
  for_columns(op, [&](int h, int column) {
    if (op.K <= few * half_threads / 4) return run_memory_columns<few>(op, h, column);
    run_memory_columns<many>(op, h, column);
  });
  __syncthreads();
}

// -- levels

__device__ void fetch_to_second_cache(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

/// What the next level will read and this one does not write: states, the weights of small products.
__device__ __noinline__ void look_ahead(const StepInstruction& op) {
  if (op.code >= StepCode::decayed_outer_product) {
    const float* from = floats(op.code == StepCode::sparse_state ? op.to : op.from);
    for_columns(op, [&](int h, int column) {
      for (int row = static_cast<int>(threadIdx.x) % half_threads; row < op.K; row += half_threads) {
        fetch_to_second_cache(from + (std::int64_t{h} * op.K + row) * op.V + column);
        if (op.decay_steps == 0) continue;
        const StepInstruction& product = (&op)[op.size() - op.decay_steps];
        fetch_to_second_cache(static_cast<const char*>(product.b) + (producer_head(h, op.heads[3], op.H) * op.K + row) * product.stride);
      }
    });
  } else if (op.code == StepCode::linear) {
    const SmallRows rows = small_rows(op);
    constexpr int line = 8;  // lanes that read one of 128 bytes
    for (int piece = first_piece(warp(), warps, op.offset); rows.wide && piece < rows.pieces; piece += warps * blocks()) {
      const int o = min(piece * rows.together() + lane() / rows.lanes, op.n - 1), l = lane() % rows.lanes;
      if (l % line == 0) fetch_to_second_cache(static_cast<const char*>(op.b) + o * op.stride + l * 16);
    }
  }
}

/// All blocks have come this far for the `times`-th time, and what each has written can be read by all.
__device__ void wait_for_all(unsigned* arrivals, unsigned times) {
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrivals) : "memory");
    const unsigned wanted = times * gridDim.x;
    unsigned come;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(come) : "l"(arrivals) : "memory");
    } while (static_cast<int>(come - wanted) < 0);
  }
  __syncthreads();
}

/// Starts to fetch the instructions of a level.
__device__ void fetch_code(const StepLaunch& p, Shared& shared, int level) {
  if (level < p.level_count) {
    const int first = shared.levels[level] / 2, count = shared.levels[level + 1] / 2 - first;
    const auto* from = reinterpret_cast<const uint4*>(p.code + first);
    auto* to = reinterpret_cast<uint4*>(shared.code[level % code_buffers]);
    for (int i = static_cast<int>(threadIdx.x); i < count * static_cast<int>(sizeof(StepInstruction) / sizeof(uint4)); i += threads)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to + i)), "l"(from + i) : "memory");
  }
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/// visit(instruction) for those of a level that stand for themselves.
template <class Visit>
__device__ void for_level(const Shared& shared, int level, const Visit& visit) {
  const StepInstruction* op = shared.code[level % code_buffers];
  const StepInstruction* end = op + shared.levels[level + 1] / 2 - shared.levels[level] / 2;
  for (; op < end; op += op->size()) visit(*op);
}
#endif

__global__ void __launch_bounds__(threads, 1) step_kernel(const __grid_constant__ StepLaunch p) {
#if __CUDA_ARCH__ >= 900
  Shared& shared = of_block();
  for (int i = static_cast<int>(threadIdx.x); i <= p.level_count; i += threads) shared.levels[i] = p.levels[i];
  constexpr int words = sizeof(StepStream) / sizeof(uint4);
  for (int i = static_cast<int>(threadIdx.x); i < p.stream_count * words; i += threads)
    reinterpret_cast<uint4*>(shared.streams)[i] = reinterpret_cast<const uint4*>(p.streams)[i];
  __syncthreads();
  Incoming::begin(shared, p.stream_count);
  shared.buffer[warp()] = 0;
  fetch_code(p, shared, 0);
  fetch_code(p, shared, 1);
  unsigned waited = p.waited;
  for (int level = 0; level < p.level_count; ++level) {
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    if ((shared.levels[level] & 1) != 0) {
      wait_for_all(p.arrivals, ++waited);
    } else {
      __syncthreads();
    }
    fetch_code(p, shared, level + 2);
    if (level + 1 < p.level_count) for_level(shared, level + 1, [](const StepInstruction& op) { look_ahead(op); });
    for_level(shared, level, [&](const StepInstruction& op) {
      if (op.code <= StepCode::convolution) return run_map(op, p.ids);
      if (op.code <= StepCode::row_sparse) return run_row(op);
      if (op.code == StepCode::streamed_linear) return run_streamed(op, p.ids);
      if (op.code == StepCode::linear) return run_linear(op, p.ids);
      run_memory(op);
    });
  }
#endif
}

// ---- launchers -----------------------------------------------------------------------------------------------------------------------

/// Of calls that are equal byte by byte.
std::uint64_t key_of(std::span<const StepInstruction> calls) {
  std::uint64_t key = calls.size(), next = 0;
  static_assert(sizeof(StepInstruction) % sizeof next == 0);
  const char* bytes = reinterpret_cast<const char*>(calls.data());
  for (std::size_t i = 0; i < calls.size_bytes(); i += sizeof next) {
    std::memcpy(&next, bytes + i, sizeof next);
    key = (key ^ next) * 0x9E3779B97F4A7C15U;
    key ^= key >> 29;
  }
  return key;
}

bool same(std::span<const StepInstruction> a, std::span<const StepInstruction> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace

StepMachine::StepMachine(cudaStream_t stream) : stream_(stream) {
  int device = 0;
  check(cudaGetDevice(&device), "the device");
  const auto attribute = [&](cudaDeviceAttr which) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, which, device), "the device's properties");
    return value;
  };
  constexpr int hopper = 9;
  const bool able = attribute(cudaDevAttrComputeCapabilityMajor) >= hopper && attribute(cudaDevAttrCooperativeLaunch) != 0;
  if (!able || static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)) < sizeof(Shared)) return;
  blocks_ = attribute(cudaDevAttrMultiProcessorCount);
  check(cudaFuncSetAttribute(step_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(sizeof(Shared))),
        "the step kernel");
  check(cudaMalloc(&arrivals_, sizeof *arrivals_), "device memory");
  check(cudaMemsetAsync(arrivals_, 0, sizeof *arrivals_, stream_), "device memory");
}

StepMachine::~StepMachine() {
  forget();
  cudaFree(arrivals_);
}

void StepMachine::forget() {
  for (auto& [key, program] : programs_) cudaFreeAsync(program.memory, stream_);
  programs_.clear();
}

StepMachine::Program StepMachine::uploaded(std::span<const StepInstruction> calls) {
  const StepProgram made = schedule_steps(calls, blocks_);
  Program program;
  program.calls.assign(calls.begin(), calls.end());
  program.levels = static_cast<int>(made.levels.size());
  program.streams = static_cast<int>(made.streams.size());
  std::vector<std::int32_t> levels;
  for (const StepLevel& level : made.levels) {
    levels.push_back(2 * level.first + level.waits);
    program.waits += static_cast<unsigned>(level.waits);
  }
  levels.push_back(2 * static_cast<std::int32_t>(made.code.size()));

  std::vector<char> image;
  const auto append = [&]<class Part>(const std::vector<Part>& parts) {
    const std::size_t at = image.size();
    const char* bytes = reinterpret_cast<const char*>(parts.data());
    image.insert(image.end(), bytes, bytes + parts.size() * sizeof(Part));
    while (image.size() % sizeof(uint4) != 0) image.push_back(0);
    return at;
  };
  append(made.code);
  program.levels_at = append(levels);
  program.streams_at = append(made.streams);
  check(cudaMallocAsync(&program.memory, image.size(), stream_), "a program");
  check(cudaMemcpyAsync(program.memory, image.data(), image.size(), cudaMemcpyHostToDevice, stream_), "a program");
  return program;
}

const StepMachine::Program& StepMachine::program(std::span<const StepInstruction> calls) {
  constexpr std::size_t most = 64;
  const std::uint64_t key = key_of(calls);
  if (const auto found = programs_.find(key); found != programs_.end() && same(found->second.calls, calls)) return found->second;
  if (programs_.size() >= most || programs_.contains(key)) forget();
  return programs_.emplace(key, uploaded(calls)).first->second;
}

void StepMachine::run(const StepTrace& trace) {
  const Program& program = this->program(trace.calls());
  StepLaunch p{};
  p.code = reinterpret_cast<const StepInstruction*>(program.memory);
  p.levels = reinterpret_cast<const std::int32_t*>(program.memory + program.levels_at);
  p.streams = reinterpret_cast<const StepStream*>(program.memory + program.streams_at);
  p.level_count = program.levels;
  p.stream_count = program.streams;
  p.arrivals = arrivals_;
  p.waited = waited_;
  std::copy(trace.ids().begin(), trace.ids().end(), p.ids);
  waited_ += program.waits;
  void* arguments[] = {&p};
  check(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(step_kernel), dim3(static_cast<unsigned>(blocks_)), dim3(threads),
                                    arguments, sizeof(Shared), stream_),
        "the step kernel");
}

}  // namespace statescope::cuda

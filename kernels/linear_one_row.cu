// Products of one row with any number of weights, which are read once, as they are stored, at the speed of memory: a token's decoding.
// Weights come through rings in shared memory and are on their way before the kernels before this one have ended. Code is short rather than
// unrolled: a launch runs most of it a few times, and fetching 60 KB of it took longer than the work.
#include <cuda_fp16.h>

#include <algorithm>
#include <array>
#include <bit>

#include "kernels/cuda_activation.h"
#include "kernels/cuda_linear.h"
#include "kernels/cuda_order.h"

namespace statescope::cuda {
namespace {

constexpr int warp_size = 32, warps = 8, threads = warps * warp_size;
constexpr int row_pair = 2;                                // rows that are fetched together
constexpr int most_stages = 8;                             // of a warp's ring
constexpr int piece = 16, numbers_of_sum = 4 * warp_size;  // bytes that a thread reads at once; numbers whose squares a warp sums
constexpr int most_inputs = 8, most_products = 16, most_taps = 4;
constexpr std::size_t shared_bytes = 104 << 10;  // two such kernels and a memory's step share a multiprocessor
constexpr int most_numbers = 14 << 10;           // of all inputs together

/// A row [n], and the norm that it passes (projection.h).
struct Input {
  const float *x, *weight, *gate;
  int n, group, place;  // group 0: no norm; `place`: its first number in shared memory, a multiple of `numbers_of_sum`
  float eps, offset;
  Activation act;
  int sums, sums_inverse;  // of a group, in numbers of `numbers_of_sum`; 2^16 over that, rounded up
  /// Of the sum with this number.
  __device__ int group_of(int sum) const { return sum * sums_inverse >> 16; }
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
  bool norms;          // whether one of them passes a norm
  int chunk;           // bytes of a row that are fetched at once
  int first_unit[most_products];
  Input inputs[most_inputs];
  Product products[most_products];
};

// ---- kernels -------------------------------------------------------------------------------------------------------------------------

__device__ unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

/// A barrier that counts the bytes of one stage of a ring.
struct Arrival {
  unsigned long long* barrier;
  __device__ void make() const { asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory"); }
  __device__ void expect(int bytes) const {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes) : "memory");
  }
  /// Both sides and `bytes` are multiples of 16.
  __device__ void fetch(void* to, const char* from, int bytes) const {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
  }
  __device__ void wait(unsigned parity) const {
    asm volatile(
        "{\n.reg .pred done;\nAGAIN: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n@done bra DONE;\nbra AGAIN;\nDONE:\n}" ::"r"(
            shared_address(barrier)),
        "r"(parity)
        : "memory");
  }
};

/// The 16 bytes of a thread as numbers.
template <DType dtype>
struct Widened {
  static constexpr int count = piece / size_of(dtype);
  float at[count];
  __device__ explicit Widened(const uint4& raw) {
    const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (dtype == DType::f32) {
        at[i] = __uint_as_float(words[i]);
      } else if constexpr (dtype == DType::bf16) {
        at[2 * i] = __uint_as_float(words[i] << 16);
        at[2 * i + 1] = __uint_as_float(words[i] & 0xFFFF0000U);
      } else {
        const float2 both = __half22float2(*reinterpret_cast<const __half2*>(&words[i]));
        at[2 * i] = both.x;
        at[2 * i + 1] = both.y;
      }
    }
  }
};

__device__ float sum_over(float x, int lanes) {
#pragma unroll 1
  for (int distance = lanes / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(~0U, x, distance);
  return x;
}

/// An index, not a pointer: parameters are read fast only where the compiler sees that they are parameters.
__device__ int product_of(const OneRow& op, int unit) {
  int n = 0;
#pragma unroll 1
  while (n + 1 < op.product_count && unit >= op.first_unit[n + 1]) ++n;
  return n;
}

__device__ void prefetch(const float* x) { asm volatile("prefetch.global.L2 [%0];" ::"l"(x)); }

/// Where number 4 i of an input stands in shared memory. Of 16-bit weights a thread reads eight inputs at once: the first four of every
/// eight stand together, then the others, so that neighbours read from different banks.
template <DType dtype>
__device__ int place_of_four(int i, int n) {
  return dtype == DType::f32 ? 4 * i : (i & 1) * (n / 2) + (i >> 1) * 4;
}

/// Brings the weights of norms into the second cache; nothing waits for that.
__device__ void prefetch_norms(const OneRow& op) {
  constexpr int line = 32;
  for (int n = 0; n < op.input_count; ++n) {
    const Input& input = op.inputs[n];
    if (input.weight == nullptr) continue;
#pragma unroll 1
    for (int i = line * static_cast<int>(threadIdx.x); i < input.group; i += line * threads) prefetch(input.weight + i);
  }
}

/// All threads bring an input into shared memory; what a thread reads is on its way together.
template <DType dtype>
__device__ void load_plain(float* shared, const Input& input) {
  constexpr int together = 6;
  const int fours = input.n / 4;
  for (int begin = static_cast<int>(threadIdx.x); begin < fours; begin += together * threads) {
    float4 in[together];
#pragma unroll
    for (int t = 0; t < together; ++t) {
      if (begin + t * threads < fours) in[t] = *reinterpret_cast<const float4*>(input.x + 4 * (begin + t * threads));
    }
#pragma unroll
    for (int t = 0; t < together; ++t) {
      const int i = begin + t * threads;
      if (i < fours) *reinterpret_cast<float4*>(shared + input.place + place_of_four<dtype>(i, input.n)) = in[t];
    }
  }
}

/// The same for one that passes a norm, as yet without the factors of its groups; a warp sums the squares of its numbers.
template <DType dtype>
__device__ void load_normed(float* shared, float* squares, const Input& input) {
  constexpr int together = 2;
  const int fours = input.n / 4, whole = (input.n + numbers_of_sum - 1) / numbers_of_sum * warp_size;
#pragma unroll 1
  for (int begin = static_cast<int>(threadIdx.x); begin < whole; begin += together * threads) {
    float4 in[together], gate[together], weight[together];
#pragma unroll
    for (int t = 0; t < together; ++t) {
      const int i = begin + t * threads;
      in[t] = gate[t] = {0, 0, 0, 0};
      weight[t] = {1, 1, 1, 1};
      if (i >= fours) continue;
      in[t] = *reinterpret_cast<const float4*>(input.x + 4 * i);
      if (input.gate != nullptr) gate[t] = *reinterpret_cast<const float4*>(input.gate + 4 * i);
      if (input.weight == nullptr) continue;
      const float* w = input.weight + 4 * i - input.group_of(i / warp_size) * input.group;
      weight[t] = {__ldg(w) + input.offset, __ldg(w + 1) + input.offset, __ldg(w + 2) + input.offset, __ldg(w + 3) + input.offset};
    }
#pragma unroll
    for (int t = 0; t < together; ++t) {
      const int i = begin + t * threads;
      if (i >= whole) break;
      float4 x = in[t];
      const float sum = combined(x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w, [](float a, float b) { return a + b; });
      if (i % warp_size == 0) squares[(input.place / 4 + i) / warp_size] = sum;
      if (i >= fours) continue;
      x.x *= weight[t].x, x.y *= weight[t].y, x.z *= weight[t].z, x.w *= weight[t].w;
      if (input.gate != nullptr) {
        x.x *= activated_by_one(gate[t].x, input.act), x.y *= activated_by_one(gate[t].y, input.act);
        x.z *= activated_by_one(gate[t].z, input.act), x.w *= activated_by_one(gate[t].w, input.act);
      }
      *reinterpret_cast<float4*>(shared + input.place + place_of_four<dtype>(i, input.n)) = x;
    }
  }
}

template <DType dtype>
__device__ void load_inputs(float* shared, float* squares, const OneRow& op) {
  for (int n = 0; n < op.input_count; ++n)
    op.inputs[n].group > 0 ? load_normed<dtype>(shared, squares, op.inputs[n]) : load_plain<dtype>(shared, op.inputs[n]);
}

/// x ← x · (Σ x² / group + eps)^{−1/2}. The numbers of a warp belong to one group.
template <DType dtype>
__device__ void scale_inputs(float* shared, const float* squares, const OneRow& op) {
  const int lane = threadIdx.x % warp_size;
  for (int n = 0; n < op.input_count; ++n) {
    const Input& input = op.inputs[n];
    if (input.group == 0) continue;
    const int whole = (input.n + numbers_of_sum - 1) / numbers_of_sum * warp_size;
    const float inverse = 1 / static_cast<float>(input.group);
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < whole; i += threads) {
      const float* of_group = squares + input.place / numbers_of_sum + input.group_of(i / warp_size) * input.sums;
      float sum = 0;
#pragma unroll 1
      for (int j = lane; j < input.sums; j += warp_size) sum += of_group[j];
      const float factor = rsqrtf(combined(sum, [](float a, float b) { return a + b; }) * inverse + input.eps);
      if (i >= input.n / 4) continue;
      float4& x = *reinterpret_cast<float4*>(shared + input.place + place_of_four<dtype>(i, input.n));
      x.x *= factor, x.y *= factor, x.z *= factor, x.w *= factor;
    }
  }
}

/// bias + Σ_j taps[j] · input j, the last input is z; the cache moves up by one     (convolution.h)
__device__ float convolved(const Product& p, int o, float z) {
  const int past = p.width - 1;
  const float* taps = p.taps + static_cast<std::int64_t>(o) * p.width;
  float kept[most_taps - 1], weight[most_taps - 1], sum = p.tap_bias != nullptr ? p.tap_bias[o] : 0;
#pragma unroll
  for (int j = 0; j < most_taps - 1; ++j) {
    if (j < past) kept[j] = p.cache[j * p.out + o], weight[j] = taps[j];
  }
#pragma unroll
  for (int j = 0; j < most_taps - 1; ++j) {
    if (j >= past) continue;
    sum += weight[j] * kept[j];
    if (j > 0) p.cache[(j - 1) * p.out + o] = kept[j];
  }
  if (past > 0) p.cache[(past - 1) * p.out + o] = z;
  return sum + taps[past] * z;
}

/// y[o] from z[o]; gated: times the product with the other weight, else times 1.
__device__ void finish(const Product& p, int o, float z, float factor) {
  if (p.bias != nullptr) z += p.bias[o];
  if (p.z != nullptr) p.z[o] = z;
  if (p.end == End::forget_gate || p.end == End::delta_decay) {
    // max(logσ(z) · scale, clamp_min), logσ(z) = −softplus(−z);   −exp(A_log) · softplus(z + dt_bias)
    const bool forgets = p.end == End::forget_gate;
    const float plus = softplus(forgets ? -z : z + p.dt_bias[o]), y = -(forgets ? p.scale : expf(p.A_log[o])) * plus;
    p.y[o] = forgets && y < p.clamp_min ? p.clamp_min : y;
    return;
  }
  if (p.end == End::convolve) z = convolved(p, o, z);
  if (p.addend != nullptr) z += p.addend[o];
  p.y[o] = activated_by_one(z, p.act) * factor;
}

/// A warp's share of all units, and its ring of stages, each a chunk of both rows of a pair. What is fetched next is known to lane 0.
template <DType dtype>
struct Stream {
  const OneRow& op;
  char* ring;
  unsigned long long* barriers;
  int lane, own, step;       // the warp among all warps, and how many there are
  int units, stages, chunk;  // as in op; what the loop needs of parameters stays in registers
  int unit, done = 0, fetched_stage = 0, stage = 0;
  unsigned parity = 0;

  struct Pair {
    const char *first, *second;
    int bytes;  // of each
  } from = {};

  /// Unit `u` as memory: two rows, or two runs of short rows.
  __device__ Pair pair(const Product& p, int u) const {
    const int local = u - p.first_unit;
    const auto row_bytes = static_cast<std::int64_t>(p.in) * size_of(dtype);
    if (p.end == End::gated) return {p.weight + local * p.weight_bytes, p.up + local * p.weight_bytes, static_cast<int>(row_bytes)};
    const int together = warp_size >> p.lanes_log2, row = row_pair * together * local;
    const int first = min(row, p.out - together), second = min(row + together, p.out - together);
    return {p.weight + first * p.weight_bytes, p.weight + second * p.weight_bytes, static_cast<int>(together * row_bytes)};
  }
  __device__ Arrival arrival(int s) const { return {barriers + s}; }
  __device__ char* stage_at(int s) const { return ring + s * row_pair * chunk; }

  __device__ void fetch() {
    if (unit >= units) return;
    if (done == 0) from = pair(op.products[product_of(op, unit)], unit);
    const int bytes = min(chunk, from.bytes - done);
    arrival(fetched_stage).expect(row_pair * bytes);
    arrival(fetched_stage).fetch(stage_at(fetched_stage), from.first + done, bytes);
    arrival(fetched_stage).fetch(stage_at(fetched_stage) + chunk, from.second + done, bytes);
    done += bytes;
    if (done == from.bytes) done = 0, unit += step;
    if (++fetched_stage == stages) fetched_stage = 0;
  }

  __device__ void begin() {
    if (lane == 0) {
#pragma unroll 1
      for (int s = 0; s < op.stages; ++s) arrival(s).make();
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#pragma unroll 1
      for (int s = 0; s < op.stages; ++s) fetch();
    }
    __syncwarp();
  }

  /// The warp's units up to the end: what their ends read is brought into the second cache, where it may long have been displaced.
  __device__ void prefetch_ends() const {
#pragma unroll 1
    for (int u = own; u < op.units; u += step) {
      const Product& p = op.products[product_of(op, u)];
      const int rows = row_pair * warp_size >> p.lanes_log2, o = (u - p.first_unit) * rows + lane;
      if (lane >= rows || o >= p.out) continue;
      if (p.bias != nullptr) prefetch(p.bias + o);
      if (p.end != End::convolve) continue;
      prefetch(p.taps + static_cast<std::int64_t>(o) * p.width);
#pragma unroll 1
      for (int j = 0; j < p.width - 1; ++j) prefetch(p.cache + j * p.out + o);
    }
  }

  __device__ void wait_until_made() const {
    unsigned made = 0;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(made) : "l"(op.ready) : "memory");
    } while (made < op.announced);
  }

  /// What the pieces of a stage add to the products of both rows; `input(at, f)` are four numbers of the input behind piece `at`.
  template <class In>
  __device__ void accumulate(float2& sum, float2& more, int pieces, int first_at, int lanes, const In& input) const {
    const auto *first = reinterpret_cast<const uint4*>(stage_at(stage)), *second = reinterpret_cast<const uint4*>(stage_at(stage) + chunk);
#pragma unroll 4
    for (int i = lane; i < pieces; i += warp_size) {
      // a thread of a long row goes on along it; of short rows each thread has one piece
      const int at = lanes == warp_size ? first_at + i : lane & (lanes - 1);
      const Widened<dtype> w(first[i]), v(second[i]);
#pragma unroll
      for (int f = 0; f < Widened<dtype>::count / 4; ++f) {
        const float4 in = input(at, f);
        float2& part = f == 0 ? sum : more;
        part.x = fmaf(in.x, w.at[4 * f], part.x), part.x = fmaf(in.y, w.at[4 * f + 1], part.x);
        part.x = fmaf(in.z, w.at[4 * f + 2], part.x), part.x = fmaf(in.w, w.at[4 * f + 3], part.x);
        part.y = fmaf(in.x, v.at[4 * f], part.y), part.y = fmaf(in.y, v.at[4 * f + 1], part.y);
        part.y = fmaf(in.z, v.at[4 * f + 2], part.y), part.y = fmaf(in.w, v.at[4 * f + 3], part.y);
      }
    }
  }

  /// Both products of the thread's lanes with the rows of unit u.
  __device__ float2 multiply(const Product& p, int u, const float* shared) {
    constexpr int fours = Widened<dtype>::count / 4;
    const int lanes = 1 << p.lanes_log2, bytes = (warp_size >> p.lanes_log2) * p.in * static_cast<int>(size_of(dtype)), apart = p.in / 8;
    const auto *x = reinterpret_cast<const float4*>(shared + op.inputs[p.input].place), *made = reinterpret_cast<const float4*>(p.made);
    if (made != nullptr) wait_until_made();
    float2 sum{0, 0}, more{0, 0};
#pragma unroll 1
    for (int begin = 0; begin < bytes; begin += chunk) {
      arrival(stage).wait(parity);
      const int pieces = min(chunk, bytes - begin) / piece;
      if (made != nullptr) {
        accumulate(sum, more, pieces, begin / piece, lanes, [&](int at, int f) { return __ldcg(made + fours * at + f); });
      } else {
        accumulate(sum, more, pieces, begin / piece, lanes, [&](int at, int f) { return x[fours == 1 ? at : at + f * apart]; });
      }
      __syncwarp();
      if (lane == 0) fetch();
      if (++stage == stages) stage = 0, parity ^= 1;
    }
    return {sum_over(sum.x + more.x, lanes), sum_over(sum.y + more.y, lanes)};
  }
};

/// A block a multiprocessor. A warp streams its units' rows through a ring of its own; the inputs are in shared memory, made once a block.
template <DType dtype>
__global__ void __launch_bounds__(threads, 2) one_row_kernel(const __grid_constant__ OneRow op) {
  extern __shared__ __align__(128) float inputs[];
  __shared__ unsigned long long barriers[warps][most_stages];
  __shared__ float squares[most_numbers / numbers_of_sum];
  const int warp = threadIdx.x / warp_size, lane = threadIdx.x % warp_size;
  const int own = warp * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x), step = warps * static_cast<int>(gridDim.x);
  char* const ring = reinterpret_cast<char*>(inputs + op.numbers) + warp * op.stages * row_pair * op.chunk;
  Stream<dtype> stream{op, ring, barriers[warp], lane, own, step, op.units, op.stages, op.chunk, own};
  stream.begin();
  prefetch_norms(op);
  stream.prefetch_ends();
  wait_for_results();
  let_next_begin();  // not before: a second kernel ahead only stands in the way

  load_inputs<dtype>(inputs, squares, op);
  if (op.norms) {
    __syncthreads();
    scale_inputs<dtype>(inputs, squares, op);
  }
  __syncthreads();

  // A lane keeps a row's sum until it is worth while, or time, to finish those of all lanes.
  int product = 0, row = -1, kept = 0;
  float2 sum{0, 0};
  bool due = false, counts = false;  // the rows that are kept; their unit
  const auto keep = [&](bool own_row, int n, int o, float2 z) {
    if (own_row) product = n, row = o, sum = z;
  };
#pragma unroll 1
  for (int unit = own;; unit += step) {
    const bool over = unit >= op.units;
    const int n = over ? 0 : product_of(op, unit);
    const Product& p = op.products[n];
    const int together = warp_size >> p.lanes_log2;
    if (over || due || together > 1 || kept + row_pair > warp_size) {
      if (row >= 0) finish(op.products[product], row, sum.x, sum.y);
      row = -1, kept = 0;
      if (counts) {
        __threadfence();
        __syncwarp();
        if (lane == 0) atomicInc(op.ready, op.last);
      }
    }
    if (over) break;
    const float2 z = stream.multiply(p, unit, inputs);
    const int local = unit - p.first_unit;
    counts = p.announced || p.made != nullptr;
    due = together > 1 || counts;
    if (together > 1) {
      // Lanes 0 and 1 of a row's lanes finish it in the first and in the second run, of which a moved one repeats rows.
      const int run = lane & ((1 << p.lanes_log2) - 1), begin = (row_pair * local + run) * together;
      const int o = min(begin, p.out - together) + (lane >> p.lanes_log2);
      keep(run < row_pair && o >= begin && o < p.out, n, o, {run == 0 ? z.x : z.y, 1});
    } else if (p.end == End::gated) {
      keep(lane == kept++, n, local, z);
    } else {
      keep(lane == kept++, n, row_pair * local, {z.x, 1});
      keep(lane == kept++ && row_pair * local + 1 < p.out, n, row_pair * local + 1, {z.y, 1});
    }
  }
}

// ---- launchers -----------------------------------------------------------------------------------------------------------------------

/// Whether a product fits the kernel: rows that begin at 16 bytes and hold whole pieces, short ones a power of two of them, one behind the
/// other.
bool streams(ConstTensor x, const InputNorm& norm, ConstTensor weight) {
  const auto size = static_cast<std::int64_t>(size_of(weight.dtype)), row_bytes = weight.row_size() * size, pieces = row_bytes / piece;
  const auto aligned = [](ConstTensor t, std::int64_t bytes) {
    return reinterpret_cast<std::uintptr_t>(t.data) % piece == 0 && t.stride * bytes % piece == 0;
  };
  const bool short_rows = pieces < warp_size;
  const bool rows = row_bytes % piece == 0 && pieces >= row_pair && aligned(weight, size) &&
                    (!short_rows || (warp_size % pieces == 0 && weight.contiguous() && weight.rows() >= warp_size / pieces));
  const bool groups = norm.group == 0 || norm.group == x.row_size() || norm.group % numbers_of_sum == 0;
  return x.rows() == 1 && x.dtype == DType::f32 && rows && aligned(x, piece) && groups &&
         (!norm.gate || (norm.gate.dtype == DType::f32 && aligned(norm.gate, piece)));
}

bool same(const InputNorm& a, const InputNorm& b) {
  return a.group == b.group && a.weight.data == b.weight.data && a.gate.data == b.gate.data;
}

/// What is collected for one launch.
class OneRowLaunch {
 public:
  /// False where it does not fit; then nothing may be launched.
  bool add(const Projection& p) {
    if (!add_product(p.x, p.norm, p.weight)) return false;
    Product& product = op_.products[op_.product_count - 1];
    if (p.y.dtype != DType::f32 || (p.z && p.z.dtype != DType::f32)) return false;
    product.y = p.y.f32();
    product.z = f32(p.z).data;
    product.bias = f32(p.bias).data;
    return std::visit([&](const auto& finish) { return set(product, finish); }, p.finish);
  }
  /// y = silu(x̂ · gateᵀ) ⊙ (x̂ · upᵀ)
  bool add_gated(Tensor y, ConstTensor x, const InputNorm& norm, ConstTensor gate, ConstTensor up) {
    if (gate.dtype != up.dtype || gate.stride != up.stride || !streams(x, norm, up) || !add_product(x, norm, gate)) return false;
    Product& product = op_.products[op_.product_count - 1];
    if (1 << product.lanes_log2 < warp_size) return false;
    product.y = y.f32();
    product.up = static_cast<const char*>(up.data);
    product.end = End::gated;
    product.act = Activation::silu;
    op_.units = product.first_unit + product.out;
    return true;
  }
  void start(const Announcements& announcements, cudaStream_t stream) {
    op_.ready = announcements.count;
    op_.last = op_.announced + waiting_ - 1;
    for (int n = 0; n < op_.product_count; ++n) op_.first_unit[n] = op_.products[n].first_unit;
    const std::size_t input_bytes = static_cast<std::size_t>(op_.numbers) * sizeof(float);
    // Long chunks cost less, two of them keep memory busy.
    constexpr int long_chunk = 2048, short_chunk = 1024;
    constexpr std::size_t enough = 2;
    const auto stage_bytes = [](int chunk) { return std::size_t{warps} * row_pair * static_cast<std::size_t>(chunk); };
    const std::size_t room = shared_bytes - input_bytes;
    op_.chunk = room / stage_bytes(long_chunk) >= enough ? long_chunk : short_chunk;
    op_.stages = static_cast<int>(std::min<std::size_t>(room / stage_bytes(op_.chunk), most_stages));
    const auto begin = [&](auto kernel) {
      // The next kernel finds room only where shared memory is as large as it can be.
      check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared), "shared memory");
      launch_overlapped("linear of one row", kernel, static_cast<unsigned>(multiprocessors()), threads,
                        input_bytes + static_cast<std::size_t>(op_.stages) * stage_bytes(op_.chunk), stream, op_);
    };
    if (type_ == DType::f32) return begin(one_row_kernel<DType::f32>);
    if (type_ == DType::f16) return begin(one_row_kernel<DType::f16>);
    begin(one_row_kernel<DType::bf16>);
  }

 private:
  static int multiprocessors() {
    int device = 0, count = 0;
    check(cudaGetDevice(&device), "the device");
    check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device), "the device's properties");
    return count;
  }

  bool add_product(ConstTensor x, const InputNorm& norm, ConstTensor weight) {
    if (op_.product_count == most_products || !streams(x, norm, weight)) return false;
    if (op_.product_count > 0 && weight.dtype != type_) return false;
    type_ = weight.dtype;
    Product* const maker = maker_of(x);
    if (maker != nullptr) {
      // A warp that waits must not keep another product from being made: all that are waited for stand before those that wait.
      first_waiting_ = std::min(first_waiting_, op_.product_count);
      if (norm.group > 0 || maker->out != x.row_size() || maker - op_.products >= first_waiting_) return false;
    }
    const int input = maker != nullptr ? 0 : input_of(x, norm);
    if (input < 0) return false;
    if (maker != nullptr && !maker->announced) {
      maker->announced = true;
      op_.announced += static_cast<unsigned>(units_of(*maker));
    }
    const auto size = static_cast<std::int64_t>(size_of(type_));
    Product& product = op_.products[op_.product_count++];
    product.weight = static_cast<const char*>(weight.data);
    product.weight_bytes = weight.stride * size;
    product.out = static_cast<int>(weight.rows());
    product.in = static_cast<int>(weight.row_size());
    product.made = maker != nullptr ? x.f32() : nullptr;
    product.input = input;
    product.lanes_log2 = std::countr_zero(static_cast<unsigned>(std::min<std::int64_t>(weight.row_size() * size / piece, warp_size)));
    product.first_unit = op_.units;
    op_.units += units_of(product);
    if (maker != nullptr) waiting_ += static_cast<unsigned>(units_of(product));
    return true;
  }
  static int units_of(const Product& p) {
    const int rows = row_pair * warp_size >> p.lanes_log2;
    return (p.out + rows - 1) / rows;
  }
  /// The product before that makes x; null: there is none.
  Product* maker_of(ConstTensor x) {
    for (int n = 0; n < op_.product_count; ++n) {
      if (op_.products[n].y == x.data) return op_.products + n;
    }
    return nullptr;
  }
  /// Its number among the inputs; −1 where there is no room.
  int input_of(ConstTensor x, const InputNorm& norm) {
    for (int n = 0; n < op_.input_count; ++n) {
      if (op_.inputs[n].x == x.data && same(norms_[static_cast<std::size_t>(n)], norm)) return n;
    }
    const auto n = static_cast<int>(x.row_size()), places = (n + numbers_of_sum - 1) / numbers_of_sum * numbers_of_sum;
    if (op_.input_count == most_inputs || op_.numbers + places > most_numbers) return -1;
    const int sums = static_cast<int>((norm.group + numbers_of_sum - 1) / numbers_of_sum);
    norms_[static_cast<std::size_t>(op_.input_count)] = norm;
    op_.inputs[op_.input_count] = {x.f32(),
                                   f32(norm.weight).data,
                                   f32(norm.gate).data,
                                   n,
                                   static_cast<int>(norm.group),
                                   op_.numbers,
                                   norm.eps,
                                   norm.offset,
                                   norm.act,
                                   sums,
                                   sums > 0 ? ((1 << 16) + sums - 1) / sums : 0};
    op_.numbers += places;
    op_.norms |= norm.group > 0;
    return op_.input_count++;
  }

  static bool set(Product& product, const Activate& finish) {
    product.end = End::activate;
    product.act = finish.act;
    product.addend = f32(finish.addend).data;
    return true;
  }
  static bool set(Product& product, const ForgetGate& finish) {
    product.end = End::forget_gate;
    product.scale = 1 / finish.normalizer;
    product.clamp_min = finish.clamp_min;
    return true;
  }
  static bool set(Product& product, const DeltaDecay& finish) {
    product.end = End::delta_decay;
    product.A_log = f32(finish.A_log).data;
    product.dt_bias = f32(finish.dt_bias).data;
    return true;
  }
  static bool set(Product& product, const Convolve& finish) {
    product.end = End::convolve;
    product.act = finish.act;
    product.taps = f32(finish.weight).data;
    product.tap_bias = f32(finish.bias).data;
    product.cache = f32(finish.cache).data;
    product.width = static_cast<int>(finish.weight.row_size());
    return product.width <= most_taps;
  }

  OneRow op_{};
  std::array<InputNorm, most_inputs> norms_;
  DType type_ = DType::bf16;
  unsigned waiting_ = 0;  // units that wait for announced ones
  int first_waiting_ = most_products;
};

}  // namespace

Announcements::Announcements() {
  check(cudaMalloc(&count, sizeof *count), "device memory");
  check(cudaMemset(count, 0, sizeof *count), "device memory");
}
Announcements::~Announcements() { cudaFree(count); }

bool Products::project(std::span<const Projection> projections, cudaStream_t stream) {
  if (!can_overlap()) return false;
  OneRowLaunch all;
  for (const Projection& p : projections) {
    check_linear(p.z ? p.z : p.y, p.x, p.weight, p.bias);
    if (!all.add(p)) return false;
  }
  if (!projections.empty()) all.start(announcements_, stream);
  return true;
}

bool Products::gated_linear(Tensor y, ConstTensor x, const InputNorm& norm, ConstTensor gate, ConstTensor up, cudaStream_t stream) {
  check_linear(y, x, gate, {});
  check_linear(y, x, up, {});
  OneRowLaunch all;
  if (!can_overlap() || !all.add_gated(y, x, norm, gate, up)) return false;
  all.start(announcements_, stream);
  return true;
}

}  // namespace statescope::cuda

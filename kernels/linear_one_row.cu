// Products of one row with any number of weights, which are read once, as they are stored, at the speed of memory: a token's decoding.
// Weights come through rings in shared memory and are on their way before the kernels before this one have ended.
#include <cuda_fp16.h>

#include <algorithm>
#include <array>

#include "kernels/cuda_activation.h"
#include "kernels/cuda_linear.h"

namespace statescope::cuda {
namespace {

constexpr int warp_size = 32, warps = 8, threads = warps * warp_size;
constexpr int chunk = 2048, row_pair = 2;                  // bytes of a row that are fetched at once; rows that are fetched together
constexpr int most_stages = 8;                             // of a warp's ring
constexpr int piece = 16, numbers_of_sum = 4 * warp_size;  // bytes that a thread reads at once; numbers whose squares a warp sums
constexpr int most_inputs = 8, most_products = 16, most_taps = 4;
constexpr std::size_t shared_bytes = 110 << 10;  // two such kernels share a multiprocessor
constexpr int most_numbers = 14 << 10;           // of all inputs together

/// A row [n], and the norm that it passes (projection.h).
struct Input {
  const float *x, *weight, *gate;
  int n, group, place;  // group 0: no norm; `place`: its first number in shared memory, a multiple of `numbers_of_sum`
  float eps, offset;
  Activation act;
};

enum class End : std::uint8_t { activate, forget_gate, delta_decay, convolve, gated };

/// What one weight gives. Rows are dealt out in units: one pair of rows; of rows that are shorter than a warp reads, as many pairs as it
/// reads at once.
struct Product {
  const char* weight;
  const char* up;             // gated: of the same shape, y = silu(z) ⊙ (x · upᵀ)
  std::int64_t weight_bytes;  // from one row to the next
  float *y, *z;
  const float *bias, *addend, *A_log, *dt_bias;
  const float *taps, *tap_bias;  // [out, width], [out]
  float* cache;                  // [width − 1, out]
  int width;
  float scale, clamp_min;
  int out, input, first_unit;
  int lanes;          // that share a row
  const float* made;  // x where a product before this one in the launch makes it, else null and x is `input`
  int in;
  bool announced;  // another product waits for y
  Activation act;
  End end;
};

struct OneRow {
  Input inputs[most_inputs];
  Product products[most_products];
  int input_count, product_count, units, stages;
  unsigned* ready;    // counts the units that others wait for, of this launch and all before it
  unsigned expected;  // its value once all of this launch have been made
  int numbers;        // of all inputs in shared memory
  bool norms;         // whether one of them passes a norm
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
  for (int distance = lanes / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(~0U, x, distance);
  return x;
}

/// An index, not a pointer: parameters are read fast only where the compiler sees that they are parameters.
__device__ int product_of(const OneRow& op, int unit) {
  int n = 0;
  while (n + 1 < op.product_count && unit >= op.products[n + 1].first_unit) ++n;
  return n;
}

/// Where number 4 i of an input stands in shared memory. Of 16-bit weights a thread reads eight inputs at once: the first four of every
/// eight stand together, then the others, so that neighbours read from different banks.
template <DType dtype>
__device__ int place_of_four(int i, int n) {
  return dtype == DType::f32 ? 4 * i : (i & 1) * (n / 2) + (i >> 1) * 4;
}

/// The input of which four numbers stand at 4 · slot, and which four they are.
struct Four {
  const Input& input;
  int i;
  __device__ Four(const OneRow& op, int slot) : input(find(op, slot)), i(slot - input.place / 4) {}
  __device__ explicit operator bool() const { return i < input.n / 4; }

 private:
  static __device__ const Input& find(const OneRow& op, int slot) {
    int n = 0;
    while (n + 1 < op.input_count && 4 * slot >= op.inputs[n + 1].place) ++n;
    return op.inputs[n];
  }
};

/// All threads bring the inputs into shared memory, as yet without the factors of their norms; a warp sums the squares of its numbers.
template <DType dtype>
__device__ void load_inputs(float* shared, float* squares, const OneRow& op) {
  constexpr int together = 4;  // on their way at the same time
  const int slots = op.numbers / 4;
  for (int begin = static_cast<int>(threadIdx.x); begin < slots; begin += together * threads) {
    float4 in[together], gate[together];
#pragma unroll
    for (int t = 0; t < together; ++t) {
      in[t] = {0, 0, 0, 0};
      if (begin + t * threads >= slots) continue;
      const Four four(op, begin + t * threads);
      if (!four) continue;
      in[t] = *reinterpret_cast<const float4*>(four.input.x + 4 * four.i);
      if (four.input.gate != nullptr) gate[t] = *reinterpret_cast<const float4*>(four.input.gate + 4 * four.i);
    }
#pragma unroll
    for (int t = 0; t < together; ++t) {
      const int slot = begin + t * threads;
      if (slot >= slots) break;
      const Four four(op, slot);
      const Input& input = four.input;
      float4 x = in[t];
      if (input.group > 0) {
        const float sum = sum_over(x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w, warp_size);
        if (slot % warp_size == 0) squares[slot / warp_size] = sum;
      }
      if (!four) continue;
      if (input.group > 0 && input.weight != nullptr) {
        const float* w = input.weight + 4 * four.i % input.group;
        x.x *= __ldg(w) + input.offset, x.y *= __ldg(w + 1) + input.offset;
        x.z *= __ldg(w + 2) + input.offset, x.w *= __ldg(w + 3) + input.offset;
      }
      if (input.gate != nullptr) {
        x.x *= activated(gate[t].x, input.act), x.y *= activated(gate[t].y, input.act);
        x.z *= activated(gate[t].z, input.act), x.w *= activated(gate[t].w, input.act);
      }
      *reinterpret_cast<float4*>(shared + input.place + place_of_four<dtype>(four.i, input.n)) = x;
    }
  }
}

/// x ← x · (Σ x² / group + eps)^{−1/2}
template <DType dtype>
__device__ void scale_inputs(float* shared, const float* squares, const OneRow& op) {
  for (int slot = static_cast<int>(threadIdx.x); slot < op.numbers / 4; slot += threads) {
    const Four four(op, slot);
    const Input& input = four.input;
    if (!four || input.group == 0) continue;
    const int group = 4 * four.i / input.group, begin = group * input.group, end = min(begin + input.group, input.n);
    float sum = 0;
    for (int i = begin; i < end; i += numbers_of_sum) sum += squares[(input.place + i) / numbers_of_sum];
    const float factor = 1 / sqrtf(sum / static_cast<float>(input.group) + input.eps);
    float4& x = *reinterpret_cast<float4*>(shared + input.place + place_of_four<dtype>(four.i, input.n));
    x.x *= factor, x.y *= factor, x.z *= factor, x.w *= factor;
  }
}

/// y[o] from z[o]; gated: from both products.
__device__ void finish(const Product& p, int o, float z, float up) {
  if (p.bias != nullptr) z += p.bias[o];
  if (p.z != nullptr) p.z[o] = z;
  float y = z;
  switch (p.end) {
    case End::activate:
      y = activated(p.addend != nullptr ? z + p.addend[o] : z, p.act);
      break;
    case End::forget_gate:
      y = log_sigmoid_decay(z, p.scale, p.clamp_min);
      break;
    case End::delta_decay:
      y = gated_delta_decay(z, p.A_log[o], p.dt_bias[o]);
      break;
    case End::gated:
      y = activated(z, Activation::silu) * up;
      break;
    case End::convolve: {
      // y[o] = act( bias[o] + Σ_j taps[o, j] · input j ), the last input is z; the cache moves up by one
      const int past = p.width - 1;
      const float* taps = p.taps + static_cast<std::int64_t>(o) * p.width;
      float kept[most_taps - 1], sum = p.tap_bias != nullptr ? p.tap_bias[o] : 0;
#pragma unroll
      for (int j = 0; j < most_taps - 1; ++j) {
        if (j < past) kept[j] = p.cache[j * p.out + o];
      }
#pragma unroll
      for (int j = 0; j < most_taps - 1; ++j) {
        if (j >= past) continue;
        sum += taps[j] * kept[j];
        if (j > 0) p.cache[(j - 1) * p.out + o] = kept[j];
      }
      if (past > 0) p.cache[(past - 1) * p.out + o] = z;
      y = activated(sum + taps[past] * z, p.act);
      break;
    }
  }
  p.y[o] = y;
}

/// A warp's share of all units, and its ring of stages, each a chunk of both rows of a pair. What is fetched next is known to lane 0.
template <DType dtype>
struct Stream {
  const OneRow& op;
  char* ring;
  unsigned long long* barriers;
  int lane, own, step;  // the warp among all warps, and how many there are
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
    const int together = warp_size / p.lanes, row = row_pair * together * local;
    const int first = min(row, p.out - together), second = min(row + together, p.out - together);
    return {p.weight + first * p.weight_bytes, p.weight + second * p.weight_bytes, static_cast<int>(together * row_bytes)};
  }
  __device__ Arrival arrival(int s) const { return {barriers + s}; }
  __device__ char* stage_at(int s) const { return ring + s * row_pair * chunk; }

  __device__ void fetch() {
    if (unit >= op.units) return;
    if (done == 0) from = pair(op.products[product_of(op, unit)], unit);
    const int bytes = min(chunk, from.bytes - done);
    arrival(fetched_stage).expect(row_pair * bytes);
    arrival(fetched_stage).fetch(stage_at(fetched_stage), from.first + done, bytes);
    arrival(fetched_stage).fetch(stage_at(fetched_stage) + chunk, from.second + done, bytes);
    done += bytes;
    if (done == from.bytes) done = 0, unit += step;
    if (++fetched_stage == op.stages) fetched_stage = 0;
  }

  __device__ void begin() {
    if (lane == 0) {
      for (int s = 0; s < op.stages; ++s) arrival(s).make();
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      for (int s = 0; s < op.stages; ++s) fetch();
    }
    __syncwarp();
  }

  __device__ void wait_until_made() const {
    unsigned made = 0;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(made) : "l"(op.ready) : "memory");
    } while (static_cast<int>(made - op.expected) < 0);
  }

  /// Both products of the thread's lanes with the rows of unit u.
  __device__ float2 multiply(const Product& p, int u, const float* shared) {
    const int bytes = pair(p, u).bytes, inner = lane % p.lanes;
    const auto* x = reinterpret_cast<const float4*>(shared + op.inputs[p.input].place);
    if (p.made != nullptr) wait_until_made();
    float2 sum{0, 0};
    for (int begin = 0; begin < bytes; begin += chunk) {
      arrival(stage).wait(parity);
      const auto *first = reinterpret_cast<const uint4*>(stage_at(stage)),
                 *second = reinterpret_cast<const uint4*>(stage_at(stage) + chunk);
      const int pieces = min(chunk, bytes - begin) / piece;
#pragma unroll
      for (int turn = 0; turn < chunk / piece / warp_size; ++turn) {
        const int i = turn * warp_size + lane;
        if (i >= pieces) break;
        // a thread of a long row goes on along it; of short rows each thread has one piece
        const int at = p.lanes == warp_size ? begin / piece + i : inner;
        const Widened<dtype> w(first[i]), v(second[i]);
        constexpr int fours = Widened<dtype>::count / 4;
#pragma unroll
        for (int f = 0; f < fours; ++f) {
          const float4 in = p.made != nullptr ? __ldcg(reinterpret_cast<const float4*>(p.made) + fours * at + f)
                                              : x[fours == 1 ? at : at + f * (p.in / 8)];
          sum.x = fmaf(in.x, w.at[4 * f], sum.x), sum.x = fmaf(in.y, w.at[4 * f + 1], sum.x);
          sum.x = fmaf(in.z, w.at[4 * f + 2], sum.x), sum.x = fmaf(in.w, w.at[4 * f + 3], sum.x);
          sum.y = fmaf(in.x, v.at[4 * f], sum.y), sum.y = fmaf(in.y, v.at[4 * f + 1], sum.y);
          sum.y = fmaf(in.z, v.at[4 * f + 2], sum.y), sum.y = fmaf(in.w, v.at[4 * f + 3], sum.y);
        }
      }
      __syncwarp();
      if (lane == 0) fetch();
      if (++stage == op.stages) stage = 0, parity ^= 1;
    }
    return {sum_over(sum.x, p.lanes), sum_over(sum.y, p.lanes)};
  }
};

/// A block a multiprocessor. A warp streams its units' rows through a ring of its own; the inputs are in shared memory, made once a block.
template <DType dtype>
__global__ void __launch_bounds__(threads) one_row_kernel(const __grid_constant__ OneRow op) {
  extern __shared__ __align__(128) float inputs[];
  __shared__ unsigned long long barriers[warps][most_stages];
  __shared__ float squares[most_numbers / numbers_of_sum];
  const int warp = threadIdx.x / warp_size, lane = threadIdx.x % warp_size;
  const int own = warp * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x), step = warps * static_cast<int>(gridDim.x);
  char* const ring = reinterpret_cast<char*>(inputs + op.numbers) + warp * op.stages * row_pair * chunk;
  let_next_begin();
  Stream<dtype> stream{op, ring, barriers[warp], lane, own, step, own};
  stream.begin();
  wait_for_results();

  load_inputs<dtype>(inputs, squares, op);
  if (op.norms) {
    __syncthreads();
    scale_inputs<dtype>(inputs, squares, op);
  }
  __syncthreads();

  // Of long rows a lane keeps a sum until there are enough of them to be finished together.
  int kept_product = 0, kept_row = 0, kept = 0;
  float2 kept_sum{0, 0};
  const auto keep = [&](int product, int o, float2 sum) {
    if (lane == kept) kept_product = product, kept_row = o, kept_sum = sum;
    ++kept;
  };
  const auto finish_kept = [&] {
    const Product& p = op.products[kept_product];
    if (lane < kept && kept_row < p.out) finish(p, kept_row, kept_sum.x, kept_sum.y);
    kept = 0;
  };
  for (int unit = own; unit < op.units; unit += step) {
    const int n = product_of(op, unit);
    const Product& p = op.products[n];
    const float2 z = stream.multiply(p, unit, inputs);
    const int local = unit - p.first_unit;
    if (p.lanes < warp_size) {
      // Lanes 0 and 1 of a row's lanes finish it in the first and in the second run, of which a moved one repeats rows.
      const int together = warp_size / p.lanes, run = lane % p.lanes, begin = (row_pair * local + run) * together;
      const int o = min(begin, p.out - together) + lane / p.lanes;
      if (run < row_pair && o >= begin && o < p.out) finish(p, o, run == 0 ? z.x : z.y, 0);
    } else if (p.end == End::gated) {
      keep(n, local, z);
    } else {
      keep(n, row_pair * local, {z.x, 0});
      keep(n, row_pair * local + 1, {z.y, 0});
    }
    if (kept + row_pair > warp_size || p.announced) finish_kept();
    if (p.announced) {
      __threadfence();
      __syncwarp();
      if (lane == 0) atomicAdd(op.ready, 1U);
    }
  }
  finish_kept();
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
    if (product.lanes < warp_size) return false;
    product.y = y.f32();
    product.up = static_cast<const char*>(up.data);
    product.end = End::gated;
    op_.units = product.first_unit + product.out;
    return true;
  }
  void start(Announcements& announcements, cudaStream_t stream) {
    op_.ready = announcements.count;
    op_.expected = announcements.made += announced_;
    const std::size_t input_bytes = static_cast<std::size_t>(op_.numbers) * sizeof(float);
    constexpr std::size_t of_stage = std::size_t{warps} * row_pair * chunk;
    op_.stages = static_cast<int>(std::min<std::size_t>((shared_bytes - input_bytes) / of_stage, most_stages));
    const auto begin = [&](auto kernel) {
      // The next kernel finds room only where shared memory is as large as it can be.
      check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared), "shared memory");
      launch_overlapped("linear of one row", kernel, static_cast<unsigned>(multiprocessors()), threads,
                        input_bytes + static_cast<std::size_t>(op_.stages) * of_stage, stream, op_);
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
      announced_ += static_cast<unsigned>(units_of(*maker));
    }
    const auto size = static_cast<std::int64_t>(size_of(type_));
    Product& product = op_.products[op_.product_count++];
    product.weight = static_cast<const char*>(weight.data);
    product.weight_bytes = weight.stride * size;
    product.out = static_cast<int>(weight.rows());
    product.in = static_cast<int>(weight.row_size());
    product.made = maker != nullptr ? x.f32() : nullptr;
    product.input = input;
    product.lanes = static_cast<int>(std::min<std::int64_t>(weight.row_size() * size / piece, warp_size));
    product.first_unit = op_.units;
    op_.units += units_of(product);
    return true;
  }
  static int units_of(const Product& p) {
    const int rows = row_pair * warp_size / p.lanes;
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
    norms_[static_cast<std::size_t>(op_.input_count)] = norm;
    op_.inputs[op_.input_count] = {
        x.f32(), f32(norm.weight).data, f32(norm.gate).data, n, static_cast<int>(norm.group), op_.numbers, norm.eps, norm.offset, norm.act};
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
  unsigned announced_ = 0;
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

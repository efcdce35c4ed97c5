// Products of one row with any number of weights, which are read once, as they are stored, at the speed of memory: a token's decoding.
// Weights come through rings in shared memory and are on their way before the kernels before this one have ended. Code is short rather than
// unrolled: a launch runs most of it a few times, and fetching 60 KB of it took longer than the work.
#include <cuda_fp16.h>

#include <algorithm>
#include <array>
#include <bit>

#include "kernels/cuda_hopper.h"
#include "kernels/cuda_one_row.h"

namespace statescope::cuda {
namespace {

using namespace one_row;

constexpr int half_warp = warp_size / 2;
constexpr int row_pair = 2;     // rows that are fetched together
constexpr int most_stages = 8;  // of a warp's ring

// ---- kernels -------------------------------------------------------------------------------------------------------------------------

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
        at[2 * i] = first_of(words[i]);
        at[2 * i + 1] = second_of(words[i]);
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

/// Both over the warp: the sum of x in the lower half of the lanes, of y in the upper one.
__device__ float sum_in_halves(float2 z) {
  const bool upper = threadIdx.x % warp_size >= half_warp;
  float sum = (upper ? z.y : z.x) + __shfl_xor_sync(~0U, upper ? z.x : z.y, half_warp);
#pragma unroll
  for (int distance = half_warp / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0U, sum, distance);
  return sum;
}

/// Where number 4 i of an input stands in shared memory. Of 16-bit weights a thread reads eight inputs at once: the first four of every
/// eight stand together, then the others, so that neighbours read from different banks.
template <DType dtype>
__device__ int place_of_four(int i, int n) {
  return dtype == DType::f32 ? 4 * i : (i & 1) * (n / 2) + (i >> 1) * 4;
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

/// The same for one that passes a norm, as yet without the factors of its groups; a warp sums the squares of its numbers. `ahead` are the
/// norm's weights of the thread's first numbers where they are known.
template <DType dtype>
__device__ void load_normed(float* shared, float* squares, const Input& input, const NormWeights& ahead, bool known) {
  const int fours = input.n / 4, whole = (input.n + numbers_of_sum - 1) / numbers_of_sum * warp_size;
  const float offset = input.weight != nullptr ? input.offset : 0;
#pragma unroll 1
  for (int begin = static_cast<int>(threadIdx.x); begin < whole; begin += fours_at_once * threads) {
    float4 in[fours_at_once], gate[fours_at_once];
#pragma unroll
    for (int t = 0; t < fours_at_once; ++t) {
      const int i = begin + t * threads;
      in[t] = gate[t] = {0, 0, 0, 0};
      if (i < fours) in[t] = *reinterpret_cast<const float4*>(input.x + 4 * i);
      if (i < fours && input.gate != nullptr) gate[t] = *reinterpret_cast<const float4*>(input.gate + 4 * i);
    }
    const NormWeights weights = known && begin == static_cast<int>(threadIdx.x) ? ahead : norm_weights(input, begin);
#pragma unroll
    for (int t = 0; t < fours_at_once; ++t) {
      const int i = begin + t * threads;
      if (i >= whole) break;
      float4 x = in[t];
      const float4 weight = weights.at[t];
      const float sum = combined(x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w, [](float a, float b) { return a + b; });
      if (i % warp_size == 0) squares[(input.place / 4 + i) / warp_size] = sum;
      if (i >= fours) continue;
      x.x *= weight.x + offset, x.y *= weight.y + offset, x.z *= weight.z + offset, x.w *= weight.w + offset;
      if (input.gate != nullptr) {
        x.x *= activated_by_one(gate[t].x, input.act), x.y *= activated_by_one(gate[t].y, input.act);
        x.z *= activated_by_one(gate[t].z, input.act), x.w *= activated_by_one(gate[t].w, input.act);
      }
      *reinterpret_cast<float4*>(shared + input.place + place_of_four<dtype>(i, input.n)) = x;
    }
  }
}

template <DType dtype>
__device__ void load_inputs(float* shared, float* squares, const OneRow& op, const NormWeights& of_first) {
#pragma unroll 1
  for (int n = 0; n < op.input_count; ++n) {
    const Input& input = op.inputs[n];
    input.group > 0 ? load_normed<dtype>(shared, squares, input, of_first, n == 0) : load_plain<dtype>(shared, input);
  }
}

/// x ← x · factor where groups have their own. The numbers of a warp belong to one group.
template <DType dtype>
__device__ void scale_groups(float* shared, const float* squares, const OneRow& op) {
  for (int n = 0; n < op.input_count; ++n) {
    const Input& input = op.inputs[n];
    if (input.group == 0 || input.one_group()) continue;
    const int whole = (input.n + numbers_of_sum - 1) / numbers_of_sum * warp_size;
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < whole; i += threads) {
      const float factor = norm_factor(input, squares + input.place / numbers_of_sum + input.group_of(i / warp_size) * input.sums);
      if (i >= input.n / 4) continue;
      float4& x = *reinterpret_cast<float4*>(shared + input.place + place_of_four<dtype>(i, input.n));
      x.x *= factor, x.y *= factor, x.z *= factor, x.w *= factor;
    }
  }
}

/// A warp's share of all units, and its ring of stages, each a chunk of both rows of a pair. Lane l keeps what is known of the warp's
/// units l, l + 32, …: parameters are far away, another lane is near.
template <DType dtype>
struct Stream {
  const OneRow& op;
  char* ring;
  std::uint64_t* barriers;     // of stages: each counts the bytes of one
  int lane, own, step, count;  // the warp among all warps, and how many there are; its units
  int stages, chunk;           // as in op; what the loop needs of parameters stays in registers

  /// As memory: two rows, or two runs of short rows. Of the next unit of the lane to be fetched.
  struct Pair {
    const char *first, *second;
    int bytes;  // of each
  } from = {};
  int fetched = 0, bytes = 0, done = 0, fetched_stage = 0;  // of the unit that is being fetched

  /// Of the next unit of the lane to be multiplied.
  struct Use {
    int product, bytes, input, place, lanes_log2;
    bool made, counted;  // its x is made in this launch; others wait for it, or it waited
    __device__ bool long_rows() const { return 1 << lanes_log2 == warp_size; }
  } use = {};
  int stage = 0;
  unsigned parity = 0;

  __device__ int unit(int index) const { return own + index * step; }
  __device__ char* stage_at(int s) const { return ring + s * row_pair * chunk; }

  __device__ Pair pair(int index) const {
    const Product& p = op.products[product_of(op, unit(index))];
    const int local = unit(index) - p.first_unit;
    const auto row_bytes = static_cast<std::int64_t>(p.in) * size_of(dtype);
    if (p.end == End::gated) return {p.weight + local * p.weight_bytes, p.up + local * p.weight_bytes, static_cast<int>(row_bytes)};
    const int together = warp_size >> p.lanes_log2, row = row_pair * together * local;
    const int first = min(row, p.out - together), second = min(row + together, p.out - together);
    return {p.weight + first * p.weight_bytes, p.weight + second * p.weight_bytes, static_cast<int>(together * row_bytes)};
  }
  __device__ Use use_of(int index) const {
    const int n = product_of(op, unit(index));
    const Product& p = op.products[n];
    const bool made = p.made != nullptr;
    const int bytes_of_unit = (warp_size >> p.lanes_log2) * p.in * static_cast<int>(size_of(dtype));
    return {n, bytes_of_unit, p.input, op.inputs[p.input].place, p.lanes_log2, made, made || p.announced};
  }

  /// The next chunk; by all lanes.
  __device__ void fetch() {
    if (fetched >= count) return;
    const bool owns = lane == fetched % warp_size;
    if (owns) {
      const auto part = static_cast<unsigned>(min(chunk, bytes - done));
      std::uint64_t& full = barriers[fetched_stage];
      arrive_and_expect(full, row_pair * part);
      copy_bytes(stage_at(fetched_stage), from.first + done, part, full);
      copy_bytes(stage_at(fetched_stage) + chunk, from.second + done, part, full);
    }
    done += chunk;
    if (done >= bytes) {
      if (owns && fetched + warp_size < count) from = pair(fetched + warp_size);
      ++fetched, done = 0;
      bytes = __shfl_sync(~0U, from.bytes, fetched % warp_size);
    }
    if (++fetched_stage == stages) fetched_stage = 0;
  }

  __device__ void begin() {
    if (lane < stages) init_barrier(barriers[lane], 1);
    publish_barriers();
    __syncwarp();
    if (lane < count) from = pair(lane);
    bytes = __shfl_sync(~0U, from.bytes, 0);
#pragma unroll 1
    for (int s = 0; s < stages; ++s) fetch();
    if (lane < count) use = use_of(lane);
  }

  /// The output that the lane will finish of the units index … index + 15: of their first row in the lower half, of their second in the
  /// upper.
  __device__ void prepare(Ending& ending, int index) const {
    const int at = index + lane % half_warp;
    int n = -1, o = 0;
    if (at < count) {
      n = product_of(op, unit(at));
      const Product& p = op.products[n];
      const int local = unit(at) - p.first_unit;
      const bool gated = p.end == End::gated;
      o = gated ? local : row_pair * local + lane / half_warp;
      if (1 << p.lanes_log2 < warp_size || (gated && lane >= half_warp)) n = -1;
    }
    ending.prepare(op, n, o);
  }

  /// Lanes 0 and 1 of a row's lanes finish it in the first and in the second run, of which a moved one repeats rows.
  __device__ void finish_short(const Use& u, int index, float2 sums) const {
    const Product& p = op.products[u.product];
    const int together = warp_size >> u.lanes_log2, run = lane & ((1 << u.lanes_log2) - 1);
    const int begin = (row_pair * (unit(index) - p.first_unit) + run) * together;
    const int o = min(begin, p.out - together) + (lane >> u.lanes_log2);
    Ending ending;
    ending.prepare(op, run < row_pair && o >= begin ? u.product : -1, o);
    ending.load_addend();
    ending.finish(op, run == 0 ? sums.x : sums.y, 1);
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
#pragma unroll 1
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

  /// Of the unit with this index: what belongs to it, in all lanes.
  __device__ Use broadcast(int index) {
    const int from_lane = index % warp_size;
    const int few = (use.made ? 1 : 0) | (use.counted ? 2 : 0) | use.lanes_log2 << 2 | use.input << 8 | use.product << 16;
    const int all = __shfl_sync(~0U, few, from_lane);
    const int bytes_of_unit = __shfl_sync(~0U, use.bytes, from_lane), place = __shfl_sync(~0U, use.place, from_lane);
    if (lane == from_lane && index + warp_size < count) use = use_of(index + warp_size);
    return {all >> 16, bytes_of_unit, all >> 8 & 0xFF, place, all >> 2 & 0x3F, (all & 1) != 0, (all & 2) != 0};
  }

  /// The lane's part of both products with the rows of a unit.
  __device__ float2 multiply(const Use& u, const float* shared) {
    constexpr int fours = Widened<dtype>::count / 4;
    const int lanes = 1 << u.lanes_log2, apart = u.bytes * lanes / (warp_size * piece);  // of 16-bit weights: an eighth of the row
    const auto* x = reinterpret_cast<const float4*>(shared + u.place);
    float2 sum{0, 0}, more{0, 0};
    if (u.made) wait_until_made();
#pragma unroll 1
    for (int begin = 0; begin < u.bytes; begin += chunk) {
      wait(barriers[stage], static_cast<int>(parity));
      const int pieces = min(chunk, u.bytes - begin) / piece;
      if (u.made) {
        const auto* made = reinterpret_cast<const float4*>(op.products[u.product].made);
        accumulate(sum, more, pieces, begin / piece, lanes, [&](int at, int f) { return __ldcg(made + fours * at + f); });
      } else {
        accumulate(sum, more, pieces, begin / piece, lanes, [&](int at, int f) { return x[fours == 1 ? at : at + f * apart]; });
      }
      __syncwarp();
      fetch();
      if (++stage == stages) stage = 0, parity ^= 1;
    }
    return {sum.x + more.x, sum.y + more.y};
  }
};

/// A block a multiprocessor. A warp streams its units' rows through a ring of its own; the inputs are in shared memory, made once a block.
template <DType dtype>
__global__ void __launch_bounds__(threads, 2) one_row_kernel(const __grid_constant__ OneRow op) {
  extern __shared__ __align__(128) float inputs[];
  __shared__ std::uint64_t barriers[warps][most_stages];
  __shared__ float squares[most_numbers / numbers_of_sum];
  const int warp = threadIdx.x / warp_size, lane = threadIdx.x % warp_size;
  const int own = warp * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x), step = warps * static_cast<int>(gridDim.x);
  const int count = own < op.units ? (op.units - own + step - 1) / step : 0;
  char* const ring = reinterpret_cast<char*>(inputs + op.numbers) + warp * op.stages * row_pair * op.chunk;
  Stream<dtype> stream{op, ring, barriers[warp], lane, own, step, count, op.stages, op.chunk};
  // While the kernels before this one still run: all that they do not make. Nothing waits for it yet.
  NormWeights of_first{};
  if (op.inputs[0].group > 0) of_first = norm_weights(op.inputs[0], static_cast<int>(threadIdx.x));
  stream.begin();
  Ending ending;
  stream.prepare(ending, 0);
  wait_for_results();
  let_next_begin();  // not before: a second kernel ahead only stands in the way

  load_inputs<dtype>(inputs, squares, op, of_first);
  ending.load_addend();
  __syncthreads();
  if (op.groups) {
    scale_groups<dtype>(inputs, squares, op);
    __syncthreads();
  }

  // A lane keeps a row's sum until those of all lanes are worth finishing, or somebody waits for them.
  int factor_of = -1;
  float factor = 1, sum = 0;
#pragma unroll 1
  for (int index = 0; index < count; ++index) {
    const auto use = stream.broadcast(index);
    float2 z = stream.multiply(use, inputs);
    if (use.input != factor_of) {
      const Input& input = op.inputs[use.input];
      factor_of = use.input;
      factor = input.one_group() ? norm_factor(input, squares + input.place / numbers_of_sum) : 1;
    }
    if (!use.made) z = {factor * z.x, factor * z.y};
    const int place = index % half_warp;
    const bool own_row = use.long_rows() && lane % half_warp == place, last = index + 1 == count || place == half_warp - 1;
    if (use.long_rows()) {
      const float both = sum_in_halves(z);
      if (own_row) sum = both;
    } else {
      stream.finish_short(use, index, {sum_over(z.x, 1 << use.lanes_log2), sum_over(z.y, 1 << use.lanes_log2)});
    }
    if (last || use.counted) {
      const float other = __shfl_xor_sync(~0U, sum, half_warp);
      if (last || own_row) ending.finish(op, sum, other);
    }
    if (use.counted) {
      __threadfence();
      __syncwarp();
      if (lane == 0) atomicInc(op.ready, op.last);
    }
    if (last && index + 1 < count) {
      stream.prepare(ending, index + 1);
      ending.load_addend();
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

/// Whether the device of this thread has the kernels (compute capability 9.0).
bool streams_rows() { return attribute_of_device(cudaDevAttrComputeCapabilityMajor) == 9; }

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
  void start(const Announcements& announcements, Chain& chain) {
    op_.ready = announcements.count;
    op_.last = op_.announced + waiting_ - 1;
    if (chain.add(op_, type_)) return;
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
      launch_overlapped("linear of one row", kernel, multiprocessors(), threads,
                        input_bytes + static_cast<std::size_t>(op_.stages) * stage_bytes(op_.chunk), chain.stream(), op_);
    };
    if (type_ == DType::f32) return begin(one_row_kernel<DType::f32>);
    if (type_ == DType::f16) return begin(one_row_kernel<DType::f16>);
    begin(one_row_kernel<DType::bf16>);
  }

 private:
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
    op_.groups |= norm.group > 0 && norm.group < n;
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

bool Products::project(std::span<const Projection> projections, Chain& chain) {
  if (!streams_rows()) return false;
  OneRowLaunch all;
  for (const Projection& p : projections) {
    check_linear(p.z ? p.z : p.y, p.x, p.weight, p.bias);
    if (!all.add(p)) return false;
  }
  if (!projections.empty()) all.start(announcements_, chain);
  return true;
}

bool Products::gated_linear(Tensor y, ConstTensor x, const InputNorm& norm, ConstTensor gate, ConstTensor up, Chain& chain) {
  check_linear(y, x, gate, {});
  check_linear(y, x, up, {});
  OneRowLaunch all;
  if (!streams_rows() || !all.add_gated(y, x, norm, gate, up)) return false;
  all.start(announcements_, chain);
  return true;
}

}  // namespace statescope::cuda

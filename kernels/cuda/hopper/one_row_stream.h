// How a warp multiplies a row with weights of any type as they come through its ring (linear_one_row_hopper.cu), and how inputs get into
// shared memory before. Included by .cu files alone.
#pragma once

#include <cuda_fp16.h>

#include "kernels/cuda/common/one_row.h"
#include "kernels/cuda/hopper/hopper.h"

namespace statescope::cuda::one_row {

constexpr int half_warp = warp_size / 2;
constexpr int row_pair = 2;     // rows that are fetched together
constexpr int most_stages = 8;  // of a warp's ring

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

__device__ inline float sum_over(float x, int lanes) {
#pragma unroll 1
  for (int distance = lanes / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(~0U, x, distance);
  return x;
}

/// Both over the warp: the sum of x in the lower half of the lanes, of y in the upper one.
__device__ inline float sum_in_halves(float2 z) {
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
      const float sum = sum_of_warp(x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w);
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

}  // namespace statescope::cuda::one_row

// How a warp multiplies an input row with weights of any type in its own pipeline of stages (linear_one_row.cu), and how inputs are loaded
// to shared memory before. Included by .cu files alone.
#pragma once

#include <cuda_fp16.h>

#include "kernels/cuda/common/one_row.h"
#include "kernels/cuda/hopper/hopper.h"

namespace statescope::cuda::one_row {

constexpr int half_warp = warp_size / 2;
constexpr int row_pair = 2;     // rows that are loaded together
constexpr int most_stages = 8;  // of a warp's pipeline

/// The 16 bytes of a thread as float32 values.
template <DType dtype>
struct Widened {
  static constexpr int count = vector_bytes / size_of(dtype);
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

/// Both summed over the warp: x in the lower half of the lanes, y in the upper one.
__device__ inline float sum_in_halves(float2 z) {
  const bool upper = threadIdx.x % warp_size >= half_warp;
  float sum = (upper ? z.y : z.x) + __shfl_xor_sync(~0U, upper ? z.x : z.y, half_warp);
#pragma unroll
  for (int distance = half_warp / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0U, sum, distance);
  return sum;
}

/// The index of value 4 i of an input in shared memory. Of 16-bit weights a thread reads eight inputs at once: the first four of every
/// eight come first, then the others, so that adjacent lanes hit different banks.
template <DType dtype>
__device__ int vector_offset(int i, int n) {
  return dtype == DType::f32 ? 4 * i : (i & 1) * (n / 2) + (i >> 1) * 4;
}

/// All threads load an input to shared memory; a thread issues its loads together.
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
      if (i < fours) *reinterpret_cast<float4*>(shared + input.shared_begin + vector_offset<dtype>(i, input.n)) = in[t];
    }
  }
}

/// The same for an input that passes a norm, without the factors of its groups yet; a warp sums the squares of its values. `ahead`: the
/// norm's weights for the first values of the thread, where they are known.
template <DType dtype>
__device__ void load_normed(float* shared, float* squares, const Input& input, const NormWeights& ahead, bool known) {
  const int fours = input.n / 4, whole = (input.n + values_per_sum - 1) / values_per_sum * warp_size;
  const float offset = input.weight != nullptr ? input.offset : 0;
#pragma unroll 1
  for (int begin = static_cast<int>(threadIdx.x); begin < whole; begin += vectors_in_flight * threads) {
    float4 in[vectors_in_flight], gate[vectors_in_flight];
#pragma unroll
    for (int t = 0; t < vectors_in_flight; ++t) {
      const int i = begin + t * threads;
      in[t] = gate[t] = {0, 0, 0, 0};
      if (i < fours) in[t] = *reinterpret_cast<const float4*>(input.x + 4 * i);
      if (i < fours && input.gate != nullptr) gate[t] = *reinterpret_cast<const float4*>(input.gate + 4 * i);
    }
    const NormWeights weights = known && begin == static_cast<int>(threadIdx.x) ? ahead : norm_weights(input, begin);
#pragma unroll
    for (int t = 0; t < vectors_in_flight; ++t) {
      const int i = begin + t * threads;
      if (i >= whole) break;
      float4 x = in[t];
      const float4 weight = weights.at[t];
      const float sum = sum_of_warp(x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w);
      if (i % warp_size == 0) squares[(input.shared_begin / 4 + i) / warp_size] = sum;
      if (i >= fours) continue;
      x.x *= weight.x + offset, x.y *= weight.y + offset, x.z *= weight.z + offset, x.w *= weight.w + offset;
      if (input.gate != nullptr) {
        x.x *= activated_by_one(gate[t].x, input.act), x.y *= activated_by_one(gate[t].y, input.act);
        x.z *= activated_by_one(gate[t].z, input.act), x.w *= activated_by_one(gate[t].w, input.act);
      }
      *reinterpret_cast<float4*>(shared + input.shared_begin + vector_offset<dtype>(i, input.n)) = x;
    }
  }
}

template <DType dtype>
__device__ void load_inputs(float* shared, float* squares, const Gemv& op, const NormWeights& of_first) {
#pragma unroll 1
  for (int n = 0; n < op.input_count; ++n) {
    const Input& input = op.inputs[n];
    input.group > 0 ? load_normed<dtype>(shared, squares, input, of_first, n == 0) : load_plain<dtype>(shared, input);
  }
}

/// x ← x · factor where groups have factors of their own. The values of a warp belong to one group.
template <DType dtype>
__device__ void scale_groups(float* shared, const float* squares, const Gemv& op) {
  for (int n = 0; n < op.input_count; ++n) {
    const Input& input = op.inputs[n];
    if (input.group == 0 || input.one_group()) continue;
    const int whole = (input.n + values_per_sum - 1) / values_per_sum * warp_size;
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < whole; i += threads) {
      const float factor =
          norm_factor(input, squares + input.shared_begin / values_per_sum + input.group_of(i / warp_size) * input.sums_per_group);
      if (i >= input.n / 4) continue;
      float4& x = *reinterpret_cast<float4*>(shared + input.shared_begin + vector_offset<dtype>(i, input.n));
      x.x *= factor, x.y *= factor, x.z *= factor, x.w *= factor;
    }
  }
}

/// The units of a warp (one_row.h), and its pipeline: each stage holds a chunk of both rows of a pair. Lane l keeps what is known of the
/// warp's units l, l + 32, …: parameters are loaded from memory, while another lane is a shuffle away.
template <DType dtype>
struct WarpPipeline {
  const Gemv& op;
  char* first_stage;
  std::uint64_t* barriers;     // of the stages: each counts the bytes of its stage
  int lane, own, step, count;  // index of the warp among all warps, and their number; units of the warp
  int stages, chunk;           // as in op; copied, so that the loop has them in registers

  /// Addresses: two rows, or two runs of short rows. Of the next unit of the lane to be loaded.
  struct RowPair {
    const char *first, *second;
    int bytes;  // of each
  } from = {};
  int fetched = 0, bytes = 0, done = 0, fetched_stage = 0;  // of the unit that is being loaded

  /// The next unit of the lane to be multiplied.
  struct UnitInfo {
    int product, bytes, input, shared_begin, lanes_log2;
    bool reads_intermediate, counted;  // its input is an intermediate of this launch; whether it is counted in `ready`
    __device__ bool long_rows() const { return 1 << lanes_log2 == warp_size; }
  } info = {};
  int stage = 0;
  unsigned parity = 0;

  __device__ int unit(int index) const { return own + index * step; }
  __device__ char* stage_at(int s) const { return first_stage + s * row_pair * chunk; }

  __device__ RowPair pair(int index) const {
    const Product& p = op.products[product_of(op, unit(index))];
    const int local = unit(index) - p.first_unit;
    const auto row_bytes = static_cast<std::int64_t>(p.in) * size_of(dtype);
    if (p.epilogue == EpilogueKind::gated)
      return {p.weight + local * p.weight_bytes, p.up + local * p.weight_bytes, static_cast<int>(row_bytes)};
    const int together = warp_size >> p.lanes_log2, row = row_pair * together * local;
    const int first = min(row, p.out - together), second = min(row + together, p.out - together);
    return {p.weight + first * p.weight_bytes, p.weight + second * p.weight_bytes, static_cast<int>(together * row_bytes)};
  }
  __device__ UnitInfo info_of(int index) const {
    const int n = product_of(op, unit(index));
    const Product& p = op.products[n];
    const bool made = p.intermediate != nullptr;
    const int bytes_of_unit = (warp_size >> p.lanes_log2) * p.in * static_cast<int>(size_of(dtype));
    return {n, bytes_of_unit, p.input, op.inputs[p.input].shared_begin, p.lanes_log2, made, made || p.is_intermediate};
  }

  /// Loads the next chunk; by all lanes.
  __device__ void fetch() {
    if (fetched >= count) return;
    const bool owns = lane == fetched % warp_size;
    if (owns) {
      const auto part = static_cast<unsigned>(min(chunk, bytes - done));
      std::uint64_t& full = barriers[fetched_stage];
      arrive_and_expect(full, row_pair * part);
      bulk_copy(stage_at(fetched_stage), from.first + done, part, full);
      bulk_copy(stage_at(fetched_stage) + chunk, from.second + done, part, full);
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
    fence_barrier_init();
    __syncwarp();
    if (lane < count) from = pair(lane);
    bytes = __shfl_sync(~0U, from.bytes, 0);
#pragma unroll 1
    for (int s = 0; s < stages; ++s) fetch();
    if (lane < count) info = info_of(lane);
  }

  /// Prepares the epilogue of the output that the lane will finish, among the units index … index + 15: that of their first row in the
  /// lower half of the lanes, of their second in the upper.
  __device__ void prepare(Epilogue& epilogue, int index) const {
    const int at = index + lane % half_warp;
    int n = -1, o = 0;
    if (at < count) {
      n = product_of(op, unit(at));
      const Product& p = op.products[n];
      const int local = unit(at) - p.first_unit;
      const bool gated = p.epilogue == EpilogueKind::gated;
      o = gated ? local : row_pair * local + lane / half_warp;
      if (1 << p.lanes_log2 < warp_size || (gated && lane >= half_warp)) n = -1;
    }
    epilogue.prepare(op, n, o);
  }

  /// Lanes 0 and 1 of a row finish it in the first and in the second run. The last run may be moved back, and then repeats rows.
  __device__ void finish_short(const UnitInfo& u, int index, float2 sums) const {
    const Product& p = op.products[u.product];
    const int together = warp_size >> u.lanes_log2, run = lane & ((1 << u.lanes_log2) - 1);
    const int begin = (row_pair * (unit(index) - p.first_unit) + run) * together;
    const int o = min(begin, p.out - together) + (lane >> u.lanes_log2);
    Epilogue epilogue;
    epilogue.prepare(op, run < row_pair && o >= begin ? u.product : -1, o);
    epilogue.load_addend();
    epilogue.finish(op, run == 0 ? sums.x : sums.y, 1);
  }

  __device__ void wait_until_made() const {
    unsigned made = 0;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(made) : "l"(op.ready) : "memory");
    } while (made < op.intermediate_units);
  }

  /// Adds the products of a stage for both rows; `input(at, f)`: four values of the input for 16-byte vector `at` of the weights.
  template <class In>
  __device__ void accumulate(float2& sum, float2& more, int pieces, int first_at, int lanes, const In& input) const {
    const auto *first = reinterpret_cast<const uint4*>(stage_at(stage)), *second = reinterpret_cast<const uint4*>(stage_at(stage) + chunk);
#pragma unroll 1
    for (int i = lane; i < pieces; i += warp_size) {
      // the lanes go on along a long row; of short rows each lane has one vector
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

  /// The unit with this index, in all lanes.
  __device__ UnitInfo broadcast(int index) {
    const int from_lane = index % warp_size;
    const int few =
        (info.reads_intermediate ? 1 : 0) | (info.counted ? 2 : 0) | info.lanes_log2 << 2 | info.input << 8 | info.product << 16;
    const int all = __shfl_sync(~0U, few, from_lane);
    const int bytes_of_unit = __shfl_sync(~0U, info.bytes, from_lane), place = __shfl_sync(~0U, info.shared_begin, from_lane);
    if (lane == from_lane && index + warp_size < count) info = info_of(index + warp_size);
    return {all >> 16, bytes_of_unit, all >> 8 & 0xFF, place, all >> 2 & 0x3F, (all & 1) != 0, (all & 2) != 0};
  }

  /// The lane's partial sums of the products with both rows of a unit.
  __device__ float2 multiply(const UnitInfo& u, const float* shared) {
    constexpr int fours = Widened<dtype>::count / 4;
    const int lanes = 1 << u.lanes_log2,
              apart = u.bytes * lanes / (warp_size * vector_bytes);  // of 16-bit weights: between the two halves of the input
    const auto* x = reinterpret_cast<const float4*>(shared + u.shared_begin);
    float2 sum{0, 0}, more{0, 0};
    if (u.reads_intermediate) wait_until_made();
#pragma unroll 1
    for (int begin = 0; begin < u.bytes; begin += chunk) {
      wait(barriers[stage], static_cast<int>(parity));
      const int pieces = min(chunk, u.bytes - begin) / vector_bytes;
      if (u.reads_intermediate) {
        const auto* made = reinterpret_cast<const float4*>(op.products[u.product].intermediate);
        accumulate(sum, more, pieces, begin / vector_bytes, lanes, [&](int at, int f) { return __ldcg(made + fours * at + f); });
      } else {
        accumulate(sum, more, pieces, begin / vector_bytes, lanes, [&](int at, int f) { return x[fours == 1 ? at : at + f * apart]; });
      }
      __syncwarp();
      fetch();
      if (++stage == stages) stage = 0, parity ^= 1;
    }
    return {sum.x + more.x, sum.y + more.y};
  }
};

}  // namespace statescope::cuda::one_row

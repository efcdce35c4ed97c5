// The consumer warps in a GEMV: they multiply x in shared memory (input.h) with the weights in the pipeline (weight_pipeline.h). Included
// by .cu files alone.
//
// Tensor cores multiply, which takes a tenth of the instructions: what limits a token's step is the number of instructions between the
// outputs of one operation and those of the next. x is in shared memory as three bf16 terms whose sum it is exactly. One mma takes 8 rows
// of weights by 32 columns. The 16 bytes that a lane loads of a row are its A fragment as they are: row g of A has values 0, 1, 4, 5 of
// every eight of weight row g, and row g + 8 of A has values 2, 3, 6, 7 of the same row. Columns 0 to 2 of B are the terms of x at the
// former values, columns 3 to 5 those at the latter. In C, rows 0 to 7 count in columns 0 to 2, rows 8 to 15 in columns 3 to 5.
#pragma once

#include "kernels/cuda/decode/epilogue.h"
#include "kernels/cuda/decode/weight_pipeline.h"

namespace statescope::cuda::decode {

constexpr int lanes_per_dependent_row = 4;

__device__ inline uint2 load_shared_v2(unsigned from) {
  uint2 x;
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "r"(from) : "memory");
  return x;
}
__device__ inline unsigned load_shared_u32(unsigned from) {
  unsigned x;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(from) : "memory");
  return x;
}
__device__ inline uint4 load_shared_v4(unsigned from) {
  uint4 x;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "r"(from) : "memory");
  return x;
}

/// Where the first B fragment of a lane lies in the terms of x. Recomputed in each operation: kept over the loop it would spill.
__device__ inline int lane_offset_in_split(const TiledGemv& gemv) {
  int lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  constexpr int both = 6, half = 8;
  const int column = lane / 4 < both ? lane / 4 : 3 * (lane / 4 - both), p = column % split_terms, others = column / split_terms;
  return term_offset(gemv, p) + lane % 4 * vector_bytes + (p < 2 ? others : 1 - others) * half;
}

/// Stores the first slice of x to shared memory once it has arrived, or all of an x that passes a norm.
template <int normed_vectors>
__device__ inline void load_first_slice(BlockMemory& memory, const TiledGemv& gemv, FirstSlice& x, const Mailbox& mailbox) {
  GemvMemory& own = memory.gemv;
  if (gemv.input.group == 0) {
    wait_until_arrived(x);
    store_slice(own.x, gemv, x, 0);
  } else {
    // Intermediates come when all have loaded x: until then there is room for sums in their place.
    const auto load = [&]<int vectors>() {
      is_plain(gemv.input) ? load_normed<vectors, true>(own.x, own.squares, own.intermediate, gemv, mailbox)
                           : load_normed<vectors, false>(own.x, own.squares, own.intermediate, gemv, mailbox);
    };
    // One vector a thread where that is enough: half as much code runs.
    const int of_all_threads = threads * vector_values;
    gemv.input.n <= of_all_threads ? load.template operator()<1>() : load.template operator()<normed_vectors>();
  }
}

/// The sum of a row, from what its four lanes hold of C; in the first of them.
__device__ inline float sum_of_row(const float (&c)[4], int lane) {
  const int t = lane % 4;
  const float own = (t < 2 ? c[0] : c[2]) + (t == 0 ? c[1] : c[3]);
  const float second = __shfl_down_sync(~0U, own, 1), third = __shfl_down_sync(~0U, own, 2);
  return own + (second + third);
}

/// Adds the products of the rows of a stage with a warp's k-blocks of x: every `warps_per_half`-th one. Few of them are added by tensor
/// cores, which round towards zero.
__device__ inline void multiply_stage(float (&sums)[4], unsigned weights, unsigned in, int k_blocks) {
  constexpr int step = warps_per_half * k_block_bytes;
  float c[k_blocks_in_flight][4] = {};
#pragma unroll 1
  for (; k_blocks >= k_blocks_in_flight; k_blocks -= k_blocks_in_flight) {
    uint4 w[k_blocks_in_flight];
    uint2 x[k_blocks_in_flight];
#pragma unroll
    for (int i = 0; i < k_blocks_in_flight; ++i) w[i] = load_shared_v4(weights + i * step), x[i] = load_shared_v2(in + i * step);
#pragma unroll
    for (int i = 0; i < k_blocks_in_flight; ++i) multiply(c[i], w[i], x[i].x, x[i].y);
    weights += k_blocks_in_flight * step, in += k_blocks_in_flight * step;
  }
#pragma unroll 1
  for (; k_blocks > 0; --k_blocks) {
    const uint2 x = load_shared_v2(in);
    multiply(c[0], load_shared_v4(weights), x.x, x.y);
    weights += step, in += step;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) sums[i] += (c[0][i] + c[1][i]) + (c[2][i] + c[3][i]);
}

/// What a lane needs for four k-blocks of compact weights.
struct CompactKBlocks {
  uint4 weights[3];
  uint2 x[k_blocks_in_flight];
  __device__ CompactKBlocks(unsigned from, unsigned in) {
#pragma unroll
    for (int i = 0; i < 3; ++i) weights[i] = load_shared_v4(from + i * compact::row_vector_bytes);
#pragma unroll
    for (int i = 0; i < k_blocks_in_flight; ++i) x[i] = load_shared_v2(in + i * warps_per_half * k_block_bytes);
  }
};
__device__ inline void multiply_compact(float (&c)[4], compact::CompactEight weights, uint2 x, unsigned common) {
  multiply(c, compact::unpacked_eight(weights, common), x.x, x.y);
}
__device__ inline void multiply_compact(float (&c)[k_blocks_in_flight][4], const CompactKBlocks& group, unsigned common) {
  const auto& [u, v, w] = group.weights;
  multiply_compact(c[0], {u.x, u.y, u.z}, group.x[0], common);
  multiply_compact(c[1], {u.w, v.x, v.y}, group.x[1], common);
  multiply_compact(c[2], {v.z, v.w, w.x}, group.x[2], common);
  multiply_compact(c[3], {w.y, w.z, w.w}, group.x[3], common);
}

/// The same for compact weights, without the scale of the rows.
__device__ inline void multiply_compact_stage(float (&sums)[4], unsigned weights, unsigned in, int k_blocks, int in_half) {
  static_assert(k_blocks_in_flight * warps_per_half == compact::group_k_blocks);
  constexpr int weights_of_group = compact::group_k_blocks * compact::k_block_bytes, x_of_group = compact::group_k_blocks * k_block_bytes;
  const unsigned common = compact::common_bits();
  float c[k_blocks_in_flight][4] = {};
#pragma unroll 1
  do {
    multiply_compact(c, CompactKBlocks(weights, in), common);
    weights += weights_of_group, in += x_of_group, k_blocks -= compact::group_k_blocks;
  } while (k_blocks >= compact::group_k_blocks);
  if (k_blocks > 0) {
    weights -= in_half * (compact::group_k_blocks - compact::half_group_k_blocks) * compact::k_block_bytes / compact::warps_per_row;
    const uint4 u = load_shared_v4(weights);
    const int lane = static_cast<int>(threadIdx.x) % compact::lanes_per_row;
    const uint2 v = load_shared_v2(weights + compact::row_vector_bytes - lane * (compact::lane_bytes / 2));
    multiply_compact(c[0], {u.x, u.y, u.z}, load_shared_v2(in), common);
    multiply_compact(c[1], {u.w, v.x, v.y}, load_shared_v2(in + warps_per_half * k_block_bytes), common);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) sums[i] = (c[0][i] + c[1][i]) + (c[2][i] + c[3][i]);
}

/// The value of x at an offset (offset_in_term) of a slice whose first term begins at `slice_of_x`.
__device__ inline float x_value(const char* slice_of_x, const TiledGemv& gemv, int offset) {
  float x = 0;
#pragma unroll
  for (int p = 0; p < split_terms; ++p) {
    const char* const term = slice_of_x + term_offset(gemv, p) + (p < 2 ? offset : offset ^ last_term_swap);
    x += first_of(*reinterpret_cast<const unsigned short*>(term));
  }
  return x;
}

/// What an exception adds to the sum of its row before the scale is applied: x (w / scale − 2^−15).
__device__ inline float exception_term(unsigned exception, float scale, const char* slice_of_x, const TiledGemv& gemv, int k_blocks) {
  // Rows that do not exist hold arbitrary bits.
  const int offset = min(static_cast<int>(exception >> 16) & ~compact::is_exception, k_blocks * k_block_bytes - 2);
  const float inverse = __uint_as_float((254U << 23) - __float_as_uint(scale));
  return x_value(slice_of_x, gemv, offset) * (__uint_as_float(exception << 16) * inverse - __uint_as_float(compact::first_exponent << 23));
}

/// Tiles [first, end) times one slice of x; their first batch ends at batch_end.
struct SlicePass {
  int first, end, batch_end, offset, k_blocks;  // of the slice, which begins at k-block `offset` in shared memory
  bool is_first, is_last;                       // of the slices of a row: after the last one batches pass to the epilogue
};

/// What a consumer warp multiplies: some of the columns of one half of each tile.
struct ConsumerWarp {
  int half, in_half, lane;
  int whole_tiles;      // tiles that have a second half
  unsigned x, weights;  // shared addresses: the lane's first values of x, and its first weights in the first stage
  float* sum;           // accumulator of the lane's row in the first tile

  __device__ ConsumerWarp(BlockMemory& memory, const OperationSlot& slot, const WeightPipeline& pipeline)
      : half(static_cast<int>(threadIdx.x) / warp_size / warps_per_half),
        in_half(static_cast<int>(threadIdx.x) / warp_size % warps_per_half),
        lane(threadIdx.x % warp_size),
        whole_tiles(slot.operation.gemv.gated() ? slot.tile_count() : (slot.outputs + stage_rows - 1) / tile_rows),
        x(shared_address(memory.gemv.x + lane_offset_in_split(slot.operation.gemv)) + in_half * k_block_bytes),
        weights(shared_address(pipeline.begin) + lane_offset(slot.operation.gemv.compact)),
        sum(memory.accumulators + (half * stage_rows + row()) * warps_per_half + in_half) {}

  /// The lane's row in a stage: lanes that read together hit different banks.
  __device__ int row() const { return lane / 4 % 2 * rows_per_copy + lane / 4 / 2; }
  __device__ int lane_offset(bool is_compact) const {
    return lane % 4 * vector_bytes + in_half * (is_compact ? 3 * compact::row_vector_bytes : k_block_bytes);
  }

  /// Adds one pass to the accumulators. A batch begins when its buffer is free; the caller has acquired that of the first one.
  template <bool is_compact>
  __device__ void multiply(const OperationSlot& slot, const BlockMemory& memory, const WeightPipeline& pipeline, PipelineState& at,
                           AccumulatorState& accumulators, const SlicePass& pass) const {
    auto [first, end, batch_end, x_offset, k_blocks, is_first, is_last] = pass;
    const TiledGemv& gemv = slot.operation.gemv;
    const unsigned of_row = weights + row_offset(row(), slice_bytes(is_compact, k_blocks)), in = x + x_offset * k_block_bytes;
    const unsigned trailer = of_row - lane_offset(is_compact) + k_blocks * compact::k_block_bytes;
    const int own = 4 * (lane % 4) + in_half;  // of the exceptions of a row
#pragma unroll 1
    for (int tile = first; tile < end; ++tile) {
      const bool whole = tile < whole_tiles;
      if (half == 0 || whole) {
        const PipelineState own_stage = at.advanced_by(static_cast<unsigned>(half), pipeline);
        const unsigned from = own_stage.stage() * static_cast<unsigned>(pipeline.size.stage_bytes),
                       barrier = pipeline.barriers + own_stage.stage() * static_cast<unsigned>(sizeof(Stage));
        wait_at(barrier + offsetof(Stage, full), own_stage.parity());
        float sums[4] = {}, scale = 1;
        if constexpr (is_compact) {
          scale = __uint_as_float(load_shared_u32(trailer + from));
          const unsigned exception = own < compact::most_exceptions ? load_shared_u32(trailer + from + 4 * (1 + own)) : 0;
          multiply_compact_stage(sums, of_row + from, in, k_blocks, in_half);
          if (exception != 0) sums[0] += exception_term(exception, scale, memory.gemv.x + x_offset * k_block_bytes, gemv, k_blocks);
        } else {
          multiply_stage(sums, of_row + from, in, (k_blocks - in_half + warps_per_half - 1) / warps_per_half);
        }
        __syncwarp();
        if (lane == 0) arrive_at(barrier + offsetof(Stage, empty));
        const float product = scale * sum_of_row(sums, lane);
        float& all = sum[static_cast<unsigned>(slot.tiles_before + tile) % accumulator_tiles * tile_rows * warps_per_half];
        if (lane % 4 == 0) all = is_first ? product : all + product;
      }
      at = at.advanced_by(whole ? 2 : 1, pipeline);
      if (tile + 1 == batch_end && is_last) {
        accumulators.producer_commit();
        if (tile + 1 == end) break;
        batch_end = slot.batch_end(tile + 1);
        accumulators.producer_acquire();
      }
    }
  }
};

/// Computes the sums of the block's outputs of a GEMV. Of a batch of tiles all are multiplied with the first slice of x, then with the
/// second, and so on: later slices arrive meanwhile.
template <int normed_vectors>
__device__ inline void run_gemv(OperationSlot& slot, BlockMemory& memory, const WeightPipeline& pipeline, PipelineState& at,
                                AccumulatorState& accumulators, const Mailbox& mailbox) {
  const int thread = static_cast<int>(threadIdx.x);
  const TiledGemv& gemv = slot.operation.gemv;
  FirstSlice x = issue_slice<FirstSlice>(gemv, 0, mailbox);
  const ConsumerWarp consumer(memory, slot, pipeline);
  const int tiles = slot.tile_count(), all_k_blocks = gemv.k_blocks, per_slice = gemv.k_blocks_per_slice;
  const bool is_sliced = all_k_blocks > per_slice, is_compact = gemv.compact;
  const bool is_loaded_later = gemv.is_sliced();
  int batch_end = slot.batch_end(0);
  sync_consumers();  // nobody reads the previous x any more
  if (is_loaded_later && tiles > 0) release_slice();
#pragma unroll 1
  for (int first = 0, end = 0; first < tiles; first = end) {
    if (first > 0) batch_end = slot.batch_end(first);
    end = is_sliced ? batch_end : tiles;
    accumulators.producer_acquire();
#pragma unroll 1
    for (int block = 0, offset = 0; block < all_k_blocks; block += per_slice) {
      const int k_blocks = min(per_slice, all_k_blocks - block);
      const bool last = block + k_blocks == all_k_blocks;
      if (first == 0 && block == 0) {
        load_first_slice<normed_vectors>(memory, gemv, x, mailbox);
        sync_consumers();
        if (thread == threads - 1) {
          const bool late = gemv.input.group > 0 && gemv.input.one_group();
          slot.factor = late ? norm_factor_of(gemv, sum_of_warps<warps>(memory.gemv.squares)) : 1;
        }
      } else if (first == 0 && is_loaded_later) {
        wait_for_slice();
        // Where two slices are resident, nobody reads the one before the last any more.
        if (!last) release_slice();
      } else if (block > 0) {
        sync_consumers();  // the stages of all earlier slices have arrived
      }
      const SlicePass pass{first, end, batch_end, offset, k_blocks, block == 0, last};
      is_compact ? consumer.multiply<true>(slot, memory, pipeline, at, accumulators, pass)
                 : consumer.multiply<false>(slot, memory, pipeline, at, accumulators, pass);
      offset = gemv.next_slice_offset(offset);
    }
  }
}

/// The r-th row that the block has of dependent products: where its weights begin in the stage, and its x among the intermediates.
struct DependentRow {
  int product = -1, o = 0, weights = 0, x = 0;

  __device__ DependentRow() = default;
  __device__ DependentRow(const OperationSlot& slot, int r) {
    const TiledGemv& gemv = slot.operation.gemv;
#pragma unroll 1
    for (int n = gemv.independent_products(); n < gemv.product_count; ++n) {
      const Product& p = gemv.products[n];
      const Share own = slot.dependent_shares[n];
      if (r < own.count) {
        product = n, o = own.begin + r, weights += r * static_cast<int>(p.weight_bytes);
        return;
      }
      r -= own.count, weights += own.count * static_cast<int>(p.weight_bytes), x += p.in;
    }
  }
};

/// The address of the i-th value of all intermediate rows.
__device__ inline const float* intermediate_value(const TiledGemv& gemv, int i) {
#pragma unroll 1
  for (int n = gemv.independent_products(); n < gemv.product_count; ++n) {
    if (i < gemv.products[n].in) return gemv.products[n].intermediate + i;
    i -= gemv.products[n].in;
  }
  return nullptr;
}

/// Computes and finishes the block's rows of dependent products.
__device__ inline void run_dependent_products(const OperationSlot& slot, BlockMemory& memory, const WeightPipeline& pipeline,
                                              PipelineState& at, const Mailbox& mailbox) {
  const TiledGemv& gemv = slot.operation.gemv;
  const int thread = static_cast<int>(threadIdx.x), own = thread % lanes_per_dependent_row;
  constexpr int requests_per_thread = most_intermediate_values / threads;
  const float* from[requests_per_thread];
  Mailbox::Pending pending[requests_per_thread];
#pragma unroll
  for (int i = 0; i < requests_per_thread; ++i) {
    from[i] = intermediate_value(gemv, thread + i * threads);
    if (from[i] != nullptr) pending[i] = mailbox.request(from[i]);
  }
  // Whole warps take part.
  constexpr int per_warp = warp_size / lanes_per_dependent_row, per_block = threads / lanes_per_dependent_row;
  int r = thread / lanes_per_dependent_row;
  DependentRow row;
  OutputEpilogue output;
  const auto prepare = [&] {
    if (r / per_warp * per_warp >= slot.dependent_rows) return;
    row = DependentRow(slot, r);
    output = OutputEpilogue(slot, {own == 0 ? row.product : -1, row.o}, mailbox);
  };
  prepare();
#pragma unroll
  for (int i = 0; i < requests_per_thread; ++i) {
    if (from[i] != nullptr) memory.gemv.intermediate[thread + i * threads] = mailbox.get(pending[i]);
  }
  sync_consumers();
  Stage& stage = pipeline.stages[at.stage()];
  const char* const weights = pipeline.stage(at.stage());
  wait(stage.full, at.parity());
#pragma unroll 1
  while (r / per_warp * per_warp < slot.dependent_rows) {
    const int vectors = row.product >= 0 ? gemv.products[row.product].in / vector_values : 0;
    output.load_addend(gemv, mailbox);
    float sum = 0;
#pragma unroll 1
    for (int c = own; c < vectors; c += lanes_per_dependent_row) {
      const uint4 raw = *reinterpret_cast<const uint4*>(weights + row.weights + c * vector_bytes);
      const float* in = memory.gemv.intermediate + row.x + c * vector_values;
      const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
      for (int k = 0; k < 4; ++k) sum = fmaf(in[2 * k], first_of(words[k]), fmaf(in[2 * k + 1], second_of(words[k]), sum));
    }
    __syncwarp();
#pragma unroll
    for (int distance = 1; distance < lanes_per_dependent_row; distance *= 2) sum += __shfl_xor_sync(~0U, sum, distance);
    finish(slot, output, sum, 1);
    r += per_block;
    prepare();
  }
  sync_consumers();
  if (thread % warp_size == 0 && thread < warps_per_half * warp_size) stage.consumer_release();
  at.advance(pipeline);
}

}  // namespace statescope::cuda::decode

// The pipeline of weights in shared memory (operation.h), and the producer warp that fills it: it loads the weights of all operations in
// order and never waits for an operation to begin. Included by .cu files alone.
#pragma once

#include "kernels/cuda/decode/operation.h"

namespace statescope::cuda::decode {

/// The barriers of a stage. It is full once all expected bytes have arrived.
struct Stage : BarrierPair {
  __device__ void expect_bytes(int bytes) { arrive_and_expect(full, static_cast<unsigned>(bytes)); }
  /// Bulk copy of a multiple of 16 bytes. Weights are read once, so they are the first to be evicted from L2.
  __device__ void copy(unsigned to, const char* from, int bytes, std::uint64_t policy) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(shared_address(&full)), "l"(policy)
                 : "memory");
  }
};
__device__ inline std::uint64_t evict_first_policy() {
  std::uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

/// Where a row begins in its stage, in bytes; each row has row_bytes.
__device__ inline int row_offset(int row, int row_bytes) { return row * row_bytes + (row >= rows_per_copy ? row_padding : 0); }

/// As many stages as fit the shared memory that a launch has left.
struct PipelineSize {
  int stages, stage_bytes;
  __host__ __device__ int bytes() const { return stages * stage_bytes; }
};
struct WeightPipeline {
  PipelineSize size;
  char* begin;
  Stage* stages;
  unsigned barriers;  // shared address of the stages' barriers, kept in a register
  __device__ char* stage(unsigned number) const { return begin + static_cast<int>(number) * size.stage_bytes; }
};
/// The position of a warp in the pipeline.
struct PipelineState {
  static constexpr unsigned phase_bit = 1U << 16;
  unsigned at = 0;  // the stage, with phase_bit set in every other round: one register
  __device__ unsigned stage() const { return at % phase_bit; }
  __device__ int parity() const { return static_cast<int>(at / phase_bit); }
  /// The position `count` stages further on; no pipeline has fewer stages than that.
  __device__ PipelineState advanced_by(unsigned count, const WeightPipeline& pipeline) const {
    const unsigned there = stage() + count, stages = static_cast<unsigned>(pipeline.size.stages);
    return {there < stages ? at + count : (at ^ phase_bit) + count - stages};
  }
  __device__ void advance(const WeightPipeline& pipeline) { *this = advanced_by(1, pipeline); }
};

/// Loads the weights of the block's rows of all dependent products, one product after the other, into one stage; by one warp.
__device__ inline void load_dependent_weights(const OperationSlot& slot, Stage& stage, unsigned to, std::uint64_t policy) {
  const TiledGemv& gemv = slot.operation.gemv;
  const int lane = threadIdx.x % warp_size, own = gemv.independent_products() + lane;
  int before = 0, bytes = 0;
#pragma unroll 1
  for (int n = gemv.independent_products(); n < gemv.product_count; ++n) {
    if (n == own) before = bytes;
    bytes += slot.dependent_shares[n].count * static_cast<int>(gemv.products[n].weight_bytes);
  }
  if (lane == 0) stage.expect_bytes(bytes);
  __syncwarp();
  if (own >= gemv.product_count) return;
  const Product& p = gemv.products[own];
  const Share share = slot.dependent_shares[own];
  if (share.count > 0)
    stage.copy(to + before, p.weight + share.begin * p.weight_bytes, share.count * static_cast<int>(p.weight_bytes), policy);
}

/// The next stage of the producer. No more than two stages are in flight: with more, loads from the mailbox would wait behind weights.
struct ProducerState {
  static constexpr int most_in_flight = 2;
  const WeightPipeline& pipeline;
  PipelineState state{}, oldest{};
  int in_flight = 0;

  __device__ Stage& acquire() {
    Stage& stage = pipeline.stages[state.stage()];
    wait(stage.empty, state.parity() ^ 1);
    if (in_flight == most_in_flight) {
      wait(pipeline.stages[oldest.stage()].full, oldest.parity());
      oldest.advance(pipeline);
    } else {
      ++in_flight;
    }
    return stage;
  }
  __device__ unsigned destination() const { return shared_address(pipeline.stage(state.stage())); }
  __device__ void advance() { state.advance(pipeline); }
};

/// The producer warp: loads the weights of all operations in the order in which consumers read them. Each of its first lanes has one row.
__device__ inline void run_producer(OperationPipeline& operations, int count, const WeightPipeline& pipeline) {
  const int lane = threadIdx.x % warp_size;
  const std::uint64_t policy = evict_first_policy();
  ProducerState producer{pipeline};
  const auto load_stage = [&](const OperationSlot& slot, int tile, int half, int number, int first_k_block) {
    const TiledGemv& gemv = slot.operation.gemv;
    const bool gated = gemv.gated();
    const int rows = slot.rows_of(tile, half), row = (gated ? 0 : half * stage_rows) + lane;
    if (rows <= 0) return;
    const char* from = nullptr;
    if (lane < rows && gemv.one_product()) {
      const Product& p = gemv.products[0];
      from = gemv.slice_of(p, gated && half == 1 ? p.up : p.weight, slot.first_output(tile) + row, number, first_k_block);
    } else if (lane < rows) {
      const int i = tile * tile_rows + row;
      const OutputId id = slot.output_ids[i];
      const Product& p = gemv.products[id.product];
      from = first_k_block == 0 ? slot.rows[i] : gemv.slice_of(p, p.weight, id.o, number, first_k_block);
    }
    const int bytes = gemv.slice_bytes(gemv.k_blocks_from(first_k_block));
    // Rows that are adjacent in memory are one copy: issuing one takes the warp some 60 cycles.
    const char* const before = reinterpret_cast<const char*>(__shfl_up_sync(~0U, reinterpret_cast<std::uintptr_t>(from), 1));
    const bool leads = lane < rows && (lane % rows_per_copy == 0 || from != before + bytes);
    const unsigned next_leader = (__ballot_sync(~0U, leads) | 1U << rows) >> lane >> 1;
    const int offset = row_offset(lane, bytes);
    Stage& stage = producer.acquire();
    if (lane == 0) stage.expect_bytes(rows * bytes);
    __syncwarp();
    if (leads) stage.copy(producer.destination() + offset, from, __ffs(next_leader) * bytes, policy);
    producer.advance();
  };
#pragma unroll 1
  for (int index = 0; index < count; ++index) {
    const OperationSlot& slot = operations.consumer_wait(index);
    const TiledGemv& gemv = slot.operation.gemv;
#pragma unroll 1
    for (int first = 0; first < slot.tile_count(); first = slot.batch_end(first)) {
#pragma unroll 1
      for (int number = 0, block = 0; block < gemv.k_blocks; ++number, block += gemv.k_blocks_per_slice) {
#pragma unroll 1
        for (int half = 2 * first; half < 2 * slot.batch_end(first); ++half) load_stage(slot, half / 2, half % 2, number, block);
      }
    }
    if (slot.dependent_rows > 0) {
      Stage& stage = producer.acquire();
      load_dependent_weights(slot, stage, producer.destination(), policy);
      producer.advance();
    }
    operations.consumer_release(index);
  }
}

}  // namespace statescope::cuda::decode

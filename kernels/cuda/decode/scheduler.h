// The scheduler warp: it copies operations to shared memory a few ahead, works out what this block does of each, prefetches operands into
// L2, and loads what all threads of a memory's step need. Included by .cu files alone.
#pragma once

#include "kernels/cuda/decode/operation.h"

namespace statescope::cuda::decode {

__device__ __noinline__ inline void find_task(memory_step::Task& t, const Step& step, int task, const Mailbox& mailbox) {
  memory_step::locate(t, step, task, [&](const float* x) { return mailbox.current(x); });
}

/// Copies an operation to its slot and fills in the block's share of it; by one warp.
__device__ inline void schedule_operation(OperationSlot& slot, const Operation& from, int tiles_before, const Mailbox& mailbox) {
  const int lane = threadIdx.x % warp_size;
  // All loads are issued before the first store: one after the other they took longer than an operation does.
  constexpr int vectors = static_cast<int>(sizeof(Operation) / sizeof(uint4)), per_lane = (vectors + warp_size - 1) / warp_size;
  const auto* source = reinterpret_cast<const uint4*>(&from) + lane;
  auto* to = reinterpret_cast<uint4*>(&slot.operation) + lane;
  uint4 own[per_lane];
#pragma unroll
  for (int i = 0; i < per_lane; ++i) {
    if (lane + i * warp_size < vectors) own[i] = source[i * warp_size];
  }
#pragma unroll
  for (int i = 0; i < per_lane; ++i) {
    if (lane + i * warp_size < vectors) to[i * warp_size] = own[i];
  }
  __syncwarp();
  if (slot.operation.kind != OperationKind::gemv) {
    if (lane != 0) return;
    slot.tile_ends[deferred] = slot.dependent_rows = 0;
    find_task(slot.task, slot.operation.step, static_cast<int>(blockIdx.x), mailbox);
    return;
  }
  const TiledGemv& gemv = slot.operation.gemv;
  int dependent_rows = 0;
#pragma unroll 1
  for (int n = gemv.independent_products(); n < gemv.product_count; ++n) {
    const Share share = share_of(gemv.products[n].out);
    dependent_rows += share.count;
    if (lane == 0) slot.dependent_shares[n] = share;
  }
  const int whole = gemv.whole_tiles << gemv.outputs_per_tile_log2;
  int outputs = 0;
#pragma unroll 1
  for (int priority = 0; priority < priorities; ++priority) {
    // Whole tiles of a single product are interleaved with those of the other blocks.
    const int rows = priority == critical ? whole : 0, side_by_side = rows * static_cast<int>(gridDim.x);
    const Share share = share_of(gemv.outputs[priority] - side_by_side);
    outputs += rows + share.count;
    if (lane == 0) {
      slot.shares[priority] = {side_by_side + share.begin, rows + share.count};
      slot.tile_ends[priority] = (outputs + gemv.outputs_per_tile() - 1) >> gemv.outputs_per_tile_log2;
    }
  }
  if (lane == 0) slot.dependent_rows = dependent_rows, slot.outputs = outputs, slot.tiles_before = tiles_before;
  __syncwarp();
  if (gemv.one_product()) return;
#pragma unroll 1
  for (int i = lane; i < slot.tile_count() * tile_rows; i += warp_size) {
    const OutputId id = find_row(gemv, slot.shares, i);
    slot.output_ids[i] = id;
    slot.rows[i] = id.product < 0 ? nullptr : gemv.products[id.product].weight + id.o * gemv.products[id.product].weight_bytes;
  }
}

/// Prefetches into L2 what an operation reads besides weights, and its part of the mailbox: weights have evicted it since it was cleared,
/// and with so many weights in flight a load from memory takes microseconds. By one warp.
__device__ __noinline__ inline void prefetch_operands(const OperationSlot& slot, const Mailbox& mailbox) {
  const int lane = threadIdx.x % warp_size;
  if (slot.operation.kind != OperationKind::gemv) {
    const Step& step = slot.operation.step;
#pragma unroll 1
    for (int task = static_cast<int>(blockIdx.x); task < step.tasks(); task += static_cast<int>(gridDim.x)) {
      memory_step::prefetch_task(step, task, lane, warp_size);
      memory_step::prefetch_decays(step, task, lane, warp_size);
      if (lane == 0)
        prefetch(mailbox.current(slot.operation.mailbox[0] + task / step.tiles() * step.V + task % step.tiles() * step.columns));
    }
    return;
  }
  const TiledGemv& gemv = slot.operation.gemv;
  if (gemv.input.weight != nullptr) {
#pragma unroll 1
    for (int i = lane * l2_line_values; i < gemv.input.group; i += warp_size * l2_line_values) prefetch(gemv.input.weight + i);
  }
#pragma unroll 1
  for (int i = lane; i < slot.outputs; i += warp_size) {
    const OutputId id = slot.output(i);
    const Product& p = gemv.products[id.product];
    if (slot.operation.mailbox[id.product] != nullptr) prefetch(mailbox.current(slot.operation.mailbox[id.product] + id.o));
    if (p.bias != nullptr) prefetch(p.bias + id.o);
    if (p.epilogue == EpilogueKind::delta_decay) prefetch(p.A_log + id.o), prefetch(p.dt_bias + id.o);
    if (p.epilogue != EpilogueKind::convolve) continue;
    prefetch(p.taps + static_cast<std::int64_t>(id.o) * p.width);
#pragma unroll 1
    for (int j = 0; j < p.width - 1; ++j) prefetch(p.cache + j * p.out + id.o);
  }
}

/// Clears the block's share of the buffer that the next launch will use.
__device__ inline void clear_next_buffer(const Mailbox& mailbox) {
  auto* const other = reinterpret_cast<uint4*>(mailbox.begin + (mailbox.buffer_offset == 0 ? mailbox.bytes : 0));
  const auto vectors = static_cast<int>(mailbox.bytes / vector_bytes);
  const Share own = share_of(vectors);
#pragma unroll 1
  for (int i = threadIdx.x % warp_size; i < own.count; i += warp_size)
    other[own.begin + i] = {not_written, not_written, not_written, not_written};
}

/// Loads what all threads of a memory's step need, while they wait for q and k: the features that decays are computed from, β, the decay of
/// a head, the chosen partitions. By one warp.
__device__ __noinline__ inline void prepare_step(OperationPipeline& operations, int index, memory_step::Shared& shared) {
  const OperationSlot& slot = operations.at(index);
  const Step& step = slot.operation.step;
  if (slot.operation.kind == OperationKind::gemv || slot.task.number >= step.tasks()) return;
  // The shared memory of the step is free once the operation before is done.
  if (index > 0) wait(operations.barriers[(index - 1) % operation_slots].empty, (index - 1) / operation_slots % 2);
  const CurrentMailbox current{operations.mailbox};
  if (step.decays[0].out > 0) {
    memory_step::load_features(shared.features, slot.task, current);
    memory_step::signal<memory_step::features_ready>();
  }
  memory_step::load_scalars(shared.scalars, step, slot.task, current);
  memory_step::choose(shared.chosen, step, slot.task, current);
  memory_step::signal<memory_step::choices_ready>();
}

/// All warps that read the mailbox meet. The lanes of a warp converge before it arrives.
__device__ inline void sync_all_but_producer() {
  __syncwarp();
  wait_at_barrier<all_but_producer, block_threads - warp_size>();
}

struct Scheduler {
  OperationPipeline& operations;
  const Operation* all;
  int count, scheduled = 0, tiles = 0;

  __device__ void schedule_next() {
    BarrierPair& barriers = operations.barriers[scheduled % operation_slots];
    wait(barriers.empty, scheduled / operation_slots % 2 ^ 1);
    schedule_operation(operations.at(scheduled), all[scheduled], tiles, operations.mailbox);
    __syncwarp();
    tiles += operations.at(scheduled).tile_count();
    if (threadIdx.x % warp_size == 0) barriers.producer_commit();
    ++scheduled;
  }
  /// The scheduler's loop; `step`: shared memory of a memory's step.
  __device__ void run(memory_step::Shared& step) {
    while (scheduled < min(count, operation_slots - 1)) schedule_next();
    clear_next_buffer(operations.mailbox);
#pragma unroll 1
    for (int index = 0; index < count; ++index) {
      prepare_step(operations, index, step);
      while (scheduled < count && scheduled < index + operation_slots) schedule_next();
      if (index + 2 < count) prefetch_operands(operations.at(index + 2), operations.mailbox);
      // After the last operations the first ones: the next launch may be a repetition of this one.
      const int ahead = index + operation_slots + 2, following = ahead < count ? ahead : ahead - count;
      const auto* own = reinterpret_cast<const float*>(all + following) + threadIdx.x % warp_size * l2_line_values;
      if (following < count && own < reinterpret_cast<const float*>(all + following + 1)) prefetch(own);
    }
  }
};

}  // namespace statescope::cuda::decode

// Operations of the persistent kernel that computes a token's step (persistent_kernel.h), as a thread block sees them. Included by .cu
// files alone.
//
// The words used in decode/:
//   operation   what the kernel computes in turn: a GEMV (all matrix-vector products of one input row) or a memory's step
//   product     one weight matrix times the row; epilogue: bias, activation, decay, convolution or residual applied to its sums
//   tile        16 rows of weights that a block multiplies together, in two halves of 8 rows (gated: gate and up, 8 rows each)
//   k-block     32 columns, the K of one tensor core instruction; slice: the k-blocks of a row that fit one stage
//   stage       a buffer of the weight pipeline in shared memory, with a full and an empty barrier: one slice of half a tile
//   batch       tiles whose sums pass to the epilogue together; priority: the order in which a block computes its outputs
//   producer    the warp that loads weights; consumers: the eight warps that multiply and take a memory's step
//   scheduler   the warp that reads operations ahead and prefetches their operands into L2; epilogue warps: those that finish outputs
//   mailbox     where outputs are published for other blocks (mailbox.h); intermediate: an output that feeds a product of the same GEMV
//   bf16x3      x split into three bf16 terms whose sum is x exactly (bf16x3.h)
#pragma once

#include "kernels/cuda/common/bf16x3.h"
#include "kernels/cuda/common/compact_weights.h"
#include "kernels/cuda/common/memory_step.h"
#include "kernels/cuda/common/one_row.h"
#include "kernels/cuda/decode/mailbox.h"
#include "kernels/cuda/hopper/hopper.h"

namespace statescope::cuda::decode {

using namespace one_row;
using memory_step::Step;

constexpr int most_operations = 1024;
constexpr int operation_slots = 4;                                      // that a block holds at once
constexpr int most_listed_outputs = 128;                                // that a block has of an operation of several products
constexpr int l2_line_values = 32, l2_line_bytes = 4 * l2_line_values;  // of the L2 cache, in float32 values and bytes
constexpr int most_intermediate_values = 2 * threads;                   // of all intermediate rows of an operation

// The warps of a block: consumers come first, then the producer, the scheduler, and the epilogue warps.
static_assert(threads == memory_step::threads);
constexpr int producer_warp = warps, scheduler_warp = producer_warp + 1, first_epilogue_warp = scheduler_warp + 1, epilogue_warps = 2;
constexpr int epilogue_threads = epilogue_warps * warp_size, block_threads = (first_epilogue_warp + epilogue_warps) * warp_size;
constexpr int operation_consumers =
    warps + 1 + epilogue_warps;  // warps that the scheduler hands operations to: all but the two that work ahead
constexpr int all_but_producer = memory_step::choices_ready + 1, slice_empty = all_but_producer + 1,
              slice_full = slice_empty + 1;  // named barriers

// The weight pipeline. A stage holds one slice of the rows of half a tile; in a gated GEMV the second half has rows of the other weight.
// The warps of both halves walk through the pipeline at the same time. Whoever waits for a stage knows that its previous contents have
// arrived: the producer has at most two stages in flight, and a half skips at most one stage before it waits for the next one or all
// consumers meet.
constexpr int tile_rows_log2 = 4, tile_rows = 1 << tile_rows_log2, stage_rows = tile_rows / 2,
              warps_per_half = warps / 2;                                    // which divide its columns among them
constexpr int k_block_columns = 32, k_block_bytes = 64, most_k_blocks = 72;  // of one tensor core instruction; of a slice
constexpr int k_blocks_in_flight = 4;                                        // that a warp loads to registers at once
constexpr int rows_per_copy = stage_rows / 2, row_padding = 64;              // bytes; lanes that read together then hit different banks
constexpr int least_stages = 4, most_stages = 8, most_stage_bytes = stage_rows * most_k_blocks * k_block_bytes + l2_line_bytes;
constexpr int most_tiles_per_batch = 8;

/// The order in which a block computes the outputs of a GEMV: those that other products of it read, those that the next operation waits
/// for, the others.
enum Priority : int { intermediate, critical, deferred, priorities };

/// Bytes of so many k-blocks of a row of weights.
__host__ __device__ inline int slice_bytes(bool is_compact, int count) {
  return is_compact ? count * compact::k_block_bytes + compact::trailer_bytes : count * k_block_bytes;
}

/// The products of a GEMV, cut into tiles: first those of the input row, by priority, then the dependent ones, whose input is an
/// intermediate.
struct TiledGemv {
  Input input;
  float inverse_group;                                       // 1 / size of a group of the norm
  int products_before[priorities + 1], outputs[priorities];  // of each priority; the last entry counts all products of the input row
  int product_count;
  int outputs_per_tile_log2;  // tile_rows of them, or half as many where gated
  int whole_tiles;            // of each block; those of a single product are interleaved over the blocks
  int tiles_per_batch;
  int k_blocks, k_blocks_per_slice;  // of a row; of a slice
  bool compact;                      // weights of the input row are in 12 bits (compact_weights.h)
  int resident_k_blocks;             // of x in shared memory: all of it, or two slices in turn
  int term_bytes;                    // from one term of x to the next in shared memory
  int first_output[most_products];
  Product products[most_products];

  __host__ __device__ bool one_product() const { return product_count == 1; }
  __host__ __device__ int outputs_per_tile() const { return 1 << outputs_per_tile_log2; }
  __device__ bool gated() const { return outputs_per_tile() < tile_rows; }
  __device__ int k_blocks_from(int first_k_block) const { return min(k_blocks_per_slice, k_blocks - first_k_block); }
  /// Bytes of so many k-blocks of a row.
  __host__ __device__ int slice_bytes(int count) const { return decode::slice_bytes(compact, count); }
  /// Where the slice with this number, which begins at first_k_block, lies in row o of the weights.
  __device__ const char* slice_of(const Product& p, const char* weights, int o, int number, int first_k_block) const {
    return compact ? weights + compact::bytes_before(number, first_k_block) * p.out +
                         std::int64_t{o} * slice_bytes(k_blocks_from(first_k_block))
                   : weights + o * p.weight_bytes + first_k_block * k_block_bytes;
  }
  __host__ __device__ int independent_products() const { return products_before[priorities]; }
  /// Whether x is multiplied slice by slice, each as soon as it has arrived.
  __device__ bool is_sliced() const { return input.group == 0 && k_blocks > k_blocks_per_slice; }
  /// In k-blocks: where the slice after the one at `offset` lies in shared memory.
  __device__ int next_slice_offset(int offset) const {
    return offset + k_blocks_per_slice < resident_k_blocks ? offset + k_blocks_per_slice : 0;
  }
};

enum class OperationKind : int { gemv, memory_step };

/// Pointers to what this launch computes lead into the mailbox. `mailbox`: where the outputs of each product (or o of a memory) are
/// published; null: nowhere.
struct Operation {
  OperationKind kind;
  TiledGemv gemv;
  Step step;
  float* mailbox[most_products];
  Activation mailbox_activation[most_products];  // applied to a product's outputs as they are published: gates are activated once, by the
                                                 // block that computes them
};

// ---- in kernels ----

/// The barriers of a buffer that one warp fills and several warps read.
struct BarrierPair {
  std::uint64_t full, empty;
  __device__ void init(int users) { init_barrier(full, 1), init_barrier(empty, users); }
  /// Both by one lane, for its warp.
  __device__ void producer_commit() { arrive(full); }
  __device__ void consumer_release() { arrive(empty); }
};
/// Accumulators on their way from the consumers to the epilogue warps: two batches, double-buffered.
struct AccumulatorPipeline {
  BarrierPair buffers[2];
  __device__ void init() {
    for (BarrierPair& buffer : buffers) init_barrier(buffer.full, warps), init_barrier(buffer.empty, epilogue_warps);
  }
};
/// The position of a warp in that pipeline.
struct AccumulatorState {
  unsigned barriers, uses = 0;
  __device__ explicit AccumulatorState(const AccumulatorPipeline& pipeline) : barriers(kept(shared_address(&pipeline))) {}
  __device__ void producer_acquire() { wait_at(own() + offsetof(BarrierPair, empty), uses / 2 % 2 ^ 1); }
  __device__ void consumer_wait() { wait_at(own() + offsetof(BarrierPair, full), uses / 2 % 2); }
  /// Both by every warp that fills the buffer, or that has read it.
  __device__ void producer_commit() { arrive_and_advance(own() + offsetof(BarrierPair, full)); }
  __device__ void consumer_release() { arrive_and_advance(own() + offsetof(BarrierPair, empty)); }

 private:
  __device__ unsigned own() const { return barriers + uses % 2 * static_cast<unsigned>(sizeof(BarrierPair)); }
  __device__ void arrive_and_advance(unsigned barrier) {
    __syncwarp();
    if (threadIdx.x % warp_size == 0) arrive_at(barrier);
    ++uses;
  }
};
/// The part of n items that a block has: block b of all begins at item n b / all.
struct Share {
  int begin, count;
};
__device__ __noinline__ inline Share share_of(int n) {
  const auto before = [n](unsigned block) { return static_cast<int>(static_cast<unsigned>(n) * block / gridDim.x); };
  return {before(blockIdx.x), before(blockIdx.x + 1) - before(blockIdx.x)};
}

/// One output: a product, and the row of its weight.
struct OutputId {
  int product : 8, o : 24;
};
constexpr int most_outputs_per_product = 1 << 23;
/// The i-th output of the block, by priority.
__device__ __noinline__ inline OutputId find_row(const TiledGemv& gemv, const Share* shares, int i) {
  int priority = 0;
#pragma unroll 1
  while (priority < priorities && i >= shares[priority].count) i -= shares[priority++].count;
  if (priority == priorities) return {-1, 0};
  const int output = shares[priority].begin + i, end = gemv.products_before[priority + 1];
  int n = gemv.products_before[priority];
#pragma unroll 1
  while (n + 1 < end && output >= gemv.first_output[n + 1]) ++n;
  return {n, output - gemv.first_output[n]};
}

/// An operation in shared memory, with what the scheduler has worked out for this block.
struct OperationSlot {
  Operation operation;
  const char* rows[most_listed_outputs];     // weights of every row of the tiles, where several products share them; null: no row
  OutputId output_ids[most_listed_outputs];  // of these rows
  Share shares[priorities];   // of the outputs of each priority; of a single product only those after the whole tiles are consecutive
  int outputs;                // of all of them
  int tile_ends[priorities];  // number of tiles up to the last output of each priority
  int tiles_before;           // of all operations before this one
  float factor;               // of the norm of the whole row: found by the consumers, applied in the epilogue
  Share dependent_shares[most_products];  // rows of each dependent product
  int dependent_rows;                     // of all of them
  memory_step::Task task;                 // of a memory's step: the first one of the block

  /// Tiles of the block; 0 for a memory's step, or where the block has no outputs.
  __device__ int tile_count() const { return tile_ends[priorities - 1]; }
  /// Of a single product: the first output of a tile. Whole tiles are interleaved over the blocks, so that all blocks compute the first
  /// outputs first.
  __device__ int first_output(int tile) const {
    const auto before = static_cast<int>(static_cast<unsigned>(tile) * gridDim.x + blockIdx.x);
    return tile < operation.gemv.whole_tiles ? before << operation.gemv.outputs_per_tile_log2 : shares[critical].begin;
  }
  /// Output i of the block; none past the last one.
  __device__ OutputId output(int i) const {
    if (i >= outputs) return {-1, 0};
    const int log2 = operation.gemv.outputs_per_tile_log2;
    return operation.gemv.one_product() ? OutputId{0, first_output(i >> log2) + (i & ((1 << log2) - 1))} : output_ids[i];
  }
  /// The end of the batch that begins with this tile. Batches end with each priority, so that no output waits for less urgent ones.
  __device__ int batch_end(int first) const {
    if (first < tile_ends[intermediate]) return tile_ends[intermediate];
    return min(first + operation.gemv.tiles_per_batch, tile_ends[first < tile_ends[critical] ? critical : deferred]);
  }
  /// Rows of weights in one half of a tile.
  __device__ int rows_of(int tile, int half) const {
    const int left = outputs - (tile << operation.gemv.outputs_per_tile_log2);
    return min(operation.gemv.gated() ? left : left - half * stage_rows, stage_rows);
  }
};
/// The operations that a block works on: filled by the scheduler, read by all warps but that one.
struct OperationPipeline {
  OperationSlot slots[operation_slots];
  BarrierPair barriers[operation_slots];
  Mailbox mailbox;

  __device__ OperationSlot& at(int index) { return slots[index % operation_slots]; }
  /// Waits until the operation is in its slot; by a warp.
  __device__ OperationSlot& consumer_wait(int index) {
    wait(barriers[index % operation_slots].full, index / operation_slots % 2);
    __syncwarp();
    return at(index);
  }
  /// By a warp that is done with it.
  __device__ void consumer_release(int index) {
    __syncwarp();
    if (threadIdx.x % warp_size == 0) barriers[index % operation_slots].consumer_release();
  }
};

}  // namespace statescope::cuda::decode

// The epilogue of a GEMV: bias, activation, decay, short convolution or residual are applied to the accumulators, and the outputs are
// stored and published. Warps of their own do that while the consumers go on multiplying. Included by .cu files alone.
#pragma once

#include "kernels/cuda/decode/input.h"

namespace statescope::cuda::decode {

constexpr int accumulator_tiles = 2 * most_tiles_per_batch;  // of two batches

/// What a GEMV needs of shared memory besides the weight pipeline.
struct GemvMemory {
  float squares[warps];                          // of x, by warp
  float intermediate[most_intermediate_values];  // the inputs of dependent products, one after the other
  static_assert(most_normed_values / values_per_sum <= most_intermediate_values);
  alignas(128) char x[1];  // as long as the longest x of the launch
};
/// The shared memory of a block besides the weight pipeline; a memory's step takes the place of a GEMV.
struct BlockMemory {
  float accumulators[accumulator_tiles * tile_rows * warps_per_half];  // [row of a tile, warp of its half]
  union {
    GemvMemory gemv;
    memory_step::Shared step;
  };
};

/// The sum over the partial sums of `count` warps.
template <int count>
__device__ float sum_of_warps(const float* of_row) {
  float2 sum{0, 0};
#pragma unroll
  for (int w = 0; w < count; w += 2) {
    const float2 x = *reinterpret_cast<const float2*>(of_row + w);
    sum = {sum.x + x.x, sum.y + x.y};
  }
  return sum.x + sum.y;
}

/// What a thread needs of memory to finish an output, loaded before its sum is there.
struct OutputEpilogue {
  int product = -1, o = 0;
  float bias = 0, addend = 0;
  float* y = nullptr;          // set where the output is the sum itself, with bias and addend
  float* published = nullptr;  // its address in the mailbox; null: not published
  Convolution convolution;     // or A_log and dt_bias in place of the first two taps
  __device__ OutputEpilogue() = default;
  __device__ OutputEpilogue(const OperationSlot& slot, const OutputId& id, const Mailbox& mailbox) : product(id.product), o(id.o) {
    if (product < 0) return;
    const Product& p = slot.operation.gemv.products[product];
    if (p.bias != nullptr) bias = p.bias[o];
    if (p.epilogue == EpilogueKind::convolve) convolution.load(p, o);
    if (p.epilogue == EpilogueKind::delta_decay) convolution.taps.x = p.A_log[o], convolution.taps.y = p.dt_bias[o];
    const bool plain = p.epilogue == EpilogueKind::activate && p.act == Activation::identity &&
                       slot.operation.mailbox_activation[product] == Activation::identity;
    if (slot.operation.mailbox[product] == nullptr) return;
    published = mailbox.current(slot.operation.mailbox[product] + o);
    if (plain && p.z == nullptr) y = p.y + o;
  }
  __device__ void load_addend(const TiledGemv& gemv, const Mailbox& mailbox) {
    if (product >= 0 && gemv.products[product].addend != nullptr) addend = mailbox.get(mailbox.request(gemv.products[product].addend + o));
  }
};

/// y[o] from the sum x with its bias; gated: times the sum of the other weight. Published first, since another block may wait for it.
__device__ __noinline__ inline void finish(const Product& p, int o, float x, float addend, float other, float A_log, float dt_bias,
                                           float* published, Activation published_activation) {
  const float y = p.epilogue == EpilogueKind::forget_gate ? log_sigmoid_decay(x, p.scale, p.clamp_min)
                  : p.epilogue == EpilogueKind::delta_decay
                      ? gated_delta_decay(x, A_log, dt_bias)
                      : activated_by_one(x + addend, p.act) * (p.epilogue == EpilogueKind::gated ? other : 1);
  if (published != nullptr)
    Mailbox::store(published, published_activation == Activation::identity ? y : activated_by_one(y, published_activation));
  p.y[o] = y;
  if (p.z != nullptr) p.z[o] = x;
}
__device__ __noinline__ inline void finish_convolution(const Product& p, int o, float z, float addend, float4 taps, float4 kept,
                                                       float* published) {
  const Convolution convolution{taps, kept};
  const float y = activated_by_one(convolution.result(z) + addend, p.act);
  if (published != nullptr) Mailbox::store(published, y);
  p.y[o] = y;
  convolution.keep(p, o, z);
  if (p.z != nullptr) p.z[o] = z;
}
__device__ inline void finish(const OperationSlot& slot, const OutputEpilogue& output, float x, float other) {
  x += output.bias;
  if (output.y != nullptr) {
    const float y = x + output.addend;
    Mailbox::store(output.published, y);
    *output.y = y;
  } else if (output.product >= 0) {
    const Product& p = slot.operation.gemv.products[output.product];
    const auto& [taps, kept] = output.convolution;
    p.epilogue == EpilogueKind::convolve
        ? finish_convolution(p, output.o, x, output.addend, taps, kept, output.published)
        : finish(p, output.o, x, output.addend, other, taps.x, taps.y, output.published, slot.operation.mailbox_activation[output.product]);
  }
}

/// The epilogue warps: they load the later slices of x, then finish the outputs of each batch once its sums are there.
__device__ inline void run_epilogue(OperationPipeline& operations, int count, BlockMemory& memory,
                                    AccumulatorPipeline& accumulator_pipeline) {
  const int own = static_cast<int>(threadIdx.x) - first_epilogue_warp * warp_size;
  const Mailbox& mailbox = operations.mailbox;
  AccumulatorState accumulators(accumulator_pipeline);
#pragma unroll 1
  for (int index = 0; index < count; ++index) {
    const OperationSlot& slot = operations.consumer_wait(index);
    if (slot.operation.kind == OperationKind::gemv && slot.tile_count() > 0) load_later_slices(memory.gemv.x, slot.operation.gemv, mailbox);
    const int per_tile_log2 = slot.operation.gemv.outputs_per_tile_log2, per_tile = 1 << per_tile_log2;
#pragma unroll 1
    for (int first = 0; first < slot.tile_count(); first = slot.batch_end(first)) {
      const int end = min(slot.batch_end(first) * per_tile, slot.outputs);
      bool there = false;
#pragma unroll 1
      for (int i = first * per_tile + own; i - own < end; i += epilogue_threads) {
        OutputEpilogue output(slot, i < end ? slot.output(i) : OutputId{-1, 0}, mailbox);
        output.load_addend(slot.operation.gemv, mailbox);
        const bool halves = slot.operation.gemv.gated();
        const unsigned tile = static_cast<unsigned>(slot.tiles_before + (i >> per_tile_log2)) % accumulator_tiles;
        const int row = i & (per_tile - 1);
        const float* const sums = memory.accumulators + (tile * tile_rows + row) * warps_per_half;
        if (!there) accumulators.consumer_wait();
        there = true;
        if (output.product < 0) continue;
        const float factor = slot.factor;
        finish(slot, output, factor * sum_of_warps<warps_per_half>(sums),
               halves ? factor * sum_of_warps<warps_per_half>(sums + stage_rows * warps_per_half) : 1);
      }
      accumulators.consumer_release();
    }
    operations.consumer_release(index);
  }
}

}  // namespace statescope::cuda::decode

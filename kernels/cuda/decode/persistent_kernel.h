// The persistent kernel that computes a token's step (launched by decode_queue.cu): GEMVs with bf16 weights and steps of memories, one
// operation after the other, with one thread block per multiprocessor. Weights of all operations come through one pipeline that never waits
// for an operation to begin (weight_pipeline.h); outputs reach other blocks through the mailbox (mailbox.h), so there is no barrier over
// all blocks. Included by .cu files alone.
#pragma once

#include "kernels/cuda/common/decode_queue.h"
#include "kernels/cuda/decode/consumer.h"
#include "kernels/cuda/decode/scheduler.h"

namespace statescope::cuda::decode {

/// Which steps of memories a kernel is compiled for. Code that runs once an operation is fetched from memory each time, so each variant has
/// a kernel of its own, as small as possible.
struct StepVariant {
  bool delta_rule = false, sparse = false;
  int rows_per_thread = memory_step::few_rows_per_thread;
  bool operator==(const StepVariant&) const = default;
};

using Kernel = void (*)(const Operation*, int, MailboxBuffers*, PipelineSize, EmbeddedRow, Operation);
/// Each in a file of its own, kernel_….cu. `rows_per_thread`: one of the two that Step::rows_per_thread gives; `normed_vectors`: few or
/// most.
Kernel outer_product_kernel(int rows_per_thread, int normed_vectors);
Kernel delta_rule_kernel(int rows_per_thread, int normed_vectors);
Kernel sparse_outer_product_kernel(int rows_per_thread, int normed_vectors);
Kernel sparse_delta_rule_kernel(int rows_per_thread, int normed_vectors);

// ---- in kernels ----

/// The block's tasks of a memory's step.
template <bool delta_rule, bool sparse, int rows_per_thread>
__device__ __noinline__ void step_memory(OperationSlot& slot, int pipeline_bytes, const Mailbox& mailbox) {
  extern __shared__ __align__(128) char dynamic_shared[];
  memory_step::Shared& shared = reinterpret_cast<BlockMemory*>(dynamic_shared + pipeline_bytes)->step;
  const Step& p = slot.operation.step;
  const CurrentMailbox current{mailbox};
  const auto publish = [&](int i, float4 o) { mailbox.put(slot.operation.mailbox[0] + i, o); };
#pragma unroll 1
  for (int task = static_cast<int>(blockIdx.x); task < p.tasks(); task += static_cast<int>(gridDim.x)) {
    if (task != static_cast<int>(blockIdx.x)) {
      sync_consumers();
      if (threadIdx.x == 0) find_task(slot.task, p, task, mailbox);
      sync_consumers();
      if (threadIdx.x < warp_size) memory_step::load_scalars(shared.scalars, p, slot.task, current);
    }
    memory_step::run_step<delta_rule, sparse, rows_per_thread>(p, slot.task, shared, current, publish);
  }
}

/// The embedding row: every block stores all of it, so that none waits for another. The first values are loaded in the constructor, while
/// the kernel before may still read the memory at y.
class Embedding {
 public:
  __device__ explicit Embedding(const EmbeddedRow& row) : row_(row) {
    if (!is_own()) return;
    with_type([&](const auto* from) {
#pragma unroll
      for (int j = 0; j < early; ++j) {
        if (const int i = static_cast<int>(threadIdx.x) + j * threads; i < row_.n) own_[j] = to_float(from[i]);
      }
    });
  }
  __device__ void write() const {
    if (!is_own()) return;
#pragma unroll
    for (int j = 0; j < early; ++j) {
      if (const int i = static_cast<int>(threadIdx.x) + j * threads; i < row_.n) row_.y[i] = own_[j];
    }
    with_type([&](const auto* from) {
#pragma unroll 1
      for (int i = static_cast<int>(threadIdx.x) + early * threads; i < row_.n; i += threads) row_.y[i] = to_float(from[i]);
    });
  }

 private:
  static constexpr int early = 10;  // values of a thread that are loaded ahead
  __device__ bool is_own() const { return row_.from != nullptr && threadIdx.x < threads; }
  template <class Visit>
  __device__ void with_type(const Visit& visit) const {
    if (row_.type == DType::f32) return visit(static_cast<const float*>(row_.from));
    if (row_.type == DType::f16) return visit(static_cast<const __half*>(row_.from));
    visit(static_cast<const __nv_bfloat16*>(row_.from));
  }
  const EmbeddedRow& row_;
  float own_[early] = {};
};

/// `all`: the operations, or null where there is only `one`. The kernel may start while those before it still run: until they have ended it
/// reads only operations and weights. `row` is embedded first.
template <bool delta_rule, bool sparse, int rows_per_thread, int normed_vectors>
__global__ void __launch_bounds__(block_threads, 1)
    decode_kernel(const Operation* all, int count, MailboxBuffers* mailbox_buffers, PipelineSize size,
                  const __grid_constant__ EmbeddedRow row, const __grid_constant__ Operation one) {
  extern __shared__ __align__(128) char dynamic_shared[];
  __shared__ __align__(64) unsigned char operation_storage[sizeof(OperationPipeline)];
  __shared__ Stage stages[most_stages];
  __shared__ AccumulatorPipeline accumulator_pipeline;
  auto& operations = *reinterpret_cast<OperationPipeline*>(operation_storage);
  auto& memory = *reinterpret_cast<BlockMemory*>(dynamic_shared + size.bytes());
  const WeightPipeline pipeline{size, dynamic_shared, stages, kept(shared_address(stages))};
  const int thread = static_cast<int>(threadIdx.x), warp = thread / warp_size;
  launch_dependents();
  if (thread < most_stages) stages[thread].init(warps_per_half);
  if (thread < operation_slots) operations.barriers[thread].init(operation_consumers);
  if (thread == 0) accumulator_pipeline.init();
  fence_barrier_init();
  __syncthreads();
  Scheduler scheduler{operations, all != nullptr ? all : &one, count};
  if (warp == scheduler_warp) scheduler.schedule_next();  // a GEMV, which is scheduled without the mailbox
  if (warp != producer_warp) {
    const Embedding embedding(row);
    grid_dependency_wait();
    embedding.write();
    if (thread == 0) operations.mailbox = Mailbox::of(mailbox_buffers);
    sync_all_but_producer();
    if (thread == block_threads - 1 && mailbox_buffers != nullptr) swap_buffers(*mailbox_buffers);
  }
  if (warp == producer_warp) {
    run_producer(operations, count, pipeline);
  } else if (warp == scheduler_warp) {
    scheduler.run(memory.step);
  } else if (warp >= first_epilogue_warp) {
    run_epilogue(operations, count, memory, accumulator_pipeline);
  } else {
    const Mailbox& mailbox = operations.mailbox;
    PipelineState at;
    AccumulatorState accumulators(accumulator_pipeline);
#pragma unroll 1
    for (int index = 0; index < count; ++index) {
      OperationSlot& slot = operations.consumer_wait(index);
      if (slot.operation.kind == OperationKind::gemv) {
        run_gemv<normed_vectors>(slot, memory, pipeline, at, accumulators, mailbox);
        if (slot.dependent_rows > 0) run_dependent_products(slot, memory, pipeline, at, mailbox);
      } else {
        sync_consumers();
        step_memory<delta_rule, sparse, rows_per_thread>(slot, size.bytes(), mailbox);
        sync_consumers();
      }
      operations.consumer_release(index);
    }
  }
}

// ---- on the host ----

template <bool delta_rule, bool sparse>
Kernel kernel_with(int rows_per_thread, int normed_vectors) {
  const auto of_rows = [&]<int rows>() -> Kernel {
    return normed_vectors == few_normed_vectors ? decode_kernel<delta_rule, sparse, rows, few_normed_vectors>
                                                : decode_kernel<delta_rule, sparse, rows, most_normed_vectors>;
  };
  using namespace memory_step;
  return rows_per_thread == few_rows_per_thread ? of_rows.template operator()<few_rows_per_thread>()
                                                : of_rows.template operator()<most_rows_per_thread>();
}

}  // namespace statescope::cuda::decode

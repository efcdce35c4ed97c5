// The kernel of chains (chain_hopper.cu): products of one row with bf16 weights and memories' steps, level by level. A block a
// multiprocessor. The weights of all levels come through a ring that does not wait for a level to begin (cuda_chain_levels.h), what a level
// makes goes by mail (cuda_chain_mail.h): no block waits for all others. Included by .cu files alone.
#pragma once

#include "kernels/cuda/common/chain.h"
#include "kernels/cuda/decode/chain_products.h"

namespace statescope::cuda::chain {

/// What is known of a launch's steps where its kernel is compiled: code that runs once a level is fetched each time, and the more of it a
/// kernel has, the longer that takes.
struct StepForm {
  bool delta_rule = false, sparse = false;
  int rows_of_thread = memory_step::few_rows_of_thread;
  bool operator==(const StepForm&) const = default;
};

using Kernel = void (*)(const Level*, int, Mailbox*, RingSize, EmbeddedRow, Level);
/// Each in a file of its own, chain_…_hopper.cu. `rows_of_thread`: one of the two that Step::rows_of_thread gives.
Kernel outer_product_kernel(int rows_of_thread);
Kernel delta_rule_kernel(int rows_of_thread);
Kernel sparse_outer_product_kernel(int rows_of_thread);
Kernel sparse_delta_rule_kernel(int rows_of_thread);

// ---- in kernels ----

/// A memory's step of a level: the block's tasks.
template <bool delta_rule, bool sparse, int rows_of_thread>
__device__ __noinline__ void take_steps(Slot& slot, int ring_bytes, const Mail& mail) {
  extern __shared__ __align__(128) char room[];
  memory_step::Shared& shared = reinterpret_cast<Work*>(room + ring_bytes)->step;
  const Step& p = slot.level.step;
  const MailInTurn in_turn{mail};
  const auto hand_on = [&](int i, float4 o) { mail.put(slot.level.mail[0] + i, o); };
#pragma unroll 1
  for (int task = static_cast<int>(blockIdx.x); task < p.tasks(); task += static_cast<int>(gridDim.x)) {
    if (task != static_cast<int>(blockIdx.x)) {
      sync_warps();
      if (threadIdx.x == 0) find_task(slot.task, p, task, mail);
      sync_warps();
      if (threadIdx.x < warp_size) memory_step::load_scalars(shared.scalars, p, slot.task, in_turn);
    }
    memory_step::take_step<delta_rule, sparse, rows_of_thread>(p, slot.task, shared, in_turn, hand_on);
  }
}

/// All of a row that is embedded, by each block, so that none waits for another one: all of them write the same. The first numbers are
/// loaded when this is made, while the launch before may still read what stands at y.
class Embedding {
 public:
  __device__ explicit Embedding(const EmbeddedRow& row) : row_(row) {
    if (!is_own()) return;
    with_numbers([&](const auto* from) {
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
    with_numbers([&](const auto* from) {
#pragma unroll 1
      for (int i = static_cast<int>(threadIdx.x) + early * threads; i < row_.n; i += threads) row_.y[i] = to_float(from[i]);
    });
  }

 private:
  static constexpr int early = 10;  // numbers of a thread
  __device__ bool is_own() const { return row_.from != nullptr && threadIdx.x < threads; }
  template <class Visit>
  __device__ void with_numbers(const Visit& visit) const {
    if (row_.type == DType::f32) return visit(static_cast<const float*>(row_.from));
    if (row_.type == DType::f16) return visit(static_cast<const __half*>(row_.from));
    visit(static_cast<const __nv_bfloat16*>(row_.from));
  }
  const EmbeddedRow& row_;
  float own_[early] = {};
};

/// `all`: the levels, or null where there is only `one`. It may come onto the device while kernels before it run: until they have ended
/// only levels and weights are read. `row` is embedded first.
template <bool delta_rule, bool sparse, int rows_of_thread>
__global__ void __launch_bounds__(block_threads, 1)
    chain_kernel(const Level* all, int count, Mailbox* box, RingSize size, const __grid_constant__ EmbeddedRow row,
                 const __grid_constant__ Level one) {
  extern __shared__ __align__(128) char room[];
  __shared__ __align__(64) unsigned char room_for_levels[sizeof(Levels)];
  __shared__ Stage stages[most_stages];
  __shared__ Groups groups;
  auto& levels = *reinterpret_cast<Levels*>(room_for_levels);
  auto& work = *reinterpret_cast<Work*>(room + size.bytes());
  const Ring ring{size, room, stages, kept(shared_address(stages))};
  const int thread = static_cast<int>(threadIdx.x), warp = thread / warp_size;
  let_next_begin();
  if (thread < most_stages) stages[thread].make(warps_of_half);
  if (thread < known_levels) levels.handed[thread].make(warps_with_levels);
  if (thread == 0) groups.make();
  publish_barriers();
  __syncthreads();
  Planner plans{levels, all != nullptr ? all : &one, count};
  if (warp == planner) plans.plan_next();  // products, which need no mail
  if (warp != fetcher) {
    const Embedding embedding(row);
    wait_for_results();
    embedding.write();
    if (thread == 0) levels.mail = Mail::of(box);
    sync_all_but_fetcher();
    if (thread == block_threads - 1 && box != nullptr) give_turn_to_other(*box);
  }
  if (warp == fetcher) {
    fetch_weights(levels, count, ring);
  } else if (warp == planner) {
    plans.look_ahead(work.step);
  } else if (warp >= first_finisher) {
    finish_products(levels, count, work, groups);
  } else {
    const Mail& mail = levels.mail;
    PlaceInRing at;
    PlaceInGroups group(groups);
#pragma unroll 1
    for (int level = 0; level < count; ++level) {
      Slot& slot = levels.wait_for_level(level);
      if (slot.level.kind == Kind::products) {
        make_products(slot, work, ring, at, group, mail);
        if (slot.made_rows > 0) make_rows(slot, work, ring, at, mail);
      } else {
        sync_warps();
        take_steps<delta_rule, sparse, rows_of_thread>(slot, size.bytes(), mail);
        sync_warps();
      }
      levels.end_level(level);
    }
  }
}

// ---- on the host ----

template <bool delta_rule, bool sparse>
Kernel kernel_with(int rows_of_thread) {
  using namespace memory_step;
  return rows_of_thread == few_rows_of_thread ? chain_kernel<delta_rule, sparse, few_rows_of_thread>
                                              : chain_kernel<delta_rule, sparse, most_rows_of_thread>;
}

}  // namespace statescope::cuda::chain

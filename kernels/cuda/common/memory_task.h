// One token's step of a matrix memory or of sparse states (memory_step.h): its parameters, and where a task finds its operands. Included by
// .cu files alone.
#pragma once

#include "kernels/cuda/common/activation.h"
#include "kernels/cuda/common/one_row.h"
#include "kernels/cuda/common/operations.h"

namespace statescope::cuda::memory_step {

constexpr int warp_size = 32, threads = 256, warps = threads / warp_size;                   // the first warps of a block
constexpr int least_columns = 16, most_columns = 32, own_columns = 4, most_channels = 512;  // 4 or 8 threads share a row
constexpr int few_rows_per_thread = 4, most_rows_per_thread = 8, most_choices = 16, most_partitions = 256;
constexpr int decay_rank = 16;  // inputs of the second product of a low-rank gate, which a step computes itself

/// An operand [heads, width] of the row; of sparse states there are two, one after the other.
struct StepOperand {
  const float* x = nullptr;
  int heads = 1, width = 0;
  /// The operand's head for head h of the state: producer_head (memory.h), in ints for less code.
  __device__ int head_of(int h, int H) const { return heads == H ? h : h * heads / H; }
  __device__ const float* at(int half, int h, int H) const { return x + (half * heads + head_of(h, H)) * width; }
};

/// Which states the row touches: the first (shared) one, then those of the chosen partitions.
struct Choices {
  const std::int32_t* selected = nullptr;  // [count]
  const float* gate = nullptr;             // [N]
  int count = 0, writers = 0, readers = 0;
  bool gate_q = false, gate_k = false, before_l2 = true;
  float write_scale = 1;
};

/// How q or k of sparse states is computed from products (sparse_state.h); `pair` null: it is there.
struct PairSource {
  float* pair = nullptr;
  const float *shared = nullptr, *sparse = nullptr, *more = nullptr;
  Activation act = Activation::identity;
  bool softmax = false;
};
/// How the choices are computed; `logits` null: they are there.
struct Routing {
  float* gate = nullptr;
  std::int32_t* selected = nullptr;
  const float* logits = nullptr;
  int N = 0;
  bool by_logits = false;
};

struct Step {
  StepOperand q, k, v, log_decay, beta;
  float *state, *o;  // [slots, H, K, V], [H, V]
  int H, K, V;
  int columns = least_columns;  // columns of a head that a task has
  float scale;
  bool l2;  // of the delta rule: q and k are normalised to unit length
  Choices choices;
  PairSource q_source, k_source;
  Routing routing;
  /// The second product of a low-rank gate, [heads · width, decay_rank] in bf16, whose result is log_decay of each half; each task computes
  /// it for its head, in the persistent kernel alone. out 0: log_decay is there.
  one_row::Product decays[2];

  /// Threads that share a row of a task, as a power of two: a division would be many dependent instructions.
  __host__ __device__ int threads_per_row_log2() const { return columns == most_columns ? 3 : 2; }
  /// False for a matrix memory.
  __host__ __device__ bool is_sparse() const { return choices.count > 0; }
  /// 2: the shared state and the partitions of sparse states; 1: a matrix memory.
  __host__ __device__ int halves() const { return is_sparse() ? 2 : 1; }
  /// Whether decays are those of a head, or (not of sparse states under the delta rule) of each channel.
  __device__ bool decays_heads() const { return log_decay.x != nullptr && log_decay.width == 1; }
  __device__ bool decays_channels() const { return log_decay.width > 1; }

  __host__ __device__ int tiles() const { return (V + columns - 1) >> (2 + threads_per_row_log2()); }
  /// Independent tasks.
  __host__ __device__ int tasks() const { return H * tiles(); }
  /// Rows that all threads have at once.
  __host__ __device__ int rows_at_once() const { return threads >> threads_per_row_log2(); }
  /// Rows of a thread, for which kernels are compiled; where K is small some threads have none.
  __host__ __device__ int rows_per_thread() const {
    return K <= few_rows_per_thread * rows_at_once() ? few_rows_per_thread : most_rows_per_thread;
  }
};

// ---- in kernels ----

/// Where a task finds its operands: index 0 is for the first state, 1 for the chosen ones. Found ahead of the task, or by each thread.
struct Task {
  int number, head, tile;
  float* state;                                       // of the head in the first slot, from the first column of the task on
  const float *q[2], *k[2], *log_decay[2], *beta[2];  // of the head
  const float* features[2];                           // that the decays are computed from
  const float *more_q, *more_k;                       // added to q[1] and k[1]
  const float *v, *logits;                            // the columns of the task; of all partitions

  /// Whether it is the first task of the block: in the persistent kernel another warp loads for it what all threads need.
  __device__ bool is_first() const { return number == static_cast<int>(blockIdx.x); }
};
/// current(x): the address at which x is read.
template <class Current>
__device__ void locate(Task& t, const Step& p, int task, const Current& current) {
  const int tiles = p.tiles(), h = task / tiles, tile = task % tiles;
  t = {.number = task, .head = h, .tile = tile, .state = p.state + static_cast<std::int64_t>(h) * p.K * p.V + tile * p.columns};
  const auto place = [&](const float* x) { return x == nullptr ? nullptr : current(x); };
  const auto number = [&](const StepOperand& of, const PairSource& pair_source, int half) {
    if (pair_source.pair == nullptr) return place(of.at(half, h, p.H));
    return place((half == 0 ? pair_source.shared : pair_source.sparse) + of.head_of(h, p.H) * of.width);
  };
  const int halves = p.halves();
#pragma unroll 1
  for (int half = 0; half < halves; ++half) {
    t.q[half] = number(p.q, p.q_source, half), t.k[half] = number(p.k, p.k_source, half);
    if (p.log_decay.x != nullptr) t.log_decay[half] = place(p.log_decay.at(half, h, p.H));
    t.features[half] = place(p.decays[half].intermediate);
    if (p.beta.x != nullptr) t.beta[half] = place(p.beta.at(half, h, p.H));
  }
  if (p.q_source.pair != nullptr) t.more_q = place(p.q_source.more + p.q.head_of(h, p.H) * p.q.width);
  if (p.k_source.pair != nullptr) t.more_k = place(p.k_source.more + p.k.head_of(h, p.H) * p.k.width);
  t.v = place(p.v.at(0, h, p.H) + tile * p.columns), t.logits = place(p.routing.logits);
}

/// Prefetches into L2 the first state of a task, and those that may be chosen where they are few; by thread `own` of `count`.
__device__ inline void prefetch_task(const Step& p, int task, int own, int count) {
  constexpr int few = 4;
  const int h = task / p.tiles(), tile = task % p.tiles(), states = p.routing.N <= few ? 1 + p.routing.N : 1;
#pragma unroll 1
  for (int i = own; i < states * p.K; i += count)
    prefetch(p.state + ((static_cast<std::int64_t>(i / p.K) * p.H + h) * p.K + i % p.K) * p.V + tile * p.columns);
}

/// Prefetches into L2 the weights from which a task computes decays.
__device__ inline void prefetch_decays(const Step& p, int task, int own, int count) {
  constexpr int l2_line_values = 32, rows_per_l2_line = 2 * l2_line_values / decay_rank;  // values; rows of weights
  const int head = p.log_decay.head_of(task / p.tiles(), p.H), width = p.log_decay.width;
#pragma unroll 1
  for (const one_row::Product& product : p.decays) {
    if (product.out == 0) continue;
#pragma unroll 1
    for (int r = own * rows_per_l2_line; r < width; r += count * rows_per_l2_line)
      prefetch(reinterpret_cast<const float*>(product.weight) + (head * width + r) * (decay_rank / 2));
    if (product.bias == nullptr) continue;
#pragma unroll 1
    for (int r = own * l2_line_values; r < width; r += count * l2_line_values) prefetch(product.bias + head * width + r);
  }
}

}  // namespace statescope::cuda::memory_step

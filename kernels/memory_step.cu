// One row of one sequence and its memory, a matrix or sparse states: a token's decoding. Many blocks with few columns each, so that the
// states are read and written at once; all states that a token touches go into one launch.
#include "kernels/cuda_activation.h"
#include "kernels/cuda_operations.h"
#include "kernels/cuda_order.h"

namespace statescope::cuda {
namespace {

constexpr int warp_size = 32, threads = 256, warps = threads / warp_size;
constexpr int columns = 16, own_columns = 4, rows_at_once = threads * own_columns / columns, most_channels = 512;
constexpr int most_choices = 16, most_partitions = 256;

/// An operand [heads, width] of the row; sparse states have a second one behind it.
struct Operand {
  const float* x = nullptr;
  int heads = 1, width = 0;
  __device__ const float* at(int half, int h, int H) const { return x + (half * heads + producer_head(h, heads, H)) * width; }
};

/// Which states the row touches: the first one, then the chosen ones.
struct Choices {
  const std::int32_t* selected = nullptr;  // [count]
  const float* gate = nullptr;             // [N]
  int count = 0, writers = 0, readers = 0;
  bool gate_q = false, gate_k = false, before_l2 = true;
  float write_scale = 1;
};

/// How q or k is made of products first (sparse_state.h); `pair` null: it is there.
struct Source {
  float* pair = nullptr;
  const float *shared = nullptr, *sparse = nullptr, *more = nullptr;
  Activation act = Activation::identity;
  bool softmax = false;
};
/// The same of the choices.
struct Routing {
  float* gate = nullptr;
  std::int32_t* selected = nullptr;
  const float* logits = nullptr;
  int N = 0;
  bool by_logits = false;
};

struct Step {
  Operand q, k, v, log_decay, beta;
  float *state, *o;  // [slots, H, K, V], [H, V]
  int H, K, V;
  float scale;
  bool l2;  // q and k are brought to unit length
  Choices choices;
  Source q_source, k_source;
  Routing routing;
};

// ---- kernels -------------------------------------------------------------------------------------------------------------------------

/// What a head has of the row. Index 0 is for the first state, 1 for the chosen ones.
struct Row {
  float q[2][most_channels], k[2][most_channels], alpha[2][most_channels];
};
struct Chosen {
  std::int32_t partition[most_choices];
  float gate[most_choices], e[most_partitions];
};
/// A number of q and one of k for each index, or sums of such numbers.
struct Four {
  float q[2], k[2];
  /// What belongs to one index.
  __device__ void set(int half, float q_, float k_) {
    if (half == 0) q[0] = q_, k[0] = k_;
    if (half == 1) q[1] = q_, k[1] = k_;
  }
  __device__ float q_of(int half) const { return half == 0 ? q[0] : q[1]; }
  __device__ float k_of(int half) const { return half == 0 ? k[0] : k[1]; }
};

__device__ void prefetch(const float* x) { asm volatile("prefetch.global.L2 [%0];" ::"l"(x)); }

__device__ float4 operator+(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }
__device__ float4 operator*(float s, float4 a) { return {s * a.x, s * a.y, s * a.z, s * a.w}; }

template <class Combine>
__device__ Four combine_each(const Four& a, const Four& b, Combine combine) {
  return {{combine(a.q[0], b.q[0]), combine(a.q[1], b.q[1])}, {combine(a.k[0], b.k[0]), combine(a.k[1], b.k[1])}};
}

/// Over the block; `parts` is free again when all have it.
template <class Combine>
__device__ Four combined_over_block(Four x, Four* parts, Combine combine) {
  for (int i = 0; i < 2; ++i) x.q[i] = combined(x.q[i], combine), x.k[i] = combined(x.k[i], combine);
  if (threadIdx.x % warp_size == 0) parts[threadIdx.x / warp_size] = x;
  __syncthreads();
  x = parts[0];
  for (int w = 1; w < warps; ++w) x = combine_each(x, parts[w], combine);
  __syncthreads();
  return x;
}

/// The sum over the threads that share columns, in all of them.
__device__ float4 sum_of_rows(float4 x, float4 (*parts)[columns / own_columns]) {
  constexpr int of_warp = columns / own_columns;
  for (int distance = of_warp; distance < warp_size; distance *= 2) {
    x = x + float4{__shfl_xor_sync(~0U, x.x, distance), __shfl_xor_sync(~0U, x.y, distance), __shfl_xor_sync(~0U, x.z, distance),
                   __shfl_xor_sync(~0U, x.w, distance)};
  }
  const int own = threadIdx.x % of_warp;
  if (threadIdx.x % warp_size < of_warp) parts[threadIdx.x / warp_size][own] = x;
  __syncthreads();
  float4 sum = parts[0][own];
  for (int w = 1; w < warps; ++w) sum = sum + parts[w][own];
  __syncthreads();
  return sum;
}

/// By one warp: which partitions, and their gates. The first block writes what the routing says.
__device__ void choose(Chosen& chosen, const Choices& choices, const Routing& routing) {
  const int lane = threadIdx.x % warp_size;
  if (routing.logits == nullptr) {
    if (lane >= choices.count) return;
    chosen.partition[lane] = choices.selected[lane];
    chosen.gate[lane] = choices.gate[chosen.partition[lane]];
    return;
  }
  // e = softmax(logits)
  constexpr float lowest = -INFINITY;
  float largest = lowest, sum = 0;
  for (int n = lane; n < routing.N; n += warp_size) largest = fmaxf(largest, routing.logits[n]);
  largest = combined(largest, [](float a, float b) { return fmaxf(a, b); });
  const float shift = largest == lowest ? 0 : largest;
  for (int n = lane; n < routing.N; n += warp_size) sum += chosen.e[n] = expf(routing.logits[n] - shift);
  sum = combined(sum, [](float a, float b) { return a + b; });
  const float inverse = sum == 0 ? 0 : 1 / sum;
  for (int n = lane; n < routing.N; n += warp_size) {
    chosen.e[n] *= inverse;
    if (blockIdx.x == 0) routing.gate[n] = chosen.e[n];
  }
  __syncwarp();
  Order last = before_all;
  for (int w = 0; w < choices.count; ++w) {
    last = next_in_order(routing.by_logits ? routing.logits : chosen.e, static_cast<std::uint32_t>(routing.N),
                         static_cast<std::uint32_t>(lane), last);
    if (lane != 0) continue;
    chosen.partition[w] = index_of(last);
    chosen.gate[w] = chosen.e[index_of(last)];
    if (blockIdx.x == 0) routing.selected[w] = index_of(last);
  }
}

__device__ float number_of(const Operand& x, const Source& source, int half, int h, int H, int r) {
  if (source.pair == nullptr) return x.at(half, h, H)[r];
  const int i = producer_head(h, x.heads, H) * x.width + r;
  const float z = half == 0 ? source.shared[i] : source.sparse[i] + source.more[i];
  return source.softmax ? z : activated_by_one(z, source.act);
}

/// visit(half, r) for every channel of the thread, of one index or of both: one channel in most models.
template <class Visit>
__device__ void for_own_channels(const Step& p, const Visit& visit) {
  const int count = p.choices.count > 0 ? 2 * p.K : p.K;
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < count; i += threads) visit(i < p.K ? 0 : 1, i < p.K ? i : i - p.K);
}

/// q and k of the row become e^{z − max z} / Σ over the channels, where they are asked for so.
__device__ void softmax(Row& row, Four* parts, const Step& p) {
  constexpr float lowest = -INFINITY;
  Four largest{{lowest, lowest}, {lowest, lowest}}, sum{};
  const auto larger = [](float a, float b) { return fmaxf(a, b); };
  for_own_channels(p, [&](int half, int r) {
    largest.set(half, larger(largest.q_of(half), row.q[half][r]), larger(largest.k_of(half), row.k[half][r]));
  });
  largest = combined_over_block(largest, parts, larger);
  const auto exponential = [](float z, float most) { return expf(z - (most == lowest ? 0 : most)); };
  for_own_channels(p, [&](int half, int r) {
    if (p.q_source.softmax) row.q[half][r] = exponential(row.q[half][r], largest.q_of(half));
    if (p.k_source.softmax) row.k[half][r] = exponential(row.k[half][r], largest.k_of(half));
    sum.set(half, sum.q_of(half) + row.q[half][r], sum.k_of(half) + row.k[half][r]);
  });
  sum = combined_over_block(sum, parts, [](float a, float b) { return a + b; });
  const auto inverse = [](float x) { return x == 0 ? 0 : 1 / x; };
  for_own_channels(p, [&](int half, int r) {
    if (p.q_source.softmax) row.q[half][r] *= inverse(sum.q_of(half));
    if (p.k_source.softmax) row.k[half][r] *= inverse(sum.k_of(half));
  });
}

/// The row of head h into shared memory. Returns the squares of the lengths of q and k where somebody wants them.
__device__ Four load_row(Row& row, Four* parts, const Step& p, int h, bool first_of_head) {
  const bool decays = p.log_decay.x != nullptr, per_channel = p.log_decay.width > 1;
  for_own_channels(p, [&](int half, int r) {
    const float q = number_of(p.q, p.q_source, half, h, p.H, r), k = number_of(p.k, p.k_source, half, h, p.H, r);
    const float log_decay = decays ? p.log_decay.at(half, h, p.H)[per_channel ? r : 0] : 0;
    row.q[half][r] = q, row.k[half][r] = k, row.alpha[half][r] = expf(log_decay);
  });
  if (p.q_source.softmax || p.k_source.softmax) softmax(row, parts, p);
  if (first_of_head && p.q_source.pair != nullptr) {
    for_own_channels(p, [&](int half, int r) {
      const int i = (half * p.H + h) * p.K + r;
      p.q_source.pair[i] = row.q[half][r], p.k_source.pair[i] = row.k[half][r];
    });
  }
  Four squares{};
  if (!p.l2) return squares;
  for_own_channels(p, [&](int half, int r) {
    const float q = row.q[half][r], k = row.k[half][r];
    squares.set(half, squares.q_of(half) + q * q, squares.k_of(half) + k * k);
  });
  return combined_over_block(squares, parts, [](float a, float b) { return a + b; });
}

/// What x is multiplied with: f, or so that it becomes L2(f x) where the factor comes before, else f · L2(x)   (spec §4.3)
__device__ float factor_of(float f, float square, const Step& p) {
  return !p.l2 ? f : f / sqrtf((p.choices.before_l2 ? f * f : 1) * square + l2_norm_eps);
}

/// A block owns `columns` columns of a head, a thread four of them and every 64th row. `early`: the next kernel may come while this one
/// still waits.
template <bool delta_rule, int RowsPerThread>
__global__ void __launch_bounds__(threads) step_kernel(const __grid_constant__ Step p, bool early) {
  __shared__ Row row;
  __shared__ Chosen chosen;
  __shared__ Four parts[warps];
  __shared__ float4 of_warps[warps][columns / own_columns];
  if (early) let_next_begin();
  const int tiles = (p.V + columns - 1) / columns, h = static_cast<int>(blockIdx.x) / tiles, tile = static_cast<int>(blockIdx.x) % tiles;
  const int column = tile * columns + static_cast<int>(threadIdx.x) % (columns / own_columns) * own_columns;
  const int first_row = static_cast<int>(threadIdx.x) / (columns / own_columns);
  const auto row_at = [&](int i) { return first_row + i * rows_at_once; };
  const bool present = column < p.V;
  const auto state_at = [&](int slot) { return p.state + (static_cast<std::int64_t>(slot) * p.H + h) * p.K * p.V; };
  const auto prefetch_state = [&](int slot) {
#pragma unroll 1
    for (int r = static_cast<int>(threadIdx.x); r < p.K; r += threads)
      prefetch(state_at(slot) + static_cast<std::int64_t>(r) * p.V + tile * columns);
  };
  prefetch_state(0);  // while the kernels before this one still run
  wait_for_results();
  let_next_begin();

  const float4 v = present ? *reinterpret_cast<const float4*>(p.v.at(0, h, p.H) + column) : float4{0, 0, 0, 0};
  const bool sparse = p.choices.count > 0;
  const float beta = p.beta.x != nullptr ? *p.beta.at(0, h, p.H) : 1,
              sparse_beta = p.beta.x != nullptr && sparse ? *p.beta.at(1, h, p.H) : 1;
  if (threadIdx.x < warp_size) choose(chosen, p.choices, p.routing);
  const Four squares = load_row(row, parts, p, h, tile == 0);
  __syncthreads();
#pragma unroll 1
  for (int n = 0; n < p.choices.count; ++n) prefetch_state(1 + chosen.partition[n]);

  float4 o{0, 0, 0, 0};
#pragma unroll 1
  for (int n = 0; n <= p.choices.count; ++n) {
    const Choices& c = p.choices;
    const int half = n > 0 ? 1 : 0;
    const float e = n > 0 ? chosen.gate[n - 1] : 1;
    const bool reads = n <= c.readers, writes = n <= c.writers;  // n = 0: always
    const float read = factor_of(!reads ? 0 : c.gate_q ? e : 1, squares.q_of(half), p);
    const float write = factor_of(!writes ? 0 : n == 0 ? 1 : c.gate_k ? c.write_scale * e : c.write_scale, squares.k_of(half), p);
    float* const state = state_at(n > 0 ? 1 + chosen.partition[n - 1] : 0) + column;
    float4 S[RowsPerThread];
#pragma unroll
    for (int i = 0; i < RowsPerThread; ++i) {
      if (row_at(i) < p.K && present) S[i] = *reinterpret_cast<const float4*>(state + static_cast<std::int64_t>(row_at(i)) * p.V);
    }
    float4 u = v;
    if constexpr (delta_rule) {
      // u = β (v − k S̄),  S̄ = α S
      float4 predicted{0, 0, 0, 0};
#pragma unroll
      for (int i = 0; i < RowsPerThread; ++i) {
        if (row_at(i) < p.K && present) predicted = predicted + write * row.k[half][row_at(i)] * S[i];
      }
      const float alpha = writes ? row.alpha[half][0] : 1;
      u = (!writes ? 0 : n > 0 ? sparse_beta : beta) * (v + -alpha * sum_of_rows(predicted, of_warps));
    }
#pragma unroll
    for (int i = 0; i < RowsPerThread; ++i) {
      const int r = row_at(i);
      if (r >= p.K || !present) continue;
      // S ← α S + kᵀ u,  o = o + q S
      S[i] = (writes ? row.alpha[half][r] : 1) * S[i] + write * row.k[half][r] * u;
      o = o + read * row.q[half][r] * S[i];
      *reinterpret_cast<float4*>(state + static_cast<std::int64_t>(r) * p.V) = S[i];
    }
  }
  o = sum_of_rows(o, of_warps);
  if (first_row == 0 && present) *reinterpret_cast<float4*>(p.o + h * p.V + column) = p.scale * o;
}

// ---- launchers -----------------------------------------------------------------------------------------------------------------------

Operand operand(ConstTensor x, bool per_head) {
  if (!x) return {};
  const int axis = x.shape.rank() - 1;
  return {x.f32(), static_cast<int>(x.shape[per_head ? axis : axis - 1]), per_head ? 1 : static_cast<int>(x.shape[axis])};
}

Source source(const SparsePair& x) { return {x.pair.f32(), x.shared.f32(), x.sparse.f32(), x.more.f32(), x.act, x.softmax}; }

bool fits(ConstTensor q, ConstTensor v, ConstTensor initial, Tensor final, Tensor o) {
  const auto aligned = [](ConstTensor x) { return reinterpret_cast<std::uintptr_t>(x.data) % sizeof(float4) == 0; };
  return v.rows() == 1 && q.dtype == DType::f32 && v.dtype == DType::f32 && o.dtype == DType::f32 && initial.data == final.data &&
         initial.shape[2] <= most_channels && initial.shape[3] % own_columns == 0 && initial.contiguous() && aligned(v) &&
         aligned(initial) && aligned(o);
}

template <bool delta_rule>
void start(const Step& p, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(p.H * ((p.V + columns - 1) / columns));
  const auto begin = [&](auto kernel) {
    // As the kernels beside it want it (linear_one_row_hopper.cu): another division of the first cache would wait for them.
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared), "shared memory");
    // Where some multiprocessors have none of these blocks, the next kernel's seem to come there two by two: a layer of GLA 1.3B takes
    // 46.3 µs instead of 45.4.
    const bool early = blocks > multiprocessors();
    launch_overlapped("memory, one row", kernel, blocks, threads, 0, stream, p, early);
  };
  if (p.K <= rows_at_once) return begin(step_kernel<delta_rule, 1>);
  if (p.K <= 2 * rows_at_once) return begin(step_kernel<delta_rule, 2>);
  if (p.K <= 4 * rows_at_once) return begin(step_kernel<delta_rule, 4>);
  begin(step_kernel<delta_rule, 8>);
}

template <class Memory>
Step step_of(const Memory& op, Tensor state) {
  Step p{};
  p.v = operand(op.v, false);
  p.state = state.f32();
  p.o = op.o.f32();
  p.H = static_cast<int>(state.shape[1]);
  p.K = static_cast<int>(state.shape[2]);
  p.V = static_cast<int>(state.shape[3]);
  p.scale = op.scale;
  return p;
}

/// A matrix memory: the state that its one segment owns.
template <class Memory>
Tensor own_state(const Memory& op) {
  return op.final_state.slice(op.segments.slot_of(0), 1);
}

template <class Memory>
bool steps(const Memory& op) {
  return op.segments.count() == 1 && fits(op.q, op.v, op.initial_state, op.final_state, op.o);
}

}  // namespace

bool decayed_outer_product_step(const DecayedOuterProduct& op, cudaStream_t stream) {
  if (!steps(op) || op.decay_axis != DecayAxis::rows) return false;
  Step p = step_of(op, own_state(op));
  p.q = operand(op.q, false);
  p.k = operand(op.k, false);
  p.log_decay = operand(op.log_decay, op.log_decay && op.log_decay.shape.rank() == 2);
  start<false>(p, stream);
  return true;
}

bool gated_delta_rule_step(const GatedDeltaRule& op, bool l2, cudaStream_t stream) {
  if (!steps(op)) return false;
  Step p = step_of(op, own_state(op));
  p.q = operand(op.q, false);
  p.k = operand(op.k, false);
  p.log_decay = operand(op.log_decay, true);
  p.beta = operand(op.beta, true);
  p.l2 = l2;
  start<true>(p, stream);
  return true;
}

bool sparse_state_step(const SparseState& op, const SparseSources* from, cudaStream_t stream) {
  if (op.cu_seqlens.size() != 2 || op.selected.row_size() > most_choices || !fits(op.q, op.v, op.initial_state, op.final_state, op.o))
    return false;
  Step p = step_of(op, op.final_state);
  p.q = operand(op.q, false);
  p.k = operand(op.k, false);
  p.log_decay = operand(op.log_decay, op.log_decay && op.log_decay.shape.rank() == 3);
  p.beta = operand(op.beta, true);
  p.l2 = static_cast<bool>(op.beta);
  p.choices = {op.selected.i32(),
               op.gate.f32(),
               static_cast<int>(op.selected.row_size()),
               static_cast<int>(op.writers),
               static_cast<int>(op.readers),
               op.gate_q,
               op.gate_k,
               op.gate_place == GatePlace::before_l2,
               op.write_scale};
  if (from != nullptr) {
    if (from->logits.row_size() > most_partitions || p.q.heads != p.H || p.k.heads != p.H) return false;
    p.q_source = source(from->q);
    p.k_source = source(from->k);
    p.routing = {from->gate.f32(), from->selected.i32(), from->logits.f32(), static_cast<int>(from->logits.row_size()), from->by_logits};
  }
  op.beta ? start<true>(p, stream) : start<false>(p, stream);
  return true;
}

}  // namespace statescope::cuda

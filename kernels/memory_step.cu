// One row of one sequence and its memory, a matrix or sparse states: a token's decoding. Many blocks with few columns each, so that the
// states are read and written at once; all states that a token touches go into one launch.
#include "kernels/cuda_levels.h"

namespace statescope::cuda {
namespace {

using namespace memory_step;

constexpr int threads = 256, warps = threads / warp_size, columns = 16, rows_at_once = threads * own_columns / columns;

// ---- kernels -------------------------------------------------------------------------------------------------------------------------

/// The threads of a block.
struct Team {
  static constexpr int warps = threads / warp_size;
  static __device__ void sync() { __syncthreads(); }
};

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

__device__ float number_of(const Operand& x, const Source& source, int half, int h, int H, int r) {
  if (source.pair == nullptr) return x.at(half, h, H)[r];
  const int i = producer_head(h, x.heads, H) * x.width + r;
  const float z = half == 0 ? source.shared[i] : source.sparse[i] + source.more[i];
  return source.softmax ? z : activated_by_one(z, source.act);
}

/// A block owns `columns` columns of a head, a thread four of them and every 64th row.
template <bool delta_rule, int RowsPerThread>
__global__ void __launch_bounds__(threads) step_kernel(const __grid_constant__ Step p) {
  __shared__ Row row;
  __shared__ Chosen chosen;
  __shared__ Four parts[warps];
  __shared__ float4 of_warps[warps][columns / own_columns];
  let_next_begin();
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

  const float4 v = present ? *reinterpret_cast<const float4*>(p.v.at(0, h, p.H) + column) : float4{0, 0, 0, 0};
  const bool sparse = p.choices.count > 0;
  const float beta = p.beta.x != nullptr ? *p.beta.at(0, h, p.H) : 1,
              sparse_beta = p.beta.x != nullptr && sparse ? *p.beta.at(1, h, p.H) : 1;
  if (threadIdx.x < warp_size) choose(chosen, p.choices, p.routing, blockIdx.x == 0);
  load_row<Team>(row, parts, p, h, tile == 0, [&](int half, int r) -> Channel {
    return {number_of(p.q, p.q_source, half, h, p.H, r), number_of(p.k, p.k_source, half, h, p.H, r),
            p.log_decay.x == nullptr ? 0 : p.log_decay.at(half, h, p.H)[p.log_decay.width > 1 ? r : 0]};
  });
  Four squares{};
  if (p.l2) {
    for_own_channels<Team>(p, [&](int half, int r) {
      const float q = row.q[half][r], k = row.k[half][r];
      squares.set(half, squares.q_of(half) + q * q, squares.k_of(half) + k * k);
    });
    squares = combined_over<Team>(squares, parts, [](float a, float b) { return a + b; });
  }
  __syncthreads();
#pragma unroll 1
  for (int n = 0; n < p.choices.count; ++n) prefetch_state(1 + chosen.partition[n]);

  float4 o{0, 0, 0, 0};
#pragma unroll 1
  for (int n = 0; n <= p.choices.count; ++n) {
    const int half = n > 0 ? 1 : 0;
    const auto [writes, read, write] = Use(p, n, n > 0 ? chosen.gate[n - 1] : 1, squares);
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
    launch_overlapped("memory, one row", kernel, blocks, threads, 0, stream, p);
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

/// Whether a kernel is one of those that `start` starts.
template <bool delta_rule>
bool is_step(const void* kernel) {
  const auto is = [&](auto step) { return kernel == reinterpret_cast<void*>(step); };
  return is(step_kernel<delta_rule, 1>) || is(step_kernel<delta_rule, 2>) || is(step_kernel<delta_rule, 4>) ||
         is(step_kernel<delta_rule, 8>);
}

}  // namespace

std::optional<memory_step::Captured> memory_step::captured(const cudaKernelNodeParams& launch) {
  const bool delta_rule = is_step<true>(launch.func);
  if (!delta_rule && !is_step<false>(launch.func)) return {};
  return Captured{parameter_of<Step>(launch), delta_rule};
}

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

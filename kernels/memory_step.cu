// One row of one sequence and its memory, a matrix or sparse states: a token's decoding. Many blocks with few columns each, so that the
// states are read and written at once; all states that a token touches go into one launch.
#include "kernels/cuda_operations.h"

namespace statescope::cuda {
namespace {

constexpr int warp_size = 32, threads = 256, warps = threads / warp_size;
constexpr int columns = 16, own_columns = 4, rows_at_once = threads * own_columns / columns, most_channels = 512;

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

struct Step {
  Operand q, k, v, log_decay, beta;
  float *state, *o;  // [slots, H, K, V], [H, V]
  int H, K, V;
  float scale;
  bool l2;  // q and k are brought to unit length
  Choices choices;
};

// ---- kernels -------------------------------------------------------------------------------------------------------------------------

__device__ float4 operator+(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }
__device__ float4 operator*(float s, float4 a) { return {s * a.x, s * a.y, s * a.z, s * a.w}; }

/// The sum over the block; `parts` is free again when all have it.
__device__ float sum_of_block(float x, float* parts) {
  for (int distance = warp_size / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(~0U, x, distance);
  if (threadIdx.x % warp_size == 0) parts[threadIdx.x / warp_size] = x;
  __syncthreads();
  float sum = 0;
  for (int w = 0; w < warps; ++w) sum += parts[w];
  __syncthreads();
  return sum;
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

/// to ← f · x, or of unit length: L2(f x) where the factor comes before, else f · L2(x)   (spec §4.3)
__device__ void load_key(float* to, const float* x, int K, float f, const Step& p, float* parts) {
  float factor = f;
  if (p.l2) {
    const float inner = p.choices.before_l2 ? f : 1;
    float sum = 0;
    for (int r = static_cast<int>(threadIdx.x); r < K; r += threads) sum += inner * x[r] * (inner * x[r]);
    constexpr float eps = 1e-6F;
    factor = f / sqrtf(sum_of_block(sum, parts) + eps);
  }
  for (int r = static_cast<int>(threadIdx.x); r < K; r += threads) to[r] = factor * x[r];
}

/// A block owns `columns` columns of a head, a thread four of them and every 64th row.
template <bool delta_rule, int RowsPerThread>
__global__ void __launch_bounds__(threads) step_kernel(Step p) {
  __shared__ float q[most_channels], k[most_channels], alpha[most_channels], parts[warps];
  __shared__ float4 of_warps[warps][columns / own_columns];
  begin_overlapped();
  const int tiles = (p.V + columns - 1) / columns, h = static_cast<int>(blockIdx.x) / tiles;
  const int column = static_cast<int>(blockIdx.x) % tiles * columns + static_cast<int>(threadIdx.x) % (columns / own_columns) * own_columns;
  const int first_row = static_cast<int>(threadIdx.x) / (columns / own_columns);
  const auto row = [&](int i) { return first_row + i * rows_at_once; };
  const bool present = column < p.V;
  const float4 v = present ? *reinterpret_cast<const float4*>(p.v.at(0, h, p.H) + column) : float4{0, 0, 0, 0};
  float4 o{0, 0, 0, 0};
  for (int n = 0; n <= p.choices.count; ++n) {
    const Choices& c = p.choices;
    const int partition = n > 0 ? c.selected[n - 1] : 0, half = n > 0 ? 1 : 0;
    const float e = n > 0 ? c.gate[partition] : 1;
    const bool reads = n <= c.readers, writes = n <= c.writers;  // n = 0: always
    const float read = !reads ? 0 : c.gate_q ? e : 1, write = !writes ? 0 : n == 0 ? 1 : c.gate_k ? c.write_scale * e : c.write_scale;
    float* const state = p.state + (static_cast<std::int64_t>(n > 0 ? 1 + partition : 0) * p.H + h) * p.K * p.V + column;
    float4 S[RowsPerThread];
#pragma unroll
    for (int i = 0; i < RowsPerThread; ++i) {
      if (row(i) < p.K && present) S[i] = *reinterpret_cast<const float4*>(state + static_cast<std::int64_t>(row(i)) * p.V);
    }
    load_key(q, p.q.at(half, h, p.H), p.K, read, p, parts);
    load_key(k, p.k.at(half, h, p.H), p.K, write, p, parts);
    const float* log_decay = p.log_decay.x != nullptr ? p.log_decay.at(half, h, p.H) : nullptr;
    for (int r = static_cast<int>(threadIdx.x); r < p.K; r += threads)
      alpha[r] = log_decay != nullptr && writes ? expf(log_decay[p.log_decay.width > 1 ? r : 0]) : 1;
    __syncthreads();
    float4 u = v;
    if constexpr (delta_rule) {
      // u = β (v − k S̄),  S̄ = α S
      float4 predicted{0, 0, 0, 0};
#pragma unroll
      for (int i = 0; i < RowsPerThread; ++i) {
        if (row(i) < p.K && present) predicted = predicted + k[row(i)] * S[i];
      }
      const float beta = !writes ? 0 : p.beta.x != nullptr ? *p.beta.at(half, h, p.H) : 1;
      u = beta * (v + -alpha[0] * sum_of_rows(predicted, of_warps));
    }
#pragma unroll
    for (int i = 0; i < RowsPerThread; ++i) {
      if (row(i) >= p.K || !present) continue;
      // S ← α S + kᵀ u,  o = o + q S
      S[i] = alpha[row(i)] * S[i] + k[row(i)] * u;
      o = o + q[row(i)] * S[i];
      *reinterpret_cast<float4*>(state + static_cast<std::int64_t>(row(i)) * p.V) = S[i];
    }
    __syncthreads();  // before q, k and α are written again
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
    // As the kernels beside it want it (linear_one_row.cu): another division of the first cache would wait for them.
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

bool sparse_state_step(const SparseState& op, cudaStream_t stream) {
  if (op.cu_seqlens.size() != 2 || !fits(op.q, op.v, op.initial_state, op.final_state, op.o)) return false;
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
  op.beta ? start<true>(p, stream) : start<false>(p, stream);
  return true;
}

}  // namespace statescope::cuda

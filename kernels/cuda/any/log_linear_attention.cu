// Log-linear attention as its recurrence: a column of the levels needs no other column.
#include "kernels/cuda/common/recurrence.h"

namespace statescope::cuda {
namespace {

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

constexpr int columns = 32, groups = 8;

struct Problem {
  F32Rows q, k, v, log_decay, level_scale;
  Rows<const float> initial;  // [levels, H, K, V]
  Rows<float> final, o;       // [levels, H, K, V], [rows, H, V]
  std::int64_t rows, levels, H, K, V, position;
};

/// One block per (head, `columns` columns). Each thread has one column of the rows r = its group, + groups, … of every level, which stay in
/// global memory: no other thread reads or writes them.
__global__ void __launch_bounds__(columns* groups) log_linear_attention_kernel(Problem p) {
  __shared__ float parts[groups][columns];
  begin_overlapped();
  const int lane = static_cast<int>(threadIdx.x) % columns, group = static_cast<int>(threadIdx.x) / columns;
  const std::int64_t tiles = (p.V + columns - 1) / columns;
  const std::int64_t h = blockIdx.x / tiles, column = blockIdx.x % tiles * columns + lane;
  const bool own = column < p.V;
  const auto cell = [&](const auto& state, std::int64_t level, std::int64_t r) { return state.row(level) + (h * p.K + r) * p.V + column; };
  for (std::int64_t level = 0; own && p.initial.data != p.final.data && level < p.levels; ++level) {
    for (std::int64_t r = group; r < p.K; r += groups) *cell(p.final, level, r) = *cell(p.initial, level, r);
  }
  for (std::int64_t t = 0; t < p.rows; ++t) {
    const std::int64_t position = p.position + t;
    const int into = position > 0 ? __ffsll(position) : 0;  // merged_level
    const float *q = p.q.at(t, h, p.H), *k = p.k.at(t, h, p.H), *scale = p.level_scale.at(t, h, p.H);
    const float alpha = expf(*p.log_decay.at(t, h, p.H)), v = own ? p.v.at(t, h, p.H)[column] : 0;
    float o = 0;
    for (std::int64_t r = group; own && r < p.K; r += groups) {
      // S^m ← S^0 + … + S^{m−1}
      float merged = 0;
      for (int level = 0; level < into; ++level) {
        merged += *cell(p.final, level, r);
        *cell(p.final, level, r) = 0;
      }
      // S^ℓ ← α S^ℓ,   o = Σ_ℓ λ_ℓ q S^ℓ
      for (int level = 1; level < p.levels; ++level) {
        if ((position >> (level - 1) & 1) == 0) continue;
        float* const S = cell(p.final, level, r);
        *S = alpha * (level == into ? merged : *S);
        o = fmaf(scale[level] * q[r], *S, o);
      }
      // S^0 = kᵀ v
      const float written = k[r] * v;
      *cell(p.final, 0, r) = written;
      o = fmaf(scale[0] * q[r], written, o);
    }
    parts[group][lane] = o;
    __syncthreads();
    if (group == 0 && own) {
      float sum = 0;
#pragma unroll
      for (int i = 0; i < groups; ++i) sum += parts[i][lane];
      p.o.row(t)[h * p.V + column] = sum;
    }
    __syncthreads();  // the sums have been read
  }
}

}  // namespace

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

void log_linear_attention(const LogLinearAttention& op, cudaStream_t stream) {
  const Shape& state = op.initial_state.shape;
  const Problem p{f32_rows(op.q),
                  f32_rows(op.k),
                  f32_rows(op.v),
                  f32_rows(op.log_decay),
                  f32_rows(op.level_scale),
                  f32(op.initial_state),
                  f32(op.final_state),
                  f32(op.o),
                  op.o.rows(),
                  state[0],
                  state[1],
                  state[2],
                  state[3],
                  op.position};
  const std::int64_t tiles = (p.V + columns - 1) / columns;
  launch_overlapped("log_linear_attention", log_linear_attention_kernel, static_cast<unsigned>(p.H * tiles), columns * groups, 0, stream,
                    p);
}

}  // namespace statescope::cuda

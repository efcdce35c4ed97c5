// The gated delta rule as its recurrence (recurrence.h).
#include "kernels/cuda/common/recurrence.h"

namespace statescope::cuda {
namespace {

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

/// `channels`: every row of the state decays by itself.
template <bool channels, int Lanes, int RowsPerLane>
struct DeltaRule {
  using Tile = Columns<Lanes, RowsPerLane>;

  struct Batch {
    static constexpr int gate_width = 4;  // one number, padded to what Four must be aligned to
    static constexpr int decay_width = channels ? Tile::rows : gate_width;
    static constexpr int row_size = 2 * Tile::rows + Tile::count + decay_width + gate_width;
    float *q, *k, *v, *alpha, *beta;  // [capacity, the width of each]

    __device__ Batch(float* memory, int capacity)
        : q(memory),
          k(q + capacity * Tile::rows),
          v(k + capacity * Tile::rows),
          alpha(v + capacity * Tile::count),
          beta(alpha + capacity * decay_width) {}
  };

  /// Starts to fetch the n rows from `first` on; of v the columns from `column` on.
  static __device__ void fetch_batch(const Batch& to, const RecurrenceProblem& p, std::int64_t first, int n, std::int64_t h,
                                     std::int64_t column) {
    fetch<Tile::rows>(to.q, p.q.at(first, h, p.H), p.q.rows.stride, n, p.K);
    fetch<Tile::rows>(to.k, p.k.at(first, h, p.H), p.k.rows.stride, n, p.K);
    fetch<Tile::count>(to.v, p.v.at(first, h, p.H) + column, p.v.rows.stride, n, p.V - column);
    fetch<Batch::decay_width>(to.alpha, p.log_decay.at(first, h, p.H), p.log_decay.rows.stride, n, p.log_decay.width);
    fetch<Batch::gate_width>(to.beta, p.beta.at(first, h, p.H), p.beta.rows.stride, n, p.beta.width);
    __pipeline_commit();
  }

  static __device__ void make_ready(const Batch& batch, int n) { exponentiate<Batch::decay_width>(batch.alpha, n); }

  static __device__ float step(float (&S)[RowsPerLane], const Batch& batch, int t, const RecurrenceProblem& p) {
    const Four* q = reinterpret_cast<const Four*>(batch.q + t * Tile::rows) + Tile::lane();
    const Four* k = reinterpret_cast<const Four*>(batch.k + t * Tile::rows) + Tile::lane();
    const float v = batch.v[t * Tile::count + Tile::own()];
    const float beta = p.beta.rows ? batch.beta[t * Batch::gate_width] : 1;
    float alpha = batch.alpha[t * Batch::decay_width];
    if constexpr (channels) {
      // S̄ = diag(α) S
      decay_rows(S, reinterpret_cast<const Four*>(batch.alpha + t * Batch::decay_width) + Tile::lane());
      alpha = 1;
    }
    // u = β (v − k S̄),  k S̄ = α (k S)
    const float u = beta * fmaf(-alpha, Tile::read(S, k), v);
    // S = S̄ + kᵀ u,  o = q S
    return write_and_read(S, alpha, k, u, q);
  }

 private:
  static __device__ void decay_rows(float (&S)[RowsPerLane], const Four* alpha) {
#pragma unroll
    for (int i = 0; i < RowsPerLane; i += 4) {
      const Four alpha_i = alpha[i / 4 * Lanes];
#pragma unroll
      for (int j = 0; j < 4; ++j) S[i + j] *= alpha_i.x[j];
    }
  }

  /// S ← α S + kᵀ u for the thread's rows; returns the column's q S.
  static __device__ float write_and_read(float (&S)[RowsPerLane], float alpha, const Four* k, float u, const Four* q) {
    float o[4] = {};
#pragma unroll
    for (int i = 0; i < RowsPerLane; i += 4) {
      const Four q_i = q[i / 4 * Lanes], k_i = k[i / 4 * Lanes];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        S[i + j] = fmaf(k_i.x[j], u, alpha * S[i + j]);
        o[j] = fmaf(q_i.x[j], S[i + j], o[j]);
      }
    }
    return Tile::sum((o[0] + o[1]) + (o[2] + o[3]));
  }
};

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

template <bool channels>
void launch_rule(const RecurrenceProblem& p, cudaStream_t stream) {
  constexpr const char* name = "gated_delta_rule";
  if (p.K <= 32) return launch_recurrence<DeltaRule<channels, 4, 8>>(name, p, stream);
  if (p.K <= 64) return launch_recurrence<DeltaRule<channels, 4, 16>>(name, p, stream);
  if (p.K <= 128) return launch_recurrence<DeltaRule<channels, 4, 32>>(name, p, stream);
  if (p.K <= 256) return launch_recurrence<DeltaRule<channels, 4, 64>>(name, p, stream);
  if (p.K <= 512) return launch_recurrence<DeltaRule<channels, 8, 64>>(name, p, stream);
  throw std::invalid_argument("gated_delta_rule: q: found " + std::to_string(p.K) + " channels a head, a GPU takes at most 512");
}

}  // namespace

void gated_delta_rule(const GatedDeltaRule& op, const DeviceSegments& segments, cudaStream_t stream) {
  const RecurrenceProblem p = recurrence_problem(op, op.beta, segments);
  op.log_decay.shape.rank() == 3 ? launch_rule<true>(p, stream) : launch_rule<false>(p, stream);
}

}  // namespace statescope::cuda

// The decayed outer product as its recurrence (recurrence.h).
#include "kernels/cuda/common/recurrence.h"

namespace statescope::cuda {
namespace {

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

enum class Decay { scalar, rows, columns };  // an absent decay is a scalar of 1

template <Decay decay, int Lanes, int RowsPerLane>
struct OuterProduct {
  using Tile = Columns<Lanes, RowsPerLane>;

  struct Batch {
    static constexpr int decay_width = decay == Decay::rows ? Tile::rows : decay == Decay::columns ? Tile::count : 4;
    static constexpr int row_size = 2 * Tile::rows + decay_width + Tile::count;  // a multiple of 4
    float *q, *k, *a, *v;                                                        // [capacity, the width of each]

    __device__ Batch(float* memory, int capacity)
        : q(memory), k(q + capacity * Tile::rows), a(k + capacity * Tile::rows), v(a + capacity * decay_width) {}
  };

  /// Starts to fetch the n rows from `first` on. Of v, and of decays along the columns, the columns from `column` on.
  static __device__ void fetch_batch(const Batch& to, const RecurrenceProblem& p, std::int64_t first, int n, std::int64_t h,
                                     std::int64_t column) {
    const std::int64_t decay_from = decay == Decay::columns ? column : 0;
    fetch<Tile::rows>(to.q, p.q.at(first, h, p.H), p.q.rows.stride, n, p.K);
    fetch<Tile::rows>(to.k, p.k.at(first, h, p.H), p.k.rows.stride, n, p.K);
    fetch<Batch::decay_width>(to.a, p.log_decay.at(first, h, p.H) + decay_from, p.log_decay.rows.stride, n, p.log_decay.width - decay_from);
    fetch<Tile::count>(to.v, p.v.at(first, h, p.H) + column, p.v.rows.stride, n, p.V - column);
    __pipeline_commit();
  }

  static __device__ void make_ready(const Batch& batch, int n) { exponentiate<Batch::decay_width>(batch.a, n); }

  static __device__ float step(float (&S)[RowsPerLane], const Batch& batch, int t, const RecurrenceProblem&) {
    const Four* q = reinterpret_cast<const Four*>(batch.q + t * Tile::rows) + Tile::lane();
    const Four* k = reinterpret_cast<const Four*>(batch.k + t * Tile::rows) + Tile::lane();
    const float* a = batch.a + t * Batch::decay_width;
    const float v = batch.v[t * Tile::count + Tile::own()];
    const float same_decay = decay == Decay::columns ? a[Tile::own()] : a[0];
    float o[4] = {};
#pragma unroll
    for (int i = 0; i < RowsPerLane; i += 4) {
      const Four q_i = q[i / 4 * Lanes], k_i = k[i / 4 * Lanes];
      Four a_i{{same_decay, same_decay, same_decay, same_decay}};
      if constexpr (decay == Decay::rows) a_i = reinterpret_cast<const Four*>(a)[i / 4 * Lanes + Tile::lane()];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        // S_r = a_r S_r + k_r v,  o = o + q_r S_r
        S[i + j] = fmaf(k_i.x[j], v, a_i.x[j] * S[i + j]);
        o[j] = fmaf(q_i.x[j], S[i + j], o[j]);
      }
    }
    return Tile::sum((o[0] + o[1]) + (o[2] + o[3]));
  }
};

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

template <Decay decay>
void launch_decay(const RecurrenceProblem& p, cudaStream_t stream) {
  constexpr const char* name = "decayed_outer_product";
  if (p.K <= 32) return launch_recurrence<OuterProduct<decay, 4, 8>>(name, p, stream);
  if (p.K <= 64) return launch_recurrence<OuterProduct<decay, 4, 16>>(name, p, stream);
  if (p.K <= 128) return launch_recurrence<OuterProduct<decay, 4, 32>>(name, p, stream);
  if (p.K <= 256) return launch_recurrence<OuterProduct<decay, 4, 64>>(name, p, stream);
  if (p.K <= 512) return launch_recurrence<OuterProduct<decay, 8, 64>>(name, p, stream);
  if (p.K <= 2048) return launch_recurrence<OuterProduct<decay, 32, 64>>(name, p, stream);
  throw std::invalid_argument("decayed_outer_product: q: found " + std::to_string(p.K) + " channels a head, a GPU takes at most 2048");
}

}  // namespace

void decayed_outer_product(const DecayedOuterProduct& op, const DeviceSegments& segments, cudaStream_t stream) {
  const RecurrenceProblem p = recurrence_problem(op, {}, segments);
  if (!op.log_decay || op.log_decay.shape.rank() == 2) return launch_decay<Decay::scalar>(p, stream);
  if (op.decay_axis == DecayAxis::rows) return launch_decay<Decay::rows>(p, stream);
  launch_decay<Decay::columns>(p, stream);
}

}  // namespace statescope::cuda

// The memory of RWKV-6 and RWKV-7 as its recurrence (recurrence.h).
#include "kernels/cuda/common/recurrence.h"

namespace statescope::cuda {
namespace {

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

/// `erases`: something is taken away; `reads_first`: before the token's decay and write.
template <bool erases, bool reads_first, int Lanes, int RowsPerLane>
struct WkvRule {
  using Tile = Columns<Lanes, RowsPerLane>;

  struct Batch {
    static constexpr int erase_width = erases ? Tile::rows : 0;
    static constexpr int row_size = 3 * Tile::rows + 2 * erase_width + Tile::count;
    float *q, *k, *alpha, *erase_key, *erase_along, *v;  // [capacity, the width of each]

    __device__ Batch(float* memory, int capacity)
        : q(memory),
          k(q + capacity * Tile::rows),
          alpha(k + capacity * Tile::rows),
          erase_key(alpha + capacity * Tile::rows),
          erase_along(erase_key + capacity * erase_width),
          v(erase_along + capacity * erase_width) {}
  };

  /// Starts to fetch the n rows from `first` on; of v the columns from `column` on.
  static __device__ void fetch_batch(const Batch& to, const RecurrenceProblem& p, std::int64_t first, int n, std::int64_t h,
                                     std::int64_t column) {
    const auto fetch_rows = [&](float* rows, const F32Rows& from) {
      fetch<Tile::rows>(rows, from.at(first, h, p.H), from.rows.stride, n, p.K);
    };
    fetch_rows(to.q, p.q);
    fetch_rows(to.k, p.k);
    fetch_rows(to.alpha, p.log_decay);
    if constexpr (erases) {
      fetch_rows(to.erase_key, p.erase_key);
      fetch_rows(to.erase_along, p.erase_along);
    }
    fetch<Tile::count>(to.v, p.v.at(first, h, p.H) + column, p.v.rows.stride, n, p.V - column);
    __pipeline_commit();
  }

  static __device__ void make_ready(const Batch& batch, int n) { exponentiate<Tile::rows>(batch.alpha, n); }

  static __device__ float step(float (&S)[RowsPerLane], const Batch& batch, int t, const RecurrenceProblem&) {
    const auto own = [t](const float* rows) { return reinterpret_cast<const Four*>(rows + t * Tile::rows) + Tile::lane(); };
    const Four *q = own(batch.q), *k = own(batch.k), *alpha = own(batch.alpha), *along = nullptr;
    const float v = batch.v[t * Tile::count + Tile::own()];
    float erased = 0;
    if constexpr (erases) {
      // p S_{t-1}
      erased = Tile::read(S, own(batch.erase_key));
      along = own(batch.erase_along);
    }
    float o = 0;
    if constexpr (reads_first) o = Tile::read(S, q);
      // S = diag(α) S − eᵀ (p S) + kᵀ v
#pragma unroll
    for (int i = 0; i < RowsPerLane; i += 4) {
      const Four k_i = k[i / 4 * Lanes], alpha_i = alpha[i / 4 * Lanes];
      Four along_i{};
      if constexpr (erases) along_i = along[i / 4 * Lanes];
#pragma unroll
      for (int j = 0; j < 4; ++j) S[i + j] = fmaf(k_i.x[j], v, fmaf(-along_i.x[j], erased, alpha_i.x[j] * S[i + j]));
    }
    if constexpr (!reads_first) o = Tile::read(S, q);
    return o;
  }
};

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

template <bool erases, bool reads_first>
void launch_rule(const RecurrenceProblem& p, cudaStream_t stream) {
  constexpr const char* name = "wkv";
  if (p.K <= 32) return launch_recurrence<WkvRule<erases, reads_first, 4, 8>>(name, p, stream);
  if (p.K <= 64) return launch_recurrence<WkvRule<erases, reads_first, 4, 16>>(name, p, stream);
  if (p.K <= 128) return launch_recurrence<WkvRule<erases, reads_first, 4, 32>>(name, p, stream);
  if (p.K <= 256) return launch_recurrence<WkvRule<erases, reads_first, 4, 64>>(name, p, stream);
  throw std::invalid_argument("wkv: q: found " + std::to_string(p.K) + " channels a head, a GPU takes at most 256");
}

}  // namespace

void wkv(const Wkv& op, const DeviceSegments& segments, cudaStream_t stream) {
  RecurrenceProblem p = recurrence_problem(op, {}, segments);
  p.erase_key = f32_rows(op.erase_key);
  p.erase_along = f32_rows(op.erase_along);
  const auto launch = [&]<bool erases>() { op.reads_first ? launch_rule<erases, true>(p, stream) : launch_rule<erases, false>(p, stream); };
  op.erase_key ? launch.template operator()<true>() : launch.template operator()<false>();
}

}  // namespace statescope::cuda

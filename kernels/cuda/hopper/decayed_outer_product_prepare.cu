// The first kernel of the decayed outer product 64 rows at a time (outer_tiles.h): what every chunk needs before any state is known. No
// factor of x and y is larger than 1, whatever the decays. Scores are computed at a row in the middle of the chunk, where one of the two
// factors grows, as long as floating point can hold it; where it cannot, at the boundaries between ever smaller halves, where none does.
#include "kernels/cuda/common/decays.h"
#include "kernels/cuda/hopper/outer_tiles.h"

namespace statescope::cuda::outer_tiles {
namespace {

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

constexpr int of_thread = 16, parts = chunk_rows / of_thread;  // rows of a pair of channels
template <int channels>
constexpr int prepare_threads = parts*(channels / 2);

/// Of sparse states: where a row's operands are, the factors of q and k, and whether it decays and is written.
struct alignas(16) ChunkRow {
  int row;
  float read, write;
  bool writes;
};

template <int channels>
struct alignas(1024) Prepared {
  static constexpr int blocks = Chunk<channels>::blocks;
  Tile x[blocks], y[blocks];          // q and k as loaded, then decayed to the row at which scores are computed
  float2 total[parts][channels / 2];  // log2 of the decay of a thread's rows
  std::array<ChunkRow, chunk_rows> rows;
  std::uint64_t full;
};

__device__ float2 widened(unsigned pair) { return {first_of(pair), second_of(pair)}; }
__device__ unsigned packed_pair(float2 x) { return packed(x.x, x.y); }

/// Two neighbouring channels of a row in tiles.
__device__ unsigned& pair_at(Tile* tiles, int row, int channel) { return *reinterpret_cast<unsigned*>(swizzle(tiles, row, channel)); }

/// Rows of a chunk from its first one on, or, of sparse states, that are looked up.
template <bool sparse>
struct ChunkRows {
  const ChunkRow* rows;
  int first, n;

  __device__ int begin() const { return sparse ? 0 : first; }
  /// From begin() on, where rows are `stride` apart.
  __device__ auto offset(int t, int stride) const {
    if constexpr (sparse) {
      return std::int64_t{rows[t].row} * stride;
    } else {
      return t * stride;
    }
  }
  __device__ bool decays(int t) const { return t < n && (!sparse || rows[t].writes); }
  __device__ float read(int t) const { return sparse ? rows[t].read : 1; }
  __device__ float write(int t) const { return sparse ? rows[t].write : 1; }
};

constexpr float least_log2 = -160;  // of a decay: 2^least is 0, and sums of it are still exact enough

/// log2 of the decays of two neighbouring channels in the first n rows of a chunk, 0 behind them.
template <bool sparse>
struct Decays {
  ChunkRows<sparse> rows;
  const float* data;
  int stride, width;

  __device__ Decays(const F32Rows& x, const ChunkRows<sparse>& rows_, int h, int H, int channel)
      : rows(rows_),
        data(x.at(rows_.begin(), h, H) + (x.width > 1 ? channel : 0)),
        stride(static_cast<int>(x.rows.stride)),
        width(static_cast<int>(x.width)) {}

  /// Loads those of rows from `first` on, all in flight at once.
  template <int count>
  __device__ void read(float2 (&to)[count], int first) const {
#pragma unroll
    for (float2& x : to) x = {0, 0};
    if (width > 1) {
#pragma unroll
      for (int i = 0; i < count; ++i) {
        if (rows.decays(first + i)) to[i] = *reinterpret_cast<const float2*>(data + rows.offset(first + i, stride));
      }
    } else if (width == 1) {
#pragma unroll
      for (int i = 0; i < count; ++i) {
        if (rows.decays(first + i)) to[i].x = to[i].y = data[rows.offset(first + i, stride)];
      }
    }
#pragma unroll
    for (float2& x : to) {
      x = log2_e * x;
      x = {x.x < least_log2 ? least_log2 : x.x, x.y < least_log2 ? least_log2 : x.y};
    }
  }
  __device__ float2 at(int t) const {
    float2 row[1];
    read(row, t);
    return row[0];
  }
};

/// log2 e^{max(logσ(x) · scale, clamp)}, as log2 σ(x) = min(z, 0) − log2(1 + 2^−|z|) with z = x / ln 2; `clamp` as a log2 too. The
/// logarithm is that of activation.h; a NaN stays one.
__device__ float log2_forget(float x, float scale, float clamp) {
  constexpr float small = 1.0F / 64;
  const float z = log2_e * x, e = exp2_of(-fabsf(z));
  const float log2_one_plus_e = e < small ? e * (log2_e - e * (log2_e / 2 - e * (log2_e / 3))) : __log2f(1 + e);
  const float y = scale * ((z < 0 ? z : 0) - log2_one_plus_e);
  return y < clamp ? clamp : y;
}

/// Shared memory to transpose a warp's decays of 8 rows from the lanes that compute them to those that own the channels.
struct Transposed {
  static constexpr int rows = 8, apart = 36;  // without conflicts
  float2 at[rows][apart];
};

/// A warp computes decays of 16 rows from `first` on and 64 channels (among those of all heads), two for each lane, on tensor cores:
/// features are split into three bf16 terms, so the result is exact to float32 rounding. 0 for a lane without channels.
template <bool sparse>
__device__ void make_decays(float2 (&to)[of_thread], const Gate& gate, const ChunkRows<sparse>& rows, Transposed& transposed, int first,
                            int channel, int channels_left, bool is_channel) {
  constexpr int tile = 8, tiles = 8, of_lane = gate_features / 4;
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  const auto features = [&](int row) {
    const int given = row < rows.n ? row : 0;
    return *reinterpret_cast<const float4*>(gate.features.row(rows.begin()) + rows.offset(given, static_cast<int>(gate.features.stride)) +
                                            of_lane * t);
  };
  const float4 upper = features(first + g), lower = features(first + g + 8);
  const Bf16x3 a[4] = {Bf16x3({upper.x, upper.y}), Bf16x3({lower.x, lower.y}), Bf16x3({upper.z, upper.w}), Bf16x3({lower.z, lower.w})};
  float2 of_lower[tiles];
#pragma unroll
  for (int i = 0; i < tiles; ++i) {
    const int n = channel + min(tile * i, channels_left - tile);
    const uint2 weight = *reinterpret_cast<const uint2*>(gate.weight + (n + g) * gate_features + of_lane * t);
    const float2 bias = gate.bias != nullptr ? float2{gate.bias[n + 2 * t], gate.bias[n + 2 * t + 1]} : float2{0, 0};
    float c[4] = {bias.x, bias.y, bias.x, bias.y};
#pragma unroll
    for (int term = 2; term >= 0; --term)
      multiply(c, {a[0].terms[term], a[1].terms[term], a[2].terms[term], a[3].terms[term]}, weight.x, weight.y);
    transposed.at[g][4 * i + t] = {c[0], c[1]};
    of_lower[i] = {c[2], c[3]};
  }
  const auto take = [&](int row) {
    __syncwarp();
#pragma unroll
    for (int i = 0; i < Transposed::rows; ++i) to[row + i] = transposed.at[i][lane];
    __syncwarp();
  };
  take(0);
#pragma unroll
  for (int i = 0; i < tiles; ++i) transposed.at[g][4 * i + t] = of_lower[i];
  take(Transposed::rows);
  const float clamp = max(least_log2, log2_e * gate.clamp_min);
#pragma unroll
  for (int i = 0; i < of_thread; ++i) {
    float2& x = to[i];
    x = is_channel && rows.decays(first + i) ? float2{log2_forget(x.x, gate.scale, clamp), log2_forget(x.y, gate.scale, clamp)}
                                             : float2{0, 0};
  }
}
/// Stores them to the memory of log_decay.
template <bool sparse, int count>
__device__ void store_decays(const float2 (&log2_decay)[count], const Gate& gate, const ChunkRows<sparse>& rows, int first, int channel) {
  float* const to = gate.log_decay.row(rows.begin()) + channel;
#pragma unroll
  for (int t = 0; t < count; ++t) {
    if (rows.decays(first + t))
      *reinterpret_cast<float2*>(to + rows.offset(first + t, static_cast<int>(gate.log_decay.stride))) = 1 / log2_e * log2_decay[t];
  }
}

/// Two neighbouring channels of q or k in the first n rows of a chunk, 0 behind them.
template <bool sparse>
struct Pair {
  ChunkRows<sparse> rows;
  const Bf16* data;
  int stride;

  __device__ Pair(const Bf16Rows& x, const ChunkRows<sparse>& rows_, int h, int H, int channel)
      : rows(rows_), data(x.at(rows_.begin(), h, H) + channel), stride(static_cast<int>(x.stride)) {}

  __device__ float2 at(int t) const {
    return t < rows.n ? widened(*reinterpret_cast<const unsigned*>(data + rows.offset(t, stride))) : float2{0, 0};
  }
};

/// One thread: starts to load q and k of 64 rows. Rows after the last one of the chunk belong to another segment.
template <int channels>
__device__ void fetch_rows(Prepared<channels>& shared, const Problem<channels>& p, const CUtensorMap& queries, const CUtensorMap& keys,
                           int h, int first_row) {
  init_barrier(shared.full, 1);
  fence_async_proxy();
  arrive_and_expect(shared.full, sizeof(shared.x) + sizeof(shared.y));
  const auto head = [&](const Bf16Rows& x) { return static_cast<int>(producer_head(h, x.heads, p.H)); };
  const int q_head = head(p.operands[0].q), k_head = head(p.operands[0].k);
  for (int b = 0; b < shared.blocks; ++b) {
    tma_load(shared.x[b], queries, b * swizzle_columns, q_head, first_row, shared.full);
    tma_load(shared.y[b], keys, b * swizzle_columns, k_head, first_row, shared.full);
  }
}

/// Looks up the position of each row of a chunk, and the row of o that it adds to; a thread has a row.
template <int channels>
__device__ void look_up_rows(Prepared<channels>& shared, Chunk<channels>& chunk, const Problem<channels>& p, const Piece& piece,
                             bool gathered) {
  const auto t = static_cast<int>(threadIdx.x);
  if (t >= chunk_rows) return;
  const bool wanted = t < piece.rows;
  const int own = static_cast<int>(piece.first_row) + t;
  const SparseItem item = gathered && wanted ? p.item(piece, t) : own_item(own);
  const bool reads = wanted && item.choice < p.readers, writes = wanted && (!gathered || item.choice < p.writers);
  shared.rows[t] = {wanted ? item.row : 0, item.read, item.write, writes};
  chunk.o_row[t] = reads ? item.row * p.choices + item.choice : -1;
}
/// All threads: start to load q and k of gathered rows.
template <int channels>
__device__ void fetch_gathered(Prepared<channels>& shared, const Problem<channels>& p, int h, int n) {
  constexpr int pieces = channels / 8, rows = prepare_threads<channels> / pieces;
  const int c = static_cast<int>(threadIdx.x) % pieces * 8, first = static_cast<int>(threadIdx.x) / pieces;
  const OuterTileOperands& operands = p.operands[1];
#pragma unroll
  for (int i = 0; i < chunk_rows / rows; ++i) {
    const int t = first + i * rows;
    const bool given = t < n && c < p.K;
    const int row = shared.rows[t].row, column = given ? c : 0;
    __pipeline_memcpy_async(swizzle(shared.x, t, c), operands.q.at(row, h, p.H) + column, 16, given ? 0 : 16);
    __pipeline_memcpy_async(swizzle(shared.y, t, c), operands.k.at(row, h, p.H) + column, 16, given ? 0 : 16);
  }
  __pipeline_commit();
}

/// C of 16 × 16 numbers of x yᵀ, from (row, column) on.
template <int channels>
__device__ void multiply_rows(float (&c)[2][4], const Prepared<channels>& shared, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int key = 0; key < channels; key += 16) {
    const Tile &x = shared.x[key / swizzle_columns], &y = shared.y[key / swizzle_columns];
    const uint4 a = ldmatrix(&x[0][0] + swizzle(row + lane % 16, key % swizzle_columns + lane / 16 * 8));
    const uint4 b = ldmatrix(&y[0][0] + swizzle(column + lane / 16 * 8 + lane % 8, key % swizzle_columns + lane / 8 % 2 * 8));
    multiply(c[0], a, b.x, b.y);
    multiply(c[1], a, b.z, b.w);
  }
}

/// A thread block computes a head of a chunk. Several of them share a multiprocessor, with 64 registers a thread, or 80 for sparse states:
/// one loads while another one computes. All of it is in one function: divided it spills.
template <int channels, bool sparse, bool makes_decays>
__global__ void __launch_bounds__(prepare_threads<channels>, (sparse ? 768 : 1024) / prepare_threads<channels>)
    prepare_kernel(const __grid_constant__ Problem<channels> p, const __grid_constant__ CUtensorMap queries,
                   const __grid_constant__ CUtensorMap keys) {
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& shared = *reinterpret_cast<Prepared<channels>*>(memory);
  const int h = static_cast<int>(blockIdx.x) % p.H, number = static_cast<int>(blockIdx.x) / p.H;
  // Chunks of own rows are computed while items are sorted, but for one, which keeps this launch from ending before the sort.
  const bool early = sparse && p.while_sorted != nullptr && blockIdx.x > 0 && number < most_pieces(p.own_rows, p.own_segments, chunk_rows);
  if (!early) grid_dependency_wait();
  const Piece piece = piece_of(early ? DeviceSegments{p.while_sorted, nullptr, p.own_segments, 0} : p.segments, number, chunk_rows);
  if (piece.index >= piece.count) return;
  Chunk<channels>& chunk = p.chunks[blockIdx.x];
  const bool gathered = sparse && piece.segment >= p.own_segments;
  const auto first_row = static_cast<int>(piece.first_row), rows = static_cast<int>(piece.rows);
  if constexpr (sparse) {
    look_up_rows(shared, chunk, p, piece, gathered);
    __syncthreads();
  }
  if (gathered) {
    fetch_gathered(shared, p, h, rows);
  } else if (threadIdx.x == 0) {
    fetch_rows(shared, p, queries, keys, h, first_row);
  }

  constexpr int channel_pairs = channels / 2;
  const int pair = static_cast<int>(threadIdx.x) % channel_pairs, part = static_cast<int>(threadIdx.x) / channel_pairs;
  const int channel = 2 * pair, first = part * of_thread;
  const int n = channel < p.K ? rows : 0;
  const OuterTileOperands& operands = p.operands[gathered ? 1 : 0];
  const ChunkRows<sparse> given{shared.rows.data(), first_row, n};
  const Decays decays(operands.log_decay, given, h, p.H, channel);
  const int of_head = static_cast<int>(producer_head(h, operands.log_decay.heads, p.H)) * p.K;  // channels before the head's
  float2 log2_decay[of_thread], total{0, 0};
  if constexpr (makes_decays) {
    auto& transposed = reinterpret_cast<Transposed*>(&shared + 1)[threadIdx.x / 32];
    const int of_warp = min(channel / 64 * 64, p.K - 8);
    make_decays(log2_decay, operands.gate, ChunkRows<sparse>{shared.rows.data(), first_row, rows}, transposed, first, of_head + of_warp,
                p.K - of_warp, n > 0);
  } else {
    decays.read(log2_decay, first);
  }
#pragma unroll
  for (const float2& x : log2_decay) total = total + x;
  shared.total[part][pair] = total;
  __syncthreads();

  float2 before{0, 0}, lower{0, 0}, upper{0, 0};  // log2 A(a, first − 1), A(a, m), A(m, e), where m is the middle row
#pragma unroll
  for (int i = 0; i < parts; ++i) {
    const float2 of_part = shared.total[i][pair];
    if (i < part) before = before + of_part;
    if (i < parts / 2) {
      lower = lower + of_part;
    } else {
      upper = upper + of_part;
    }
  }
  const float2 all = lower + upper;
  if (part == 0) *reinterpret_cast<float2*>(chunk.decay + channel) = exp2_of(all);
  if (gathered) __pipeline_wait_prior(0);
  const bool fits = __syncthreads_and(-lower.x <= most_log2_decay && -lower.y <= most_log2_decay && -upper.x <= most_log2_decay &&
                                      -upper.y <= most_log2_decay);
  if (!gathered) wait(shared.full, 0);

  // The scores, in blocks of 16 × 16: those at the middle row; or, boundary after boundary, those of rows on its two sides, and the
  // diagonal.
  constexpr int in_row = chunk_rows / 16, of_warp = in_row * in_row / (prepare_threads<channels> / 32);  // blocks
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int row = warp * of_warp / in_row * 16, first_column = warp * of_warp % in_row * 16;
  float scores[of_warp][2][4] = {};
  const auto add_scores = [&](const auto& counts) {
    __syncthreads();  // x and y are there
#pragma unroll
    for (int b = 0; b < of_warp; ++b) {
      const int column = first_column + 16 * b;
      if (column > row) break;
      float c[2][4] = {};
      multiply_rows(c, shared, row, column);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int t = row + lane / 4 + i % 4 / 2 * 8, s = column + i / 4 * 8 + lane % 4 * 2 + i % 2;
        if (counts(t, s)) scores[b][i / 4][i % 4] += c[i / 4][i % 4];
      }
    }
  };
  if (fits) {
    // q_t A(m, t) and k_s A(s, m) with the middle row m; from them x_t = scale q_t A(a, t) and y_s = k_s A(s, e)
    const float2 to_x = p.scale * exp2_of(lower), to_y = exp2_of(upper);
    float2 e = before + -lower;
#pragma unroll
    for (int i = 0; i < of_thread; ++i) {
      const int t = first + i;
      e = e + log2_decay[i];
      unsigned &q = pair_at(shared.x, t, channel), &k = pair_at(shared.y, t, channel);
      const float2 x = given.read(t) * (exp2_of(e) * widened(t < n ? q : 0)), y = given.write(t) * (exp2_of(-e) * widened(t < n ? k : 0));
      q = packed_pair(x), k = packed_pair(y);
      pair_at(chunk.x, t, channel) = packed_pair(to_x * x);
      pair_at(chunk.y, t, channel) = packed_pair(to_y * y);
    }
    add_scores([](int t, int s) { return s <= t; });
  } else {
    if constexpr (makes_decays) {
      store_decays(log2_decay, operands.gate, given, first, of_head + channel);
      __syncthreads();
    }
    const Pair pairs_of_q(operands.q, given, h, p.H, channel), pairs_of_k(operands.k, given, h, p.H, channel);
    const auto q = [&](int t) { return given.read(t) * pairs_of_q.at(t); };
    const auto k = [&](int t) { return given.write(t) * pairs_of_k.at(t); };
    float2 e = before;
#pragma unroll 1
    for (int t = first; t < first + of_thread; ++t) {
      e = e + decays.at(t);
      pair_at(chunk.x, t, channel) = packed_pair(p.scale * (exp2_of(e) * q(t)));
      pair_at(chunk.y, t, channel) = packed_pair(exp2_of(all + -e) * k(t));
    }
    const auto put = [&](int t, float2 x, float2 y) {
      pair_at(shared.x, t, channel) = packed_pair(x), pair_at(shared.y, t, channel) = packed_pair(y);
    };
    // Exponents are sums over the rows since the boundary between two halves of a block: in the later half a thread goes on from it with q,
    // in the earlier one back from it with k; the other operand is 0 there.
#pragma unroll 1
    for (int size = chunk_rows / 2; size > 0; size /= 2) {
#pragma unroll 1
      for (int block = part; block < chunk_rows / size; block += parts) {
        const bool later_half = block % 2 == 1;
        float2 since{0, 0};
#pragma unroll 1
        for (int i = 0; i < size; ++i) {
          const int t = later_half ? block * size + i : (block + 1) * size - 1 - i;
          const float2 decay = decays.at(t), none{0, 0};
          if (later_half) since = since + decay;
          put(t, later_half ? exp2_of(since) * q(t) : none, later_half ? none : exp2_of(since) * k(t));
          if (!later_half) since = since + decay;
        }
      }
      add_scores([size](int t, int s) { return (t & size) != 0 && ((t ^ s) & -size) == size; });  // t in the later half of s's block
      __syncthreads();
    }
#pragma unroll 1
    for (int t = first; t < first + of_thread; ++t) put(t, q(t), k(t));
    add_scores([](int t, int s) { return s == t; });
  }
#pragma unroll
  for (int i = 0; i < 4 * of_warp; ++i) {
    const int t = row + lane / 4 + i % 2 * 8, s = first_column + i / 2 * 8 + lane % 4 * 2;
    const float(&pairs)[4] = scores[i / 4][i / 2 % 2];
    pair_at(&chunk.scores, t, s) = packed(p.scale * pairs[i % 2 * 2], p.scale * pairs[i % 2 * 2 + 1]);
  }
  launch_dependents();
}

}  // namespace

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

template <int channels>
void prepare(const Problem<channels>& p, std::int64_t chunks, const CUtensorMap& queries, const CUtensorMap& keys, cudaStream_t stream) {
  const bool makes_decays = static_cast<bool>(p.operands[0].gate.features);
  auto kernel = makes_decays ? prepare_kernel<channels, false, true> : prepare_kernel<channels, false, false>;
  if constexpr (channels == 128) {
    if (p.items) kernel = makes_decays ? prepare_kernel<channels, true, true> : prepare_kernel<channels, true, false>;
  }
  constexpr int warps = prepare_threads<channels> / 32;
  launch_overlapped("decayed_outer_product: prepare", kernel, static_cast<unsigned>(chunks * p.H), prepare_threads<channels>,
                    sizeof(Prepared<channels>) + (makes_decays ? warps * sizeof(Transposed) : 0), stream, p, queries, keys);
}
template void prepare(const Problem<128>&, std::int64_t, const CUtensorMap&, const CUtensorMap&, cudaStream_t);
template void prepare(const Problem<256>&, std::int64_t, const CUtensorMap&, const CUtensorMap&, cudaStream_t);

}  // namespace statescope::cuda::outer_tiles

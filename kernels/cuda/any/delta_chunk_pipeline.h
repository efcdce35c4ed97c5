// What carry and read of the gated delta rule in chunks share (delta_chunk.h): the pipeline of chunks through shared memory, and a state
// that a warp keeps in registers, transposed, 16 columns of it: Sᵀ [16, KP]. Included by .cu files alone.
#pragma once

#include "kernels/cuda/common/delta_chunk.h"

namespace statescope::cuda::delta {

constexpr int most_warps = 8;  // of a thread block: as many as the registers that they need allow
template <int KP>
constexpr int carry_blocks = KP <= 128 ? 2 : 1;  // of 16 columns, a warp

/// A chunk in shared memory, with `blocks` · 16 columns of V. Rows are 16 bytes longer than they need to be, so that eight
/// rows of a matrix lie in different banks.
template <int KP, int blocks, Form form>
struct alignas(16) Stage {
  static constexpr bool channels = form == Form::channels;
  static constexpr int key_stride = KP + 8, value_stride = 16 * blocks + 8;
  ChunkOf<KP, form> chunk;
  Bf16 k[chunk_rows * key_stride], v[chunk_rows * value_stride], q[chunk_rows * key_stride];
  Bf16 k_at_end[channels ? chunk_rows * key_stride : 8];

  /// What u is written along at the end of the chunk.
  __device__ const Bf16* written() const { return channels ? k_at_end : k; }
};

/// Where the rows of the chunk in use, of the next one and of the one after it are, if they are gathered.
using ItemRows = ItemRow[4][chunk_rows];

/// The pipeline of the chunks of a span through shared memory. With two stages the next chunk is loaded while this one is used. Where rows
/// have factors, some of the operation's spans may be gathered.
template <int KP, int blocks, bool with_q, Form form>
struct ChunkPipeline {
  static constexpr bool factors = form == Form::factors, channels = form == Form::channels;
  using Stage = delta::Stage<KP, blocks, form>;
  const Problem& p;
  const DeltaOperands& operands;
  Stage* memory;
  ItemRows& items;
  const SparseItem* item;          // of the span's first row; null: the span owns its rows
  int rows, count;                 // of the span; its chunks
  int columns, given;              // the thread block's of V; how many of them there are in memory
  const Bf16 *k, *v, *q;           // the span's first row, or the first of all rows
  const Bf16* k_at_end;            // where channels decay
  const ChunkOf<KP, form>* chunk;  // its first chunk

  /// A thread block takes blocks of 16 columns of V from `first_block` on, as many as there are.
  __device__ ChunkPipeline(const Problem& p_, void* memory_, const Piece& span, std::int64_t h, std::int64_t first_block)
      : p(p_),
        operands(p_.operands[factors && p_.gathers(span) ? 1 : 0]),
        memory(static_cast<Stage*>(memory_)),
        items(*reinterpret_cast<ItemRows*>(memory + p_.stages)),
        item(factors && p_.gathers(span) ? p_.items + (span.first_row - p_.own_rows) : nullptr),
        rows(static_cast<int>(span.rows)),
        count((rows + chunk_rows - 1) / chunk_rows) {
    const std::int64_t number = first_piece(p.segments, span.segment, chunk_rows) + span.index * (p.span / chunk_rows);
    const std::int64_t row = item ? 0 : p.copied ? number * chunk_rows : span.first_row, first = 16 * first_block;
    columns = static_cast<int>(min(16 * p.value_blocks - first, std::int64_t{blockDim.x} / lanes * (blocks / most_warps) * 16));
    given = static_cast<int>(p.v.width - first);
    const std::int64_t row_of_v = !channels ? row : p.copied_v ? number * chunk_rows : span.first_row;
    k = operands.k.at(row, h, p.H), v = p.v.at(row_of_v, h, p.H) + first, q = operands.q.at(row, h, p.H);
    k_at_end = channels ? p.k_at_end.at(row, h, p.H) : nullptr;
    chunk = reinterpret_cast<const ChunkOf<KP, form>*>(p.chunks) + number * p.H + h;
  }
  /// The prologue: starts to load the first chunk.
  __device__ void prologue() const {
    if (item) {
      fetch_items(0);
      __pipeline_commit();
      __pipeline_wait_prior(0);
      __syncthreads();
    }
    if (p.stages == 2 && count > 0) fetch(0);
  }
  /// The row of o for row r of chunk c, counted from the first row of the span, or of gathered spans from that of o; −1: it is not read.
  __device__ int o_row(int c, int r) const {
    if (!item) return c * chunk_rows + r;
    const ItemRow& x = items[c % 4][r];
    return x.choice < p.readers ? x.row * static_cast<int>(p.choices) + x.choice : -1;
  }
  /// Waits for chunk c; all threads have then left the one before it.
  __device__ const Stage& acquire(int c) const {
    if (p.stages == 1) {
      __syncthreads();
      fetch(c);
    }
    __pipeline_wait_prior(0);
    __syncthreads();
    if (p.stages == 2 && c + 1 < count) fetch(c + 1);
    return stage(c);
  }

 private:
  /// Scores are read where q is.
  static constexpr std::size_t bytes_of_chunk() {
    if constexpr (channels && !with_q) return offsetof(Stage, chunk.scores);
    return sizeof(ChunkOf<KP, form>);
  }
  __device__ Stage& stage(int c) const { return memory[p.stages == 2 ? c % 2 : 0]; }
  __device__ void fetch_items(int c) const {
    const int done = c * chunk_rows, n = min(rows - done, chunk_rows);
    for (int r = static_cast<int>(threadIdx.x); r < n; r += static_cast<int>(blockDim.x))
      __pipeline_memcpy_async(&items[c % 4][r], item + done + r, sizeof(ItemRow));
  }
  __device__ void fetch(int c) const {
    Stage& to = stage(c);
    const int done = c * chunk_rows, n = min(rows - done, chunk_rows);
    const int first = item ? 0 : done;
    const auto row_of = [&](int r) { return item ? items[c % 4][r].row : r; };
    copy_rows<KP / 8, Stage::key_stride>(to.k, k + first * operands.k.stride, operands.k.stride, n, KP, operands.k.width, row_of);
    copy_rows<2 * blocks, Stage::value_stride>(to.v, v + first * p.v.stride, p.v.stride, n, columns, given, row_of);
    if constexpr (channels)
      copy_rows<KP / 8, Stage::key_stride>(to.k_at_end, k_at_end + done * operands.k.stride, operands.k.stride, n, KP, operands.k.width,
                                           row_of);
    if constexpr (with_q)
      copy_rows<KP / 8, Stage::key_stride>(to.q, q + first * operands.q.stride, operands.q.stride, n, KP, operands.q.width, row_of);
    if (item) fetch_items(c + 1);
    const auto* from = reinterpret_cast<const uint4*>(chunk + c * p.H);
    constexpr auto pieces = static_cast<int>(bytes_of_chunk() / sizeof(uint4));
    for (int i = static_cast<int>(threadIdx.x); i < pieces; i += static_cast<int>(blockDim.x)) {
      __pipeline_memcpy_async(reinterpret_cast<uint4*>(&to.chunk) + i, from + i, sizeof(uint4));
    }
    __pipeline_commit();
  }
};

template <int n>
__device__ void scale_all(Block (&c)[n], float factor) {
#pragma unroll
  for (int i = 0; i < n; ++i) c[i].each([&](int, int, float& x) { x *= factor; });
}

template <int KP>
struct Columns {
  static constexpr int keys = KP / 16;
  Block x[keys];  // 16 channels each

  __device__ uint4 a(int key) const { return as_a(x[key]); }

  /// Columns of S [K, V] from S on, as many of the 16 as `columns` says.
  __device__ void read(const float* S, int K, int V, int columns) {
    each([&](int r, int c, float& number) { number = r < K && c < columns ? S[r * V + c] : 0; });
  }
  __device__ void write(float* S, int K, int V, int columns) {
    each([&](int r, int c, const float& number) {
      if (r < K && c < columns) S[r * V + c] = number;
    });
  }
  __device__ void read(const float4* state) {
#pragma unroll
    for (int i = 0; i < 2 * keys; ++i) {
      const float4 y = state[i * lanes + lane()];
      float(&half)[4] = x[i / 2].half[i % 2];
      half[0] = y.x, half[1] = y.y, half[2] = y.z, half[3] = y.w;
    }
  }
  __device__ void write(float4* state) const {
#pragma unroll
    for (int i = 0; i < 2 * keys; ++i) {
      const float(&half)[4] = x[i / 2].half[i % 2];
      state[i * lanes + lane()] = {half[0], half[1], half[2], half[3]};
    }
  }
  /// S ← S + number · the columns of I from `first` on
  __device__ void add_identity(int first, float number) {
    each([&](int r, int c, float& x) { x += r == first + c ? number : 0; });
  }
  /// S ← S − the columns of diag(numbers) from `first` on
  __device__ void subtract_diagonal(int first, const float* numbers) {
    each([&](int r, int c, float& x) { x -= r == first + c ? numbers[r] : 0; });
  }

 private:
  /// visit(channel, column, number)
  template <class Visit>
  __device__ void each(const Visit& visit) {
#pragma unroll
    for (int key = 0; key < keys; ++key) x[key].each([&](int c, int r, float& number) { visit(16 * key + r, c, number); });
  }
};

/// predictionᵀ ← (K S)ᵀ of n times 16 columns.
template <int KP, int n, class Stage>
__device__ void predict(Block (&prediction)[n][row_blocks], const Columns<KP> (&S)[n], const Stage& stage) {
#pragma unroll
  for (int key = 0; key < KP / 16; ++key) {
#pragma unroll
    for (int row = 0; row < row_blocks; ++row) {
      const uint4 b = b_block_transposed(stage.k, stage.key_stride, 16 * row, 16 * key);
#pragma unroll
      for (int i = 0; i < n; ++i) multiply(prediction[i][row], S[i].a(key), b);
    }
  }
}

/// Column i of c [16, 16 n] times factor[i].
template <int n>
__device__ void scale_columns(Block (&c)[n], const float* factor) {
#pragma unroll
  for (int i = 0; i < n; ++i) c[i].each([&](int, int column, float& x) { x *= factor[16 * i + column]; });
}

/// S ← e^{b_C} S + Kᵀ diag(f^k e^{b_C − b}) u of n times 16 columns; uᵀ as A, with its factors
template <int KP, int n, class Stage>
__device__ void advance(Columns<KP> (&S)[n], const uint4 (&u)[n][row_blocks], const Stage& stage) {
#pragma unroll
  for (int i = 0; i < n; ++i) {
    if constexpr (Stage::channels) {
      scale_columns(S[i].x, stage.chunk.total);
    } else {
      scale_all(S[i].x, stage.chunk.total);
    }
  }
#pragma unroll
  for (int j = 0; j < row_blocks; ++j) {
#pragma unroll
    for (int key = 0; key < KP / 16; ++key) {
      const uint4 b = b_block(stage.written(), stage.key_stride, 16 * j, 16 * key);
#pragma unroll
      for (int i = 0; i < n; ++i) multiply(S[i].x[key], u[i][j], b);
    }
  }
}

/// u = T (V − diag(f^k e^b) K S₀), `together` blocks of rows at a time, for 16 columns, those of block `value_block` of the stage's V;
/// negative: V = 0. `prediction` is (K S₀)ᵀ; uᵀ as A, `at_once` with its factors f^k, `at_end` with f^k e^{b_C − b}.
template <int together, Form form, class Stage>
__device__ void solve(Block (&prediction)[row_blocks], const Stage& stage, int value_block, uint4 (*at_once)[row_blocks],
                      uint4 (&at_end)[row_blocks]) {
  if constexpr (form != Form::channels) scale_columns(prediction, stage.chunk.predict);
  uint4 rest[row_blocks];
#pragma unroll
  for (int n = 0; n < row_blocks; ++n) {
    const uint4 v = value_block < 0 ? uint4{} : a_block_transposed(stage.v, stage.value_stride, 16 * n, 16 * value_block);
    const unsigned pairs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float(&half)[4] = prediction[n].half[i / 2];
      half[2 * (i % 2)] = first_of(pairs[i]) - half[2 * (i % 2)];
      half[2 * (i % 2) + 1] = second_of(pairs[i]) - half[2 * (i % 2) + 1];
    }
    rest[n] = as_a(prediction[n]);
  }
#pragma unroll
  for (int begin = 0; begin < row_blocks; begin += together) {
    Block c[together];
#pragma unroll
    for (int j = 0; j < begin + together; ++j) {
#pragma unroll
      for (int n = max(j, begin); n < begin + together; ++n) {
        multiply(c[n - begin], rest[j], stage.chunk.T[(first_block(n) + j) * lanes + lane()]);
      }
    }
#pragma unroll
    for (int n = 0; at_once && n < together; ++n) {
      Block written[1] = {c[n]};
      if constexpr (form == Form::factors) scale_columns(written, stage.chunk.write + 16 * (begin + n));
      (*at_once)[begin + n] = as_a(written[0]);
    }
    if constexpr (form != Form::channels) scale_columns(c, stage.chunk.to_end + 16 * begin);
#pragma unroll
    for (int n = 0; n < together; ++n) at_end[begin + n] = as_a(c[n]);
  }
}

}  // namespace statescope::cuda::delta

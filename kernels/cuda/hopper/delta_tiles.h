// The gated delta rule in chunks on a device of compute capability 9.0: the pipeline of chunks through shared memory, its producer, and
// the epilogue that applies a norm and a gate to o (gated_delta_rule.cu). Included by .cu files alone.
#pragma once

#include "kernels/cuda/common/delta_chunk.h"
#include "kernels/cuda/common/groups.h"
#include "kernels/cuda/hopper/hopper.h"

namespace statescope::cuda::delta_tiles {

using namespace delta;

// KP: channels of q and k, padded to 128 or 256.
constexpr int groups = 2, columns = groups * swizzle_columns;  // warpgroups of a thread block, and their columns
constexpr int producer_threads = warpgroup;                    // the producer warpgroup
constexpr int warps = groups * warpgroup / lanes;              // of the consumers
constexpr int most_parts = 4;                                  // blocks of a head, in a cluster

/// normed: read, with a norm over each head and a gate applied to o.
enum class Pass { carry, read, normed };
constexpr bool reads(Pass pass) { return pass != Pass::carry; }

template <int KP>
struct Stage {
  static constexpr int blocks = KP / swizzle_columns;
  TileChunk chunk;
  Tile k[blocks], v[groups], q[blocks];
};

/// As many stages as shared memory has room for.
template <int KP>
struct Memory {
  static constexpr int stages = KP > 128 ? 2 : 3;
  Stage<KP> stage[stages];
  std::uint64_t full[stages], empty[stages];
};
/// And for a read with a norm. The o of a chunk takes the place of its v.
template <int KP>
struct NormedMemory : Memory<KP> {
  std::uint64_t values[Memory<KP>::stages], opened, summed[2];       // full barriers of v, the gate and sums
  alignas(16) float squares[Memory<KP>::stages][warps][chunk_rows];  // of o, summed over a warp's 16 columns
  float sums[2][most_parts][chunk_rows];                             // of each block
  float factor[chunk_rows], weight[columns];
  alignas(1024) Tile gate[groups];
};
template <Pass pass, int KP>
using MemoryOf = std::conditional_t<pass == Pass::normed, NormedMemory<KP>, Memory<KP>>;

struct TensorMaps {
  CUtensorMap q, k, v, gate;
};

/// What a thread block loads: chunks of a head, `columns` columns of v.
struct SpanRows {
  const TensorMaps& maps;
  const TileChunk* chunk;  // the first one
  std::int64_t H;
  int first, rows, h, q_head, k_head, v_head, column;

  __device__ SpanRows(const Problem& p, const TensorMaps& maps_, const Piece& span, std::int64_t h_, std::int64_t column_)
      : maps(maps_),
        H(p.H),
        first(static_cast<int>(span.first_row)),
        rows(static_cast<int>(span.rows)),
        h(static_cast<int>(h_)),
        column(static_cast<int>(column_)) {
    const std::int64_t number = first_piece(p.segments, span.segment, chunk_rows) + span.index * (p.span / chunk_rows);
    chunk = p.tiles + number * p.H + h;
    const auto head = [&](const Bf16Rows& x) { return static_cast<int>(producer_head(h, x.heads, p.H)); };
    q_head = head(p.operands[0].q), k_head = head(p.operands[0].k), v_head = head(p.v);
  }
  __device__ int chunks() const { return (rows + chunk_rows - 1) / chunk_rows; }

  // Called by one thread: start to load a part of chunk c.

  template <Pass pass, int KP>
  static constexpr unsigned bytes_of_keys() {
    return sizeof(TileChunk) + sizeof(Tile) * (reads(pass) ? 2 : 1) * Stage<KP>::blocks;
  }
  template <int KP>
  __device__ void load_keys(Stage<KP>& to, int c, std::uint64_t& full) const {
    bulk_copy(&to.chunk, chunk + c * H, sizeof(TileChunk), full);
    for (int b = 0; b < Stage<KP>::blocks; ++b) tma_load(to.k[b], maps.k, b * swizzle_columns, k_head, first + c * chunk_rows, full);
  }
  template <int KP>
  __device__ void load_queries(Stage<KP>& to, int c, std::uint64_t& full) const {
    for (int b = 0; b < Stage<KP>::blocks; ++b) tma_load(to.q[b], maps.q, b * swizzle_columns, q_head, first + c * chunk_rows, full);
  }
  static constexpr unsigned bytes_of_columns = sizeof(Tile) * groups;
  __device__ void load_values(Tile (&to)[groups], int c, std::uint64_t& full) const { load(to, maps.v, v_head, c, full); }
  __device__ void load_gate(Tile (&to)[groups], int c, std::uint64_t& full) const { load(to, maps.gate, h, c, full); }

 private:
  __device__ void load(Tile (&to)[groups], const CUtensorMap& from, int head, int c, std::uint64_t& full) const {
    for (int g = 0; g < groups; ++g) tma_load(to[g], from, column + g * swizzle_columns, head, first + c * chunk_rows, full);
  }
};

/// The producer thread: loads a chunk to its stage as soon as all warps have read what was there.
template <Pass pass, int KP>
__device__ void produce(Memory<KP>& memory, const SpanRows& span) {
  constexpr int stages = Memory<KP>::stages;
  for (int c = 0; c < span.chunks(); ++c) {
    const int stage = c % stages;
    std::uint64_t& full = memory.full[stage];
    cuda::wait(memory.empty[stage], c / stages % 2 ^ 1);
    arrive_and_expect(full, SpanRows::bytes_of_keys<pass, KP>() + SpanRows::bytes_of_columns);
    span.load_keys(memory.stage[stage], c, full);
    if (reads(pass)) span.load_queries(memory.stage[stage], c, full);
    span.load_values(memory.stage[stage].v, c, full);
  }
}

/// The epilogue warpgroup, while the consumers work on the next chunk: o passes the norm of its heads, whose other columns other blocks of
/// the cluster have, and silu(gate). Two of its warps add up squares; the others load the next stages meanwhile.
///  o ← o · (Σ o² / V + eps)^{−1/2} ⊙ weight ⊙ silu(gate)
template <int KP>
__device__ void read_out(NormedMemory<KP>& memory, const SpanRows& span, const OutputRows& to, int V, const InverseRoot& norm) {
  constexpr int stages = Memory<KP>::stages, wide = 8, in_row = columns / wide, at_once = warpgroup / in_row;  // threads; rows
  const int thread = static_cast<int>(threadIdx.x) % warpgroup, column = thread % in_row * wide, first = thread / in_row;
  // Rows a multiple of eight apart are swizzled alike.
  const int offset_of_first = column / swizzle_columns * (chunk_rows * swizzle_columns) + swizzle(first, column % swizzle_columns);
  const int rank = own_rank(), parts = (V + columns - 1) / columns, count = span.chunks();
  const bool sums_up = thread < chunk_rows, loads_keys = thread == chunk_rows, loads_queries = thread == chunk_rows + lanes;
  const bool stores = span.column + column < V;
  const auto together = [] { wait_at_barrier<1, warpgroup>(); };
  const auto load_chunk = [&](int c) {
    const int stage = c % stages;
    if (loads_keys) {
      arrive_and_expect(memory.full[stage], SpanRows::bytes_of_keys<Pass::normed, KP>());
      span.load_keys(memory.stage[stage], c, memory.full[stage]);
    }
    if (loads_queries) span.load_queries(memory.stage[stage], c, memory.full[stage]);
  };
  const auto load_values = [&](int c) {
    arrive_and_expect(memory.values[c % stages], SpanRows::bytes_of_columns);
    span.load_values(memory.stage[c % stages].v, c, memory.values[c % stages]);
  };
  const auto load_gate = [&](int c) {
    arrive_and_expect(memory.opened, SpanRows::bytes_of_columns);
    span.load_gate(memory.gate, c, memory.opened);
  };
  for (int c = 0; c < min(stages, count); ++c) {
    load_chunk(c);
    if (loads_keys) load_values(c);
  }
  if (loads_queries && count > 0) load_gate(0);
  const int of_weight = span.column + thread;
  memory.weight[thread] = norm.weight != nullptr && of_weight < V ? norm.weight[of_weight] : 1;

  for (int c = 0; c < count; ++c) {
    const int stage = c % stages, buffer = c % 2, rows = span.rows - c * chunk_rows;
    const Tile* const o = memory.stage[stage].v;
    Bf16* const to_chunk =
        static_cast<Bf16*>(to.data) + (span.first + std::int64_t{c} * chunk_rows) * to.stride + span.h * V + span.column + column;
    cuda::wait(memory.empty[stage], c / stages % 2);
    if (c + stages < count) load_chunk(c + stages);
    if (sums_up) {
      float sum = 0;
#pragma unroll
      for (int warp = 0; warp < warps; ++warp) sum += memory.squares[stage][warp][thread];
      if (parts > 1) {
        if (thread == 0) arrive_and_expect(memory.summed[buffer], static_cast<unsigned>(sizeof(memory.sums[0][0])) * parts);
        for (int block = 0; block < parts; ++block) send(memory.sums[buffer][rank][thread], sum, memory.summed[buffer], block);
        cuda::wait(memory.summed[buffer], c / 2 % 2);
        sum = 0;
        for (int block = 0; block < parts; ++block) sum += memory.sums[buffer][block][thread];
      }
      memory.factor[thread] = rsqrtf(sum / norm.divisor + norm.eps);
    }
    together();
    cuda::wait(memory.opened, c % 2);
#pragma unroll 1
    for (int i = 0; i < chunk_rows / at_once; ++i) {
      const int r = first + i * at_once, at = offset_of_first + i * at_once * swizzle_columns;
      const uint4 x = *reinterpret_cast<const uint4*>(&o[0][0][0] + at), gate = *reinterpret_cast<const uint4*>(&memory.gate[0][0][0] + at);
      const float factor = memory.factor[r];
      float open[wide] = {first_of(gate.x), second_of(gate.x), first_of(gate.y), second_of(gate.y),
                          first_of(gate.z), second_of(gate.z), first_of(gate.w), second_of(gate.w)};
#pragma unroll
      for (float& z : open) z = silu(z);
      const float4 left = *reinterpret_cast<const float4*>(memory.weight + column);
      const float4 right = *reinterpret_cast<const float4*>(memory.weight + column + wide / 2);
      const float weight[wide] = {left.x, left.y, left.z, left.w, right.x, right.y, right.z, right.w};
      const auto pair = [&](unsigned z, int j) {
        return packed(first_of(z) * factor * weight[j] * open[j], second_of(z) * factor * weight[j + 1] * open[j + 1]);
      };
      const uint4 y{pair(x.x, 0), pair(x.y, 2), pair(x.z, 4), pair(x.w, 6)};
      if (stores && r < rows) *reinterpret_cast<uint4*>(to_chunk + r * to.stride) = y;
    }
    together();
    if (loads_keys && c + stages < count) {
      fence_async_proxy();  // o lay there
      load_values(c + stages);
    }
    if (loads_queries && c + 1 < count) load_gate(c + 1);
  }
}

}  // namespace statescope::cuda::delta_tiles

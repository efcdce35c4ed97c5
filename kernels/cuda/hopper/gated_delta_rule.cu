// The gated delta rule in chunks on a device of compute capability 9.0: what follows the order of the chunks, with the products of a
// warpgroup. The equations, what is left between the kernels and `combine`: cuda_delta_chunk.h, gated_delta_rule_chunks.cu.
// A value that is not finite reaches earlier rows of its chunk, those of the sequence before among them.
#include <type_traits>

#include "kernels/cuda/common/delta_chunk.h"
#include "kernels/cuda/common/groups.h"
#include "kernels/cuda/common/linear.h"
#include "kernels/cuda/hopper/hopper.h"

namespace statescope::cuda::delta {
namespace {

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

// KP: channels of q and k, with what fills them up; 128 or 256.
constexpr int groups = 2, columns = groups * swizzled;  // warpgroups of a thread block, and their columns
constexpr int copying = warpgroup;                      // threads that copy
constexpr int warps = groups * warpgroup / lanes;       // that multiply
constexpr int most_parts = 4;                           // blocks of a head that run at once

/// normed: read, whose o passes a norm over each head and a gate on its way to memory.
enum class Pass { carry, read, normed };
constexpr bool reads(Pass pass) { return pass != Pass::carry; }

template <int KP>
struct Stage {
  static constexpr int blocks = KP / swizzled;
  TileChunk chunk;
  Tile k[blocks], v[groups], q[blocks];
};

/// As many stages as a multiprocessor has room for.
template <int KP>
struct Memory {
  static constexpr int stages = KP > 128 ? 2 : 3;
  Stage<KP> stage[stages];
  std::uint64_t full[stages], empty[stages];
};
/// And where o passes a norm. A chunk's o takes the place of its v.
template <int KP>
struct NormedMemory : Memory<KP> {
  std::uint64_t values[Memory<KP>::stages], opened, summed[2];       // v, the gate and sums are there
  alignas(16) float squares[Memory<KP>::stages][warps][chunk_rows];  // of o, summed over a warp's 16 columns
  float sums[2][most_parts][chunk_rows];                             // over each block's
  float factor[chunk_rows], weight[columns];
  alignas(1024) Tile gate[groups];
};
template <Pass pass, int KP>
using MemoryOf = std::conditional_t<pass == Pass::normed, NormedMemory<KP>, Memory<KP>>;

struct TensorMaps {
  CUtensorMap q, k, v, gate;
};

/// What a thread block reads: chunks of a head, `columns` columns of v.
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
    q_head = head(p.side[0].q), k_head = head(p.side[0].k), v_head = head(p.v);
  }
  __device__ int chunks() const { return (rows + chunk_rows - 1) / chunk_rows; }

  // One thread: start to bring a part of chunk c.

  template <Pass pass, int KP>
  static constexpr unsigned bytes_of_keys() {
    return sizeof(TileChunk) + sizeof(Tile) * (reads(pass) ? 2 : 1) * Stage<KP>::blocks;
  }
  template <int KP>
  __device__ void bring_keys(Stage<KP>& to, int c, std::uint64_t& full) const {
    copy_bytes(&to.chunk, chunk + c * H, sizeof(TileChunk), full);
    for (int b = 0; b < Stage<KP>::blocks; ++b) copy_box(to.k[b], maps.k, b * swizzled, k_head, first + c * chunk_rows, full);
  }
  template <int KP>
  __device__ void bring_queries(Stage<KP>& to, int c, std::uint64_t& full) const {
    for (int b = 0; b < Stage<KP>::blocks; ++b) copy_box(to.q[b], maps.q, b * swizzled, q_head, first + c * chunk_rows, full);
  }
  static constexpr unsigned bytes_of_columns = sizeof(Tile) * groups;
  __device__ void bring_values(Tile (&to)[groups], int c, std::uint64_t& full) const { bring(to, maps.v, v_head, c, full); }
  __device__ void bring_gate(Tile (&to)[groups], int c, std::uint64_t& full) const { bring(to, maps.gate, h, c, full); }

 private:
  __device__ void bring(Tile (&to)[groups], const CUtensorMap& from, int head, int c, std::uint64_t& full) const {
    for (int g = 0; g < groups; ++g) copy_box(to[g], from, column + g * swizzled, head, first + c * chunk_rows, full);
  }
};

/// One thread: a chunk goes to its stage as soon as all warps have read what was there.
template <Pass pass, int KP>
__device__ void produce(Memory<KP>& memory, const SpanRows& span) {
  constexpr int stages = Memory<KP>::stages;
  for (int c = 0; c < span.chunks(); ++c) {
    const int stage = c % stages;
    std::uint64_t& full = memory.full[stage];
    cuda::wait(memory.empty[stage], c / stages % 2 ^ 1);
    arrive_and_expect(full, SpanRows::bytes_of_keys<pass, KP>() + SpanRows::bytes_of_columns);
    span.bring_keys(memory.stage[stage], c, full);
    if (reads(pass)) span.bring_queries(memory.stage[stage], c, full);
    span.bring_values(memory.stage[stage].v, c, full);
  }
}

/// A warpgroup, while the next chunk is worked on: o passes the norm of its heads, whose other columns other blocks of the cluster have,
/// and silu(gate) on its way to memory. Two of its warps add up squares, the others copy meanwhile.
///   o ← o · (Σ o² / V + eps)^{−1/2} ⊙ weight ⊙ silu(gate)
template <int KP>
__device__ void read_out(NormedMemory<KP>& memory, const SpanRows& span, const Output& to, int V, const InverseRoot& norm) {
  constexpr int stages = Memory<KP>::stages, wide = 8, in_row = columns / wide, at_once = warpgroup / in_row;  // threads; rows
  const int thread = static_cast<int>(threadIdx.x) % warpgroup, column = thread % in_row * wide, first = thread / in_row;
  // Rows that are a multiple of eight apart have their pieces in the same order.
  const int place_of_first = column / swizzled * (chunk_rows * swizzled) + place(first, column % swizzled);
  const int rank = own_rank(), parts = (V + columns - 1) / columns, count = span.chunks();
  const bool sums_up = thread < chunk_rows, brings_keys = thread == chunk_rows, brings_queries = thread == chunk_rows + lanes;
  const bool stores = span.column + column < V;
  const auto together = [] { wait_at_barrier<1, warpgroup>(); };
  const auto bring_chunk = [&](int c) {
    const int stage = c % stages;
    if (brings_keys) {
      arrive_and_expect(memory.full[stage], SpanRows::bytes_of_keys<Pass::normed, KP>());
      span.bring_keys(memory.stage[stage], c, memory.full[stage]);
    }
    if (brings_queries) span.bring_queries(memory.stage[stage], c, memory.full[stage]);
  };
  const auto bring_values = [&](int c) {
    arrive_and_expect(memory.values[c % stages], SpanRows::bytes_of_columns);
    span.bring_values(memory.stage[c % stages].v, c, memory.values[c % stages]);
  };
  const auto bring_gate = [&](int c) {
    arrive_and_expect(memory.opened, SpanRows::bytes_of_columns);
    span.bring_gate(memory.gate, c, memory.opened);
  };
  for (int c = 0; c < min(stages, count); ++c) {
    bring_chunk(c);
    if (brings_keys) bring_values(c);
  }
  if (brings_queries && count > 0) bring_gate(0);
  const int of_weight = span.column + thread;
  memory.weight[thread] = norm.weight != nullptr && of_weight < V ? norm.weight[of_weight] : 1;

  for (int c = 0; c < count; ++c) {
    const int stage = c % stages, buffer = c % 2, rows = span.rows - c * chunk_rows;
    const Tile* const o = memory.stage[stage].v;
    Bf16* const to_chunk =
        static_cast<Bf16*>(to.data) + (span.first + std::int64_t{c} * chunk_rows) * to.stride + span.h * V + span.column + column;
    cuda::wait(memory.empty[stage], c / stages % 2);
    if (c + stages < count) bring_chunk(c + stages);
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
      const int r = first + i * at_once, at = place_of_first + i * at_once * swizzled;
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
    if (brings_keys && c + stages < count) {
      order_before_copies();  // o lay there
      bring_values(c + stages);
    }
    if (brings_queries && c + 1 < count) bring_gate(c + 1);
  }
}

template <int KP>
using State = float[KP / 8][4];           // 64 columns, transposed
using Output = float[chunk_rows / 8][4];  // of 64 columns, transposed
using Rows = uint4[chunk_rows / 16];      // 64 columns of rows, transposed, as A

/// Column i of c times factor[i].
__device__ void scale_columns(Output& c, const float* factor) {
#pragma unroll
  for (int i = 0; i < chunk_rows / 8; ++i) {
    const float2 f = *reinterpret_cast<const float2*>(factor + 8 * i + t());
    c[i][0] *= f.x, c[i][1] *= f.y, c[i][2] *= f.x, c[i][3] *= f.y;
  }
}
__device__ void pack(Rows& a, const Output& c) {
#pragma unroll
  for (int s = 0; s < chunk_rows / 16; ++s) a[s] = as_left_side(c[2 * s], c[2 * s + 1]);
}

/// Starts C [64, 64] ← a xᵀ or, with `add`, C += a xᵀ.
__device__ void multiply_tile(Output& c, const Rows& a, const Tile& x, bool add) {
#pragma unroll
  for (int s = 0; s < chunk_rows / 16; ++s) multiply_columns(c, a[s], matrix(&x[0][16 * s]), add || s > 0);
}

/// prediction ← (K S)ᵀ and, where o is read, o ← (Q S)ᵀ; S ← e^{b_C} S
template <Pass pass, int KP>
__device__ void read_state(Output& prediction, Output& o, State<KP>& S, const Stage<KP>& stage) {
  constexpr int parts = KP > 128 ? 4 : 1;  // registers allow no more than this at once
  uint4 a[KP / 16 / parts];
#pragma unroll
  for (int part = 0; part < parts; ++part) {
    pack_part(a, S, part);
#pragma unroll
    for (int i = part * (KP / 8 / parts); i < (part + 1) * (KP / 8 / parts); ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) S[i][e] *= stage.chunk.total;
    }
    if (part > 0) {
      pin(prediction);
      if (reads(pass)) pin(o);
    }
    begin_products();
    multiply_part(prediction, a, stage.k, part);
    if constexpr (reads(pass)) multiply_part(o, a, stage.q, part);
    commit_products();
    wait_products<0>();
  }
  pin(prediction);
  if constexpr (reads(pass)) pin(o);
}

/// rest ← V − diag(f^k e^b) K S₀ of a warp's 16 columns of v, `column` the first.
__device__ void subtract(Rows& rest, Output& prediction, const TileChunk& chunk, const Tile& v, int column) {
  scale_columns(prediction, chunk.predict);
#pragma unroll
  for (int s = 0; s < chunk_rows / 16; ++s) {
    const uint4 values = transposed_rows(v, 16 * s, column);
    const unsigned pairs[4] = {values.x, values.y, values.z, values.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float(&c)[4] = prediction[2 * s + i / 2];
      c[i % 2 * 2] = first_of(pairs[i]) - c[i % 2 * 2], c[i % 2 * 2 + 1] = second_of(pairs[i]) - c[i % 2 * 2 + 1];
    }
  }
  pack(rest, prediction);
}

/// Of a warp's 16 columns of 64 rows. Step after step a lane hands on half of the rows that it has sums of, and keeps the other half.
__device__ void sum_squares(float* sums, const Output& o) {
  constexpr int kept = chunk_rows / 8;
  float2 sum[kept];
#pragma unroll
  for (int i = 0; i < kept; ++i) sum[i] = {o[i][0] * o[i][0] + o[i][2] * o[i][2], o[i][1] * o[i][1] + o[i][3] * o[i][3]};
#pragma unroll
  for (int n = kept / 2; n > 0; n /= 2) {
    const int mask = 4 * n;
    const bool later = (lane() & mask) != 0;
#pragma unroll
    for (int i = 0; i < n; ++i) {
      const float2 own = later ? sum[i + n] : sum[i], other = later ? sum[i] : sum[i + n];
      sum[i] = {own.x + __shfl_xor_sync(~0U, other.x, mask), own.y + __shfl_xor_sync(~0U, other.y, mask)};
    }
  }
  *reinterpret_cast<float2*>(sums + 8 * g() + t()) = sum[0];
}

/// fn(number of S, channel, column of the 16)
template <int n, class Fn>
__device__ void each_of_state(float (&S)[n][4], const Fn& fn) {
#pragma unroll
  for (int i = 0; i < n; ++i) {
#pragma unroll
    for (int e = 0; e < 4; ++e) fn(S[i][e], 8 * i + t() + e % 2, g() + e / 2 * 8);
  }
}
template <int n>
__device__ void write(float4* to, const float (&S)[n][4]) {
#pragma unroll
  for (int i = 0; i < n; ++i) to[i * lanes + lane()] = {S[i][0], S[i][1], S[i][2], S[i][3]};
}

/// A thread block per (span, head, 128 columns of V and, behind them, of the transition): two warpgroups multiply, one thread of a third
/// brings what they need. Pass::carry: each span but a segment's last; the others: o, and the last state.
template <Pass pass, int KP>
__global__ void __launch_bounds__(groups* warpgroup + copying, 1)
    span_kernel(const __grid_constant__ Problem p, const __grid_constant__ TensorMaps maps, const __grid_constant__ InverseRoot norm) {
  extern __shared__ __align__(1024) unsigned char bytes[];
  auto& memory = *reinterpret_cast<MemoryOf<pass, KP>*>(bytes);
  wait_for_results();
  constexpr int stages = Memory<KP>::stages, keys = KP / 16, blocks_at_once = columns / 16;
  const std::int64_t column_blocks = p.value_blocks + (pass == Pass::carry ? keys : 0);
  const std::int64_t parts = (column_blocks + blocks_at_once - 1) / blocks_at_once;
  const std::int64_t first = blockIdx.x % parts * blocks_at_once, h = blockIdx.x / parts % p.H;
  const Piece span = piece_of(p.segments, blockIdx.x / parts / p.H, p.span);
  if (pass == Pass::carry ? span.index + 1 >= span.count || (span.index == 0 && first >= p.value_blocks)
                          : span.index >= max(span.count, std::int64_t{1}))
    return;
  const SpanRows own(p, maps, span, h, 16 * first);
  const int rows = own.rows, count = own.chunks();
  const int group = static_cast<int>(threadIdx.x) / warpgroup;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < stages; ++stage) {
      init_barrier(memory.full[stage], 1);
      init_barrier(memory.empty[stage], warps);
      if constexpr (pass == Pass::normed) init_barrier(memory.values[stage], 1);
    }
    if constexpr (pass == Pass::normed) {
      for (std::uint64_t* barrier : {&memory.opened, &memory.summed[0], &memory.summed[1]}) init_barrier(*barrier, 1);
      publish_barriers();
    }
    order_before_copies();
  }
  if constexpr (pass == Pass::normed) {
    sync_cluster();
  } else {
    __syncthreads();
  }
  if (group == groups) {
    leave_registers<pass == Pass::normed ? 40 : 24>();
    if constexpr (pass == Pass::normed) {
      read_out(memory, own, p.side[0].o, static_cast<int>(p.V), norm);
    } else if (threadIdx.x % warpgroup == 0) {
      produce<pass>(memory, own);
    }
  } else {
    take_registers<pass == Pass::normed ? 232 : 240>();
    const std::int64_t number = span.first_number + span.index, block = first + warp();  // of 16 columns
    const std::int64_t slot = p.segments.slot_of(span.segment);
    const auto K = static_cast<int>(p.K), V = static_cast<int>(p.V), column = static_cast<int>(16 * block), in_tile = 16 * (warp() % 4);
    const bool of_values = block < p.value_blocks;
    const bool from_initial = of_values && (pass == Pass::carry ? span.index == 0 : span.count <= 1);
    State<KP> S = {};
    if (from_initial) {
      const float* const from = p.initial.row(slot) + h * p.K * p.V;
      each_of_state(S, [&](float& x, int channel, int c) {
        if (channel < K && column + c < V) x = from[channel * V + column + c];
      });
      // read may overwrite the initial state before all spans have seen it
      if (pass == Pass::carry) write(state_of<KP>(p, number, h, block), S);
    } else if (of_values && reads(pass)) {
      const float4* const from = state_of<KP>(p, number, h, block);
#pragma unroll
      for (int i = 0; i < KP / 8; ++i) {
        const float4 x = from[i * lanes + lane()];
        S[i][0] = x.x, S[i][1] = x.y, S[i][2] = x.z, S[i][3] = x.w;
      }
    }
    const int column_of_M = column - static_cast<int>(16 * p.value_blocks);
    const auto add_identity = [&](float factor) {
      each_of_state(S, [&](float& x, int channel, int c) { x += channel == column_of_M + c ? factor : 0; });
    };
    if (!of_values && !reads(pass)) add_identity(1);

    float total = 1;
    for (int c = 0; c < count; ++c) {
      auto& stage = memory.stage[c % stages];
      cuda::wait(memory.full[c % stages], c / stages % 2);
      Output prediction, o;
      read_state<pass, KP>(prediction, o, S, stage);
      // u = T (V − diag(f^k e^b) K S₀)
      if constexpr (pass == Pass::normed) cuda::wait(memory.values[c % stages], c / stages % 2);
      Rows rest, u, at_end;
      subtract(rest, prediction, stage.chunk, stage.v[group], in_tile);
      begin_products();
      multiply_tile(prediction, rest, stage.chunk.T, false);
      commit_products();
      if constexpr (reads(pass)) scale_columns(o, stage.chunk.read);
      wait_products<0>();
      pin(prediction);
      // o = scale diag(f^q) (diag(e^b) Q S₀ + tril(Q Kᵀ ⊙ Γ) diag(f^k) u)      S = e^{b_C} S₀ + Kᵀ diag(f^k e^{b_C − b}) u
      if constexpr (reads(pass)) {
        pack(u, prediction);
        pin(o);
        begin_products();
        multiply_tile(o, u, stage.chunk.scores, true);
        commit_products();
      }
      scale_columns(prediction, stage.chunk.to_end);
      pack(at_end, prediction);
      total *= stage.chunk.total;
      pin(S);
      begin_products();
      add_outer_products(S, at_end, stage.k);
      commit_products();
      if constexpr (reads(pass)) {
        wait_products<1>();
        pin(o);
      }
      if constexpr (pass == Pass::normed) {
        sum_squares(memory.squares[c % stages][warp()], o);
        __syncwarp();
        store_rows(stage.v[group], in_tile, o);  // v of these columns has been read by this warp alone
      } else if constexpr (pass == Pass::read) {
        const std::int64_t row = span.first_row + c * chunk_rows;
        store_rows(static_cast<Bf16*>(p.side[0].o.data) + row * p.side[0].o.stride + h * p.V + column, p.side[0].o.stride,
                   rows - c * chunk_rows, V - column, o);
      }
      wait_products<0>();
      pin(S);
      __syncwarp();  // all lanes have read the stage
      if (lane() == 0) arrive(memory.empty[c % stages]);
    }
    let_next_begin();

    if (reads(pass)) {
      float* const final = p.final.row(slot) + h * p.K * p.V;
      if (!of_values || span.index + 1 < span.count) return;
      each_of_state(S, [&](float& x, int channel, int c) {
        if (channel < K && column + c < V) final[channel * V + column + c] = x;
      });
      return;
    }
    if (first == 0 && threadIdx.x == 0) p.totals[number * p.H + h] = total;
    if (of_values) return write(state_of<KP>(p, number + 1, h, block), S);
    if (column_of_M >= KP) return;
    add_identity(-total);
    uint4* const transition = transition_of<KP>(p, number, h) + (block - p.value_blocks) * keys * lanes;
#pragma unroll
    for (int key = 0; key < keys; ++key) {
      const uint4 a = as_left_side(S[2 * key], S[2 * key + 1]);
      transition[key * lanes + lane()] = {transposed(a.x), transposed(a.y), transposed(a.z), transposed(a.w)};
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

template <Pass pass, int KP>
void launch_spans(const char* name, const Problem& p, std::int64_t spans, std::int64_t column_blocks, cudaStream_t stream,
                  const InputNorm& readout = {}) {
  const auto map = [&](const Bf16Rows& x) {
    // Rows behind the last one are never asked for but as the rest of a chunk.
    return tensor_map({x.data, p.own_rows, x.heads, x.width, x.stride, x.width}, chunk_rows);
  };
  const ConstTensor& gate = readout.gate;
  const auto gate_map = gate ? map({static_cast<Bf16*>(const_cast<void*>(gate.data)), gate.stride, p.H, p.V}) : CUtensorMap{};
  const TensorMaps maps{map(p.side[0].q), map(p.side[0].k), map(p.v), gate_map};
  const auto parts = static_cast<unsigned>((16 * column_blocks + columns - 1) / columns);
  launch_clusters(pass == Pass::normed ? parts : 0, name, span_kernel<pass, KP>, static_cast<unsigned>(spans * p.H) * parts,
                  groups * warpgroup + copying, sizeof(MemoryOf<pass, KP>), stream, p, maps,
                  InverseRoot{static_cast<float>(p.V), readout.eps, f32(readout.weight).data, 0});
}

}  // namespace

bool hopper_supported(const GatedDeltaRule& op) {
  constexpr std::int64_t narrow = 64, widest = 256, of_16_bytes = 8;
  const std::int64_t K = op.initial_state.shape[2], V = op.initial_state.shape[3];
  return K > narrow && K <= widest && op.o.dtype == DType::bf16 && V % of_16_bytes == 0 && op.o.stride % of_16_bytes == 0 &&
         reinterpret_cast<std::uintptr_t>(op.o.data) % 16 == 0 && op.o.rows() > 0 && has_warpgroup_products();
}
bool hopper_reads_out(const GatedDeltaRule& op, const InputNorm& readout, std::int64_t spans) {
  const std::int64_t parts = (op.o.shape[2] + columns - 1) / columns;
  if (parts != 1 && parts != 2 && parts != most_parts) return false;
  // The blocks of a cluster are neighbours on the device, so not every one finds a place. Where that costs a turn, a pass of its own is
  // sooner done.
  constexpr std::int64_t fours_at_once = 30;  // on an H200, for the reason that wanted_blocks gives
  const auto turns = [](std::int64_t n, std::int64_t at_once) { return (n + at_once - 1) / at_once; };
  const std::int64_t at_once = parts == most_parts ? fours_at_once : wanted_blocks / parts;
  return turns(spans, at_once) <= turns(spans * parts, wanted_blocks) && hopper_supported(op) && readout.group == op.o.shape[2] &&
         readout.offset == 0 && readout.gate && readout.gate.dtype == DType::bf16 && in_packs(readout.gate, 8) &&
         readout.act == Activation::silu;
}
template <int KP>
void carry_hopper(const Problem& p, std::int64_t spans, cudaStream_t stream) {
  launch_spans<Pass::carry, KP>("gated_delta_rule: carry", p, spans, p.value_blocks + KP / 16, stream);
}
template <int KP>
void read_hopper(const Problem& p, std::int64_t spans, const InputNorm& readout, cudaStream_t stream) {
  constexpr const char* name = "gated_delta_rule: read";
  if (readout.group == 0) return launch_spans<Pass::read, KP>(name, p, spans, p.value_blocks, stream);
  launch_spans<Pass::normed, KP>(name, p, spans, p.value_blocks, stream, readout);
}
template void carry_hopper<128>(const Problem&, std::int64_t, cudaStream_t);
template void carry_hopper<256>(const Problem&, std::int64_t, cudaStream_t);
template void read_hopper<128>(const Problem&, std::int64_t, const InputNorm&, cudaStream_t);
template void read_hopper<256>(const Problem&, std::int64_t, const InputNorm&, cudaStream_t);

}  // namespace statescope::cuda::delta

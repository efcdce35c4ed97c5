// The gated delta rule in chunks on a device of compute capability 9.0: the kernels that go through the chunks in order, with wgmma. The
// equations, the data between the kernels and `combine`: delta_chunk.h, any/gated_delta_rule_chunks.cu. A value that is not finite reaches
// earlier rows of its chunk, which may belong to the sequence before.
#include <type_traits>

#include "kernels/cuda/common/linear.h"
#include "kernels/cuda/hopper/delta_tiles.h"

namespace statescope::cuda::delta {
namespace {

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

using namespace delta_tiles;

template <int KP>
using State = float[KP / 8][4];               // 64 columns, transposed
using OutputTile = float[chunk_rows / 8][4];  // of 64 columns, transposed
using Rows = uint4[chunk_rows / 16];          // 64 columns of rows, transposed, as A

/// Column i of c times factor[i].
__device__ void scale_columns(OutputTile& c, const float* factor) {
#pragma unroll
  for (int i = 0; i < chunk_rows / 8; ++i) {
    const float2 f = *reinterpret_cast<const float2*>(factor + 8 * i + t());
    c[i][0] *= f.x, c[i][1] *= f.y, c[i][2] *= f.x, c[i][3] *= f.y;
  }
}
__device__ void pack(Rows& a, const OutputTile& c) {
#pragma unroll
  for (int s = 0; s < chunk_rows / 16; ++s) a[s] = pack_a(c[2 * s], c[2 * s + 1]);
}

/// Starts C [64, 64] ← a xᵀ or, with `add`, C += a xᵀ.
__device__ void multiply_tile(OutputTile& c, const Rows& a, const Tile& x, bool add) {
#pragma unroll
  for (int s = 0; s < chunk_rows / 16; ++s) multiply_columns(c, a[s], matrix_descriptor(&x[0][16 * s]), add || s > 0);
}

/// prediction ← (K S)ᵀ and, where o is read, o ← (Q S)ᵀ; S ← e^{b_C} S
template <Pass pass, int KP>
__device__ void read_state(OutputTile& prediction, OutputTile& o, State<KP>& S, const Stage<KP>& stage) {
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
    wgmma_fence();
    multiply_part(prediction, a, stage.k, part);
    if constexpr (reads(pass)) multiply_part(o, a, stage.q, part);
    wgmma_commit();
    wgmma_wait<0>();
  }
  pin(prediction);
  if constexpr (reads(pass)) pin(o);
}

/// rest ← V − diag(f^k e^b) K S₀ of a warp's 16 columns of v, `column` the first.
__device__ void subtract(Rows& rest, OutputTile& prediction, const TileChunk& chunk, const Tile& v, int column) {
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

/// Sums of squares of a warp's 16 columns of 64 rows: in each step a lane hands half of its rows to another and keeps the other half.
__device__ void sum_squares(float* sums, const OutputTile& o) {
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

/// A thread block per (span, head, 128 columns of V and, after them, of the transition): two consumer warpgroups, and a producer thread in
/// a third warpgroup. Pass::carry: each span but a segment's last; the others: o, and the last state.
template <Pass pass, int KP>
__global__ void __launch_bounds__(groups* warpgroup + producer_threads, 1)
    span_kernel(const __grid_constant__ Problem p, const __grid_constant__ TensorMaps maps, const __grid_constant__ InverseRoot norm) {
  extern __shared__ __align__(1024) unsigned char bytes[];
  auto& memory = *reinterpret_cast<MemoryOf<pass, KP>*>(bytes);
  grid_dependency_wait();
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
      fence_barrier_init();
    }
    fence_async_proxy();
  }
  if constexpr (pass == Pass::normed) {
    sync_cluster();
  } else {
    __syncthreads();
  }
  if (group == groups) {
    dealloc_registers<pass == Pass::normed ? 40 : 24>();
    if constexpr (pass == Pass::normed) {
      read_out(memory, own, p.operands[0].o, static_cast<int>(p.V), norm);
    } else if (threadIdx.x % warpgroup == 0) {
      produce<pass>(memory, own);
    }
  } else {
    alloc_registers<pass == Pass::normed ? 232 : 240>();
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
      OutputTile prediction, o;
      read_state<pass, KP>(prediction, o, S, stage);
      // u = T (V − diag(f^k e^b) K S₀)
      if constexpr (pass == Pass::normed) cuda::wait(memory.values[c % stages], c / stages % 2);
      Rows rest, u, at_end;
      subtract(rest, prediction, stage.chunk, stage.v[group], in_tile);
      wgmma_fence();
      multiply_tile(prediction, rest, stage.chunk.T, false);
      wgmma_commit();
      if constexpr (reads(pass)) scale_columns(o, stage.chunk.read);
      wgmma_wait<0>();
      pin(prediction);
      // o = scale diag(f^q) (diag(e^b) Q S₀ + tril(Q Kᵀ ⊙ Γ) diag(f^k) u)      S = e^{b_C} S₀ + Kᵀ diag(f^k e^{b_C − b}) u
      if constexpr (reads(pass)) {
        pack(u, prediction);
        pin(o);
        wgmma_fence();
        multiply_tile(o, u, stage.chunk.scores, true);
        wgmma_commit();
      }
      scale_columns(prediction, stage.chunk.to_end);
      pack(at_end, prediction);
      total *= stage.chunk.total;
      pin(S);
      wgmma_fence();
      add_outer_products(S, at_end, stage.k);
      wgmma_commit();
      if constexpr (reads(pass)) {
        wgmma_wait<1>();
        pin(o);
      }
      if constexpr (pass == Pass::normed) {
        sum_squares(memory.squares[c % stages][warp()], o);
        __syncwarp();
        store_rows(stage.v[group], in_tile, o);  // v of these columns has been read by this warp alone
      } else if constexpr (pass == Pass::read) {
        const std::int64_t row = span.first_row + c * chunk_rows;
        store_rows(static_cast<Bf16*>(p.operands[0].o.data) + row * p.operands[0].o.stride + h * p.V + column, p.operands[0].o.stride,
                   rows - c * chunk_rows, V - column, o);
      }
      wgmma_wait<0>();
      pin(S);
      __syncwarp();  // all lanes have read the stage
      if (lane() == 0) arrive(memory.empty[c % stages]);
    }
    launch_dependents();

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
      const uint4 a = pack_a(S[2 * key], S[2 * key + 1]);
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
    // Rows after the last one are loaded only as the rest of a chunk.
    return tensor_map({x.data, p.own_rows, x.heads, x.width, x.stride, x.width}, chunk_rows);
  };
  const ConstTensor& gate = readout.gate;
  const auto gate_map = gate ? map({static_cast<Bf16*>(const_cast<void*>(gate.data)), gate.stride, p.H, p.V}) : CUtensorMap{};
  const TensorMaps maps{map(p.operands[0].q), map(p.operands[0].k), map(p.v), gate_map};
  const auto parts = static_cast<unsigned>((16 * column_blocks + columns - 1) / columns);
  launch_clusters(pass == Pass::normed ? parts : 0, name, span_kernel<pass, KP>, static_cast<unsigned>(spans * p.H) * parts,
                  groups * warpgroup + producer_threads, sizeof(MemoryOf<pass, KP>), stream, p, maps,
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
  // The blocks of a cluster are placed together, so not every multiprocessor can be used. Where that costs another round, a separate launch
  // of the norm is faster.
  constexpr std::int64_t fours_at_once =
      30;  // clusters of four that run at once on an H200; a constant for the reason that wanted_blocks gives
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

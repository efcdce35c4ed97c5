// The gated delta rule in chunks on a device of compute capability 9.0: what follows the order of the chunks, with the products of a
// warpgroup. The equations, what is left between the kernels and `combine`: cuda_delta_chunk.h, gated_delta_rule_chunks.cu.
// A value that is not finite reaches earlier rows of its chunk, those of the sequence before among them.
#include "kernels/cuda_delta_chunk.h"
#include "kernels/cuda_hopper.h"

namespace statescope::cuda::delta {
namespace {

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

// KP: channels of q and k, with what fills them up; 128 or 256.
constexpr int groups = 2, columns = groups * swizzled;  // warpgroups of a thread block, and their columns
constexpr int copying = warpgroup;                      // threads that copy

enum class Pass { carry, read };

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

struct TensorMaps {
  CUtensorMap q, k, v;
};

/// One thread: a chunk goes to its stage as soon as all warps have read what was there.
template <Pass pass, int KP>
__device__ void produce(Memory<KP>& memory, const TensorMaps& maps, const Problem& p, const TileChunk* chunk, int row, int count, int h,
                        int column) {
  const auto head = [&](const Bf16Rows& x) { return static_cast<int>(producer_head(h, x.heads, p.H)); };
  const int q_head = head(p.side[0].q), k_head = head(p.side[0].k), v_head = head(p.v);
  constexpr int blocks = Stage<KP>::blocks, stages = Memory<KP>::stages;
  constexpr unsigned bytes = sizeof(TileChunk) + sizeof(Tile) * (pass == Pass::read ? 2 * blocks + groups : blocks + groups);
  for (int c = 0; c < count; ++c, row += chunk_rows) {
    const int stage = c % stages;
    auto& to = memory.stage[stage];
    std::uint64_t& full = memory.full[stage];
    cuda::wait(memory.empty[stage], c / stages % 2 ^ 1);
    arrive_and_expect(full, bytes);
    copy_bytes(&to.chunk, chunk + static_cast<std::int64_t>(c) * p.H, sizeof(TileChunk), full);
    for (int b = 0; b < blocks; ++b) {
      copy_box(to.k[b], maps.k, b * swizzled, k_head, row, full);
      if (pass == Pass::read) copy_box(to.q[b], maps.q, b * swizzled, q_head, row, full);
    }
    for (int g = 0; g < groups; ++g) copy_box(to.v[g], maps.v, column + g * swizzled, v_head, row, full);
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
      if (pass == Pass::read) pin(o);
    }
    begin_products();
    multiply_part(prediction, a, stage.k, part);
    if constexpr (pass == Pass::read) multiply_part(o, a, stage.q, part);
    commit_products();
    wait_products<0>();
  }
  pin(prediction);
  if constexpr (pass == Pass::read) pin(o);
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
/// brings what they need. Pass::carry: each span but a segment's last; Pass::read: o, and the last state.
template <Pass pass, int KP>
__global__ void __launch_bounds__(groups* warpgroup + copying, 1)
    span_kernel(const __grid_constant__ Problem p, const __grid_constant__ TensorMaps maps) {
  extern __shared__ __align__(1024) unsigned char bytes[];
  auto& memory = *reinterpret_cast<Memory<KP>*>(bytes);
  wait_for_results();
  constexpr int stages = Memory<KP>::stages, keys = KP / 16, blocks_at_once = columns / 16;
  const std::int64_t column_blocks = p.value_blocks + (pass == Pass::carry ? keys : 0);
  const std::int64_t parts = (column_blocks + blocks_at_once - 1) / blocks_at_once;
  const std::int64_t first = blockIdx.x % parts * blocks_at_once, h = blockIdx.x / parts % p.H;
  const Piece span = piece_of(p.segments, blockIdx.x / parts / p.H, p.span);
  if (pass == Pass::carry ? span.index + 1 >= span.count || (span.index == 0 && first >= p.value_blocks)
                          : span.index >= max(span.count, std::int64_t{1}))
    return;
  const auto rows = static_cast<int>(span.rows), count = (rows + chunk_rows - 1) / chunk_rows;
  const int group = static_cast<int>(threadIdx.x) / warpgroup;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < stages; ++stage) {
      init_barrier(memory.full[stage], 1);
      init_barrier(memory.empty[stage], groups * warpgroup / lanes);
    }
    order_before_copies();
  }
  __syncthreads();
  if (group == groups) {
    leave_registers<24>();
    if (threadIdx.x % warpgroup != 0) return;
    const std::int64_t chunk = first_piece(p.segments, span.segment, chunk_rows) + span.index * (p.span / chunk_rows);
    produce<pass>(memory, maps, p, p.tiles + chunk * p.H + h, static_cast<int>(span.first_row), count, static_cast<int>(h),
                  static_cast<int>(16 * first));
  } else {
    take_registers<240>();
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
    } else if (of_values && pass == Pass::read) {
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
    if (!of_values) add_identity(1);

    float total = 1;
    for (int c = 0; c < count; ++c) {
      const auto& stage = memory.stage[c % stages];
      cuda::wait(memory.full[c % stages], c / stages % 2);
      Output prediction, o;
      read_state<pass, KP>(prediction, o, S, stage);
      // u = T (V − diag(f^k e^b) K S₀)
      Rows rest, u, at_end;
      subtract(rest, prediction, stage.chunk, stage.v[group], in_tile);
      begin_products();
      multiply_tile(prediction, rest, stage.chunk.T, false);
      commit_products();
      if constexpr (pass == Pass::read) scale_columns(o, stage.chunk.read);
      wait_products<0>();
      pin(prediction);
      // o = scale diag(f^q) (diag(e^b) Q S₀ + tril(Q Kᵀ ⊙ Γ) diag(f^k) u)      S = e^{b_C} S₀ + Kᵀ diag(f^k e^{b_C − b}) u
      if constexpr (pass == Pass::read) {
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
      if constexpr (pass == Pass::read) {
        wait_products<1>();
        pin(o);
        const std::int64_t row = span.first_row + c * chunk_rows;
        store_rows(static_cast<Bf16*>(p.side[0].o.data) + row * p.side[0].o.stride + h * p.V + column, p.side[0].o.stride,
                   rows - c * chunk_rows, V - column, o);
      }
      wait_products<0>();
      pin(S);
      if (lane() == 0) arrive(memory.empty[c % stages]);
    }
    let_next_begin();

    if (pass == Pass::read) {
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
void launch_spans(const char* name, const Problem& p, std::int64_t spans, std::int64_t column_blocks, cudaStream_t stream) {
  const auto map = [&](const Bf16Rows& x) {
    // Rows behind the last one are never asked for but as the rest of a chunk.
    return tensor_map({x.data, p.own_rows, x.heads, x.width, x.stride, x.width}, chunk_rows);
  };
  const TensorMaps maps{map(p.side[0].q), map(p.side[0].k), map(p.v)};
  const std::int64_t parts = (16 * column_blocks + columns - 1) / columns;
  launch_overlapped(name, span_kernel<pass, KP>, static_cast<unsigned>(spans * p.H * parts), groups * warpgroup + copying,
                    sizeof(Memory<KP>), stream, p, maps);
}

}  // namespace

bool hopper_supported(const GatedDeltaRule& op) {
  constexpr std::int64_t narrow = 64, widest = 256, of_16_bytes = 8;
  const std::int64_t K = op.initial_state.shape[2], V = op.initial_state.shape[3];
  return K > narrow && K <= widest && op.o.dtype == DType::bf16 && V % of_16_bytes == 0 && op.o.stride % of_16_bytes == 0 &&
         reinterpret_cast<std::uintptr_t>(op.o.data) % 16 == 0 && op.o.rows() > 0 && has_warpgroup_products();
}

template <int KP>
void carry_hopper(const Problem& p, std::int64_t spans, cudaStream_t stream) {
  launch_spans<Pass::carry, KP>("gated_delta_rule: carry", p, spans, p.value_blocks + KP / 16, stream);
}
template <int KP>
void read_hopper(const Problem& p, std::int64_t spans, cudaStream_t stream) {
  launch_spans<Pass::read, KP>("gated_delta_rule: read", p, spans, p.value_blocks, stream);
}
template void carry_hopper<128>(const Problem&, std::int64_t, cudaStream_t);
template void carry_hopper<256>(const Problem&, std::int64_t, cudaStream_t);
template void read_hopper<128>(const Problem&, std::int64_t, cudaStream_t);
template void read_hopper<256>(const Problem&, std::int64_t, cudaStream_t);

}  // namespace statescope::cuda::delta

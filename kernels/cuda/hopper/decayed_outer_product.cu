// The decayed outer product 64 rows at a time on a device of compute capability 9.0 (outer_tiles.h): the kernels that go through the chunks
// in order, with wgmma.
#include <algorithm>
#include <cstddef>

#include "kernels/cuda/common/linear.h"
#include "kernels/cuda/hopper/outer_tiles.h"

namespace statescope::cuda {
namespace {

using namespace outer_tiles;

constexpr int groups = 2, columns = groups * swizzle_columns;  // warpgroups of a thread block, and their columns of v

enum class Pass { states, outputs };

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

/// As many stages as shared memory has room for.
template <int channels>
struct Memory {
  static constexpr int stages = channels > 128 ? 2 : 3;
  struct Stage {
    Chunk<channels> chunk;
    Tile v[groups];
  };
  Stage stage[stages];
  std::uint64_t full[stages], empty[stages];
};

/// Bytes that a pass needs of a chunk.
template <Pass pass, int channels>
constexpr unsigned of_chunk = pass == Pass::states ? offsetof(Chunk<channels>, x) : sizeof(Chunk<channels>);

/// A piece of work: a span of a head, `columns` columns of v.
struct Span {
  int number, h, column, segment, first_row, rows;
  int index, count;  // of the segment's spans; a segment without rows has one, that carries its state over
  bool gathered;

  template <int channels>
  __device__ Span(const Problem<channels>& p, int first_number, int i) {
    const int tiles = (p.V + columns - 1) / columns;
    column = i % tiles * columns, h = i / tiles % p.H, number = first_number + i / tiles / p.H;
    const Piece piece = piece_of(p.segments, number, p.span);
    segment = static_cast<int>(piece.segment), index = static_cast<int>(piece.index), count = max(static_cast<int>(piece.count), 1);
    first_row = static_cast<int>(piece.first_row), rows = static_cast<int>(piece.rows);
    gathered = segment >= p.own_segments;
  }
  __device__ bool is_of(Pass pass) const { return index < (pass == Pass::states ? count - 1 : count); }
  __device__ int chunks() const { return (rows + chunk_rows - 1) / chunk_rows; }
};

/// The producer: one thread or, for sparse states, a warpgroup, which copies gathered rows of v itself and arrives at `full` with all of
/// its threads. Loads chunks to their stages, the first one to that of `iteration`, as soon as all warps have read what was there.
template <Pass pass, bool sparse, int channels>
__device__ void produce(Memory<channels>& memory, int& iteration, const Problem<channels>& p, const CUtensorMap& values, const Span& span) {
  constexpr int stages = Memory<channels>::stages, pieces = columns / 8, rows = warpgroup / pieces, steps = chunk_rows / rows;
  const int thread = static_cast<int>(threadIdx.x) % warpgroup, c = thread % pieces * 8, column = span.column + c;
  const std::int64_t first_chunk = first_piece(p.segments, span.segment, chunk_rows) + span.index * (p.span / chunk_rows);
  const Chunk<channels>* chunk = p.chunks + first_chunk * p.H + span.h;
  for (int i = 0; i < span.chunks(); ++i, ++iteration, chunk += p.H) {
    const int stage = iteration % stages;
    auto& to = memory.stage[stage];
    std::uint64_t& full = memory.full[stage];
    int row[steps];
    if constexpr (sparse) {
#pragma unroll
      for (int j = 0; j < steps; ++j) {
        const int t = i * chunk_rows + thread / pieces + j * rows;
        row[j] = span.gathered && t < span.rows ? p.items[span.first_row - p.own_rows + t].row : -1;
      }
    }
    wait(memory.empty[stage], iteration / stages % 2 ^ 1);
    if (thread == 0) {
      arrive_and_expect(full, of_chunk<pass, channels> + (sparse && span.gathered ? 0 : sizeof(to.v)));
      bulk_copy(&to.chunk, chunk, of_chunk<pass, channels>, full);
      for (int g = 0; g < groups && !(sparse && span.gathered); ++g)
        tma_load(to.v[g], values, span.column + g * swizzle_columns, span.h, span.first_row + i * chunk_rows, full);
    }
    if constexpr (sparse) {
      if (!span.gathered) {
        arrive(full);
        continue;
      }
      const Bf16* const from = p.v.at(0, span.h, p.H) + (column < p.V ? column : 0);
#pragma unroll
      for (int j = 0; j < steps; ++j) {
        const bool given = row[j] >= 0 && column < p.V;
        __pipeline_memcpy_async(swizzle(to.v, thread / pieces + j * rows, c), from + (given ? row[j] : 0) * p.v.stride, 16, given ? 0 : 16);
      }
      arrive_after_cp_async(full);
    }
  }
}

/// A warpgroup's 64 columns of the state as Sᵀ [64, channels] in tiles of C.
template <int channels>
using State = float[channels / 8][4];

/// Multiplies 128 channels, each by its factor.
constexpr int of_part = 128;
template <int n>
__device__ void scale_part(float (&S)[n][4], const float* factor, int part) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int j = 0; j < of_part / 8; ++j) {
    const int i = part * (of_part / 8) + j;
    const float2 f = *reinterpret_cast<const float2*>(factor + i * 8 + lane % 4 * 2);
    S[i][0] *= f.x, S[i][1] *= f.y, S[i][2] *= f.x, S[i][3] *= f.y;
  }
}

/// fn(number of S, its place in a state [K, V]) for those of the lane's numbers that the state has; `column` the warp's first.
template <int n, class Fn>
__device__ void each_of_state(float (&S)[n][4], int K, int V, int column, Fn fn) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < n * 4; ++i) {
    const int key = i / 4 * 8 + lane % 4 * 2 + i % 2, c = column + lane / 4 + i % 4 / 2 * 8;
    if (key < K && c < V) fn(S[i / 4][i % 4], key * V + c);
  }
}

/// Two consumer warpgroups and a producer. Of sparse states, which have many segments, a thread block takes one piece of work after the
/// other, and loads for the next one overlap; else each piece has a block, for a loop would cost registers. Pass::states: what a span adds
/// to a state of 0, for all but the last span of a segment. Pass::outputs: o, and the final state. `sparse`: segments may be gathered, or
/// add what gathered ones have computed.
template <Pass pass, int channels, bool sparse>
__global__ void __launch_bounds__((groups + 1) * warpgroup, 1)
    span_kernel(const __grid_constant__ Problem<channels> p, const __grid_constant__ CUtensorMap values, int first_number, int pieces) {
  constexpr int stages = Memory<channels>::stages, channel_parts = channels / of_part;
  extern __shared__ __align__(1024) unsigned char bytes[];
  auto& memory = *reinterpret_cast<Memory<channels>*>(bytes);
  const int group = static_cast<int>(threadIdx.x) / warpgroup;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < stages; ++stage) {
      init_barrier(memory.full[stage], sparse ? 1 + warpgroup : 1);
      init_barrier(memory.empty[stage], groups * warpgroup / 32);
    }
    fence_async_proxy();
  }
  grid_dependency_wait();
  __syncthreads();
  int iteration = 0;  // counts chunks
  if (group == groups) {
    dealloc_registers<sparse ? 56 : 24>();
    if (!sparse && threadIdx.x % warpgroup > 0) return;
    for (int i = static_cast<int>(blockIdx.x); i < pieces; i += static_cast<int>(gridDim.x)) {
      const Span span(p, first_number, i);
      if (span.is_of(pass)) produce<pass, sparse>(memory, iteration, p, values, span);
      if constexpr (!sparse) break;
    }
    return;
  }
  alloc_registers<sparse ? 224 : 240>();
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4, lane = static_cast<int>(threadIdx.x) % 32;
  for (int i = static_cast<int>(blockIdx.x); i < pieces; i += static_cast<int>(gridDim.x)) {
    const Span span(p, first_number, i);
    if (!span.is_of(pass)) continue;
    const bool gathered = sparse && span.gathered;
    const int rows = span.rows, first_row = span.first_row;
    const int h = span.h, column = span.column + group * swizzle_columns + 16 * warp;
    const std::int64_t of_state = std::int64_t{p.K} * p.V, slot = p.segments.slot_of(span.segment);
    float* const between = p.states + (std::int64_t{span.number} * p.H + h) * of_state;
    State<channels> S = {};
    if (pass == Pass::outputs) {
      const float* const from = span.count > 1 ? between : p.initial.row(slot) + h * of_state;
      each_of_state(S, p.K, p.V, column, [from](float& x, int at) { x = from[at]; });
    }
    float decay_of_span = 1;  // of channel threadIdx.x
    FourColumns added;        // contributions of gathered segments to o of a chunk
    const auto load_added = [&](int c, int choice) {
      const OuterTileOperands& from = p.operands[1];
      const std::int64_t first = std::int64_t{first_row + c * chunk_rows} * p.choices + choice;
      load_rows(added, from.o + first * from.o_stride + h * p.V + column, p.choices * from.o_stride,
                gathered || p.readers == 0 ? 0 : rows - c * chunk_rows, p.V - column);
    };
    if (sparse && pass == Pass::outputs) load_added(0, 0);

    for (int c = 0; c < span.chunks(); ++c, ++iteration) {
      const int stage = iteration % stages;
      const auto& [chunk, v] = memory.stage[stage];
      float o[chunk_rows / 8][4] = {};
      if constexpr (sparse && pass == Pass::outputs) {
        for (int choice = 0; !gathered && choice < p.readers; ++choice) {
          if (choice > 0) load_added(c, choice);
          add_rows(o, added);
        }
        load_added(c + 1, 0);
      }
      wait(memory.full[stage], iteration / stages % 2);
      uint4 own_v[chunk_rows / 16];  // A of vᵀ
#pragma unroll
      for (int s = 0; s < chunk_rows / 16; ++s) own_v[s] = transposed_rows(v[group], 16 * s, 16 * warp);
      if (rows < (c + 1) * chunk_rows) keep_rows(own_v, rows - c * chunk_rows);
      if constexpr (pass == Pass::outputs) {
        // o += x S + scores v
        uint4 packed_S[of_part / 16];
#pragma unroll
        for (int part = 0; part < channel_parts; ++part) {
          if (part > 0) wgmma_wait<0>();
          pack_part(packed_S, S, part);
          scale_part(S, chunk.decay, part);
          pin(o);
          wgmma_fence();
          multiply_part(o, packed_S, chunk.x, part, true);
          if (part == 0) {
#pragma unroll
            for (int s = 0; s < chunk_rows / 16; ++s) multiply_columns(o, own_v[s], matrix_descriptor(&chunk.scores[0][16 * s]), true);
          }
          wgmma_commit();
        }
      } else {
        if (threadIdx.x < channels) decay_of_span *= chunk.decay[threadIdx.x];
#pragma unroll
        for (int part = 0; part < channel_parts; ++part) scale_part(S, chunk.decay, part);
      }
      // S ← A S + yᵀ v
      pin(S);
      wgmma_fence();
      add_outer_products(S, own_v, chunk.y);
      wgmma_commit();
      if constexpr (pass == Pass::outputs) {
        wgmma_wait<1>();
        pin(o);
        const OuterTileOperands& to = p.operands[gathered ? 1 : 0];
        const std::int64_t first = first_row + c * chunk_rows;
        store_rows(p.V - column, o, [&](int t) -> Bf16* {
          const std::int64_t row = gathered ? chunk.o_row[t] : t < rows - c * chunk_rows ? first + t : -1;
          return row < 0 ? nullptr : to.o + row * to.o_stride + h * p.V + column;
        });
      }
      wgmma_wait<0>();
      pin(S);
      __syncwarp();  // all lanes have read the stage
      if (lane == 0) arrive(memory.empty[stage]);
    }

    if (pass == Pass::states) {
      each_of_state(S, p.K, p.V, column, [between](float& x, int at) { between[at] = x; });
      const int width = p.decay_width(), channel = static_cast<int>(threadIdx.x);
      if (span.column == 0 && channel < width) p.decays[(std::int64_t{span.number} * p.H + h) * width + channel] = decay_of_span;
    } else if (span.index == span.count - 1) {
      float* const final = p.final.row(slot) + h * of_state;
      each_of_state(S, p.K, p.V, column, [final](float& x, int at) { final[at] = x; });
    }
    if constexpr (!sparse) break;
  }
  launch_dependents();
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

/// The sizes of launches, and how scratch is divided.
struct Plan {
  std::int64_t own_rows, rows, own_segments, segments, H, K, V, tiles, span;
  bool cut;  // some segment has several spans

  Plan(const DecayedOuterProduct& op, const DeviceSegments& device_segments, const GatheredSegments& gathered)
      : own_rows(op.o.rows()),
        rows(own_rows + gathered.count),
        own_segments(gathered.items ? gathered.first_segment : device_segments.count),
        segments(device_segments.count),
        H(op.initial_state.shape[1]),
        K(op.initial_state.shape[2]),
        V(op.initial_state.shape[3]),
        tiles((V + columns - 1) / columns) {
    const std::int64_t spans = std::max<std::int64_t>(1, wanted_blocks / std::max<std::int64_t>(1, H * tiles));
    const auto whole_chunks = [](std::int64_t n, std::int64_t parts) { return ((n + parts - 1) / parts + chunk_rows - 1) / chunk_rows; };
    // Own rows and gathered ones are processed one after the other. The last spans of all these segments may be short.
    const std::int64_t gathered_segments = segments - own_segments, whole_spans = spans - gathered_segments;
    const std::int64_t of_gathered = whole_chunks(gathered.count, whole_spans > spans / 2 ? whole_spans : spans);
    span = std::max({std::int64_t{1}, whole_chunks(own_rows, spans), of_gathered}) * chunk_rows;
    cut = device_segments.longest > span;
  }
  std::int64_t chunks() const { return most_pieces(rows, segments, chunk_rows); }
  std::int64_t spans() const { return most_pieces(rows, segments, span); }
  std::int64_t own_spans() const { return most_pieces(own_rows, own_segments, span); }
  std::int64_t state_numbers() const { return cut ? spans() * H * K * V : 0; }
  std::int64_t decay_numbers() const { return cut ? spans() * H * K : 0; }
};

/// Every row, and every head of it, begins at 16 bytes and consists of them.
bool heads_in_packs(ConstTensor x, int numbers) { return in_packs(x, numbers) && x.shape[2] % numbers == 0; }
bool bf16_heads(ConstTensor x) { return x.dtype == DType::bf16 && heads_in_packs(x, 8); }

Bf16Rows bf16_rows(ConstTensor x) { return {static_cast<Bf16*>(const_cast<void*>(x.data)), x.stride, x.shape[1], x.shape[2]}; }

/// 64 rows and 64 columns of a head at once.
CUtensorMap rows_map(ConstTensor x) {
  return tensor_map({static_cast<const Bf16*>(x.data), x.rows(), x.shape[1], x.shape[2], x.stride, x.shape[2]}, chunk_rows);
}

Gate gate_of(const Projection* gate) {
  if (gate == nullptr) return {};
  check_linear(gate->y, gate->x, gate->weight, gate->bias);
  const auto& forget = std::get<ForgetGate>(gate->finish);
  return {f32(gate->x), static_cast<const Bf16*>(gate->weight.data), f32(gate->bias).data, 1 / forget.normalizer, forget.clamp_min,
          f32(gate->y)};
}

OuterTileOperands operands(ConstTensor q, ConstTensor k, ConstTensor log_decay, Tensor o, const Projection* gate) {
  if (!q) return {};
  return {bf16_rows(q), bf16_rows(k), f32_rows(log_decay), gate_of(gate), static_cast<Bf16*>(o.data), o.stride};
}

template <Pass pass, int channels>
void launch_spans(const char* name, const Problem<channels>& p, const CUtensorMap& values, std::int64_t first, std::int64_t end,
                  cudaStream_t stream) {
  const std::int64_t pieces = (end - first) * p.H * ((p.V + columns - 1) / columns);
  auto kernel = span_kernel<pass, channels, false>;
  std::int64_t thread_blocks = pieces;
  if constexpr (channels == 128) {
    if (p.items) kernel = span_kernel<pass, channels, true>, thread_blocks = std::min(pieces, wanted_blocks);
  }
  launch_overlapped(name, kernel, static_cast<unsigned>(thread_blocks), (groups + 1) * warpgroup, sizeof(Memory<channels>), stream, p,
                    values, static_cast<int>(first), static_cast<int>(pieces));
}

template <int channels>
void launch_chunks(const DecayedOuterProduct& op, const DeviceSegments& segments, const GatheredSegments& gathered, const Plan& plan,
                   const Projection* gate, void* scratch, cudaStream_t stream) {
  auto* const chunks = static_cast<Chunk<channels>*>(scratch);
  auto* const states = reinterpret_cast<float*>(chunks + plan.chunks() * plan.H);
  const auto extent = [](std::int64_t n) { return static_cast<int>(n); };
  const Problem<channels> p{
      {operands(op.q, op.k, op.log_decay, op.o, gate), operands(gathered.q, gathered.k, gathered.log_decay, gathered.o, gathered.gate)},
      bf16_rows(op.v),
      f32(op.initial_state),
      f32(op.final_state),
      extent(plan.H),
      extent(plan.K),
      extent(plan.V),
      op.scale,
      segments,
      gathered.items,
      gathered.while_sorted,
      extent(plan.own_rows),
      extent(plan.own_segments),
      extent(gathered.choices),
      extent(gathered.writers),
      extent(gathered.readers),
      plan.span,
      chunks,
      states,
      states + plan.state_numbers()};
  prepare(p, plan.chunks(), rows_map(op.q), rows_map(op.k), stream);
  const CUtensorMap values = rows_map(op.v);
  const std::int64_t own = plan.own_spans(), all = plan.spans();
  if (plan.cut) {
    launch_spans<Pass::states>("decayed_outer_product: states", p, values, 0, all, stream);
    combine_spans({segments, p.initial, p.H, p.K, p.V, p.decay_width(), p.span, p.states, p.decays}, stream);
  }
  launch_spans<Pass::outputs>("decayed_outer_product: outputs", p, values, own, all,
                              stream);  // gathered rows: what they leave, own rows add
  launch_spans<Pass::outputs>("decayed_outer_product: outputs", p, values, 0, own, stream);
}

}  // namespace

bool decayed_outer_product_hopper_supported(const DecayedOuterProduct& op, const GatheredSegments& gathered) {
  constexpr std::int64_t narrow = 64, most_gathered = 128, widest = 256;  // narrow heads are left to decayed_outer_product_chunks.cu
  const std::int64_t K = op.initial_state.shape[2];
  const auto rows_fit = [](ConstTensor x) { return !x || bf16_heads(x); };
  const auto decays_fit = [](ConstTensor x) { return !x || x.shape.rank() < 3 || heads_in_packs(x, 4); };
  return K > narrow && K <= (gathered.items ? most_gathered : widest) && bf16_heads(op.q) && bf16_heads(op.k) && bf16_heads(op.v) &&
         bf16_heads(op.o) && rows_fit(gathered.q) && rows_fit(gathered.k) && rows_fit(gathered.o) &&
         (!op.log_decay || op.log_decay.shape.rank() < 3 || op.decay_axis == DecayAxis::rows) && decays_fit(op.log_decay) &&
         decays_fit(gathered.log_decay) && op.v.shape[1] == op.initial_state.shape[1] && has_warpgroup_products();
}

bool decayed_outer_product_hopper_makes(const Projection& gate, ConstTensor log_decay) {
  const ConstTensor x = gate.x, weight = gate.weight;
  return x.dtype == DType::f32 && x.row_size() == gate_features && in_packs(x, 4) && weight.dtype == DType::bf16 && weight.contiguous() &&
         in_packs(weight, 8) && log_decay.shape.rank() == 3 && weight.rows() == log_decay.row_size() && gate.norm.group == 0 && !gate.z &&
         std::holds_alternative<ForgetGate>(gate.finish);
}

std::size_t decayed_outer_product_hopper_scratch(const DecayedOuterProduct& op, const DeviceSegments& segments,
                                                 const GatheredSegments& gathered) {
  const Plan plan(op, segments, gathered);
  return static_cast<std::size_t>(plan.chunks() * plan.H) * (plan.K > 128 ? sizeof(Chunk<256>) : sizeof(Chunk<128>)) +
         static_cast<std::size_t>(plan.state_numbers() + plan.decay_numbers()) * sizeof(float);
}

void decayed_outer_product_hopper(const DecayedOuterProduct& op, const DeviceSegments& segments, void* scratch, cudaStream_t stream,
                                  const GatheredSegments& gathered, const Projection* gate) {
  const Plan plan(op, segments, gathered);
  plan.K > 128 ? launch_chunks<256>(op, segments, gathered, plan, gate, scratch, stream)
               : launch_chunks<128>(op, segments, gathered, plan, gate, scratch, stream);
}

}  // namespace statescope::cuda

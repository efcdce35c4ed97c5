// The gated delta rule in chunks: the kernels that go through chunks and spans in order, and the launches. The equations: delta_chunk.h.
#include "kernels/cuda/any/delta_chunk_pipeline.h"
#include "kernels/cuda/any/delta_output.h"

namespace statescope::cuda {
namespace delta {
namespace {

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

/// A thread block per (span, head, group of carry_blocks · 16 columns a warp): those of the state, then those of the transition. A
/// segment's first span starts from its initial state and needs no transition; a last one, and the only one, needs nothing.
template <int KP, Form form>
__global__ void __launch_bounds__(most_warps* lanes, 1) carry_kernel(const __grid_constant__ Problem p) {
  constexpr int keys = KP / 16, own = carry_blocks<KP>;
  extern __shared__ __align__(16) uint4 memory[];
  const std::int64_t blocks = blockDim.x / lanes * own, groups = (p.value_blocks + keys + blocks - 1) / blocks;
  const std::int64_t first = blockIdx.x % groups * blocks, h = blockIdx.x / groups % p.H;
  const Piece span = piece_of(p.segments, blockIdx.x / groups / p.H, p.span);
  if (span.index + 1 >= span.count || (span.index == 0 && first >= p.value_blocks)) return;
  const std::int64_t number = span.first_number + span.index;
  const auto value_blocks = static_cast<int>(p.value_blocks - first), block = warp() * own;  // among the thread block's

  const ChunkPipeline<KP, most_warps * own, false, form> pipeline(p, memory, span, h, first);
  pipeline.prologue();
  constexpr bool channels = form == Form::channels;
  __shared__ float totals[channels ? KP : 1];
  const auto each_channel = [&](const auto& visit) {
    for (int c = static_cast<int>(threadIdx.x); c < KP; c += static_cast<int>(blockDim.x)) visit(c, totals[c]);
  };
  if constexpr (channels) each_channel([](int, float& total) { total = 1; });
  Columns<KP> S[own];
#pragma unroll
  for (int i = 0; i < own; ++i) {
    const int column = 16 * (block + i);
    if (block + i >= value_blocks) {
      S[i].add_identity(column - 16 * value_blocks, 1);
    } else if (span.index == 0) {
      const std::int64_t begin = 16 * first + column;
      S[i].read(p.initial.row(p.segments.slot_of(span.segment)) + h * p.K * p.V + begin, p.K, p.V, p.V - begin);
      S[i].write(state_of<KP>(p, number, h, first + block + i));  // read may overwrite the initial state before all spans have seen it
    }
  }

  float total = 1;
  for (int c = 0; c < pipeline.count; ++c) {
    const auto& stage = pipeline.acquire(c);
    Block prediction[own][row_blocks];
    predict(prediction, S, stage);
    uint4 u[own][row_blocks];
#pragma unroll
    for (int i = 0; i < own; ++i) solve<2, form>(prediction[i], stage, block + i < value_blocks ? block + i : -1, nullptr, u[i]);
    advance(S, u, stage);
    if constexpr (channels) {
      each_channel([&](int c, float& total) { total *= stage.chunk.total[c]; });
    } else {
      total *= stage.chunk.total;
    }
  }
  if constexpr (channels) __syncthreads();

#pragma unroll
  for (int i = 0; i < own; ++i) {
    const int block_of_M = block + i - value_blocks;
    if (block_of_M < 0) S[i].write(state_of<KP>(p, number + 1, h, first + block + i));
    if (block_of_M < 0 || block_of_M >= keys) continue;
    // Stored is M − diag(total) in bf16; total stays float32.
    if constexpr (channels) {
      S[i].subtract_diagonal(16 * block_of_M, totals);
    } else {
      S[i].add_identity(16 * block_of_M, -total);
    }
    uint4* transition = transition_of<KP>(p, number, h) + block_of_M * keys * lanes;
#pragma unroll
    for (int key = 0; key < keys; ++key) transition[key * lanes + lane()] = as_b(S[i].x[key]);
  }
  if constexpr (channels) {
    if (first == 0) each_channel([&](int c, float total) { p.totals[(number * p.H + h) * KP + c] = total; });
  } else {
    if (first == 0 && threadIdx.x == 0) p.totals[number * p.H + h] = total;
  }
}

/// A thread block per (segment, head, 16 columns of V); warp w computes the channels 16 w … of each span's state.
template <int KP, bool channels>
__global__ void __launch_bounds__(KP / 16 * lanes, KP <= 128 ? 1 : 2) combine_kernel(Problem p) {
  constexpr int keys = KP / 16;
  constexpr bool ahead = KP <= 128;  // there are registers for a transition, and for the next one; else two blocks read side by side
  __shared__ uint4 state[2][keys][lanes];
  grid_dependency_wait();
  const std::int64_t block = blockIdx.x % p.value_blocks, h = blockIdx.x / p.value_blocks % p.H, s = blockIdx.x / p.value_blocks / p.H;
  const std::int64_t first = first_piece(p.segments, s, p.span), rows = p.segments.cu_seqlens[s + 1] - p.segments.cu_seqlens[s];
  const std::int64_t spans = (rows + p.span - 1) / p.span;
  const auto place = [&](std::int64_t span, int half) -> float4& {
    return state_of<KP>(p, span, h, block)[(2 * warp() + half) * lanes + lane()];
  };
  const auto transition = [&](std::int64_t span, int key) { return transition_of<KP>(p, span, h)[(key * keys + warp()) * lanes + lane()]; };
  const auto load = [&](uint4(&M)[keys], std::int64_t span) {
#pragma unroll
    for (int key = 0; key < keys; ++key) M[key] = transition(span, key);
  };

  if (spans < 3) return;  // carry has left the second span's state
  Block S;
  for (int half = 0; half < 2; ++half) {
    const float4 x = place(first + 1, half);
    S.half[half][0] = x.x, S.half[half][1] = x.y, S.half[half][2] = x.z, S.half[half][3] = x.w;
  }
  uint4 M[keys], next[keys];
  if (ahead) load(next, first + 1);
  for (std::int64_t j = 1; j + 1 < spans; ++j) {
#pragma unroll
    for (int key = 0; ahead && key < keys; ++key) M[key] = next[key];
    if (ahead && j + 2 < spans) load(next, first + j + 1);
    const float4 local[2] = {place(first + j + 1, 0), place(first + j + 1, 1)};
    const float* const totals = p.totals + ((first + j) * p.H + h) * (channels ? KP : 1);
    const float total = channels ? 0 : *totals;
    state[j % 2][warp()][lane()] = as_a(S);
    __syncthreads();
    // S_{j+1} = M_j S_j + S_local,j
    Block parts[2];
#pragma unroll
    for (int key = 0; key < keys; ++key) multiply(parts[key % 2], state[j % 2][key][lane()], ahead ? M[key] : transition(first + j, key));
    for (int half = 0; half < 2; ++half) {
      const float y[4] = {local[half].x, local[half].y, local[half].z, local[half].w};
      float(&x)[4] = S.half[half];
      for (int e = 0; e < 4; ++e) {
        const float decay = channels ? totals[16 * warp() + 8 * half + t() + e % 2] : total;
        x[e] = fmaf(decay, x[e], y[e]) + (parts[0].half[half][e] + parts[1].half[half][e]);
      }
      place(first + j + 1, half) = {x[0], x[1], x[2], x[3]};
    }
  }
  launch_dependents();
}

/// tril(Q Kᵀ ⊙ Γ) as B of its transpose, by all warps of the block: a row of blocks is divided into the left and the right halves.
template <int KP, class Stage>
__device__ void make_scores(uint4* scores, const Stage& stage) {
  for (int part = warp(); part < 2 * row_blocks; part += static_cast<int>(blockDim.x) / lanes) {
    const int block = part % row_blocks, half = part / row_blocks;
    float c[row_blocks][4] = {};
#pragma unroll
    for (int key = 0; key < KP; key += 32) {
      const uint4 a[2] = {a_block(stage.q, stage.key_stride, 16 * block, key), a_block(stage.q, stage.key_stride, 16 * block, key + 16)};
#pragma unroll
      for (int n = 0; n < row_blocks; ++n) {
        if (n > block) continue;
        const uint4 b = ldmatrix(stage.k + (16 * n + 8 * half + lane() % 8) * stage.key_stride + key + lane() / 8 * 8);
        cuda::multiply(c[n], a[0], b.x, b.y);
        cuda::multiply(c[n], a[1], b.z, b.w);
      }
    }
    const float* b = stage.chunk.b;
#pragma unroll
    for (int n = 0; n < row_blocks; ++n) {
      if (n > block) continue;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int i = 16 * block + g() + e / 2 * 8, j = 16 * n + 8 * half + t() + e % 2;
        c[n][e] = j <= i ? c[n][e] * __expf(b[i] - b[j]) : 0;
      }
      auto* pairs = reinterpret_cast<unsigned*>(scores + (first_block(block) + n) * lanes + lane()) + half;
      pairs[0] = packed(c[n][0], c[n][1]);
      pairs[2] = packed(c[n][2], c[n][3]);
    }
  }
}

/// Vectors of the scores that read makes itself.
template <Form form>
constexpr int made_scores = form == Form::channels ? 0 : lower_blocks* lanes;

/// A thread block per (span from p.first_span on, head, blocks of 16 columns of V, one a warp).
template <int KP, Form form>
__global__ void __launch_bounds__(most_warps* lanes, 1) read_kernel(const __grid_constant__ Problem p) {
  constexpr bool factors = form == Form::factors, channels = form == Form::channels;
  extern __shared__ __align__(16) uint4 memory[];
  const std::int64_t warps = blockDim.x / lanes, groups = (p.value_blocks + warps - 1) / warps;
  const std::int64_t first = blockIdx.x % groups * warps, h = blockIdx.x / groups % p.H, block = first + warp();
  const Piece span = piece_of(p.segments, p.first_span + blockIdx.x / groups / p.H, p.span);
  if (span.index >= max(span.count, std::int64_t{1})) return;
  const std::int64_t slot = p.segments.slot_of(span.segment);
  const bool active = block < p.value_blocks;

  const ChunkPipeline<KP, most_warps, true, form> pipeline(p, memory + made_scores<form>, span, h, first);
  pipeline.prologue();
  Columns<KP> columns[1], &S = columns[0];
  if (active && span.count > 1) {
    S.read(state_of<KP>(p, span.first_number + span.index, h, block));
  } else if (active) {
    S.read(p.initial.row(slot) + h * p.K * p.V + 16 * block, p.K, p.V, p.V - 16 * block);
  }

  for (int c = 0; c < pipeline.count; ++c) {
    const auto& stage = pipeline.acquire(c);
    const uint4* scores = memory;
    if constexpr (channels) {
      scores = stage.chunk.scores;
    } else {
      make_scores<KP>(memory, stage);
    }
    Block prediction[row_blocks], o[row_blocks];
#pragma unroll
    for (int key = 0; key < KP / 16; ++key) {
      const uint4 a = S.a(key);
#pragma unroll
      for (int n = 0; n < row_blocks; ++n) {
        multiply(prediction[n], a, b_block_transposed(stage.k, stage.key_stride, 16 * n, 16 * key));
        multiply(o[n], a, b_block_transposed(stage.q, stage.key_stride, 16 * n, 16 * key));
      }
    }
    uint4 u[row_blocks], at_end[1][row_blocks];
    solve<row_blocks, form>(prediction, stage, warp(), &u, at_end[0]);
    advance(columns, at_end, stage);
    if constexpr (!channels) __syncthreads();  // the scores are complete
    // o = scale diag(f^q) (diag(e^b) Q S₀ + tril(Q Kᵀ ⊙ Γ) diag(f^k) u)
    if constexpr (!channels) scale_columns(o, stage.chunk.from_start);
#pragma unroll
    for (int j = 0; j < row_blocks; ++j) {
#pragma unroll
      for (int n = j; n < row_blocks; ++n) multiply(o[n], u[j], scores[(first_block(n) + j) * lanes + lane()]);
    }
    if constexpr (factors) {
      scale_columns(o, stage.chunk.read);
    } else {
      scale_all(o, p.scale);
    }
    const int done = c * chunk_rows, n = min(pipeline.rows - done, chunk_rows);
    if (!active) continue;
    if (factors && p.items && !pipeline.item) add_gathered(p, o, span.first_row + done, n, h, 16 * block);
    write_o(pipeline.operands.o, o, pipeline.item ? 0 : span.first_row, n, h, p.V, 16 * block, [&](int r) { return pipeline.o_row(c, r); });
  }
  if (active && span.index + 1 >= span.count) S.write(p.final.row(slot) + h * p.K * p.V + 16 * block, p.K, p.V, p.V - 16 * block);
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

bool aligned(ConstTensor x, std::int64_t numbers) {
  return reinterpret_cast<std::uintptr_t>(x.data) % (static_cast<std::size_t>(numbers) * size_of(x.dtype)) == 0 &&
         x.stride % numbers == 0 && x.shape[x.shape.rank() - 1] % numbers == 0;
}
RawOperand raw_operand(ConstTensor x) { return {x.data, x.stride, x.shape[1], x.shape[2], aligned(x, 4)}; }
OutputRows output_rows(Tensor o) {
  if (!o) return {};
  return {o.data, o.stride, o.dtype == DType::bf16, aligned(o, 2)};
}
/// Whether the pipeline can load x as it is.
bool fits(ConstTensor x) { return x.dtype == DType::bf16 && aligned(x, 8); }

/// The sizes of launches, and how scratch is divided.
struct Plan {
  std::int64_t H, K, V, own_segments, segments, own_rows, rows, KP, value_blocks, span;
  std::int64_t key_width, value_width;  // of rounded copies
  bool spans;                           // some segment may have several
  bool channels;                        // decay each by itself
  bool copied, copied_v, tiles;         // copied: q and k; tiles: for wgmma

  Plan(const GatedDeltaRule& op, std::int64_t segments_, std::int64_t longest, const GatheredSegments& gathered)
      : H(op.initial_state.shape[1]),
        K(op.initial_state.shape[2]),
        V(op.initial_state.shape[3]),
        own_segments(gathered.items ? gathered.first_segment : segments_),
        segments(segments_),
        own_rows(op.o.rows()),
        rows(own_rows + gathered.count),
        KP(K <= 64    ? 64
           : K <= 128 ? 128
                      : 256),
        value_blocks((V + 15) / 16),
        key_width(rounded_up<std::int64_t>(K, 8)),
        value_width(rounded_up<std::int64_t>(V, 8)),
        channels(op.log_decay.shape.rank() == 3),
        copied(channels || !fits(op.q) || !fits(op.k) || !fits(op.v)),
        copied_v(channels ? !fits(op.v) : copied),
        tiles(!gathered.items && !copied && hopper_supported(op)) {
    constexpr std::int64_t alone = 3 * chunk_rows;  // rows that are not worth several spans
    const std::int64_t groups_of_all = H * groups(value_blocks, std::min<std::int64_t>(value_blocks, most_warps));
    const std::int64_t wanted_spans = std::max<std::int64_t>(1, wanted_blocks / groups_of_all);
    // Own rows and gathered ones are read one after the other.
    const std::int64_t rows_at_once = std::max(own_rows, gathered.count);
    span = std::max<std::int64_t>(chunk_rows, rounded_up<std::int64_t>((rows_at_once + wanted_spans - 1) / wanted_spans, chunk_rows));
    if (longest <= alone) span = std::max(span, alone);
    spans = longest > span;
  }

  static std::int64_t groups(std::int64_t blocks, std::int64_t warps) { return (blocks + warps - 1) / warps; }
  std::int64_t chunk_count() const { return most_pieces(rows, segments, chunk_rows); }
  std::int64_t span_count() const { return most_pieces(rows, segments, span); }
  std::int64_t own_span_count() const { return most_pieces(own_rows, own_segments, span); }

  // Sizes in 16-byte vectors.
  std::int64_t chunk_pieces() const {
    const std::int64_t of_channels = 2 * lower_blocks * lanes + KP / 4;  // ChannelChunk
    const std::size_t bytes = tiles ? sizeof(TileChunk) : sizeof(Chunk);
    return chunk_count() * H * (channels ? of_channels : static_cast<std::int64_t>(bytes / sizeof(uint4)));
  }
  std::int64_t copy_pieces(std::int64_t width) const { return chunk_count() * chunk_rows * H * width / 8; }
  std::int64_t state_pieces() const { return spans ? span_count() * H * value_blocks * (KP / 8) * lanes : 0; }
  std::int64_t transition_pieces() const { return spans ? span_count() * H * (KP / 16) * (KP / 16) * lanes : 0; }
  std::int64_t total_pieces() const { return spans ? rounded_up<std::int64_t>(span_count() * H * (channels ? KP : 1), 4) / 4 : 0; }
  std::int64_t pieces() const {
    const std::int64_t copies_of_keys = copied ? (channels ? 3 : 2) * copy_pieces(key_width) : 0;
    return chunk_pieces() + copies_of_keys + (copied_v ? copy_pieces(value_width) : 0) + state_pieces() + transition_pieces() +
           total_pieces();
  }
};

Problem problem(const Plan& plan, const GatedDeltaRule& op, bool unit, const DeviceSegments& segments, const GatheredSegments& gathered,
                void* scratch) {
  auto* free = static_cast<uint4*>(scratch);
  const auto take = [&](std::int64_t pieces) { return std::exchange(free, free + pieces); };
  const auto rows = [&](ConstTensor x, bool copied, std::int64_t width) -> Bf16Rows {
    if (!x) return {};
    if (!copied) return {static_cast<Bf16*>(const_cast<void*>(x.data)), x.stride, x.shape[1], x.shape[2]};
    return {reinterpret_cast<Bf16*>(take(plan.copy_pieces(width))), plan.H * width, plan.H, width};
  };
  Problem p{};
  p.given_q = raw_operand(op.q), p.given_k = raw_operand(op.k), p.given_v = raw_operand(op.v);
  const auto operands = [&](const auto& x) -> DeltaOperands {
    return {rows(x.q, plan.copied, plan.key_width), rows(x.k, plan.copied, plan.key_width), f32_rows(x.log_decay), f32_rows(x.beta),
            output_rows(x.o)};
  };
  p.operands = {operands(op), operands(gathered)};
  p.v = rows(op.v, plan.copied_v, plan.value_width);
  if (plan.channels) p.k_at_end = rows(op.k, true, plan.key_width);
  p.copied = plan.copied, p.copied_v = plan.copied_v;
  p.initial = f32(op.initial_state), p.final = f32(op.final_state);
  p.items = gathered.items, p.unit = unit || gathered.items;
  p.own_rows = plan.own_rows, p.own_segments = plan.own_segments;
  p.choices = gathered.choices, p.writers = gathered.writers, p.readers = gathered.readers;
  p.gate_before_l2 = gathered.gate_before_l2;
  p.H = plan.H, p.K = plan.K, p.V = plan.V, p.value_blocks = plan.value_blocks;
  p.scale = op.scale;
  p.segments = segments;
  p.span = plan.span;
  auto* const chunks = take(plan.chunk_pieces());
  if (plan.tiles) {
    p.tiles = reinterpret_cast<TileChunk*>(chunks);
  } else {
    p.chunks = reinterpret_cast<Chunk*>(chunks);
  }
  p.states = reinterpret_cast<float4*>(take(plan.state_pieces()));
  p.transitions = take(plan.transition_pieces());
  p.totals = reinterpret_cast<float*>(take(plan.total_pieces()));
  return p;
}

/// Two stages where the device has room for them and `rest`.
int stages(std::size_t size, std::size_t rest) { return 2 * size + rest <= most_shared_bytes() ? 2 : 1; }

template <int KP, bool channels = false>
void combine(const Plan& plan, const Problem& p, cudaStream_t stream) {
  launch_overlapped("gated_delta_rule: combine", combine_kernel<KP, channels>,
                    static_cast<unsigned>(plan.segments * plan.H * plan.value_blocks), KP / 16 * lanes, 0, stream, p);
}

/// With wgmma.
template <int KP>
void launch_tiles(const Plan& plan, const Problem& p, const InputNorm& readout, cudaStream_t stream) {
  prepare(p, true, plan.chunk_count(), stream);
  if (plan.spans) {
    carry_hopper<KP>(p, plan.span_count(), stream);
    combine<KP>(plan, p, stream);
  }
  read_hopper<KP>(p, plan.span_count(), readout, stream);
}

template <int KP, Form form>
void launch_chunks(const Plan& plan, Problem p, bool bf16, cudaStream_t stream) {
  constexpr bool channels = form == Form::channels;
  (channels ? prepare_channels : prepare)(p, bf16, plan.chunk_count(), stream);
  constexpr std::size_t of_items = form == Form::factors ? sizeof(ItemRows) : 0;
  const auto run = [&](const char* name, void (*kernel)(Problem), std::int64_t parts, std::int64_t first_span, std::int64_t end,
                       std::size_t stage, std::size_t rest) {
    const std::int64_t warps = std::min<std::int64_t>(parts, most_warps);
    const std::int64_t blocks = (end - first_span) * plan.H * Plan::groups(parts, warps);
    p.first_span = first_span;
    p.stages = stages(stage, rest);
    launch(name, kernel, static_cast<unsigned>(blocks), static_cast<unsigned>(warps * lanes),
           static_cast<std::size_t>(p.stages) * stage + rest, stream, p);
  };
  if (plan.spans) {
    constexpr int own = carry_blocks<KP>;
    run("gated_delta_rule: carry", carry_kernel<KP, form>, Plan::groups(plan.value_blocks + KP / 16, own), 0, plan.span_count(),
        sizeof(Stage<KP, most_warps * own, form>), of_items);
    combine<KP, channels>(plan, p, stream);
  }
  const auto read = [&](std::int64_t first, std::int64_t end) {
    run("gated_delta_rule: read", read_kernel<KP, form>, plan.value_blocks, first, end, sizeof(Stage<KP, most_warps, form>),
        of_items + made_scores<form> * sizeof(uint4));
  };
  // Gathered rows first: what they contribute to o is added where the own rows write it.
  read(plan.own_span_count(), plan.span_count());
  read(0, plan.own_span_count());
}

}  // namespace
}  // namespace delta

bool gated_delta_rule_chunks_supported(const GatedDeltaRule& op) {
  constexpr std::int64_t most_channels = 256;
  const auto known = [](DType dtype) { return dtype == DType::f32 || dtype == DType::bf16; };
  return op.initial_state.shape[2] <= most_channels && known(op.q.dtype) && known(op.o.dtype) && op.k.dtype == op.q.dtype &&
         op.v.dtype == op.q.dtype;
}

bool gated_delta_rule_gathers(ConstTensor x) { return delta::fits(x); }

bool gated_delta_rule_normalises(const GatedDeltaRule& op) {
  return op.log_decay.shape.rank() < 3 && gated_delta_rule_chunks_supported(op) && delta::fits(op.q) && delta::fits(op.k) &&
         delta::fits(op.v);
}
bool gated_delta_rule_reads_out(const GatedDeltaRule& op, const InputNorm& readout, std::int64_t longest) {
  if (!gated_delta_rule_normalises(op)) return false;
  const delta::Plan plan(op, op.segments.count(), longest, {});
  return delta::hopper_reads_out(op, readout, plan.span_count() * plan.H);
}

std::size_t gated_delta_rule_chunks_scratch(const GatedDeltaRule& op, std::int64_t segments, std::int64_t longest,
                                            const GatheredSegments& gathered) {
  return static_cast<std::size_t>(delta::Plan(op, segments, longest, gathered).pieces()) * sizeof(uint4);
}

void gated_delta_rule_chunks(const GatedDeltaRule& op, const DeviceSegments& segments, void* scratch, cudaStream_t stream,
                             const GatheredSegments& gathered, bool unit, const InputNorm& readout) {
  const delta::Plan plan(op, segments.count, segments.longest, gathered);
  if (plan.H * plan.V == 0) return;
  const delta::Problem p = delta::problem(plan, op, unit, segments, gathered, scratch);
  const bool bf16 = op.q.dtype == DType::bf16;
  const auto start = [&]<int KP>(std::integral_constant<int, KP>) {
    if constexpr (KP > 64) {
      if (plan.tiles) return delta::launch_tiles<KP>(plan, p, readout, stream);
    }
    if (plan.channels) return delta::launch_chunks<KP, delta::Form::channels>(plan, p, bf16, stream);
    p.unit ? delta::launch_chunks<KP, delta::Form::factors>(plan, p, bf16, stream)
           : delta::launch_chunks<KP, delta::Form::heads>(plan, p, bf16, stream);
  };
  if (plan.KP == 64) return start(std::integral_constant<int, 64>());
  if (plan.KP == 128) return start(std::integral_constant<int, 128>());
  start(std::integral_constant<int, 256>());
}

}  // namespace statescope::cuda

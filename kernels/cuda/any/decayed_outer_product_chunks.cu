// The decayed outer product in chunks: the kernel of a span, and the launches. The equations: outer_chunk.h.
#include <algorithm>

#include "kernels/cuda/any/outer_chunk.h"

namespace statescope::cuda {
namespace {

using namespace outer;

/// One block per (span, head, `columns` columns) from span `first_number` on, whose state stays in its registers: a warp has 16 columns of
/// it. Pass::states: what a span adds to a state of 0, for all but the last span of a segment. Pass::outputs: o, and the final state.
template <class Number, Decay decay, Pass pass, int K>
__global__ void __launch_bounds__(threads, 2) span_kernel(const __grid_constant__ Problem<Number> p, int first_number) {
  using Memory = Shared<Number, decay, pass, K>;
  extern __shared__ __align__(16) char memory[];
  Memory& shared = *reinterpret_cast<Memory*>(memory);
  const int tile = static_cast<int>(blockIdx.x) % p.tiles(), h = static_cast<int>(blockIdx.x) / p.tiles() % p.H,
            number = first_number + static_cast<int>(blockIdx.x) / p.tiles() / p.H;
  const Piece span = piece_of(p.segments, number, p.span);
  const std::int64_t spans = max(span.count, std::int64_t{1});  // a segment without rows carries its state over
  if (span.index >= (pass == Pass::states ? spans - 1 : spans)) return;

  const int warp = static_cast<int>(threadIdx.x) / 32, block_column = tile * columns, column = block_column + 16 * warp;
  const bool idle = column >= p.V, gathered = p.items && span.segment >= p.own_segments;
  const std::int64_t of_state = std::int64_t{p.K} * p.V, slot = p.segments.slot_of(span.segment);
  float* const between = p.states + (std::int64_t{number} * p.H + h) * of_state;
  const OuterOperands<Number>& operands = p.operands[gathered ? 1 : 0];
  const auto q_rows = operands.q.of_head(h, p.H), k_rows = operands.k.of_head(h, p.H), v_rows = p.v.of_head(h, p.H);
  const auto decay_rows = operands.log_decay.of_head(h, p.H);
  const int first_row = static_cast<int>(span.first_row), rows = static_cast<int>(span.rows);

  const auto values_of = [](int stage) { return Memory::of_rounded ? 0 : stage; };
  const int lane_row = static_cast<int>(threadIdx.x);  // the row of a chunk that a thread of the first warp looks up
  const auto fetch_items = [&](int done) {
    if (gathered && lane_row < min(rows - done, chunk))
      __pipeline_memcpy_async(shared.items + lane_row, p.items + (first_row - p.own_rows + done + lane_row), sizeof(SparseItem));
  };
  const auto keep_rows = [&](int stage, int done) {
    if (lane_row >= chunk) return;
    const bool wanted = lane_row < rows - done;
    const int own = first_row + done + lane_row;
    const SparseItem item = gathered && wanted ? shared.items[lane_row] : own_item(own);
    const bool reads = wanted && (!gathered || item.choice < p.readers), writes = wanted && (!gathered || item.choice < p.writers);
    shared.rows[stage][lane_row] = {wanted ? item.row : 0,
                                    !reads     ? -1
                                    : gathered ? item.row * p.choices + item.choice
                                               : own,
                                    p.scale * item.read, item.write};
    const unsigned all_wanted = __ballot_sync(~0U, wanted), all_writes = __ballot_sync(~0U, writes);
    if (lane_row == 0) shared.wanted[stage] = all_wanted, shared.writes[stage] = all_writes;
  };
  const auto fetch_rows = [&](int stage) {
    const ChunkRow* const of_chunk = shared.rows[stage];
    const unsigned wanted = shared.wanted[stage], writes = shared.writes[stage];
    if constexpr (pass == Pass::outputs)
      fetch<K>(q_rows, of_chunk, wanted, 0, p.vectors, [&](int t, int c) { return shared.q + t * K + c; });
    fetch<K>(k_rows, of_chunk, wanted, 0, p.vectors, [&](int t, int c) { return shared.k + t * K + c; });
    fetch<columns>(v_rows, of_chunk, wanted, block_column, p.vectors, [&](int t, int c) {
      return shared.v[values_of(stage)] + (Memory::of_rounded ? t * columns + c : swizzle<columns>(t, c));
    });
    if constexpr (decay == Decay::per_channel) {
      fetch<K>(decay_rows, of_chunk, writes, 0, p.vectors, [&](int t, int c) { return shared.log_decay + t * K + c; });
    } else if (lane_row < chunk) {
      if (writes >> lane_row & 1 && decay_rows.width > 0) {
        __pipeline_memcpy_async(shared.log_decay + lane_row, decay_rows.row(of_chunk[lane_row].row), sizeof(float));
      } else {
        shared.log_decay[lane_row] = 0;
      }
    }
  };

  fetch_items(0);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  keep_rows(0, 0);
  __syncthreads();  // the rows of the first chunk
  if (rows > 0) fetch_rows(0);
  fetch_items(chunk);
  __pipeline_commit();
  StateTiles<K> S = {};
  if (pass == Pass::outputs) {
    const float* from = spans > 1 ? between : p.initial.row(slot) + h * of_state;
    each_of_state<K>(S, p.K, p.V, column, [from](float& x, int at) { x = from[at]; });
  }
  if (threadIdx.x < K) shared.since_middle[1][threadIdx.x] = 1;
  float decay_of_span = 1;  // of channel threadIdx.x
  int iteration = 0;        // counts pieces

#pragma unroll 1
  for (int done = 0; done < rows; done += chunk) {
    const int n = min(rows - done, chunk), first = first_row + done, stage = done / chunk % 2;
    const ChunkRow* const chunk_rows = shared.rows[stage];
    int begin = 0;
#pragma unroll 1
    do {
      OutputTiles o;
      if (pass == Pass::outputs) gathered_outputs(o, p, first, gathered ? 0 : n, h, column);
      if (begin == 0) __pipeline_wait_prior(0);
      __syncthreads();  // the chunk is there, and all have left the piece before
      if (begin == 0) {
        keep_rows(1 - stage, done + chunk);
        if constexpr (Memory::of_rounded) round_values(shared.rounded_v, shared.v[0]);
      }
      int size = begin == 0 ? chunk : begin & -begin;  // the largest piece that may begin here, halved until its decays fit
      const auto fits = [&] {
        return size == chunk ? decay_piece<decay, pass, K, true>(shared, chunk_rows, 0, chunk, iteration)
                             : decay_piece<decay, pass, K, false>(shared, chunk_rows, begin, begin + size, iteration);
      };
      while (__syncthreads_or(!fits())) size /= 2;
      const int end = begin + size;
      if (end >= n && done + chunk < rows) {
        fetch_rows(1 - stage);
        fetch_items(done + 2 * chunk);
        __pipeline_commit();
      }
      if (pass == Pass::states && threadIdx.x < K) decay_of_span *= shared.until_middle[threadIdx.x];
      if constexpr (pass == Pass::outputs) {
        if (warp < 6) multiply_rows<K>(shared, warp);
      }
      uint4 v[chunk / 16];
      const Bf16* values;
      if constexpr (Memory::of_rounded)
        values = shared.rounded_v;
      else
        values = shared.v[values_of(stage)];
#pragma unroll
      for (int s = 0; s < chunk / 16; ++s) {
        const uint4 x = ldmatrix_trans(lane_swizzle<columns>(values, 16 * s, 16 * warp));
        v[s] = {x.x, x.z, x.y, x.w};
      }
      // R = A S, o = x R + (x yᵀ) v, S = R + yᵀ v
      scale_state<K>(S, shared.until_middle);
      if constexpr (pass == Pass::outputs) read_state<K>(o, S, shared.x);
      write_state<K>(S, v, shared.y);
      if constexpr (pass == Pass::outputs) {
        __syncthreads();  // the scores
        if (!idle) {
          read_chunk(o, v, shared);
          store_outputs(p, operands, o, chunk_rows, begin, min(end, n), h, column);
        }
      }
      begin = end;
      ++iteration;
    } while (begin < n);
  }

  // S = A(r, end) S
  if (rows > 0) scale_state<K>(S, shared.since_middle[1 - iteration % 2]);
  if (pass == Pass::states) {
    each_of_state<K>(S, p.K, p.V, column, [between](float& x, int at) { between[at] = x; });
    const int width = p.decay_width(), channel = static_cast<int>(threadIdx.x);
    if (tile == 0 && channel < width)
      p.decays[(std::int64_t{number} * p.H + h) * width + channel] = decay_of_span * shared.since_middle[1 - iteration % 2][channel];
  } else if (span.index == spans - 1) {
    float* const final = p.final.row(slot) + h * of_state;
    each_of_state<K>(S, p.K, p.V, column, [final](float& x, int at) { final[at] = x; });
  }
}

/// A thread has `numbers` adjacent values of a state, of every stride-th segment: turns what spans add into the states that they begin
/// with.
template <int numbers>
__global__ void __launch_bounds__(threads) spans_kernel(const __grid_constant__ Spans p) {
  struct alignas(sizeof(float) * numbers) Numbers {
    float x[numbers];
  };
  constexpr int at_once = 16;  // loads in flight
  grid_dependency_wait();
  const int of_state = p.K * p.V, blocks = (of_state / numbers + threads - 1) / threads, block = static_cast<int>(blockIdx.x);
  const int i = (block % blocks * threads + static_cast<int>(threadIdx.x)) * numbers, h = block / blocks % p.H;
  if (i >= of_state) return;
  const int width = p.decay_width, next_state = p.H * of_state, next_decay = p.H * width;
  for (std::int64_t s = block / blocks / p.H; s < p.segments.count; s += static_cast<int>(gridDim.x) / blocks / p.H) {
    const auto spans = static_cast<int>((p.segments.cu_seqlens[s + 1] - p.segments.cu_seqlens[s] + p.length - 1) / p.length);
    if (spans <= 1) continue;
    const std::int64_t number = first_piece(p.segments, s, p.length);
    float* state = p.states + (number * p.H + h) * of_state + i;
    const float* decay = p.decays + (number * p.H + h) * width + (width > 1 ? i / p.V : 0);
    Numbers S = *reinterpret_cast<const Numbers*>(p.initial.row(p.segments.slot_of(s)) + std::int64_t{h} * of_state + i);
    for (int first = 0; first < spans; first += at_once) {
      Numbers added[at_once];
      float a[at_once];
#pragma unroll
      for (int j = 0; j < at_once; ++j) {
        const bool there = first + j < spans - 1;
        added[j] = there ? *reinterpret_cast<const Numbers*>(state + std::int64_t{j} * next_state) : Numbers{};
        a[j] = there ? decay[j * next_decay] : 0;
      }
#pragma unroll
      for (int j = 0; j < at_once; ++j) {
        if (first + j < spans) *reinterpret_cast<Numbers*>(state + std::int64_t{j} * next_state) = S;
          // S ← A S + what the span adds
#pragma unroll
        for (int c = 0; c < numbers; ++c) S.x[c] = fmaf(a[j], S.x[c], added[j].x[c]);
      }
      state += std::int64_t{at_once} * next_state, decay += at_once * next_decay;
    }
  }
  launch_dependents();
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

/// As many rows as give each multiprocessor of the largest devices two blocks, within limits: fewer rows are not worth a state, and longer
/// spans would leave multiprocessors idle at the end.
std::int64_t span_of(const DecayedOuterProduct& op, const GatheredSegments& gathered) {
  constexpr std::int64_t blocks = 2 * wanted_blocks, shortest = 64, longest = 4096;
  const std::int64_t tiles = (op.initial_state.shape[3] + columns - 1) / columns;
  const std::int64_t even = (std::max(op.o.rows(), gathered.count) * op.initial_state.shape[1] * tiles + blocks - 1) / blocks;
  return std::clamp((even + chunk - 1) / chunk * chunk, shortest, longest);
}

Decay decay_of(const DecayedOuterProduct& op) {
  return op.log_decay && op.log_decay.shape.rank() == 3 ? Decay::per_channel : Decay::per_head;
}
std::int64_t decay_width(const DecayedOuterProduct& op) { return decay_of(op) == Decay::per_channel ? op.log_decay.shape[2] : 1; }

int extent(std::int64_t n) { return static_cast<int>(n); }

template <class Number>
ChunkOperand<Number> chunk_operand(ConstTensor x) {
  if (!x) return {};
  return {static_cast<const Number*>(x.data), extent(x.stride), extent(x.shape[1]), x.shape.rank() == 3 ? extent(x.shape[2]) : 1};
}

template <class Number>
OuterOperands<Number> operands(ConstTensor q, ConstTensor k, ConstTensor log_decay, Tensor o) {
  return {chunk_operand<Number>(q), chunk_operand<Number>(k), chunk_operand<float>(log_decay), static_cast<Number*>(o.data),
          extent(o.stride)};
}

/// Every row, and every head of it, begins at 16 bytes and consists of them.
bool vectors(ConstTensor x) {
  constexpr std::int64_t unit = 8;
  return !x || (reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0 && x.stride % unit == 0 && x.shape[x.shape.rank() - 1] % unit == 0);
}

template <class Number, Decay decay, Pass pass, int K>
void launch_pass(const Problem<Number>& p, std::int64_t begin, std::int64_t end, cudaStream_t stream) {
  launch("decayed_outer_product_chunks", span_kernel<Number, decay, pass, K>, static_cast<unsigned>((end - begin) * p.H * p.tiles()),
         threads, sizeof(Shared<Number, decay, pass, K>), stream, p, extent(begin));
}

template <class Number, Decay decay, int K>
void launch_passes(const Problem<Number>& p, std::int64_t items, cudaStream_t stream) {
  const std::int64_t own = most_pieces(p.own_rows, p.own_segments, p.span), all = most_pieces(p.own_rows + items, p.segments.count, p.span);
  if (p.segments.longest > p.span) {
    launch_pass<Number, decay, Pass::states, K>(p, 0, all, stream);
    combine_spans({p.segments, p.initial, p.H, p.K, p.V, p.decay_width(), p.span, p.states, p.decays}, stream);
  }
  launch_pass<Number, decay, Pass::outputs, K>(p, own, all, stream);  // gathered rows first: the own ones add their contributions
  launch_pass<Number, decay, Pass::outputs, K>(p, 0, own, stream);
}

template <class Number>
void launch_chunks(const DecayedOuterProduct& op, const DeviceSegments& segments, float* scratch, const GatheredSegments& gathered,
                   cudaStream_t stream) {
  const Shape& state = op.initial_state.shape;
  Problem<Number> p{
      {operands<Number>(op.q, op.k, op.log_decay, op.o), operands<Number>(gathered.q, gathered.k, gathered.log_decay, gathered.o)},
      chunk_operand<Number>(op.v),
      f32(op.initial_state),
      f32(op.final_state),
      extent(state[1]),
      extent(state[2]),
      extent(state[3]),
      op.scale,
      segments,
      gathered.items,
      extent(op.o.rows()),
      extent(gathered.items ? gathered.first_segment : segments.count),
      extent(gathered.choices),
      extent(gathered.writers),
      extent(gathered.readers)};
  const bool channels = decay_of(op) == Decay::per_channel;
  const ConstTensor all[] = {op.q, op.k, op.v, op.o, gathered.q, gathered.k, gathered.o};
  p.vectors = std::all_of(std::begin(all), std::end(all), vectors) && (!channels || (vectors(op.log_decay) && vectors(gathered.log_decay)));
  p.span = span_of(op, gathered);
  p.states = scratch;
  p.decays = scratch + most_pieces(p.own_rows + gathered.count, segments.count, p.span) * p.H * p.K * p.V;
  constexpr int narrow = 64, wide = 128;
  if (p.K <= narrow)
    return channels ? launch_passes<Number, Decay::per_channel, narrow>(p, gathered.count, stream)
                    : launch_passes<Number, Decay::per_head, narrow>(p, gathered.count, stream);
  channels ? launch_passes<Number, Decay::per_channel, wide>(p, gathered.count, stream)
           : launch_passes<Number, Decay::per_head, wide>(p, gathered.count, stream);
}

}  // namespace

void combine_spans(const Spans& p, cudaStream_t stream) {
  // Most segments of sparse states have one span: a block that skips them costs less than as many blocks.
  const auto blocks = [&](int numbers) {
    constexpr unsigned most = 8 * static_cast<unsigned>(wanted_blocks);
    const unsigned of_segment = blocks_for(p.K * p.V / numbers, threads) * static_cast<unsigned>(p.H);
    return of_segment * std::clamp(most / of_segment, 1U, static_cast<unsigned>(std::max<std::int64_t>(p.segments.count, 1)));
  };
  const bool fours = p.V % 4 == 0 && reinterpret_cast<std::uintptr_t>(p.initial.data) % 16 == 0;
  fours ? launch_overlapped("decayed_outer_product: spans", spans_kernel<4>, blocks(4), threads, 0, stream, p)
        : launch_overlapped("decayed_outer_product: spans", spans_kernel<1>, blocks(1), threads, 0, stream, p);
}

bool decayed_outer_product_chunks_supported(const DecayedOuterProduct& op) {
  return op.initial_state.shape[2] <= most_channels_in_chunks && (op.decay_axis == DecayAxis::rows || decay_of(op) == Decay::per_head) &&
         sizeof(Shared<float, Decay::per_channel, Pass::outputs, most_channels_in_chunks>) <= most_shared_bytes();
}

std::size_t decayed_outer_product_chunks_scratch(const DecayedOuterProduct& op, std::int64_t segments, std::int64_t longest,
                                                 const GatheredSegments& gathered) {
  const std::int64_t span = span_of(op, gathered);
  if (longest <= span) return 0;
  const Shape& state = op.initial_state.shape;
  const std::int64_t spans = most_pieces(op.o.rows() + gathered.count, segments, span);
  return static_cast<std::size_t>(spans * state[1] * (state[2] * state[3] + decay_width(op))) * sizeof(float);
}

void decayed_outer_product_chunks(const DecayedOuterProduct& op, const DeviceSegments& segments, void* scratch, cudaStream_t stream,
                                  const GatheredSegments& gathered) {
  if (op.q.dtype == DType::bf16) return launch_chunks<Bf16>(op, segments, static_cast<float*>(scratch), gathered, stream);
  launch_chunks<float>(op, segments, static_cast<float*>(scratch), gathered, stream);
}

}  // namespace statescope::cuda

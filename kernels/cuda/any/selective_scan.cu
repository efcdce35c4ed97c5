// The selective scan: parallel over channels, over the states of a channel, and, where those are too few to fill the device, over chunks
// of rows. A is the same at all times, so what a chunk leaves of the state before it is exp(A Σ Δ): chunks are scanned from 0, their ends
// are combined, and they are scanned again from where they begin. The exponentials bound it: one a row, state and channel, or two in
// chunks.
#include "kernels/cuda/common/selective_scan.h"

#include <algorithm>

#include "kernels/cuda/common/decays.h"
#include "kernels/cuda/common/numbers.h"
#include "kernels/cuda/common/recurrence.h"

namespace statescope::cuda {
namespace {

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

struct ScanProblem {
  Numbers<const void> x;      // [rows, H, P]
  Numbers<void> o;            // [rows, H, P]
  F32Rows dt, B, C;           // [rows, H, P], [rows, ≤H, N]
  const float* A;             // [H, N, P]
  Rows<const float> initial;  // [slots, H, N, P]
  Rows<float> final;
  std::int64_t H, N, P;
  float rate;  // log₂ e · decay_factor: exp2(rate · Δ A) is a decay
  DeviceSegments segments;
  std::int64_t chunks = 1;  // of every segment
  float* states = nullptr;  // [segments, chunks, H, N, P]: first what a chunk makes of 0, then what it begins with
  float* steps = nullptr;   // [segments, chunks, H, P]: Σ Δ
};

/// Rows [begin, end) of a segment, counted from its first.
struct ChunkRows {
  std::int64_t begin, end;
};
__device__ ChunkRows chunk_rows(std::int64_t rows, std::int64_t chunk, std::int64_t chunks) {
  const std::int64_t each = (rows + chunks - 1) / chunks;
  return {min(rows, chunk * each), min(rows, (chunk + 1) * each)};
}

/// whole: from the initial state to the final one; from_zero: a chunk's own part of the state at its end; read: o of a chunk.
enum class Phase { whole, from_zero, read };

/// One block per (segment, chunk, head, channels of a tile). A channel has `Lanes` neighbours of a warp, each `States` of its states, which
/// it keeps in registers from the chunk's first row to its last. What all channels read, B and C, comes in batches through shared memory.
template <int Lanes, int States>
struct ScanTile {
  static constexpr int channels = recurrence_threads / Lanes, states = Lanes * States;
  static constexpr int batch = states > 64 ? 8 : 16;  // rows

  struct Batch {
    float *B, *C;  // [batch, states]
    __device__ explicit Batch(float* memory) : B(memory), C(B + batch * states) {}
  };

  static __device__ void fetch_batch(const Batch& to, const ScanProblem& p, std::int64_t first, int n, std::int64_t h) {
    fetch<states>(to.B, p.B.at(first, h, p.H), p.B.rows.stride, n, p.N);
    fetch<states>(to.C, p.C.at(first, h, p.H), p.C.rows.stride, n, p.N);
    __pipeline_commit();
  }
};

/// What a lane reads of its channel, some rows ahead.
struct ChannelRows {
  static constexpr int size = 4;
  float x[size], dt[size];

  /// The rows from `row` on, as many as there are before `end`.
  __device__ void load(const ScanProblem& p, std::int64_t row, std::int64_t end, std::int64_t h, std::int64_t channel) {
    const float* const steps = p.dt.at(row, h, p.H) + channel;
    const std::int64_t from = row * p.x.stride + h * p.P + channel;
    const int there = channel < p.P ? static_cast<int>(min(end - row, std::int64_t{size})) : 0;
#pragma unroll
    for (int t = 0; t < size; ++t) dt[t] = t < there ? steps[t * p.dt.rows.stride] : 0;
    if (p.x.bf16) {
#pragma unroll
      for (int t = 0; t < size; ++t)
        x[t] = t < there ? __bfloat162float(static_cast<const __nv_bfloat16*>(p.x.data)[from + t * p.x.stride]) : 0;
    } else {
#pragma unroll
      for (int t = 0; t < size; ++t) x[t] = t < there ? static_cast<const float*>(p.x.data)[from + t * p.x.stride] : 0;
    }
  }
};

constexpr int blocks_of_processor = 6;  // of a scan: what the registers of 16 states allow

template <int Lanes, int States, Phase phase>
__global__ void __launch_bounds__(recurrence_threads, blocks_of_processor) scan_kernel(ScanProblem p) {
  using Tile = ScanTile<Lanes, States>;
  using Batch = typename Tile::Batch;
  __shared__ __align__(16) float shared[2][2 * Tile::batch * Tile::states];
  begin_overlapped();
  const std::int64_t tiles = (p.P + Tile::channels - 1) / Tile::channels;
  const std::int64_t first_channel = blockIdx.x % tiles * Tile::channels, h = blockIdx.x / tiles % p.H;
  const std::int64_t chunk = blockIdx.x / tiles / p.H % p.chunks, s = blockIdx.x / tiles / p.H / p.chunks;
  const std::int64_t first_row = p.segments.cu_seqlens[s];
  const auto [begin, end] = chunk_rows(p.segments.cu_seqlens[s + 1] - first_row, chunk, p.chunks);
  const int own = static_cast<int>(threadIdx.x) / Lanes, lane = static_cast<int>(threadIdx.x) % Lanes;
  const std::int64_t channel = first_channel + own, of_chunk = s * p.chunks + chunk;
  const auto cell = [&](int i) { return (h * p.N + lane * States + i) * p.P + channel; };
  const auto is_there = [&](int i) { return channel < p.P && lane * States + i < p.N; };
  float* const chunk_state = phase == Phase::whole ? nullptr : p.states + of_chunk * p.H * p.N * p.P;

  float S[States], A[States], steps = 0;
#pragma unroll
  for (int i = 0; i < States; ++i) {
    A[i] = is_there(i) ? p.rate * p.A[cell(i)] : 0;
    S[i] = 0;
    if constexpr (phase == Phase::whole) S[i] = is_there(i) ? p.initial.row(p.segments.slot_of(s))[cell(i)] : 0;
    if constexpr (phase == Phase::read) S[i] = is_there(i) ? chunk_state[cell(i)] : 0;
  }

  Batch batch(shared[0]), next(shared[1]);
  ChannelRows now, soon;
  const auto fetch_from = [&](const Batch& to, std::int64_t row) {
    if (row < end) Tile::fetch_batch(to, p, first_row + row, static_cast<int>(min(end - row, std::int64_t{Tile::batch})), h);
  };
  fetch_from(batch, begin);
  now.load(p, first_row + begin, first_row + end, h, channel);
  for (std::int64_t row = begin; row < end; row += Tile::batch) {
    __pipeline_wait_prior(0);
    __syncthreads();  // the batch is complete, and all have left the one before it
    fetch_from(next, row + Tile::batch);
    const int n = static_cast<int>(min(end - row, std::int64_t{Tile::batch}));
    for (int first = 0; first < n; first += ChannelRows::size) {
      soon.load(p, first_row + row + first + ChannelRows::size, first_row + end, h, channel);
#pragma unroll
      for (int t = 0; t < ChannelRows::size; ++t) {
        if (first + t >= n) break;
        const Four *B = reinterpret_cast<const Four*>(batch.B + (first + t) * Tile::states) + lane * (States / 4),
                   *C = reinterpret_cast<const Four*>(batch.C + (first + t) * Tile::states) + lane * (States / 4);
        const float dt = now.dt[t], u = dt * now.x[t];
        float y = 0;
#pragma unroll
        for (int i = 0; i < States; i += 4) {
          const Four B_i = B[i / 4], C_i = C[i / 4];
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            // S_n = e^{Δ A_n} S_n + B_n Δ x,  o = o + C_n S_n
            S[i + j] = fmaf(B_i.x[j], u, exp2_of(dt * A[i + j]) * S[i + j]);
            if constexpr (phase != Phase::from_zero) y = fmaf(C_i.x[j], S[i + j], y);
          }
        }
        if constexpr (phase == Phase::from_zero) {
          steps += dt;
        } else {
#pragma unroll
          for (int distance = 1; distance < Lanes; distance *= 2) y += __shfl_xor_sync(~0U, y, distance);
          if (lane == 0 && channel < p.P) p.o.template store<1>(first_row + row + first + t, h * p.P + channel, Pack<1>{{y}});
        }
      }
      now = soon;
    }
    const Batch read = batch;
    batch = next;
    next = read;
  }

  if constexpr (phase == Phase::read) return;
  float* const end_state = phase == Phase::whole ? p.final.row(p.segments.slot_of(s)) : chunk_state;
#pragma unroll
  for (int i = 0; i < States; ++i) {
    if (is_there(i)) end_state[cell(i)] = S[i];
  }
  if (phase == Phase::from_zero && lane == 0 && channel < p.P) p.steps[(of_chunk * p.H + h) * p.P + channel] = steps;
}

constexpr unsigned kCombineThreads = 256;

/// One thread per cell of a segment's state: states[k] becomes the state before chunk k, S ← exp(A Σ Δ) S + states[k] the one behind it.
__global__ void __launch_bounds__(kCombineThreads) combine_kernel(ScanProblem p) {
  begin_overlapped();
  const std::int64_t size = p.H * p.N * p.P, i = std::int64_t{blockIdx.x} * kCombineThreads + threadIdx.x;
  if (i >= p.segments.count * size) return;
  const std::int64_t s = i / size, cell = i % size, h = cell / (p.N * p.P), channel = cell % p.P;
  const float A = p.rate * p.A[cell];
  float S = p.initial.row(p.segments.slot_of(s))[cell];
  for (std::int64_t k = s * p.chunks; k < (s + 1) * p.chunks; ++k) {
    float& state = p.states[k * size + cell];
    const float made = state;
    state = S;
    S = fmaf(exp2_of(A * p.steps[(k * p.H + h) * p.P + channel]), S, made);
  }
  p.final.row(p.segments.slot_of(s))[cell] = S;
}

constexpr int kStepColumns = 32, kStepRows = 8;

/// One block per (head, kStepColumns · Width channels): threads of one y take every kStepRows-th state of them.
template <int Width>
__global__ void __launch_bounds__(kStepColumns* kStepRows)
    step_kernel(ScanProblem p, Numbers<const void> dt, Numbers<const void> A, Numbers<const void> initial, Numbers<void> final,
                std::int64_t slot) {
  __shared__ Pack<Width> sums[kStepRows][kStepColumns];
  begin_overlapped();
  const int column = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const std::int64_t h = blockIdx.y, channel = (std::int64_t{blockIdx.x} * kStepColumns + column) * Width;
  Pack<Width> o{};
  if (channel < p.P) {
    const Pack<Width> step = dt.template load<Width>(0, h * p.P + channel), x = p.x.template load<Width>(0, h * p.P + channel);
    for (std::int64_t n = y; n < p.N; n += kStepRows) {
      const std::int64_t cell = (h * p.N + n) * p.P + channel;
      const float B = p.B.at(0, h, p.H)[n], C = p.C.at(0, h, p.H)[n];
      const Pack<Width> rate = A.template load<Width>(0, cell);
      Pack<Width> S = initial.template load<Width>(slot, cell);
#pragma unroll
      for (int j = 0; j < Width; ++j) {
        S.at[j] = fmaf(B, step.at[j] * x.at[j], exp2_of(p.rate * step.at[j] * rate.at[j]) * S.at[j]);
        o.at[j] = fmaf(C, S.at[j], o.at[j]);
      }
      final.template store<Width>(slot, cell, S);
    }
  }
  sums[y][column] = o;
  __syncthreads();
  if (y > 0 || channel >= p.P) return;
  for (int other = 1; other < kStepRows; ++other) {
#pragma unroll
    for (int j = 0; j < Width; ++j) o.at[j] += sums[other][column].at[j];
  }
  p.o.template store<Width>(0, h * p.P + channel, o);
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

ScanProblem scan_problem(const SelectiveScan& op, const DeviceSegments& segments) {
  const Shape& state = op.initial_state.shape;
  return {numbers(op.x),       numbers(op.o), f32_rows(op.dt), f32_rows(op.B), f32_rows(op.C),           op.A.f32(), f32(op.initial_state),
          f32(op.final_state), state[1],      state[2],        state[3],       log2_e * op.decay_factor, segments};
}

/// Lanes of a channel: few where that is enough, for they read the same x and Δ and have to sum o.
int lanes_for(std::int64_t N) { return N <= 16 ? 1 : N <= 32 ? 2 : N <= 64 ? 4 : 16; }

/// Chunks of every segment: enough to fill the device, and only where that outweighs a second scan.
std::int64_t chunks_for(const SelectiveScan& op, const DeviceSegments& segments) {
  constexpr std::int64_t least_rows = 64, worth_a_second_scan = 3;
  const Shape& state = op.initial_state.shape;
  const std::int64_t channels = recurrence_threads / lanes_for(state[2]);
  const std::int64_t blocks = segments.count * state[1] * ((state[3] + channels - 1) / channels);
  if (blocks == 0) return 1;
  const std::int64_t chunks = std::min(blocks_of_processor * multiprocessors() / blocks, segments.longest / least_rows);
  return chunks < worth_a_second_scan ? 1 : chunks;
}

template <int Lanes, int States>
void launch_scan(const ScanProblem& p, cudaStream_t stream) {
  const std::int64_t tiles = (p.P + ScanTile<Lanes, States>::channels - 1) / ScanTile<Lanes, States>::channels;
  const auto blocks = static_cast<unsigned>(p.segments.count * p.chunks * p.H * tiles);
  constexpr const char* name = "selective_scan";
  if (p.chunks == 1) return launch_overlapped(name, scan_kernel<Lanes, States, Phase::whole>, blocks, recurrence_threads, 0, stream, p);
  launch_overlapped(name, scan_kernel<Lanes, States, Phase::from_zero>, blocks, recurrence_threads, 0, stream, p);
  launch_overlapped(name, combine_kernel, blocks_for(p.segments.count * p.H * p.N * p.P, kCombineThreads), kCombineThreads, 0, stream, p);
  launch_overlapped(name, scan_kernel<Lanes, States, Phase::read>, blocks, recurrence_threads, 0, stream, p);
}

template <int Width>
void launch_step(const SelectiveScan& op, const ScanProblem& p, std::int64_t slot, cudaStream_t stream) {
  const dim3 grid(blocks_for(p.P, kStepColumns * Width), static_cast<unsigned>(p.H));
  launch_overlapped("selective_scan_step", step_kernel<Width>, grid, dim3(kStepColumns, kStepRows), 0, stream, p, numbers(op.dt),
                    numbers(op.A), numbers(op.initial_state), numbers(op.final_state), slot);
}

}  // namespace

bool selective_scan_step(const SelectiveScan& op, cudaStream_t stream) {
  if (op.segments.count() != 1 || op.o.rows() != 1) return false;
  const ScanProblem p = scan_problem(op, {});
  const bool packs = p.P % 4 == 0 && p.x.in_packs(4) && p.o.in_packs(4) && in_packs(op.dt, 4) && in_packs(op.A, 4) &&
                     in_packs(op.initial_state, 4) && in_packs(op.final_state, 4);
  const std::int64_t slot = op.segments.slot_of(0);
  packs ? launch_step<4>(op, p, slot, stream) : launch_step<1>(op, p, slot, stream);
  return true;
}

std::size_t selective_scan_scratch(const SelectiveScan& op, const DeviceSegments& segments) {
  const std::int64_t chunks = chunks_for(op, segments);
  const Shape& state = op.initial_state.shape;
  if (chunks == 1) return 0;
  return static_cast<std::size_t>(segments.count * chunks * state[1] * (state[2] + 1) * state[3]) * sizeof(float);
}

void selective_scan(const SelectiveScan& op, const DeviceSegments& segments, void* scratch, cudaStream_t stream) {
  ScanProblem p = scan_problem(op, segments);
  p.chunks = chunks_for(op, segments);
  if (p.chunks > 1) {
    p.states = static_cast<float*>(scratch);
    p.steps = p.states + segments.count * p.chunks * p.H * p.N * p.P;
  }
  if (p.N <= 8) return launch_scan<1, 8>(p, stream);
  if (p.N <= 16) return launch_scan<1, 16>(p, stream);
  if (p.N <= 32) return launch_scan<2, 16>(p, stream);
  if (p.N <= 64) return launch_scan<4, 16>(p, stream);
  if (p.N <= 256) return launch_scan<16, 16>(p, stream);
  throw std::invalid_argument("selective_scan: B: found " + std::to_string(p.N) + " states a channel, a GPU takes at most 256");
}

}  // namespace statescope::cuda

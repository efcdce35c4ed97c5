// State spaces of S4 and S4D, row after row: a channel needs no other channel.
#include "kernels/cuda/common/operations.h"

namespace statescope::cuda {
namespace {

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

constexpr int channels_of_block = 32, groups = 8, threads = channels_of_block * groups;

struct Problem {
  Rows<const float> u, A, B, C, initial;  // rows of A, B, C and the states: one of their parts
  Rows<float> final, o;
  std::int64_t rows, N, channels;
};

/// The channel and the group of a thread; threads of one channel share out its states.
struct Place {
  int lane = static_cast<int>(threadIdx.x) % channels_of_block, group = static_cast<int>(threadIdx.x) / channels_of_block;
  std::int64_t channel = static_cast<std::int64_t>(blockIdx.x) * channels_of_block + lane;
};

/// o_t of every channel: the sum over the groups. A barrier before and behind.
__device__ void write_sum(float (&parts)[groups][channels_of_block], const Place& at, float part, const Problem& p, std::int64_t t,
                          float factor) {
  parts[at.group][at.lane] = part;
  __syncthreads();
  if (at.group == 0 && at.channel < p.channels) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < groups; ++i) sum += parts[i][at.lane];
    p.o.row(t)[at.channel] = factor * sum;
  }
  __syncthreads();
}

/// X = A ⊙ X + B u,   o = 2 Re(C X): one block per `channels_of_block` channels; a thread keeps its `states` states and their A, B and C in
/// registers from the first row to the last.
template <int states>
__global__ void __launch_bounds__(threads) diagonal_kernel(Problem p) {
  __shared__ float parts[groups][channels_of_block];
  begin_overlapped();
  const Place at;
  float x[states], x_im[states], a[states], a_im[states], b[states], b_im[states], c[states], c_im[states];
#pragma unroll
  for (int i = 0; i < states; ++i) {
    const std::int64_t n = at.group + i * groups, cell = n * p.channels + at.channel;
    const bool there = n < p.N && at.channel < p.channels;
    const auto of = [&](const Rows<const float>& rows, int part) { return there ? rows.row(part)[cell] : 0.0F; };
    x[i] = of(p.initial, 0), x_im[i] = of(p.initial, 1);
    a[i] = of(p.A, 0), a_im[i] = of(p.A, 1);
    b[i] = of(p.B, 0), b_im[i] = of(p.B, 1);
    c[i] = of(p.C, 0), c_im[i] = of(p.C, 1);
  }
  for (std::int64_t t = 0; t < p.rows; ++t) {
    const float u = at.channel < p.channels ? p.u.row(t)[at.channel] : 0;
    float o = 0;
#pragma unroll
    for (int i = 0; i < states; ++i) {
      const float re = fmaf(a[i], x[i], fmaf(-a_im[i], x_im[i], b[i] * u)), im = fmaf(a[i], x_im[i], fmaf(a_im[i], x[i], b_im[i] * u));
      x[i] = re;
      x_im[i] = im;
      o = fmaf(c[i], re, fmaf(-c_im[i], im, o));
    }
    write_sum(parts, at, o, p, t, 2);
  }
#pragma unroll
  for (int i = 0; i < states; ++i) {
    const std::int64_t n = at.group + i * groups, cell = n * p.channels + at.channel;
    if (n >= p.N || at.channel >= p.channels) continue;
    p.final.row(0)[cell] = x[i];
    p.final.row(1)[cell] = x_im[i];
  }
}

/// X = A X + B u,   o = C X: likewise; the states of all channels of a block lie in shared memory, twice: before and after a row.
__global__ void __launch_bounds__(threads) dense_kernel(Problem p) {
  __shared__ float parts[groups][channels_of_block];
  extern __shared__ float states[];  // [2, N, channels_of_block]
  begin_overlapped();
  const Place at;
  const bool there = at.channel < p.channels;
  float *X = states, *next = states + p.N * channels_of_block;
  for (std::int64_t n = at.group; n < p.N; n += groups)
    X[n * channels_of_block + at.lane] = there ? p.initial.row(0)[n * p.channels + at.channel] : 0;
  __syncthreads();
  for (std::int64_t t = 0; t < p.rows; ++t) {
    const float u = there ? p.u.row(t)[at.channel] : 0;
    float o = 0;
    for (std::int64_t n = at.group; there && n < p.N; n += groups) {
      const float* a = p.A.row(n) + at.channel;
      float x = p.B.row(0)[n * p.channels + at.channel] * u;
      for (std::int64_t m = 0; m < p.N; ++m) x = fmaf(a[m * p.channels], X[m * channels_of_block + at.lane], x);
      next[n * channels_of_block + at.lane] = x;
      o = fmaf(p.C.row(0)[n * p.channels + at.channel], x, o);
    }
    write_sum(parts, at, o, p, t, 1);
    float* const read = X;
    X = next;
    next = read;
  }
  for (std::int64_t n = at.group; there && n < p.N; n += groups)
    p.final.row(0)[n * p.channels + at.channel] = X[n * channels_of_block + at.lane];
}

}  // namespace

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

void state_space(const StateSpace& op, cudaStream_t stream) {
  constexpr const char* name = "state_space";
  const Problem p{f32(op.u),           f32(op.A), f32(op.B),   f32(op.C),     f32(op.initial_state),
                  f32(op.final_state), f32(op.o), op.o.rows(), op.B.shape[1], op.B.shape[2]};
  const unsigned blocks = blocks_for(p.channels, channels_of_block);
  constexpr std::int64_t most = 256;
  if (p.N > most)
    throw std::invalid_argument("state_space: B: found " + std::to_string(p.N) + " states, a GPU takes at most " + std::to_string(most));
  if (op.B.shape[0] == 1) {
    const std::size_t bytes = 2 * static_cast<std::size_t>(p.N) * channels_of_block * sizeof(float);
    return launch_overlapped(name, dense_kernel, blocks, threads, bytes, stream, p);
  }
  const auto start = [&](auto kernel) { launch_overlapped(name, kernel, blocks, threads, 0, stream, p); };
  if (p.N <= groups) return start(diagonal_kernel<1>);
  if (p.N <= 4 * groups) return start(diagonal_kernel<4>);
  if (p.N <= 8 * groups) return start(diagonal_kernel<8>);
  start(diagonal_kernel<32>);
}

}  // namespace statescope::cuda

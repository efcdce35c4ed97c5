// The CUDA forms of routing: a warp owns a row.
#include "kernels/cuda/common/numbers.h"
#include "kernels/cuda/common/operations.h"
#include "kernels/cuda/common/order.h"
#include "kernels/ops/routing.h"

namespace statescope::cuda {
namespace {

constexpr unsigned warp_size = 32, warps = 4;  // of a block

// ---- kernels -------------------------------------------------------------------------------------------------------------------------

/// The row of a warp, among rows that are counted through all blocks.
__device__ std::int64_t own_row() { return std::int64_t{blockIdx.x} * (blockDim.x / warp_size) + threadIdx.x / warp_size; }

/// Choice w is the first in order after choice w − 1.
__global__ void top_k_kernel(Rows<std::int32_t> ids, Rows<const float> scores, std::int64_t rows, std::uint32_t N, std::uint32_t W) {
  begin_overlapped();
  const std::int64_t t = own_row();
  const std::uint32_t lane = threadIdx.x % warp_size;
  if (t >= rows) return;
  const float* score = scores.row(t);
  Order last = before_all;
  for (std::uint32_t w = 0; w < W; ++w) {
    last = next_in_order(score, N, lane, last);
    if (lane == 0) ids.row(t)[w] = index_of(last);
  }
}

/// y may be gate: every lane has the sum before one of them writes.
__global__ void renormalise_kernel(Rows<float> y, Rows<const float> gate, Rows<const std::int32_t> ids, std::int64_t rows, std::uint32_t N,
                                   std::uint32_t W) {
  const std::int64_t t = own_row();
  if (t >= rows) return;
  const float* in = gate.row(t);
  const std::int32_t* chosen = ids.row(t);
  float sum = 0;
  for (std::uint32_t w = 0; w < W; ++w) sum += in[chosen[w]];
  __syncwarp();
  // y[t, n] = gate[t, n] / Σ_{m ∈ ids[t]} gate[t, m] for n ∈ ids[t]
  for (std::uint32_t n = threadIdx.x % warp_size; n < N; n += warp_size) {
    bool is_chosen = false;
    for (std::uint32_t w = 0; w < W; ++w) is_chosen |= chosen[w] == static_cast<std::int32_t>(n);
    y.row(t)[n] = is_chosen ? in[n] / sum : 0;
  }
}

/// How many of the K rows come before `own`.
__device__ std::uint32_t rank_of(Order own, const Order* orders, std::uint32_t K) {
  std::uint32_t rank = 0;
  for (std::uint32_t j = 0; j < K; ++j) rank += orders[j] > own;
  return rank;
}

/// A warp owns a head of a token, a lane every 32nd of its K rows. k may be z: a lane reads z_r last, before it writes k_r; what the others
/// need of it stands in shared memory by then.
__global__ void row_sparse_kernel(Numbers<void> k, Rows<float> log_decay, Numbers<const void> z, std::int64_t tokens, std::int64_t H,
                                  std::uint32_t K, std::uint32_t topk, bool skip_decay) {
  extern __shared__ Order orders_of_block[];  // [warps, K]
  const std::int64_t head = own_row();
  const std::uint32_t lane = threadIdx.x % warp_size;
  if (head >= tokens * H) return;
  const std::int64_t t = head / H, begin = head % H * K;
  Order* orders = orders_of_block + threadIdx.x / warp_size * K;
  const auto in = [&](std::uint32_t r) { return z.number(t, begin + r); };
  float* decay = log_decay.row(t) + begin;

  float largest = in(0);
  for (std::uint32_t r = lane; r < K; r += warp_size) {
    orders[r] = order_of(in(r), r);
    largest = largest < in(r) ? in(r) : largest;
  }
  __syncwarp();
  // Every lane began with z_0: a NaN there stays with all of them, one elsewhere is the smallest, as in the CPU form.
  largest = combined(largest, [](float a, float b) { return a < b ? b : a; });

  // k_r = exp(z_r) / Σ_{j∈R} exp(z_j)     (SSE eq. 7)
  float sum = 0;
  for (std::uint32_t r = lane; r < K; r += warp_size) {
    const bool chosen = rank_of(orders[r], orders, K) < topk;
    const float e = chosen ? expf(in(r)-largest) : 0;
    k.store<1>(t, begin + r, {e});
    sum += e;
    if (skip_decay && !chosen) decay[r] = 0;
  }
  sum = sum_of_warp(sum);
  for (std::uint32_t r = lane; r < K; r += warp_size) k.store<1>(t, begin + r, {k.number(t, begin + r) / sum});
}

}  // namespace

// ---- launchers -----------------------------------------------------------------------------------------------------------------------

void top_k(Tensor ids, ConstTensor scores, cudaStream_t stream) {
  const std::int64_t N = scores.row_size(), W = ids.row_size();
  if (ids.rows() != scores.rows() || W < 1 || W > N)
    throw std::invalid_argument("top_k: " + ids.shape.to_string() + " of " + scores.shape.to_string());
  launch_overlapped("top_k", top_k_kernel, blocks_for(ids.rows(), warps), warps * warp_size, 0, stream, i32(ids), f32(scores), ids.rows(),
                    static_cast<std::uint32_t>(N), static_cast<std::uint32_t>(W));
}

void renormalise(Tensor y, ConstTensor gate, ConstTensor ids, cudaStream_t stream) {
  if (y.shape != gate.shape || ids.rows() != gate.rows())
    throw std::invalid_argument("renormalise: " + y.shape.to_string() + " of " + gate.shape.to_string() + " by " + ids.shape.to_string());
  launch("renormalise", renormalise_kernel, blocks_for(gate.rows(), warps), warps * warp_size, 0, stream, f32(y), f32(gate), i32(ids),
         gate.rows(), static_cast<std::uint32_t>(gate.row_size()), static_cast<std::uint32_t>(ids.row_size()));
}

void row_sparse(Tensor k, Tensor log_decay, ConstTensor z, std::int64_t topk, bool skip_decay, cudaStream_t stream) {
  if (z.shape.rank() != 3 || k.shape != z.shape || log_decay.shape != z.shape || topk < 1 || topk > z.shape[2])
    throw std::invalid_argument("row_sparse: top " + std::to_string(topk) + ", k " + k.shape.to_string() + ", z " + z.shape.to_string() +
                                ", log_decay " + log_decay.shape.to_string());
  const std::int64_t tokens = z.rows(), H = z.shape[1], K = z.shape[2];
  launch("row_sparse", row_sparse_kernel, blocks_for(tokens * H, warps), warps * warp_size,
         warps * static_cast<std::size_t>(K) * sizeof(Order), stream, numbers(k), f32(log_decay), numbers(z), tokens, H,
         static_cast<std::uint32_t>(K), static_cast<std::uint32_t>(topk), skip_decay);
}

}  // namespace statescope::cuda

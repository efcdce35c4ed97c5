// Layers of experts: the choice by scores, and of few tokens the chosen experts' MLPs, whose matrices are read where the choice says,
// without the host. A warp owns a row of a matrix, for one token.
#include "kernels/cuda/common/activation.h"
#include "kernels/cuda/common/operations.h"
#include "kernels/cuda/common/order.h"

namespace statescope::cuda {
namespace {

constexpr unsigned warp_size = 32, warps = 8;
constexpr std::int64_t most_tokens = 64;  // each reads the matrices of its experts for itself

struct Choice {
  Rows<float> weights;
  Rows<std::int32_t> ids;
  Rows<const float> logits;
  const float* correction;
  std::int64_t tokens;
  std::uint32_t E, k;
  ScoredChoice how;
};

/// y_t += Σ_j w_tj · MLP_j(x_t), with h [T, k, I] between its products
struct Step {
  Rows<float> y;
  float* h;
  Rows<const float> x, weights;
  Rows<const std::int32_t> ids;
  const char *gate, *up, *down;
  std::int64_t into_stride, out_of_stride;
  int D, I, k;
  std::int64_t tokens;
};

// ---- kernels -------------------------------------------------------------------------------------------------------------------------

/// The sum of the two largest of c[begin … end).
__device__ float two_best(const float* c, std::uint32_t begin, std::uint32_t end) {
  float first = -INFINITY, second = -INFINITY;
  for (std::uint32_t e = begin; e < end; ++e) {
    second = fmaxf(second, fminf(first, c[e]));
    first = fmaxf(first, c[e]);
  }
  return end - begin > 1 ? first + second : first;
}

/// c = −∞ outside the groups whose two largest have the largest sums. `best` [groups] is scratch.
__device__ void leave_groups_out(float* c, float* best, const Choice& op, std::uint32_t lane) {
  const auto groups = static_cast<std::uint32_t>(op.how.groups), size = op.E / groups;
  for (std::uint32_t g = lane; g < groups; g += warp_size) best[g] = two_best(c, g * size, (g + 1) * size);
  __syncwarp();
  Order last = before_all;
  for (std::int64_t i = 0; i < op.how.chosen_groups; ++i) last = next_in_order(best, groups, lane, last);
  for (std::uint32_t e = lane; e < op.E; e += warp_size) {
    if (order_of(best[e / size], e / size) < last) c[e] = -INFINITY;
  }
  __syncwarp();
}

/// A warp owns a token. In shared memory for each: s [E], c [E], the best of groups [groups], ids [k].
__global__ void score_kernel(Choice op) {
  begin_overlapped();
  extern __shared__ float scratch[];
  const std::uint32_t lane = threadIdx.x % warp_size, own = threadIdx.x / warp_size;
  const std::int64_t t = std::int64_t{blockIdx.x} * (blockDim.x / warp_size) + own;
  if (t >= op.tokens) return;
  const auto groups = static_cast<std::uint32_t>(op.how.groups);
  float* const s = scratch + own * (2 * op.E + groups + op.k);
  float *const c = s + op.E, *const best = c + op.E;
  auto* const ids = reinterpret_cast<std::int32_t*>(best + groups);
  for (std::uint32_t e = lane; e < op.E; e += warp_size) {
    s[e] = 1 / (1 + expf(-op.logits.row(t)[e]));
    c[e] = s[e] + (op.correction ? op.correction[e] : 0);
  }
  __syncwarp();
  if (groups > 1) leave_groups_out(c, best, op, lane);
  Order last = before_all;
  for (std::uint32_t w = 0; w < op.k; ++w) {
    last = next_in_order(c, op.E, lane, last);
    if (lane == 0) ids[w] = index_of(last);
  }
  __syncwarp();
  float sum = op.how.eps;
  for (std::uint32_t w = 0; w < op.k; ++w) sum += s[ids[w]];
  for (std::uint32_t w = lane; w < op.k; w += warp_size) {
    std::uint32_t place = 0;
    for (std::uint32_t v = 0; v < op.k; ++v) place += s[ids[v]] > s[ids[w]] || (s[ids[v]] == s[ids[w]] && v < w);
    op.ids.row(t)[place] = ids[w];
  }
  const float factor = op.how.renormalise ? op.how.factor / sum : op.how.factor;
  for (std::uint32_t e = lane; e < op.E; e += warp_size) op.weights.row(t)[e] = s[e] * factor;
}

/// `Width` neighbours of a weight's row, read once.
template <class Weight, int Width>
struct alignas(sizeof(Weight) * Width) Neighbours {
  Weight at[Width];
};

/// This lane's part of row · x, n numbers.
template <class Weight, int Width>
__device__ float part_of_product(const Weight* row, const float* x, int n, std::uint32_t lane) {
  float sum = 0;
#pragma unroll 4
  for (int i = static_cast<int>(lane) * Width; i < n; i += static_cast<int>(warp_size) * Width) {
    const auto w = *reinterpret_cast<const Neighbours<Weight, Width>*>(row + i);
    const auto in = *reinterpret_cast < const Neighbours<float, Width<4 ? Width : 4>*>(x + i);
    if constexpr (Width <= 4) {
#pragma unroll
      for (int j = 0; j < Width; ++j) sum += to_float(w.at[j]) * in.at[j];
    } else {
      const auto rest = *reinterpret_cast<const Neighbours<float, 4>*>(x + i + 4);
#pragma unroll
      for (int j = 0; j < 4; ++j) sum += to_float(w.at[j]) * in.at[j] + to_float(w.at[j + 4]) * rest.at[j];
    }
  }
  return sum;
}

/// h[t, j, i] = silu(gate_e[i] · x_t) · (up_e[i] · x_t), or relu(up_e[i] · x_t)²; blockIdx.y = j, blockIdx.z = t
template <class Weight, int Width>
__global__ void into_experts_kernel(Step op) {
  begin_overlapped();
  const std::uint32_t lane = threadIdx.x % warp_size;
  const int i = static_cast<int>(blockIdx.x * warps + threadIdx.x / warp_size), j = static_cast<int>(blockIdx.y);
  if (i >= op.I) return;
  const std::int64_t t = blockIdx.z, offset = op.ids.row(t)[j] * op.into_stride, row = std::int64_t{i} * op.D;
  const float* const x = op.x.row(t);
  float* const h = op.h + (t * op.k + j) * op.I + i;
  const float up = part_of_product<Weight, Width>(reinterpret_cast<const Weight*>(op.up + offset) + row, x, op.D, lane);
  if (op.gate == nullptr) {
    const float z = fmaxf(sum_of_warp(up), 0);
    if (lane == 0) *h = z * z;
    return;
  }
  const float gate = part_of_product<Weight, Width>(reinterpret_cast<const Weight*>(op.gate + offset) + row, x, op.D, lane);
  const float z = sum_of_warp(gate), u = sum_of_warp(up);
  if (lane == 0) *h = silu(z) * u;
}

/// y_t[d] += Σ_j w_tj down_e[d] · h[t, j]; blockIdx.y = t
template <class Weight, int Width>
__global__ void out_of_experts_kernel(Step op) {
  begin_overlapped();
  const std::uint32_t lane = threadIdx.x % warp_size;
  const int d = static_cast<int>(blockIdx.x * warps + threadIdx.x / warp_size);
  if (d >= op.D) return;
  const std::int64_t t = blockIdx.y;
  float sum = 0;
#pragma unroll 2
  for (int j = 0; j < op.k; ++j) {
    const std::int32_t e = op.ids.row(t)[j];
    const auto* const down = reinterpret_cast<const Weight*>(op.down + e * op.out_of_stride) + std::int64_t{d} * op.I;
    sum += op.weights.row(t)[e] * part_of_product<Weight, Width>(down, op.h + (t * op.k + j) * op.I, op.I, lane);
  }
  sum = sum_of_warp(sum);
  if (lane == 0) op.y.row(t)[d] += sum;
}

// ---- launchers -----------------------------------------------------------------------------------------------------------------------

template <class Weight, int Width>
void step(const Step& op, cudaStream_t stream) {
  const auto tokens = static_cast<unsigned>(op.tokens);
  launch_overlapped("expert_mlps", into_experts_kernel<Weight, Width>, dim3(blocks_for(op.I, warps), static_cast<unsigned>(op.k), tokens),
                    warps * warp_size, 0, stream, op);
  launch_overlapped("expert_mlps", out_of_experts_kernel<Weight, Width>, dim3(blocks_for(op.D, warps), tokens), warps * warp_size, 0,
                    stream, op);
}

template <class Weight>
void step_of(const Step& op, cudaStream_t stream) {
  constexpr int width = 16 / sizeof(Weight);
  const auto whole = [](const void* memory) { return reinterpret_cast<std::uintptr_t>(memory) % 16 == 0; };
  const bool wide = op.D % width == 0 && op.I % width == 0 && op.into_stride % 16 == 0 && op.out_of_stride % 16 == 0 && whole(op.gate) &&
                    whole(op.up) && whole(op.down) && whole(op.x.data) && op.x.stride % 4 == 0 && whole(op.h);
  wide ? step<Weight, width>(op, stream) : step<Weight, 1>(op, stream);
}

}  // namespace

void score_experts(const ExpertScores& op, cudaStream_t stream) {
  const Choice choice{f32(op.weights),
                      i32(op.ids),
                      f32(op.logits),
                      op.correction ? op.correction.f32() : nullptr,
                      op.logits.rows(),
                      static_cast<std::uint32_t>(op.logits.row_size()),
                      static_cast<std::uint32_t>(op.ids.row_size()),
                      op.how};
  const std::size_t bytes = (2 * choice.E + static_cast<std::size_t>(op.how.groups) + choice.k) * sizeof(float);
  const unsigned together = bytes * 4 <= most_shared_bytes() ? 4 : 1;
  launch_overlapped("score_experts", score_kernel, blocks_for(choice.tokens, together), together * warp_size, together * bytes, stream,
                    choice);
}

bool expert_mlps_supported(const ExpertMlps& op) {
  return op.x.dtype == DType::f32 && op.y.dtype == DType::f32 ? op.x.rows() <= most_tokens : expert_products_supported(op);
}

void expert_mlps(const ExpertMlps& op, Workspace& workspace, cudaStream_t stream) {
  if (op.x.dtype != DType::f32 || op.y.dtype != DType::f32) return expert_products(op, workspace, stream);
  const Workspace::Mark mark(workspace);
  const std::int64_t T = op.x.rows(), k = op.ids.row_size(), I = op.up.rows();
  const Step all{f32(op.y),
                 workspace.tensor({T, k, I}).f32(),
                 f32(op.x),
                 f32(op.weights),
                 i32(op.ids),
                 op.gate ? static_cast<const char*>(op.gate.data) : nullptr,
                 static_cast<const char*>(op.up.data),
                 static_cast<const char*>(op.down.data),
                 op.into_stride,
                 op.out_of_stride,
                 static_cast<int>(op.x.row_size()),
                 static_cast<int>(I),
                 static_cast<int>(k),
                 T};
  if (op.up.dtype == DType::bf16) return step_of<__nv_bfloat16>(all, stream);
  if (op.up.dtype == DType::f16) return step_of<__half>(all, stream);
  op.up.f32();  // throws for another type
  step_of<float>(all, stream);
}

}  // namespace statescope::cuda

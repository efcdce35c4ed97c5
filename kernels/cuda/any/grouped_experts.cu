// Layers of experts over many tokens: the tokens are put in order of their experts on the device, then one grouped GEMM goes into all
// experts and one comes out of them. Products of bf16 on the tensor cores, with the pieces of chunk.h as tiles: 64 rows of one expert.
#include "kernels/cuda/common/activation.h"
#include "kernels/cuda/common/chunk.h"
#include "kernels/cuda/common/warp.h"

namespace statescope::cuda {
namespace {

constexpr int warp_size = 32, warps = 8, threads = warps * warp_size;
constexpr int tile_rows = chunk_rows, tile_columns = 256, depth = swizzle_columns;  // of a product: rows, weights, the K of a stage
constexpr int warp_rows = 32, warp_columns = 64, warps_across = tile_columns / warp_columns;
constexpr int most_stages = 4;
constexpr int ids_at_once = 8;  // of a thread that orders tokens

struct Stage {
  Bf16 rows[tile_rows][depth], weights[tile_columns][depth];
};

/// The rows of all experts, one expert behind the other, each in the order of its tokens.
struct Order {
  std::int32_t* token;  // [T·k]: of a row
  std::int32_t* place;  // [T, k]: the row of a choice
  std::int32_t* begin;  // [E + 1]: an expert's first row
};

/// y = f(x Wᵀ) with the weights W of a row's expert, which lie `stride` numbers behind those of the one before.
struct Product {
  const Bf16* x;
  std::int64_t x_stride;
  const std::int32_t* token;  // the row of x; null: the row itself
  const Bf16 *weight, *gate;  // of the first expert; gate: absent in products without one
  std::int64_t stride, inputs, outputs;
  Bf16* y;  // [T·k, outputs]
  DeviceSegments experts;
  int stages;
};

enum class Form { plain, relu_squared, gated };  // f: x, relu(x)², silu(gate) ⊙ x
template <Form form>
constexpr int tile_outputs = form == Form::gated ? tile_columns / 2 : tile_columns;

// ---- kernels -------------------------------------------------------------------------------------------------------------------------

/// The sum of n over the threads before this one, and in `all` that over all threads of the block.
__device__ int sum_before(int n, int& all) {
  __shared__ int of_warp[warps];
  const int lane = static_cast<int>(threadIdx.x) % warp_size, warp = static_cast<int>(threadIdx.x) / warp_size;
  int sum = n;
#pragma unroll
  for (int offset = 1; offset < warp_size; offset *= 2) {
    const int below = __shfl_up_sync(~0U, sum, offset);
    if (lane >= offset) sum += below;
  }
  if (lane == warp_size - 1) of_warp[warp] = sum;
  __syncthreads();
  int before = sum - n;
  all = 0;
#pragma unroll
  for (int w = 0; w < warps; ++w) {
    if (w < warp) before += of_warp[w];
    all += of_warp[w];
  }
  __syncthreads();  // before of_warp is written again
  return before;
}

/// A block owns an expert.
__global__ void __launch_bounds__(threads) order_kernel(Order order, Rows<const std::int32_t> ids, int count, int k) {
  begin_overlapped();
  const int e = static_cast<int>(blockIdx.x);
  int smaller = 0, begin = 0;
#pragma unroll 8
  for (int i = static_cast<int>(threadIdx.x); i < count; i += threads) smaller += ids.row(i / k)[i % k] < e;
  sum_before(smaller, begin);
  if (threadIdx.x == 0) {
    order.begin[e] = begin;
    if (e == 0) order.begin[gridDim.x] = count;
  }
  for (int first = 0; first < count; first += threads * ids_at_once) {
    const int own = first + static_cast<int>(threadIdx.x) * ids_at_once;
    unsigned mine = 0;
#pragma unroll
    for (int i = 0; i < ids_at_once; ++i) mine |= static_cast<unsigned>(own + i < count && ids.row((own + i) / k)[(own + i) % k] == e) << i;
    if (!__syncthreads_or(static_cast<int>(mine))) continue;
    int all = 0, row = begin + sum_before(__popc(mine), all);
    for (; mine != 0; mine &= mine - 1, ++row) {
      const int choice = own + __ffs(static_cast<int>(mine)) - 1;
      order.token[row] = choice / k;
      order.place[choice] = row;
    }
    begin += all;
  }
}

/// A warp's sums: 32 rows × 64 columns.
using Sums = float[warp_rows / 16][warp_columns / 8][4];

/// A stage's columns begin … of the tile's rows and weights. A thread copies a vector of some rows; what lies outside is 0.
template <Form form>
__device__ void load(Stage& stage, const Product& p, const Piece& piece, std::int64_t first_output, std::int64_t begin) {
  constexpr int vector = 8, across = depth / vector, at_once = threads / across;
  const int column = static_cast<int>(threadIdx.x) % across * vector, first = static_cast<int>(threadIdx.x) / across;
  const auto copy = [&](Bf16* to, const Bf16* from, bool inside) {
    inside = inside && begin + column < p.inputs;
    __pipeline_memcpy_async(to, inside ? from + begin + column : p.x, sizeof(uint4), inside ? 0 : sizeof(uint4));
  };
#pragma unroll
  for (int row = first; row < tile_rows; row += at_once) {
    const bool inside = row < piece.rows;
    const std::int64_t own = piece.first_row + row, from = inside && p.token != nullptr ? p.token[own] : own;
    copy(&stage.rows[0][0] + swizzle(row, column), p.x + from * p.x_stride, inside);
  }
  const std::int64_t expert = piece.segment * p.stride;
#pragma unroll
  for (int row = first; row < tile_columns; row += at_once) {
    // With a gate a warp's columns are 32 of the gate and 32 of the same outputs of up.
    constexpr int half = warp_columns / 2;
    const bool of_gate = form == Form::gated && row % warp_columns < half;
    const std::int64_t output = first_output + (form == Form::gated ? row / warp_columns * half + row % half : row);
    const Bf16* const weight = (of_gate ? p.gate : p.weight) + expert;
    copy(&stage.weights[0][0] + swizzle(row, column), weight + output * p.inputs, output < p.outputs);
  }
}

__device__ void multiply_stage(Sums& c, const Stage& stage, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
#pragma unroll
  for (int k = 0; k < depth; k += 16) {
    uint4 a[warp_rows / 16];
#pragma unroll
    for (int i = 0; i < warp_rows / 16; ++i) a[i] = ldmatrix(&stage.rows[0][0] + swizzle(row + 16 * i + lane % 16, k + lane / 16 * 8));
#pragma unroll
    for (int j = 0; j < warp_columns / 16; ++j) {
      const uint4 b = ldmatrix(&stage.weights[0][0] + swizzle(column + 16 * j + lane / 16 * 8 + lane % 8, k + lane / 8 % 2 * 8));
#pragma unroll
      for (int i = 0; i < warp_rows / 16; ++i) {
        multiply(c[i][2 * j], a[i], b.x, b.y);
        multiply(c[i][2 * j + 1], a[i], b.z, b.w);
      }
    }
  }
}

/// Two neighbouring outputs, of the sums of the weights and of the gate.
template <Form form>
__device__ unsigned outputs_of(float first, float second, float first_gate, float second_gate) {
  if constexpr (form == Form::gated) return packed(silu(first_gate) * first, silu(second_gate) * second);
  if constexpr (form == Form::relu_squared) return packed(fmaxf(first, 0) * fmaxf(first, 0), fmaxf(second, 0) * fmaxf(second, 0));
  return packed(first, second);
}

/// A block computes a tile: 64 rows of an expert, blockIdx.x, and some outputs, blockIdx.y.
template <Form form>
__global__ void __launch_bounds__(threads, 1) product_kernel(Product p) {
  begin_overlapped();
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto* const stages = reinterpret_cast<Stage*>(shared_bytes);
  const Piece piece = piece_of(p.experts, blockIdx.x, tile_rows);
  if (piece.index >= piece.count) return;
  const std::int64_t first_output = std::int64_t{blockIdx.y} * tile_outputs<form>;
  const int steps = static_cast<int>((p.inputs + depth - 1) / depth);
  const auto load_step = [&](int step) {
    if (step < steps) load<form>(stages[step % p.stages], p, piece, first_output, std::int64_t{step} * depth);
    __pipeline_commit();
  };
  for (int step = 0; step < p.stages - 1; ++step) load_step(step);

  const int warp = static_cast<int>(threadIdx.x) / warp_size, lane = static_cast<int>(threadIdx.x) % warp_size;
  const int row = warp / warps_across * warp_rows, column = warp % warps_across * warp_columns;
  Sums c{};
  for (int step = 0; step < steps; ++step) {
    p.stages == most_stages ? __pipeline_wait_prior(most_stages - 2) : __pipeline_wait_prior(0);
    __syncthreads();
    load_step(step + p.stages - 1);
    if (row < piece.rows) multiply_stage(c, stages[step % p.stages], row, column);
  }

  constexpr int of_weights = form == Form::gated ? warp_columns / 16 : 0, parts = warp_columns / 8 - of_weights;
  const std::int64_t own_output = first_output + (form == Form::gated ? column / 2 : column) + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < warp_rows / 16; ++i) {
#pragma unroll
    for (int j = 0; j < parts; ++j) {
      const auto &sums = c[i][of_weights + j], &gate = c[i][j];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int own_row = row + 16 * i + 8 * half + lane / 4;
        const std::int64_t output = own_output + 8 * j;
        if (own_row >= piece.rows || output >= p.outputs) continue;
        *reinterpret_cast<unsigned*>(p.y + (piece.first_row + own_row) * p.outputs + output) =
            outputs_of<form>(sums[2 * half], sums[2 * half + 1], gate[2 * half], gate[2 * half + 1]);
      }
    }
  }
}

/// y[t] += Σ_j w_{t, ids_j} · rows[place_j], in the order of the experts: a block owns a token.
__global__ void __launch_bounds__(threads) sum_kernel(Numbers<void> y, const Bf16* rows, const std::int32_t* place,
                                                      Rows<const std::int32_t> ids, Rows<const float> weights, int k, int D) {
  begin_overlapped();
  const std::int64_t t = blockIdx.x;
  for (int d = static_cast<int>(threadIdx.x) * 2; d < D; d += threads * 2) {
    Pack<2> sum = y.load<2>(t, d);
    int last = -1;
    for (int i = 0; i < k; ++i) {
      int row = 0x7FFFFFFF;  // the next one: rows are in the order of their experts
      std::int64_t next = 0;
      for (int j = 0; j < k; ++j) {
        const int own = place[t * k + j];
        if (own > last && own < row) row = own, next = j;
      }
      const float w = weights.row(t)[ids.row(t)[next]];
      const unsigned pair = *reinterpret_cast<const unsigned*>(rows + std::int64_t{row} * D + d);
      sum.at[0] += w * first_of(pair), sum.at[1] += w * second_of(pair);
      last = row;
    }
    y.store<2>(t, d, sum);
  }
}

// ---- launchers -----------------------------------------------------------------------------------------------------------------------

template <Form form>
void product(const Product& p, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(most_pieces(p.experts.longest, p.experts.count, tile_rows)),
                  blocks_for(p.outputs, tile_outputs<form>));
  launch_overlapped("expert_mlps", product_kernel<form>, grid, threads, static_cast<std::size_t>(p.stages) * sizeof(Stage), stream, p);
}

}  // namespace

bool expert_products_supported(const ExpertMlps& op) {
  constexpr std::int64_t vector = 8, bytes = 16;
  const auto fits = [](ConstTensor x) { return x.dtype == DType::bf16 && in_packs(x, vector) && x.row_size() % vector == 0; };
  return fits(op.x) && fits(op.up) && fits(op.down) && (!op.gate || fits(op.gate)) && op.up.contiguous() && op.down.contiguous() &&
         op.into_stride % bytes == 0 && op.out_of_stride % bytes == 0 && in_packs(op.y, 2);
}

void expert_products(const ExpertMlps& op, Workspace& workspace, cudaStream_t stream) {
  const Workspace::Mark mark(workspace);
  const std::int64_t T = op.x.rows(), k = op.ids.row_size(), D = op.x.row_size(), I = op.up.rows(), E = op.weights.row_size(), rows = T * k;
  const auto integers = [&](std::int64_t count) { return workspace.tensor({count}, DType::i32).i32(); };
  const auto numbers_of = [&](std::int64_t width) { return static_cast<Bf16*>(workspace.tensor({rows, width}, DType::bf16).data); };
  const auto weights_of = [](ConstTensor x) { return static_cast<const Bf16*>(x.data); };
  const Order order{integers(rows), integers(rows), integers(E + 1)};
  launch_overlapped("expert_mlps", order_kernel, static_cast<unsigned>(E), threads, 0, stream, order, i32(op.ids), static_cast<int>(rows),
                    static_cast<int>(k));
  const int stages = most_stages * sizeof(Stage) <= most_shared_bytes() ? most_stages : 2;
  const DeviceSegments experts{.cu_seqlens = order.begin, .count = E, .longest = rows};
  constexpr auto size = static_cast<std::int64_t>(sizeof(Bf16));
  Bf16 *const h = numbers_of(I), *const out = numbers_of(D);
  const Product into{weights_of(op.x), op.x.stride, order.token, weights_of(op.up), weights_of(op.gate), op.into_stride / size, D, I, h,
                     experts,          stages};
  op.gate ? product<Form::gated>(into, stream) : product<Form::relu_squared>(into, stream);
  product<Form::plain>({h, I, nullptr, weights_of(op.down), nullptr, op.out_of_stride / size, I, D, out, experts, stages}, stream);
  launch_overlapped("expert_mlps", sum_kernel, static_cast<unsigned>(T), threads, 0, stream, numbers(op.y), out, order.place, i32(op.ids),
                    f32(op.weights), static_cast<int>(k), static_cast<int>(D));
}

}  // namespace statescope::cuda

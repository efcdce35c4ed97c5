// GEMMs of many rows with short convolutions as their epilogue, on a device of compute capability 9.0 (product_tiles.h): y_t = act( Σ_j
// weight_j z_{t − 3 + j} ), z = x · weightᵀ rounded to bf16, which is never written. A block's own operand is the weight and rows of x are
// the shared one, so a thread has z of two outputs for two rows of eight, and the three lanes beside it have the rest. What the first rows
// of 128 need of the tile before is left in memory, z of four rows at either end (`edges`), from which `join_kernel` computes those rows.
#include <algorithm>
#include <array>
#include <variant>

#include "kernels/cuda/common/activation.h"
#include "kernels/cuda/common/linear.h"
#include "kernels/cuda/hopper/product_tiles.h"

namespace statescope::cuda {
namespace {

using namespace product_tiles;

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

constexpr int taps = 4, past = taps - 1;
constexpr int most_outputs = 4;                                           // of a launch: q, k, v, a gate
constexpr int tile_rows = cluster * rows_per_load, span = tile_rows / 2;  // rows of x in a tile; rows between edges
constexpr int parts = tile_rows / 8, span_parts = parts / 2;              // of the epilogue of a warp, eight rows each
constexpr int box_parts = 4, warp_channels = group_rows / 4,
              in_flight = 2;  // of a warp: parts that are stored at once; channels; boxes in flight

struct Output {
  CUtensorMap weight, y;  // [channels, 1, inputs], [rows, 1, channels]
  const float* taps;      // [channels, 4]; null: y = z
  bool silu;
  int end, channels;  // of its blocks, counted over all outputs; of its own
  Rows<Bf16> rows;    // of y
  float* cache;       // [3, channels]: z of the rows before, then of the last ones
};

struct ConvolvedProducts {
  CUtensorMap x;            // [rows, 1, inputs]
  Output of[most_outputs];  // those that are convolved, then the others
  TileSchedule tiles;       // [rows, channels of all]
  int rows, channels;       // rows; channels of the convolved outputs
  uint4* edges;             // [spans, channels]: z of the span's first four rows, then of its last two pairs that begin below `rows`
};

struct Memory {
  Pipeline pipeline;
  alignas(128) Bf16 y[warps][in_flight][box_parts * 8][warp_channels];
};

/// Stores two 8 × 8 matrices, laid out as ldmatrix_trans (chunk.h) loads them.
__device__ void stmatrix_trans(void* row, unsigned x, unsigned y) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(shared_address(row)), "r"(x), "r"(y) : "memory");
}

/// Which channels a block has.
struct Channels {
  int number, first;  // index of the output; first channel in it
};
__device__ Channels channels_of(const ConvolvedProducts& p, int block) {
  int number = 0;
  while (block >= p.of[number].end) ++number;
  return {number, (block - (number > 0 ? p.of[number - 1].end : 0)) * own_rows};
}

/// The producer thread: all tiles.
__device__ void produce(Pipeline& pipeline, const ConvolvedProducts& p, int rank) {
  PipelineState state;
  const auto load = [&](int tile, int first, int width) {
    const TileSchedule::TileCoord coord = p.tiles.coord_of(tile);
    const Channels own = channels_of(p, coord.across * cluster + rank);
    load_tile(pipeline, state, p.tiles.k_tiles, rank, {p.of[own.number].weight, own.first},
              {p.x, coord.down * tile_rows + first + rank * width}, width);
  };
  p.tiles.visit_own([&](int tile) { load(tile, 0, rows_per_load); }, [&](int tile, int second) { load(tile, second * span, half); });
}

/// A thread's accumulators of a tile: z of rows 8 j + 2 (lane % 4) and the next one, of channels lane / 4 and … + 8.
struct Sums {
  unsigned z[parts][2];
  int tile, first_row;  // of the accumulators; first row in the tile
  float4 weight[2];     // of the channels
  int row, number, channel;
};

template <int n>
__device__ void round_sums(Sums& sums, const float (&c)[n][4], int tile, int first_row) {
#pragma unroll
  for (int j = 0; j < n; ++j) sums.z[j][0] = packed(c[j][0], c[j][1]), sums.z[j][1] = packed(c[j][2], c[j][3]);
  sums.tile = tile, sums.first_row = first_row;
}

/// Finds their rows and channels, and the weights of the convolution.
__device__ void locate(Sums& sums, const ConvolvedProducts& p, int rank, int warp) {
  const TileSchedule::TileCoord coord = p.tiles.coord_of(sums.tile);
  const Channels own = channels_of(p, coord.across * cluster + rank);
  sums.row = coord.down * tile_rows + sums.first_row;
  sums.number = own.number;
  sums.channel = own.first + warp * warp_channels + static_cast<int>(threadIdx.x) % 32 / 4;
  const auto* taps = reinterpret_cast<const float4*>(p.of[own.number].taps);
  if (taps != nullptr) sums.weight[0] = __ldg(taps + sums.channel), sums.weight[1] = __ldg(taps + sums.channel + 8);
}

/// Stores z at both ends of a span of the tile.
__device__ void leave_edges(const ConvolvedProducts& p, const Sums& sums, int number) {
  const Output& output = p.of[sums.number];
  const int lane = static_cast<int>(threadIdx.x) % 4, row = sums.row + number * span, last = (p.rows - row + 1) / 2 - 1;  // pair of rows
  uint4* edges = p.edges + std::int64_t{row / span} * p.channels + output.end * own_rows - output.channels + sums.channel;
  const auto leave = [&](int pair, int j) {
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) reinterpret_cast<unsigned*>(edges + upper * 8)[pair] = sums.z[number * span_parts + j][upper];
  };
  if (lane < 2) leave(lane, 0);
  if (p.rows - row >= span) {
    if (lane >= 2) leave(lane, span_parts - 1);
    return;
  }
#pragma unroll
  for (int j = 0; j < span_parts; ++j) {
    const int behind = last - (4 * j + lane);
    if (behind == 0 || behind == 1) leave(3 - behind, j);
  }
}

/// y of two rows of one channel; contributions of the tile before are missing.
__device__ unsigned convolved(const Sums& sums, int j, int upper, bool silu) {
  const int lane = static_cast<int>(threadIdx.x) % 32, group = lane & ~3;
  // Pairs of rows of the two lanes before; for the first lanes they are in the eight rows before.
  const unsigned own = sums.z[j][upper], before = j > 0 ? sums.z[j - 1][upper] : 0;
  const unsigned near = __shfl_sync(~0U, lane % 4 == 3 ? before : own, group | ((lane + 3) & 3)),
                 far = __shfl_sync(~0U, lane % 4 >= 2 ? before : own, group | ((lane + 2) & 3));
  // y_t = act( Σ_j weight_j z_{t − 3 + j} )
  const float z[] = {second_of(far), first_of(near), second_of(near), first_of(own), second_of(own)};
  const float4 w = sums.weight[upper];
  float y[2];
#pragma unroll
  for (int t = 0; t < 2; ++t) {
    y[t] = w.x * z[t] + w.y * z[t + 1] + w.z * z[t + 2] + w.w * z[t + 3];
    y[t] *= silu ? sigmoid(y[t]) : 1;
  }
  return packed(y[0], y[1]);
}

/// The epilogue of a warp: eight rows of its 16 channels go to shared memory, from there 32 at once by TMA to y.
__device__ void write_part(Memory& memory, const ConvolvedProducts& p, const Sums& sums, int part, int warp) {
  const int lane = static_cast<int>(threadIdx.x) % 32, box = part / box_parts;
  const Output& output = p.of[sums.number];
  Bf16(&rows)[box_parts * 8][warp_channels] = memory.y[warp][box % in_flight];
  if (part % box_parts == 0) {
    if (lane == 0) tma_store_wait<in_flight - 1>();
    __syncwarp();
  }
  unsigned y[2] = {sums.z[part][0], sums.z[part][1]};
  if (output.taps != nullptr) y[0] = convolved(sums, part, 0, output.silu), y[1] = convolved(sums, part, 1, output.silu);
  stmatrix_trans(&rows[part % box_parts * 8 + lane % 8][lane / 8 % 2 * 8], y[0], y[1]);
  if ((part + 1) % box_parts != 0) return;
  fence_async_proxy();
  __syncwarp();
  if (lane == 0) tma_store(output.y, sums.channel, sums.row + box * box_parts * 8, rows);
}

/// A consumer warpgroup: its channels of all tiles. The epilogue of a tile runs during the products of the next one, `parts_a_stage` parts
/// in each stage.
template <int parts_a_stage>
__device__ void consume(Memory& memory, const ConvolvedProducts& p, int rank, int group) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  PipelineState state;
  float c[parts][4];
  Sums sums;
  bool any = false;
  const auto finish = [&](int part) {
    if (part == 0) locate(sums, p, rank, warp);
    if (part % span_parts == 1 && p.of[sums.number].taps != nullptr) leave_edges(p, sums, part / span_parts);
    write_part(memory, p, sums, part, warp);
  };
  const auto finish_last = [&](int stage) {
#pragma unroll
    for (int i = 0; i < parts_a_stage; ++i) {
      if (any) finish(stage * parts_a_stage + i);
    }
  };
  p.tiles.visit_own(
      [&](int tile) {
        multiply_tile<parts / parts_a_stage>(c, memory.pipeline, p.tiles.k_tiles, state, group, finish_last);
        round_sums(sums, c, tile, 0);
        any = true;
      },
      [&](int tile, int second) {
        auto& first = reinterpret_cast<float(&)[span_parts][4]>(c);
        multiply_tile<parts / parts_a_stage>(first, memory.pipeline, p.tiles.k_tiles, state, group, finish_last);
        round_sums(sums, first, tile, second * span);
        any = true;
      });
#pragma unroll
  for (int part = 0; part < parts; ++part) {
    if (part < span_parts || !p.tiles.takes_half()) finish(part);
  }
  if (threadIdx.x % 32 == 0) tma_store_wait();
}

template <int parts_a_stage>
__global__ void __cluster_dims__(cluster) __launch_bounds__(threads, 1)
    convolved_products_kernel(const __grid_constant__ ConvolvedProducts p) {
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& memory = *reinterpret_cast<Memory*>(shared_bytes);
  const int rank = own_rank();
  specialize_warps(
      memory.pipeline, [&] { produce(memory.pipeline, p, rank); }, [&](int group) { consume<parts_a_stage>(memory, p, rank, group); });
}

/// z of a row that is one of its span's first four or of the last three of all.
__device__ float edge_of(const ConvolvedProducts& p, int row, int channel) {
  const int in_span = row % span, rows = p.rows - (row - in_span), first_of_last = min(span, (rows + 1) / 2 * 2) - 4;
  const auto* z = reinterpret_cast<const Bf16*>(p.edges + std::int64_t{row / span} * p.channels + channel);
  return __bfloat162float(z[in_span < 4 ? in_span : 4 + in_span - first_of_last]);
}

/// A block has 128 channels of the first rows of the spans of a tile; that of the first tile also writes their cache.
__global__ void __launch_bounds__(own_rows) join_kernel(const __grid_constant__ ConvolvedProducts p) {
  begin_overlapped();
  const int thread = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x),
            tile_row = static_cast<int>(blockIdx.y) * tile_rows;
  const Channels own = channels_of(p, block);
  const Output& output = p.of[own.number];
  const int channel = own.first + thread, edge = block * own_rows + thread;
  constexpr int spans = tile_rows / span;
  const uint4* edges = p.edges + std::int64_t{tile_row / span} * p.channels + edge;
  uint4 around[1 + spans] = {};
#pragma unroll
  for (int i = 0; i <= spans; ++i) {
    if (tile_row > 0 || i > 0) around[i] = edges[(i - 1) * std::int64_t{p.channels}];
  }
  const float4 w = reinterpret_cast<const float4*>(output.taps)[channel];
  float before[past];  // the first tile
#pragma unroll
  for (int i = 0; i < past; ++i) before[i] = tile_row > 0 ? 0 : output.cache[i * output.channels + channel];
#pragma unroll
  for (int i = 0; i < spans; ++i) {
    const uint4 last = around[i], first = around[i + 1];
    const bool begins = tile_row == 0 && i == 0;
    const float z[] = {begins ? before[0] : second_of(last.z),
                       begins ? before[1] : first_of(last.w),
                       begins ? before[2] : second_of(last.w),
                       first_of(first.x),
                       second_of(first.x),
                       first_of(first.y)};
#pragma unroll
    for (int t = 0; t < past; ++t) {
      const int row = tile_row + i * span + t;
      const float y = w.x * z[t] + w.y * z[t + 1] + w.z * z[t + 2] + w.w * z[t + 3];
      if (row < p.rows) output.rows.row(row)[channel] = __float2bfloat16_rn(output.silu ? silu(y) : y);
    }
  }
  if (tile_row > 0) return;
  for (int i = 0; i < past; ++i) output.cache[i * output.channels + channel] = edge_of(p, p.rows - past + i, edge);
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

bool is_convolved(const Projection& p) { return std::holds_alternative<Convolve>(p.finish); }

/// Whether this product can be part of a launch: channels of whole blocks, and no epilogue but a convolution of four taps.
bool fits(const Projection& p, ConstTensor x) {
  if (p.z || p.bias || p.weight.rows() % own_rows != 0 || !tma_compatible(p.weight) || !tma_compatible(p.y)) return false;
  if (const auto* activate = std::get_if<Activate>(&p.finish)) return activate->act == Activation::identity && !activate->addend;
  const auto* convolve = std::get_if<Convolve>(&p.finish);
  const bool known = convolve != nullptr && !convolve->bias && (convolve->act == Activation::silu || convolve->act == Activation::identity);
  return known && x.rows() >= past && convolve->weight.row_size() == taps && in_packs(convolve->weight, taps) &&
         convolve->weight.contiguous() && convolve->cache.contiguous();
}

Output output_of(const Projection& p, int begin) {
  const auto* convolve = std::get_if<Convolve>(&p.finish);
  const int channels = static_cast<int>(p.weight.rows());
  return {.weight = tensor_map_of(p.weight, own_rows),
          .y = tensor_map_of(p.y, box_parts * 8, warp_channels),
          .taps = convolve ? convolve->weight.f32() : nullptr,
          .silu = convolve && convolve->act == Activation::silu,
          .end = begin + channels / own_rows,
          .channels = channels,
          .rows = {static_cast<Bf16*>(p.y.data), p.y.stride},
          .cache = convolve ? convolve->cache.f32() : nullptr};
}

std::int64_t channels_of_all(std::span<const Projection> projections) {
  std::int64_t sum = 0;
  for (const Projection& p : projections) sum += p.weight.rows();
  return sum;
}

constexpr int most_parts_a_stage = 2;

using Kernel = void (*)(ConvolvedProducts);
Kernel kernel_for(ConstTensor x) {
  return tiles_of(x.row_size(), columns) < parts ? convolved_products_kernel<most_parts_a_stage> : convolved_products_kernel<1>;
}

TileSchedule tiles_for(ConstTensor x, std::int64_t channels) {
  const auto kernel = reinterpret_cast<const void*>(kernel_for(x));
  return schedule_tiles(tiles_of(x.rows(), tile_rows), static_cast<int>(channels / (cluster * own_rows)), x.row_size(),
                        parts / most_parts_a_stage, x.rows() * channels,
                        clusters_at_once("products and convolutions", kernel, sizeof(Memory)));
}

}  // namespace

std::size_t convolved_products_first(std::span<Projection> projections, ConstTensor x) {
  if (std::ranges::none_of(projections, is_convolved) || !tma_compatible(x) || !has_warpgroup_products()) return 0;
  const auto convolved = [x](const Projection& p) { return is_convolved(p) && fits(p, x); };
  const auto plain = [x](const Projection& p) { return !is_convolved(p) && fits(p, x); };
  const auto first_other = std::stable_partition(projections.begin(), projections.end(), convolved);
  const auto end = std::stable_partition(first_other, projections.end(), plain);
  const auto count = std::min<std::size_t>(static_cast<std::size_t>(end - projections.begin()), most_outputs);
  const std::int64_t channels = channels_of_all(projections.first(count));
  const bool worth_it = first_other != projections.begin() && channels % (cluster * own_rows) == 0 && tiles_for(x, channels);
  return worth_it ? count : 0;
}

void convolved_products_hopper(std::span<const Projection> projections, ConstTensor x, Workspace& workspace, cudaStream_t stream) {
  const Workspace::Mark mark(workspace);
  ConvolvedProducts p{};
  p.x = tensor_map_of(x, half);
  p.rows = static_cast<int>(x.rows());
  int end = 0;
  for (std::size_t i = 0; i < projections.size(); ++i) {
    check_linear(projections[i].y, x, projections[i].weight, {});
    p.of[i] = output_of(projections[i], end);
    end = p.of[i].end;
    if (p.of[i].taps != nullptr) p.channels = end * own_rows;
  }
  p.tiles = tiles_for(x, std::int64_t{end} * own_rows);
  constexpr std::int64_t edge_numbers = sizeof(uint4) / sizeof(float);
  p.edges = static_cast<uint4*>(workspace.tensor({p.tiles.down * (tile_rows / span), p.channels, edge_numbers}).data);
  launch_overlapped("products and convolutions", kernel_for(x), p.tiles.blocks(), threads, sizeof(Memory), stream, p);
  const dim3 grid(static_cast<unsigned>(p.channels / own_rows), static_cast<unsigned>(p.tiles.down));
  launch_overlapped("convolutions joined", join_kernel, grid, own_rows, 0, stream, p);
}

}  // namespace statescope::cuda

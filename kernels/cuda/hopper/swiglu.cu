// SwiGLU's gate of many rows as the epilogue of a GEMM, on a device of compute capability 9.0: u = silu(x gateᵀ) ⊙ (x upᵀ), tile by tile
// (product_tiles.h). A block's own operand is x; each block of a cluster loads one of the two weights for both, so that a thread has both
// sums of its outputs.
#include "kernels/cuda/common/activation.h"
#include "kernels/cuda/common/linear.h"
#include "kernels/cuda/hopper/product_tiles.h"

namespace statescope::cuda {
namespace {

using namespace product_tiles;

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

constexpr int warp_rows = 16, outputs = rows_per_load;  // rows of a warp; outputs of a tile
constexpr int parts = outputs / 16;                     // of the outputs of a warp, finished one after the other

struct Memory {
  Pipeline pipeline;
  alignas(1024) Bf16 u[warps][outputs / swizzle_columns][warp_rows][swizzle_columns];
};

struct GatedProduct {
  CUtensorMap x, weight[cluster], u;  // [rows, 1, width]
  TileSchedule tiles;                 // [rows, outputs]
};

/// Stores four 8 × 8 matrices, laid out as ldmatrix (chunk.h) loads them.
__device__ void stmatrix(void* row, const uint4& x) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)), "r"(x.x), "r"(x.y), "r"(x.z),
               "r"(x.w)
               : "memory");
}

/// The corner of a tile in u.
struct Corner {
  int row, column;
};
__device__ Corner corner(const GatedProduct& p, int tile, int rank, int second_half = 0) {
  const TileSchedule::TileCoord coord = p.tiles.coord_of(tile);
  return {(coord.down * cluster + rank) * own_rows, coord.across * outputs + second_half * half};
}

/// The producer thread: all tiles.
__device__ void produce(Pipeline& pipeline, const GatedProduct& p, int rank) {
  PipelineState state;
  const auto load = [&](Corner at, int width) {
    load_tile(pipeline, state, p.tiles.k_tiles, rank, {p.x, at.row}, {p.weight[rank], at.column}, width);
  };
  p.tiles.visit_own([&](int tile) { load(corner(p, tile, rank), outputs); },
                    [&](int tile, int second) { load(corner(p, tile, rank, second), half); });
}

/// A thread's accumulators of a tile as bf16 pairs: rows … and … + 8 of eight columns, then the next eight.
struct Sums {
  unsigned gate[2 * outputs / 8], up[2 * outputs / 8];
  Corner at;  // of the warp's rows
};

template <int n>
__device__ void round_sums(Sums& sums, const float (&c)[n][4]) {
#pragma unroll
  for (int j = 0; j < n / 2; ++j) {
    const auto &gate = c[j], &up = c[n / 2 + j];
    sums.gate[2 * j] = packed(gate[0], gate[1]), sums.gate[2 * j + 1] = packed(gate[2], gate[3]);
    sums.up[2 * j] = packed(up[0], up[1]), sums.up[2 * j + 1] = packed(up[2], up[3]);
  }
}

/// u = silu(gate) ⊙ up
__device__ unsigned gated(unsigned gate, unsigned up) {
  return packed(silu(first_of(gate)) * first_of(up), silu(second_of(gate)) * second_of(up));
}

/// The epilogue of a warp: 16 of its columns go to shared memory, from there 64 at once by TMA to u.
__device__ void write_part(Memory& memory, const GatedProduct& p, const Sums& sums, int part, int warp) {
  constexpr int boxes = outputs / swizzle_columns, parts_together = parts / boxes;
  const int lane = static_cast<int>(threadIdx.x) % 32, box = part / parts_together, column = part % parts_together * 16, j = 4 * part;
  if (part == 0) {
    if (lane == 0) tma_store_wait();
    __syncwarp();
  }
  Bf16* u = &memory.u[warp][box][0][0];
  stmatrix(u + swizzle(lane % warp_rows, column + lane / warp_rows * 8),
           {gated(sums.gate[j], sums.up[j]), gated(sums.gate[j + 1], sums.up[j + 1]), gated(sums.gate[j + 2], sums.up[j + 2]),
            gated(sums.gate[j + 3], sums.up[j + 3])});
  if (column + 16 < swizzle_columns) return;
  fence_async_proxy();
  __syncwarp();
  if (lane == 0) tma_store(p.u, sums.at.column + box * swizzle_columns, sums.at.row, u);
}

/// A consumer warpgroup: its rows of all tiles. The epilogue of a tile runs during the first products of the next one.
__device__ void consume(Memory& memory, const GatedProduct& p, int rank, int group) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  PipelineState state;
  float c[2 * outputs / 8][4];
  Sums sums;
  bool any = false;
  const auto write_last = [&](int part) {
    if (any) write_part(memory, p, sums, part, warp);
  };
  const auto keep = [&](const auto& products, Corner at) {
    round_sums(sums, products);
    sums.at = {at.row + warp * warp_rows, at.column};
    any = true;
  };
  p.tiles.visit_own(
      [&](int tile) {
        multiply_tile<parts>(c, memory.pipeline, p.tiles.k_tiles, state, group, write_last);
        keep(c, corner(p, tile, rank));
      },
      [&](int tile, int second) {
        auto& first = reinterpret_cast<float(&)[2 * half / 8][4]>(c);
        multiply_tile<parts>(first, memory.pipeline, p.tiles.k_tiles, state, group, write_last);
        keep(first, corner(p, tile, rank, second));
      });
#pragma unroll
  for (int part = 0; part < parts; ++part) {
    if (part < parts / 2 || !p.tiles.takes_half()) write_part(memory, p, sums, part, warp);
  }
  if (threadIdx.x % 32 == 0) tma_store_wait();
}

__global__ void __cluster_dims__(cluster) __launch_bounds__(threads, 1) swiglu_kernel(const __grid_constant__ GatedProduct p) {
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& memory = *reinterpret_cast<Memory*>(shared_bytes);
  const int rank = own_rank();
  specialize_warps(
      memory.pipeline, [&] { produce(memory.pipeline, p, rank); }, [&](int group) { consume(memory, p, rank, group); });
}

}  // namespace

bool gated_linear_hopper(Tensor u, ConstTensor x, ConstTensor gate, ConstTensor up, cudaStream_t stream) {
  const bool fits = tma_compatible(u) && tma_compatible(x) && tma_compatible(gate) && tma_compatible(up);
  if (!fits || !has_warpgroup_products()) return false;
  const int at_once = clusters_at_once("swiglu", reinterpret_cast<const void*>(swiglu_kernel), sizeof(Memory));
  const TileSchedule tiles = schedule_tiles(tiles_of(x.rows(), cluster * own_rows), tiles_of(gate.rows(), outputs), x.row_size(), parts,
                                            2 * u.shape.size(), at_once);
  if (!tiles) return false;
  const GatedProduct p{
      tensor_map_of(x, own_rows), {tensor_map_of(gate, half), tensor_map_of(up, half)}, tensor_map_of(u, warp_rows), tiles};
  launch_overlapped("swiglu", swiglu_kernel, tiles.blocks(), threads, sizeof(Memory), stream, p);
  return true;
}

}  // namespace statescope::cuda

// SwiGLU's gate of many rows inside the product that makes it, on a device of compute capability 9.0: u = silu(x gateᵀ) ⊙ (x upᵀ). A
// multiprocessor has one block, which takes tiles of u in turn. One of its warpgroups (128 threads) brings x and weights through the bulk
// copy engine; each other one multiplies 64 rows with 128 rows of gate and 128 of up, so that a thread has both sums of its outputs. Two
// neighbouring blocks (a cluster) take the same outputs of other rows: each brings one of the two weights for both.
#include <algorithm>
#include <map>

#include "kernels/cuda_activation.h"
#include "kernels/cuda_hopper.h"
#include "kernels/cuda_linear.h"

namespace statescope::cuda {
namespace {

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

constexpr int cluster = 2, groups = 2, stages = 4;  // blocks, warpgroups that multiply, tiles of operands on their way
constexpr int group_rows = 64, warp_rows = 16, tile_rows = groups * group_rows;
constexpr int inputs = swizzled, outputs = 128;  // of a tile
constexpr int half = outputs / 2;                // of the last tiles, where whole ones would leave most of the device idle
constexpr int parts = outputs / 16;              // of a warp's outputs, written one after the other
constexpr int warps = groups * warpgroup / 32, threads = (groups + 1) * warpgroup;

struct Stage {
  Bf16 x[tile_rows][inputs];
  Bf16 weight[2 * outputs][inputs];  // gate, then up: one matrix for the products
};

struct Memory {
  Stage stage[stages];
  Bf16 u[warps][outputs / swizzled][warp_rows][swizzled];
  std::uint64_t full[stages], empty[stages];
};

struct GatedProduct {
  CUtensorMap x, weight[cluster], u;  // [rows, 1, width]
  int row_tiles, column_tiles;        // of clusters
  int whole, halves;                  // tiles taken whole; halves of the others, at most one a cluster
  int steps;                          // stages of a tile
};

/// At the barrier of a block of the cluster, which says that products have read its memory. Nothing is written for the threads that wait:
/// a release would be a fence for the whole device, and a quarter of the kernel's time.
__device__ void arrive_at(std::uint64_t& barrier, int rank) {
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [there];\n"
      "}\n" ::"r"(shared_address(&barrier)),
      "r"(rank)
      : "memory");
}
/// Starts to copy columns … + 63 of a box of rows to all blocks of the cluster, where it counts at the barrier of each.
__device__ void copy_box_to_all(void* to, const CUtensorMap& from, int column, int row, std::uint64_t& full) {
  constexpr unsigned short all = (1 << cluster) - 1;
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, 0, %3}], [%4], "
      "%5;" ::"r"(shared_address(to)),
      "l"(&from), "r"(column), "r"(row), "r"(shared_address(&full)), "h"(all)
      : "memory");
}
/// Starts to copy a box back. What lies outside of the matrix is left out.
__device__ void store_box(const CUtensorMap& to, int column, int row, const void* from) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, 0, %2}], [%3];" ::"l"(&to), "r"(column), "r"(row),
               "r"(shared_address(from))
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Until all boxes that this thread stores have been read.
__device__ void wait_for_stores() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
/// Four 8 × 8 matrices, from where load_matrices (cuda_chunk.h) brings them.
__device__ void store_matrices(void* row, const uint4& x) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)), "r"(x.x), "r"(x.y), "r"(x.z),
               "r"(x.w)
               : "memory");
}

/// A cluster's number, and how many there are.
__device__ int own_cluster() { return static_cast<int>(blockIdx.x) / cluster; }
__device__ int clusters() { return static_cast<int>(gridDim.x) / cluster; }

/// Of a tile in u.
struct Corner {
  int row, column;
};
/// Tiles are taken column by column within bands of 2048 rows, which stay in the second cache meanwhile.
__device__ Corner corner(const GatedProduct& p, int tile, int rank) {
  constexpr int band = 2048 / (cluster * tile_rows);
  const int in_band = band * p.column_tiles, first = tile / in_band * band, height = min(band, p.row_tiles - first), rest = tile % in_band;
  return {((first + rest % height) * cluster + rank) * tile_rows, rest / height * outputs};
}
__device__ Corner corner_of_half(const GatedProduct& p, int number, int rank) {
  const Corner whole = corner(p, p.whole + number / 2, rank);
  return {whole.row, whole.column + number % 2 * half};
}

/// Where a thread is in the ring of stages.
struct Turn {
  int stage = 0, parity = 0;
  __device__ int before() const { return (stage + stages - 1) % stages; }
  __device__ void next() {
    if (++stage < stages) return;
    stage = 0;
    parity ^= 1;
  }
};

/// One thread: all stages of all tiles, as soon as both blocks have read what was there.
__device__ void produce(Memory& memory, const GatedProduct& p, int rank) {
  Turn turn;
  const auto bring = [&](Corner at, int width) {
    for (int k = 0; k < p.steps; ++k, turn.next()) {
      Stage& stage = memory.stage[turn.stage];
      std::uint64_t& full = memory.full[turn.stage];
      wait(memory.empty[turn.stage], turn.parity ^ 1);
      arrive_and_expect(full, static_cast<unsigned>(sizeof(stage.x) + 2 * width * sizeof(stage.weight[0])));
      copy_box(stage.x, p.x, k * inputs, 0, at.row, full);
      for (int i = 0; i < width; i += half)
        copy_box_to_all(stage.weight[rank * width + i], p.weight[rank], k * inputs, at.column + i, full);
    }
  };
  for (int tile = own_cluster(); tile < p.whole; tile += clusters()) bring(corner(p, tile, rank), outputs);
  if (own_cluster() < p.halves) bring(corner_of_half(p, own_cluster(), rank), half);
}

/// A thread's sums of a tile, two neighbours each: rows … and … + 8 of eight columns, then the next eight.
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

/// A warp: 16 of its columns go to its part of shared memory, from there 64 at once to u.
__device__ void write_part(Memory& memory, const GatedProduct& p, const Sums& sums, int part, int warp) {
  constexpr int boxes = outputs / swizzled, parts_together = parts / boxes;
  const int lane = static_cast<int>(threadIdx.x) % 32, box = part / parts_together, column = part % parts_together * 16, j = 4 * part;
  if (part == 0) {
    if (lane == 0) wait_for_stores();
    __syncwarp();
  }
  Bf16* u = &memory.u[warp][box][0][0];
  store_matrices(u + place(lane % warp_rows, column + lane / warp_rows * 8),
                 {gated(sums.gate[j], sums.up[j]), gated(sums.gate[j + 1], sums.up[j + 1]), gated(sums.gate[j + 2], sums.up[j + 2]),
                  gated(sums.gate[j + 3], sums.up[j + 3])});
  if (column + 16 < swizzled) return;
  order_before_copies();
  __syncwarp();
  if (lane == 0) store_box(p.u, sums.at.column + box * swizzled, sums.at.row, u);
}

/// A warpgroup: C ← its rows of x (gate | up)ᵀ of a tile; during the first stages meanwhile(part) for each part.
template <int n, class Meanwhile>
__device__ void multiply_tile(float (&c)[n][4], Memory& memory, int steps, Turn& turn, int group, const Meanwhile& meanwhile) {
  const std::uint64_t x = matrix(memory.stage[0].x[group * group_rows]), weight = matrix(memory.stage[0].weight);
  const auto release_one_before = [&] {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (lane < cluster) arrive_at(memory.empty[turn.before()], lane);
  };
  const auto multiply_stage = [&](bool first) {
    const int offset = turn.stage * static_cast<int>(sizeof(Stage) >> 4);  // of a matrix, as of those below, in pieces of 16 bytes
    wait(memory.full[turn.stage], turn.parity);
    begin_products();
#pragma unroll
    for (int i = 0; i < inputs; i += 16) multiply(c, x + (offset + i / 8), weight + (offset + i / 8), !first || i > 0);
    commit_products();
    wait_products<1>();
    if (!first) release_one_before();
    turn.next();
  };
#pragma unroll
  for (int part = 0; part < parts; ++part) {
    multiply_stage(part == 0);
    meanwhile(part);
  }
  for (int k = parts; k < steps; ++k) multiply_stage(false);
  wait_products<0>();
  pin(c);
  release_one_before();
}

/// A warpgroup: its rows of all tiles. What becomes of a tile's sums is computed and written while the first products of the next one run.
__device__ void consume(Memory& memory, const GatedProduct& p, int rank, int group) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  Turn turn;
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
  for (int tile = own_cluster(); tile < p.whole; tile += clusters()) {
    multiply_tile(c, memory, p.steps, turn, group, write_last);
    keep(c, corner(p, tile, rank));
  }
  const bool takes_half = own_cluster() < p.halves;
  if (takes_half) {
    auto& first = reinterpret_cast<float(&)[2 * half / 8][4]>(c);
    multiply_tile(first, memory, p.steps, turn, group, write_last);
    keep(first, corner_of_half(p, own_cluster(), rank));
  }
#pragma unroll
  for (int part = 0; part < parts; ++part) {
    if (part < parts / 2 || !takes_half) write_part(memory, p, sums, part, warp);
  }
  if (threadIdx.x % 32 == 0) wait_for_stores();
}

__global__ void __cluster_dims__(cluster) __launch_bounds__(threads, 1) swiglu_kernel(const __grid_constant__ GatedProduct p) {
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& memory = *reinterpret_cast<Memory*>(shared_bytes);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < stages; ++stage) {
      init_barrier(memory.full[stage], 1);
      init_barrier(memory.empty[stage], cluster * warps);
    }
    publish_barriers();
  }
  sync_cluster();
  wait_for_results();
  // Registers go from the warpgroup that copies to those that multiply.
  const int rank = own_rank(), group = static_cast<int>(threadIdx.x) / warpgroup;
  if (group == groups) {
    leave_registers<24>();
    if (threadIdx.x % warpgroup == 0) produce(memory, p, rank);
  } else {
    take_registers<240>();
    consume(memory, p, rank, group);
  }
  sync_cluster();  // what another block copies to or counts at stays there until then
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

/// Clusters that run on this thread's device at once.
int clusters_at_once() {
  thread_local std::map<int, int> known;
  int device = 0;
  check(cudaGetDevice(&device), "the device");
  const auto [found, is_new] = known.try_emplace(device);
  if (!is_new) return found->second;
  const auto kernel = reinterpret_cast<const void*>(swiglu_kernel);
  allow_shared_memory("swiglu", kernel, sizeof(Memory));
  cudaLaunchAttribute shape{};
  shape.id = cudaLaunchAttributeClusterDimension;
  shape.val.clusterDim.x = cluster, shape.val.clusterDim.y = shape.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = cluster, config.blockDim = threads, config.dynamicSmemBytes = sizeof(Memory);
  config.attrs = &shape, config.numAttrs = 1;
  check(cudaOccupancyMaxActiveClusters(&found->second, kernel, &config), "swiglu");
  return found->second;
}

/// bf16 rows that the bulk copy engine can take.
bool can_be_mapped(ConstTensor x) { return x.dtype == DType::bf16 && in_packs(x, 8); }

CUtensorMap map_of(ConstTensor x, int box_rows) {
  return tensor_map({static_cast<const Bf16*>(x.data), x.rows(), 1, x.row_size(), x.stride, x.stride}, box_rows);
}

int tiles_of(std::int64_t n, int tile) { return static_cast<int>((n + tile - 1) / tile); }

}  // namespace

bool gated_linear_hopper(Tensor u, ConstTensor x, ConstTensor gate, ConstTensor up, cudaStream_t stream) {
  const bool fits = can_be_mapped(u) && can_be_mapped(x) && can_be_mapped(gate) && can_be_mapped(up);
  const int steps = tiles_of(x.row_size(), inputs);
  if (!fits || steps < parts || !has_warpgroup_products()) return false;
  const int row_tiles = tiles_of(x.rows(), cluster * tile_rows), column_tiles = tiles_of(gate.rows(), outputs),
            tiles = row_tiles * column_tiles, at_once = clusters_at_once(), last = tiles % at_once;
  const bool halve = 2 * last <= at_once;
  // Where more than a quarter of what the device can do meanwhile would go to waste, two products are faster.
  const std::int64_t half_turns = tiles / at_once * 2 + (last == 0 ? 0 : halve ? 1 : 2);
  if (4 * u.shape.size() < 3 * half_turns * at_once * (cluster * tile_rows * half)) return false;
  const int whole = halve ? tiles - last : tiles, halves = halve ? 2 * last : 0;
  const GatedProduct p{
      map_of(x, tile_rows), {map_of(gate, half), map_of(up, half)}, map_of(u, warp_rows), row_tiles, column_tiles, whole, halves, steps};
  const auto blocks = static_cast<unsigned>(cluster * std::min(at_once, std::max(whole, halves)));
  launch_overlapped("swiglu", swiglu_kernel, blocks, threads, sizeof(Memory), stream, p);
  return true;
}

}  // namespace statescope::cuda

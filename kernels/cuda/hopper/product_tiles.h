// GEMMs of many rows on a device of compute capability 9.0. One block per multiprocessor takes output tiles in turn (a persistent kernel).
// A producer warpgroup loads operands by TMA; each consumer warpgroup multiplies 64 rows of the block's own operand with up to 256 rows of
// the shared one. The two blocks of a cluster share the latter: each loads half of it and multicasts it to both.
#pragma once

#include <algorithm>
#include <map>
#include <utility>

#include "kernels/cuda/hopper/hopper.h"

namespace statescope::cuda::product_tiles {

constexpr int cluster = 2, groups = 2, stages = 4;  // blocks, consumer warpgroups, stages of the pipeline
constexpr int group_rows = 64, own_rows = groups * group_rows;
constexpr int columns = swizzle_columns;  // of a stage: the K of a stage
constexpr int rows_per_load = 128,
              half = rows_per_load / 2;  // rows of the shared operand that a block loads for a tile; of half a tile, see TileSchedule
constexpr int warps = groups * warpgroup / 32, threads = (groups + 1) * warpgroup;

struct Stage {
  Bf16 own[own_rows][columns];
  Bf16 shared[cluster * rows_per_load][columns];  // loaded by the first block, then by the second
};

struct Pipeline {
  Stage stage[stages];
  std::uint64_t full[stages], empty[stages];
};

/// The output tiles of a GEMM, and which cluster computes which. Where whole tiles would leave most of the device idle at the end, the last
/// ones are halved.
struct TileSchedule {
  int down, across;
  int whole, halves;  // whole tiles; halves of the others, at most one a cluster
  int k_tiles;        // stages that a tile goes through
  int at_once;        // clusters

  unsigned blocks() const { return static_cast<unsigned>(cluster * std::min(at_once, std::max(whole, halves))); }
  explicit operator bool() const { return k_tiles > 0; }

  // in a kernel

  static __device__ int own_cluster() { return static_cast<int>(blockIdx.x) / cluster; }
  static __device__ int clusters() { return static_cast<int>(gridDim.x) / cluster; }
  struct TileCoord {
    int down, across;
  };
  /// Tiles are taken column by column within bands of 2048 rows, which stay in L2 meanwhile.
  __device__ TileCoord coord_of(int tile) const {
    constexpr int band = 2048 / (cluster * own_rows);
    const int in_band = band * across, first = tile / in_band * band, height = min(band, down - first), rest = tile % in_band;
    return {first + rest % height, rest / height};
  }
  /// visit(tile) for each whole tile of the cluster, then visit_half(tile, 0 or 1) for half of one.
  template <class Visit, class VisitHalf>
  __device__ void visit_own(const Visit& visit, const VisitHalf& visit_half) const {
    for (int tile = own_cluster(); tile < whole; tile += clusters()) visit(tile);
    if (takes_half()) visit_half(whole + own_cluster() / 2, own_cluster() % 2);
  }
  __device__ bool takes_half() const { return own_cluster() < halves; }
};

// ---------------------------------------------------------------------------------------------------------------------------------------
// in a kernel

/// Arrives at the barrier of a block of the cluster, which says that products have read its stage. Nothing is written for the threads that
/// wait: a release would be a fence for the whole device, and a quarter of the kernel's time.
__device__ inline void arrive_at(std::uint64_t& barrier, int rank) {
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [there];\n"
      "}\n" ::"r"(shared_address(&barrier)),
      "r"(rank)
      : "memory");
}
/// Starts a TMA load, multicast to all blocks of the cluster, which counts at the barrier of each.
__device__ inline void tma_load_multicast(void* to, const CUtensorMap& from, int column, int row, std::uint64_t& full) {
  constexpr unsigned short all = (1 << cluster) - 1;
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, 0, %3}], [%4], "
      "%5;" ::"r"(shared_address(to)),
      "l"(&from), "r"(column), "r"(row), "r"(shared_address(&full)), "h"(all)
      : "memory");
}
/// Starts a TMA store of a box. What lies outside of the matrix is left out.
__device__ inline void tma_store(const CUtensorMap& to, int column, int row, const void* from) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, 0, %2}], [%3];" ::"l"(&to), "r"(column), "r"(row),
               "r"(shared_address(from))
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Waits until all boxes but the last few that this thread stores have been read.
template <int but = 0>
__device__ void tma_store_wait() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(but) : "memory");
}

/// The position of a thread in the pipeline.
struct PipelineState {
  int stage = 0, parity = 0;
  __device__ int before() const { return (stage + stages - 1) % stages; }
  __device__ void next() {
    if (++stage < stages) return;
    stage = 0;
    parity ^= 1;
  }
};

/// Rows of a matrix from `row` on, in boxes of `own_rows` rows or `half`.
struct OperandRows {
  const CUtensorMap& map;
  int row;
};
/// The producer thread: loads all stages of a tile, each as soon as both blocks have read its previous contents. `shared`: what this block
/// loads of the shared operand, `width` rows.
__device__ inline void load_tile(Pipeline& pipeline, PipelineState& state, int k_tiles, int rank, const OperandRows& own,
                                 const OperandRows& shared, int width) {
  for (int k = 0; k < k_tiles; ++k, state.next()) {
    Stage& stage = pipeline.stage[state.stage];
    std::uint64_t& full = pipeline.full[state.stage];
    wait(pipeline.empty[state.stage], state.parity ^ 1);
    arrive_and_expect(full, static_cast<unsigned>(sizeof(stage.own) + cluster * width * sizeof(stage.shared[0])));
    tma_load(stage.own, own.map, k * columns, 0, own.row, full);
    for (int i = 0; i < width; i += half) tma_load_multicast(stage.shared[rank * width + i], shared.map, k * columns, shared.row + i, full);
  }
}

/// A consumer warpgroup: C ← its rows of own · sharedᵀ of a tile. During the first stages meanwhile(part) runs a part of the epilogue of
/// the tile before.
template <int parts, int n, class Meanwhile>
__device__ void multiply_tile(float (&c)[n][4], Pipeline& pipeline, int k_tiles, PipelineState& state, int group,
                              const Meanwhile& meanwhile) {
  const std::uint64_t own = matrix_descriptor(pipeline.stage[0].own[group * group_rows]),
                      shared = matrix_descriptor(pipeline.stage[0].shared);
  const auto release_one_before = [&] {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (lane < cluster) arrive_at(pipeline.empty[state.before()], lane);
  };
  const auto multiply_stage = [&](bool first) {
    const int offset = state.stage * static_cast<int>(sizeof(Stage) >> 4);  // of a descriptor, as those below in units of 16 bytes
    wait(pipeline.full[state.stage], state.parity);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < columns; i += 16) multiply(c, own + (offset + i / 8), shared + (offset + i / 8), !first || i > 0);
    wgmma_commit();
    wgmma_wait<1>();
    if (!first) release_one_before();
    state.next();
  };
#pragma unroll
  for (int part = 0; part < parts; ++part) {
    multiply_stage(part == 0);
    meanwhile(part);
  }
  for (int k = parts; k < k_tiles; ++k) multiply_stage(false);
  wgmma_wait<0>();
  pin(c);
  release_one_before();
}

/// Warp specialisation: one producer thread runs produce(), each consumer warpgroup consume(group).
template <class Produce, class Consume>
__device__ void specialize_warps(Pipeline& pipeline, const Produce& produce, const Consume& consume) {
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < stages; ++stage) {
      init_barrier(pipeline.full[stage], 1);
      init_barrier(pipeline.empty[stage], cluster * warps);
    }
    fence_barrier_init();
  }
  sync_cluster();
  grid_dependency_wait();
  // The producer warpgroup gives registers to the consumers.
  const int group = static_cast<int>(threadIdx.x) / warpgroup;
  if (group == groups) {
    dealloc_registers<40>();
    if (threadIdx.x % warpgroup == 0) produce();
  } else {
    alloc_registers<232>();
    consume(group);
  }
  sync_cluster();  // other blocks copy to this shared memory and count at its barriers until then
}

// on the host

/// Clusters of this kernel that run on this thread's device at the same time.
inline int clusters_at_once(const char* name, const void* kernel, std::size_t shared_bytes) {
  thread_local std::map<std::pair<int, const void*>, int> known;
  int device = 0;
  check(cudaGetDevice(&device), "the device");
  const auto [found, is_new] = known.try_emplace({device, kernel});
  if (!is_new) return found->second;
  allow_shared_memory(name, kernel, shared_bytes);
  cudaLaunchAttribute shape{};
  shape.id = cudaLaunchAttributeClusterDimension;
  shape.val.clusterDim.x = cluster, shape.val.clusterDim.y = shape.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = cluster, config.blockDim = threads, config.dynamicSmemBytes = shared_bytes;
  config.attrs = &shape, config.numAttrs = 1;
  check(cudaOccupancyMaxActiveClusters(&found->second, kernel, &config), name);
  return found->second;
}

/// Whether x is bf16 rows that TMA can load.
inline bool tma_compatible(ConstTensor x) { return x.dtype == DType::bf16 && in_packs(x, 8); }

inline CUtensorMap tensor_map_of(ConstTensor x, int box_rows, int box_columns = swizzle_columns) {
  return tensor_map({static_cast<const Bf16*>(x.data), x.rows(), 1, x.row_size(), x.stride, x.stride}, box_rows, box_columns);
}

inline int tiles_of(std::int64_t n, int tile) { return static_cast<int>((n + tile - 1) / tile); }

/// The schedule for `sums` outputs over `inputs` inputs, for as many clusters as run at once; none where more than a quarter of the device
/// would be idle meanwhile, or a tile has fewer than `least_k_tiles` stages.
inline TileSchedule schedule_tiles(int down, int across, std::int64_t inputs, int least_k_tiles, std::int64_t sums, int at_once) {
  const int k_tiles = tiles_of(inputs, columns), tiles = down * across, last = tiles % at_once;
  const bool halves = 2 * last <= at_once;
  const std::int64_t half_turns = tiles / at_once * 2 + (last == 0 ? 0 : halves ? 1 : 2);
  constexpr std::int64_t of_half = std::int64_t{cluster * own_rows} * cluster * half;
  if (k_tiles < least_k_tiles || 4 * sums < 3 * half_turns * at_once * of_half) return {};
  return {down, across, halves ? tiles - last : tiles, halves ? 2 * last : 0, k_tiles, at_once};
}

}  // namespace statescope::cuda::product_tiles

// Products of many rows on a device of compute capability 9.0, tile by tile. A multiprocessor has one block, which takes tiles in turn. One
// of its warpgroups (128 threads) brings operands through the bulk copy engine; each other one multiplies 64 rows of the block's own
// operand with 256 of the other one. Two neighbouring blocks (a cluster) share the latter: each brings half of it for both.
#pragma once

#include <algorithm>
#include <map>
#include <utility>

#include "kernels/cuda/hopper/hopper.h"

namespace statescope::cuda::product_tiles {

constexpr int cluster = 2, groups = 2, stages = 4;  // blocks, warpgroups that multiply, tiles of operands on their way
constexpr int group_rows = 64, own_rows = groups * group_rows;
constexpr int columns = swizzled;                         // of a stage: numbers that a product sums up
constexpr int each_brings = 128, half = each_brings / 2;  // rows of the shared operand: for a tile; for the last ones, see Tiles
constexpr int warps = groups * warpgroup / 32, threads = (groups + 1) * warpgroup;

struct Stage {
  Bf16 own[own_rows][columns];
  Bf16 shared[cluster * each_brings][columns];  // of the first block, then of the second
};

struct Ring {
  Stage stage[stages];
  std::uint64_t full[stages], empty[stages];
};

/// The tiles of a product, of whole clusters, and who takes which. Where whole ones would leave most of the device idle at the end, the
/// last ones are halved.
struct Tiles {
  int down, across;
  int whole, halves;  // tiles taken whole; halves of the others, at most one a cluster
  int steps;          // stages of a tile
  int at_once;        // clusters

  unsigned blocks() const { return static_cast<unsigned>(cluster * std::min(at_once, std::max(whole, halves))); }
  explicit operator bool() const { return steps > 0; }

  // in a kernel

  static __device__ int own_cluster() { return static_cast<int>(blockIdx.x) / cluster; }
  static __device__ int clusters() { return static_cast<int>(gridDim.x) / cluster; }
  struct Place {
    int down, across;
  };
  /// Tiles are taken column by column within bands of 2048 rows, which stay in the second cache meanwhile.
  __device__ Place place_of(int tile) const {
    constexpr int band = 2048 / (cluster * own_rows);
    const int in_band = band * across, first = tile / in_band * band, height = min(band, down - first), rest = tile % in_band;
    return {first + rest % height, rest / height};
  }
  /// visit(tile), for each of the cluster's whole tiles, then visit_half(tile, 0 or 1) for half of one.
  template <class Visit, class VisitHalf>
  __device__ void visit_own(const Visit& visit, const VisitHalf& visit_half) const {
    for (int tile = own_cluster(); tile < whole; tile += clusters()) visit(tile);
    if (takes_half()) visit_half(whole + own_cluster() / 2, own_cluster() % 2);
  }
  __device__ bool takes_half() const { return own_cluster() < halves; }
};

// ---------------------------------------------------------------------------------------------------------------------------------------
// in a kernel

/// At the barrier of a block of the cluster, which says that products have read its memory. Nothing is written for the threads that wait:
/// a release would be a fence for the whole device, and a quarter of the kernel's time.
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
/// Starts to copy columns … + 63 of a box of rows to all blocks of the cluster, where it counts at the barrier of each.
__device__ inline void copy_box_to_all(void* to, const CUtensorMap& from, int column, int row, std::uint64_t& full) {
  constexpr unsigned short all = (1 << cluster) - 1;
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, 0, %3}], [%4], "
      "%5;" ::"r"(shared_address(to)),
      "l"(&from), "r"(column), "r"(row), "r"(shared_address(&full)), "h"(all)
      : "memory");
}
/// Starts to copy a box back. What lies outside of the matrix is left out.
__device__ inline void store_box(const CUtensorMap& to, int column, int row, const void* from) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, 0, %2}], [%3];" ::"l"(&to), "r"(column), "r"(row),
               "r"(shared_address(from))
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Until all boxes that this thread stores have been read, but for the last few.
template <int but = 0>
__device__ void wait_for_stores() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(but) : "memory");
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

/// Rows of a matrix, from `row` on, in boxes of `own_rows` rows or `half`.
struct Operand {
  const CUtensorMap& map;
  int row;
};
/// One thread: all stages of a tile, as soon as both blocks have read what was there. `shared` is what this block brings of it, `width`
/// rows.
__device__ inline void bring_tile(Ring& ring, Turn& turn, int steps, int rank, const Operand& own, const Operand& shared, int width) {
  for (int k = 0; k < steps; ++k, turn.next()) {
    Stage& stage = ring.stage[turn.stage];
    std::uint64_t& full = ring.full[turn.stage];
    wait(ring.empty[turn.stage], turn.parity ^ 1);
    arrive_and_expect(full, static_cast<unsigned>(sizeof(stage.own) + cluster * width * sizeof(stage.shared[0])));
    copy_box(stage.own, own.map, k * columns, 0, own.row, full);
    for (int i = 0; i < width; i += half) copy_box_to_all(stage.shared[rank * width + i], shared.map, k * columns, shared.row + i, full);
  }
}

/// A warpgroup: C ← its rows of own · sharedᵀ of a tile; during the first stages meanwhile(part) for each part of something else.
template <int parts, int n, class Meanwhile>
__device__ void multiply_tile(float (&c)[n][4], Ring& ring, int steps, Turn& turn, int group, const Meanwhile& meanwhile) {
  const std::uint64_t own = matrix(ring.stage[0].own[group * group_rows]), shared = matrix(ring.stage[0].shared);
  const auto release_one_before = [&] {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (lane < cluster) arrive_at(ring.empty[turn.before()], lane);
  };
  const auto multiply_stage = [&](bool first) {
    const int offset = turn.stage * static_cast<int>(sizeof(Stage) >> 4);  // of a matrix, as of those below, in pieces of 16 bytes
    wait(ring.full[turn.stage], turn.parity);
    begin_products();
#pragma unroll
    for (int i = 0; i < columns; i += 16) multiply(c, own + (offset + i / 8), shared + (offset + i / 8), !first || i > 0);
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

/// What the warps of a block do: one thread produce(), the warpgroups that multiply consume(group).
template <class Produce, class Consume>
__device__ void share_work(Ring& ring, const Produce& produce, const Consume& consume) {
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < stages; ++stage) {
      init_barrier(ring.full[stage], 1);
      init_barrier(ring.empty[stage], cluster * warps);
    }
    publish_barriers();
  }
  sync_cluster();
  wait_for_results();
  // Registers go from the warpgroup that copies to those that multiply.
  const int group = static_cast<int>(threadIdx.x) / warpgroup;
  if (group == groups) {
    leave_registers<40>();
    if (threadIdx.x % warpgroup == 0) produce();
  } else {
    take_registers<232>();
    consume(group);
  }
  sync_cluster();  // what another block copies to or counts at stays there until then
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// the host's part

/// Clusters of this kernel that run on this thread's device at once.
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

/// bf16 rows that the bulk copy engine can take.
inline bool can_be_mapped(ConstTensor x) { return x.dtype == DType::bf16 && in_packs(x, 8); }

inline CUtensorMap map_of(ConstTensor x, int box_rows, int box_columns = swizzled) {
  return tensor_map({static_cast<const Bf16*>(x.data), x.rows(), 1, x.row_size(), x.stride, x.stride}, box_rows, box_columns);
}

inline int tiles_of(std::int64_t n, int tile) { return static_cast<int>((n + tile - 1) / tile); }

/// Of `sums` sums over `inputs` numbers, for as many clusters as run at once; none where more than a quarter of what the device can do
/// meanwhile would go to waste, or a tile has fewer than `least_steps` stages.
inline Tiles shared_out(int down, int across, std::int64_t inputs, int least_steps, std::int64_t sums, int at_once) {
  const int steps = tiles_of(inputs, columns), tiles = down * across, last = tiles % at_once;
  const bool halves = 2 * last <= at_once;
  const std::int64_t half_turns = tiles / at_once * 2 + (last == 0 ? 0 : halves ? 1 : 2);
  constexpr std::int64_t of_half = std::int64_t{cluster * own_rows} * cluster * half;
  if (steps < least_steps || 4 * sums < 3 * half_turns * at_once * of_half) return {};
  return {down, across, halves ? tiles - last : tiles, halves ? 2 * last : 0, steps, at_once};
}

}  // namespace statescope::cuda::product_tiles

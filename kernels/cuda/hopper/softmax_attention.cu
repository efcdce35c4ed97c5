// Softmax attention of many queries on a device of compute capability 9.0. A producer warpgroup loads tiles of keys and values by TMA; each
// consumer warpgroup multiplies 64 queries with them, and computes the softmax weights of one tile while the products of its neighbours
// run.
#include <algorithm>

#include "kernels/cuda/common/attention.h"
#include "kernels/cuda/hopper/hopper.h"

namespace statescope::cuda {
namespace {

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

constexpr int warpgroup_queries = 64;
constexpr int stages = 2;

/// For `groups` warpgroups of queries.
template <int D, int groups>
struct HopperMemory {
  static constexpr int queries = groups * warpgroup_queries, keys = D <= 128 ? 128 : 64, column_blocks = D / swizzle_columns;
  using Keys = Bf16[column_blocks][keys][swizzle_columns];
  Bf16 q[column_blocks][queries][swizzle_columns];
  Keys k[stages], v[stages];
  std::uint64_t q_full, k_full[stages], k_empty[stages], v_full[stages], v_empty[stages];
};

struct TensorMaps {
  CUtensorMap q, k, v;  // [rows, heads, width]
};

/// Starts score = Q Kᵀ of the warpgroup's queries.
template <int D, int groups, int n>
__device__ void multiply_queries(float (&score)[n][4], const HopperMemory<D, groups>& memory, int group, int stage) {
#pragma unroll
  for (int c = 0; c < D; c += 16) {
    const int block = c / swizzle_columns, column = c % swizzle_columns;
    multiply(score, matrix_descriptor(&memory.q[block][group * warpgroup_queries][column]),
             matrix_descriptor(&memory.k[stage][block][0][column]), c > 0);
  }
  wgmma_commit();
}

/// Starts o += weight V.
template <int D, int groups, int n>
__device__ void add_values(float (&o)[D / 8][4], const uint4 (&weight)[n], const HopperMemory<D, groups>& memory, int stage) {
  constexpr int columns = D == 64 ? 64 : 128, block_bytes = 16 * n * swizzle_columns * static_cast<int>(sizeof(Bf16));
#pragma unroll
  for (int j = 0; j < n; ++j) {
#pragma unroll
    for (int c = 0; c < D; c += columns) {
      multiply(reinterpret_cast<float(&)[columns / 8][4]>(o[c / 8]), weight[j],
               matrix_descriptor(&memory.v[stage][c / swizzle_columns][16 * j][0], block_bytes));
    }
  }
  wgmma_commit();
}

/// The producer thread: loads tile n of keys and values to stage n % 2 as soon as all warps have read what was there.
template <int D, int groups>
__device__ void produce(HopperMemory<D, groups>& memory, const TensorMaps& maps, const QueryTile& x, int begin, int tiles) {
  constexpr int keys = HopperMemory<D, groups>::keys, blocks = HopperMemory<D, groups>::column_blocks;
  arrive_and_expect(memory.q_full, sizeof(memory.q));
  for (int b = 0; b < blocks; ++b) tma_load(memory.q[b], maps.q, b * swizzle_columns, x.head, static_cast<int>(x.row), memory.q_full);
  for (int n = 0; n < tiles; ++n) {
    const int stage = n % stages, parity = n / stages % 2, row = static_cast<int>(x.first_key) + begin + n * keys;
    wait(memory.k_empty[stage], parity ^ 1);
    arrive_and_expect(memory.k_full[stage], sizeof(memory.k[stage]));
    for (int b = 0; b < blocks; ++b) tma_load(memory.k[stage][b], maps.k, b * swizzle_columns, x.kv_head, row, memory.k_full[stage]);
    wait(memory.v_empty[stage], parity ^ 1);
    arrive_and_expect(memory.v_full[stage], sizeof(memory.v[stage]));
    for (int b = 0; b < blocks; ++b) tma_load(memory.v[stage][b], maps.v, b * swizzle_columns, x.kv_head, row, memory.v_full[stage]);
  }
}

/// A consumer warpgroup: its queries against all tiles.
template <int D, int groups>
__device__ void consume(HopperMemory<D, groups>& memory, const AttentionTiles& p, const QueryTile& x, int begin, int tiles, int group) {
  constexpr int keys = HopperMemory<D, groups>::keys;
  const int lane = static_cast<int>(threadIdx.x) % 32, query = static_cast<int>(threadIdx.x) / 32 * 16;  // of this warp
  RunningSoftmax running;
  float o[D / 8][4] = {}, score[keys / 8][4], kept[2];
  uint4 weight[keys / 16];

  // o_t = Σ_s softmax_s(scale · q_t·k_s) v_s
  const auto weigh = [&](int n) {
    const int ahead = begin + n * keys - x.position - query;
    if (any_unseen(ahead, keys, p.window)) hide_unseen(score, ahead - lane / 4, p.window);
    soften(score, running, p.scale, kept);
  };
  const auto pack_weights = [&] {
#pragma unroll
    for (int j = 0; j < keys / 16; ++j) weight[j] = pack_a(score[2 * j], score[2 * j + 1]);
  };
  const auto release = [&](std::uint64_t& empty) {
    if (lane == 0) arrive(empty);
  };

  wait(memory.q_full, 0);
  wait(memory.k_full[0], 0);
  wgmma_fence();
  multiply_queries(score, memory, group, 0);
  wgmma_wait<0>();
  pin(score);
  release(memory.k_empty[0]);
  weigh(0);
  pack_weights();
  for (int n = 1; n < tiles; ++n) {
    const int stage = n % stages, before = (n - 1) % stages;
    wait(memory.k_full[stage], n / stages % 2);
    wait(memory.v_full[before], (n - 1) / stages % 2);
    pin(o);
    wgmma_fence();
    multiply_queries(score, memory, group, stage);
    add_values<D>(o, weight, memory, before);
    wgmma_wait<1>();
    pin(score);
    release(memory.k_empty[stage]);
    weigh(n);
    wgmma_wait<0>();
    pin(o);
    release(memory.v_empty[before]);
    multiply_rows(o, kept);
    pack_weights();
  }
  const int last = (tiles - 1) % stages;
  wait(memory.v_full[last], (tiles - 1) / stages % 2);
  pin(o);
  wgmma_fence();
  add_values<D>(o, weight, memory, last);
  wgmma_wait<0>();
  pin(o);
  write_output(o, running, p, x, query);
}

constexpr int threads_of(int groups) { return (groups + 1) * warpgroup; }

/// A block: 64 · groups queries of one head of one segment.
template <int D, int groups>
__global__ void __launch_bounds__(threads_of(groups), 1)
    attend_kernel(const __grid_constant__ TensorMaps maps, const __grid_constant__ AttentionTiles p) {
  using Memory = HopperMemory<D, groups>;
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& memory = *reinterpret_cast<Memory*>(shared_bytes);
  const QueryTile x = query_tile(p, Memory::queries);
  if (x.count <= 0) return;
  constexpr int keys = Memory::keys, warps = groups * warpgroup / 32;
  const int begin = x.begin(p.window) / keys * keys, tiles = (x.end() - begin + keys - 1) / keys;
  if (threadIdx.x == 0) {
    init_barrier(memory.q_full, 1);
    for (int stage = 0; stage < stages; ++stage) {
      init_barrier(memory.k_full[stage], 1);
      init_barrier(memory.v_full[stage], 1);
      init_barrier(memory.k_empty[stage], warps);
      init_barrier(memory.v_empty[stage], warps);
    }
    fence_async_proxy();
  }
  __syncthreads();
  // The producer warpgroup gives registers to the consumers.
  const int group = static_cast<int>(threadIdx.x) / warpgroup;
  if (group == groups) {
    if constexpr (groups > 1) dealloc_registers<24>();
    if (threadIdx.x % warpgroup == 0) produce(memory, maps, x, begin, tiles);
  } else {
    if constexpr (groups > 1) alloc_registers<240>();
    consume(memory, p, x, begin, tiles, group);
  }
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

template <int D, int groups>
void attend(const AttentionTiles& p, cudaStream_t stream) {
  using Memory = HopperMemory<D, groups>;
  const auto map = [](const AttentionOperand& x, int rows) {
    return tensor_map({x.data, x.rows, x.heads, x.width, x.stride, x.pitch}, rows);
  };
  const TensorMaps maps{map(p.q, Memory::queries), map(p.k, Memory::keys), map(p.v, Memory::keys)};
  launch("softmax_attention", attend_kernel<D, groups>, tiles_of(p, Memory::queries), threads_of(groups), sizeof(Memory), stream, maps, p);
}

template <int D>
void attend(const AttentionTiles& p, cudaStream_t stream) {
  // Where half as many queries a block still leave no more blocks than multiprocessors, all of them have work.
  const bool few = 2 * tiles_of(p, 2 * warpgroup_queries) <= multiprocessors();
  few ? attend<D, 1>(p, stream) : attend<D, 2>(p, stream);
}

}  // namespace

bool has_warpgroup_products() { return is_hopper() && encode_tiled() != nullptr; }

void attend_hopper(const AttentionTiles& p, cudaStream_t stream) {
  const std::int64_t widest = std::max(p.q.width, p.v.width);
  if (widest <= 64) return attend<64>(p, stream);
  if (widest <= 128) return attend<128>(p, stream);
  attend<256>(p, stream);
}

}  // namespace statescope::cuda

// Softmax attention of many queries on a device of compute capability 9.0. One of a block's warpgroups (128 threads) brings tiles of keys
// and values through the bulk copy engine; each other one multiplies 64 queries with them, and its threads make weights of the last scores
// while the products of the next scores and of the weights before run.
#include <cuda.h>

#include <algorithm>
#include <array>

#include "kernels/cuda_attention.h"
#include "kernels/device.h"

namespace statescope::cuda {
namespace {

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

constexpr int warpgroup = 128, warpgroup_queries = 64;
constexpr int swizzled = 64;  // columns of a row in shared memory: 128 bytes, whose pieces change places with the row's number
constexpr int stages = 2;

/// For `groups` warpgroups of queries.
template <int D, int groups>
struct HopperMemory {
  static constexpr int queries = groups * warpgroup_queries, keys = D <= 128 ? 128 : 64, column_blocks = D / swizzled;
  using Keys = Bf16[column_blocks][keys][swizzled];
  Bf16 q[column_blocks][queries][swizzled];
  Keys k[stages], v[stages];
  std::uint64_t q_full, k_full[stages], k_empty[stages], v_full[stages], v_empty[stages];
};

struct TensorMaps {
  CUtensorMap q, k, v;  // [rows, heads, width]
};

__device__ unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

// Barriers in shared memory: a phase ends when all have arrived and all announced bytes have.

__device__ void init_barrier(std::uint64_t& barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(arrivals) : "memory");
}
__device__ void arrive(std::uint64_t& barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&barrier)) : "memory");
}
__device__ void arrive_and_expect(std::uint64_t& barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)), "r"(bytes) : "memory");
}
/// Until the phase of this parity is over.
__device__ void wait(std::uint64_t& barrier, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}\n" ::"r"(shared_address(&barrier)),
      "r"(parity)
      : "memory");
}

/// Starts to copy columns … + 63 of a box of rows.
__device__ void copy_box(void* to, const CUtensorMap& from, int column, int head, int row, std::uint64_t& full) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(
                   shared_address(to)),
               "l"(&from), "r"(column), "r"(head), "r"(row), "r"(shared_address(&full))
               : "memory");
}

// Products of a warpgroup.

/// A matrix in shared memory as wgmma takes it: rows of 64 swizzled columns, 8 rows 1024 bytes from the next, `block_bytes` from 64 columns
/// to the next 64 (read where columns are the outer axis of B).
__device__ std::uint64_t matrix(const void* start, int block_bytes = 16) {
  constexpr std::uint64_t swizzle_128_bytes = std::uint64_t{1} << 62, eight_rows = std::uint64_t{1024 >> 4} << 32;
  return swizzle_128_bytes | eight_rows | static_cast<std::uint64_t>(block_bytes >> 4) << 16 | (shared_address(start) & 0x3FFFF) >> 4;
}

__device__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Until no more than `pending` committed groups are under way.
template <int pending>
__device__ void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}
/// Keeps the compiler from moving what touches c across this place.
template <int n>
__device__ void pin(float (&c)[n][4]) {
#pragma unroll
  for (int j = 0; j < n; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) asm volatile("" : "+f"(c[j][e])::"memory");
  }
}

#define FOUR(c, j) "+f"(c[j][0]), "+f"(c[j][1]), "+f"(c[j][2]), "+f"(c[j][3])
#define THIRTY_TWO(c, j) \
  FOUR(c, j), FOUR(c, j + 1), FOUR(c, j + 2), FOUR(c, j + 3), FOUR(c, j + 4), FOUR(c, j + 5), FOUR(c, j + 6), FOUR(c, j + 7)
#define FIRST_32                                                                                                                       \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, " \
  "%28, %29, %30, %31"
#define SECOND_32                                                                                                                      \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, " \
  "%58, %59, %60, %61, %62, %63"

/// C [64, 8 n] ← A B, or C + A B; A and B from shared memory, sums along the columns of both.
__device__ void multiply(float (&c)[8][4], std::uint64_t a, std::uint64_t b, bool add) {
  asm volatile("{.reg .pred add; setp.ne.b32 add, %34, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" FIRST_32
               "}, %32, %33, add, 1, 1, 0, 0;}"
               : THIRTY_TWO(c, 0)
               : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}
__device__ void multiply(float (&c)[16][4], std::uint64_t a, std::uint64_t b, bool add) {
  asm volatile("{.reg .pred add; setp.ne.b32 add, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" FIRST_32 ", " SECOND_32
               "}, %64, %65, add, 1, 1, 0, 0;}"
               : THIRTY_TWO(c, 0), THIRTY_TWO(c, 8)
               : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}
/// C [64, 8 n] ← C + A B; A from registers, sums along the rows of B.
__device__ void multiply(float (&c)[8][4], const uint4& a, std::uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" FIRST_32 "}, {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
               : THIRTY_TWO(c, 0)
               : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b));
}
__device__ void multiply(float (&c)[16][4], const uint4& a, std::uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" FIRST_32 ", " SECOND_32 "}, {%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
               : THIRTY_TWO(c, 0), THIRTY_TWO(c, 8)
               : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b));
}
#undef FOUR
#undef THIRTY_TWO
#undef FIRST_32
#undef SECOND_32

/// Starts score = Q Kᵀ of the warpgroup's queries.
template <int D, int groups, int n>
__device__ void multiply_queries(float (&score)[n][4], const HopperMemory<D, groups>& memory, int group, int stage) {
#pragma unroll
  for (int c = 0; c < D; c += 16) {
    const int block = c / swizzled, column = c % swizzled;
    multiply(score, matrix(&memory.q[block][group * warpgroup_queries][column]), matrix(&memory.k[stage][block][0][column]), c > 0);
  }
  commit_products();
}

/// Starts o += weight V.
template <int D, int groups, int n>
__device__ void add_values(float (&o)[D / 8][4], const uint4 (&weight)[n], const HopperMemory<D, groups>& memory, int stage) {
  constexpr int columns = D == 64 ? 64 : 128, block_bytes = 16 * n * swizzled * static_cast<int>(sizeof(Bf16));
#pragma unroll
  for (int j = 0; j < n; ++j) {
#pragma unroll
    for (int c = 0; c < D; c += columns) {
      multiply(reinterpret_cast<float(&)[columns / 8][4]>(o[c / 8]), weight[j],
               matrix(&memory.v[stage][c / swizzled][16 * j][0], block_bytes));
    }
  }
  commit_products();
}

/// One thread: tile n of the keys and values goes to stage n % 2 as soon as all warps have read what was there.
template <int D, int groups>
__device__ void produce(HopperMemory<D, groups>& memory, const TensorMaps& maps, const QueryTile& x, int begin, int tiles) {
  constexpr int keys = HopperMemory<D, groups>::keys, blocks = HopperMemory<D, groups>::column_blocks;
  arrive_and_expect(memory.q_full, sizeof(memory.q));
  for (int b = 0; b < blocks; ++b) copy_box(memory.q[b], maps.q, b * swizzled, x.head, static_cast<int>(x.row), memory.q_full);
  for (int n = 0; n < tiles; ++n) {
    const int stage = n % stages, parity = n / stages % 2, row = static_cast<int>(x.first_key) + begin + n * keys;
    wait(memory.k_empty[stage], parity ^ 1);
    arrive_and_expect(memory.k_full[stage], sizeof(memory.k[stage]));
    for (int b = 0; b < blocks; ++b) copy_box(memory.k[stage][b], maps.k, b * swizzled, x.kv_head, row, memory.k_full[stage]);
    wait(memory.v_empty[stage], parity ^ 1);
    arrive_and_expect(memory.v_full[stage], sizeof(memory.v[stage]));
    for (int b = 0; b < blocks; ++b) copy_box(memory.v[stage][b], maps.v, b * swizzled, x.kv_head, row, memory.v_full[stage]);
  }
}

/// A warpgroup: its queries against all tiles.
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
    for (int j = 0; j < keys / 16; ++j) weight[j] = as_left_side(score[2 * j], score[2 * j + 1]);
  };
  const auto release = [&](std::uint64_t& empty) {
    if (lane == 0) arrive(empty);
  };

  wait(memory.q_full, 0);
  wait(memory.k_full[0], 0);
  begin_products();
  multiply_queries(score, memory, group, 0);
  wait_products<0>();
  pin(score);
  release(memory.k_empty[0]);
  weigh(0);
  pack_weights();
  for (int n = 1; n < tiles; ++n) {
    const int stage = n % stages, before = (n - 1) % stages;
    wait(memory.k_full[stage], n / stages % 2);
    wait(memory.v_full[before], (n - 1) / stages % 2);
    pin(o);
    begin_products();
    multiply_queries(score, memory, group, stage);
    add_values<D>(o, weight, memory, before);
    wait_products<1>();
    pin(score);
    release(memory.k_empty[stage]);
    weigh(n);
    wait_products<0>();
    pin(o);
    release(memory.v_empty[before]);
    multiply_rows(o, kept);
    pack_weights();
  }
  const int last = (tiles - 1) % stages;
  wait(memory.v_full[last], (tiles - 1) / stages % 2);
  pin(o);
  begin_products();
  add_values<D>(o, weight, memory, last);
  wait_products<0>();
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
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  // Registers go from the warpgroup that copies to those that multiply.
  const int group = static_cast<int>(threadIdx.x) / warpgroup;
  if (group == groups) {
    if constexpr (groups > 1) asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (threadIdx.x % warpgroup == 0) produce(memory, maps, x, begin, tiles);
  } else {
    if constexpr (groups > 1) asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    consume(memory, p, x, begin, tiles, group);
  }
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

using EncodeTiled = decltype(&cuTensorMapEncodeTiled);

/// Of the driver; null where it has none.
EncodeTiled find_encode_tiled() {
  constexpr unsigned since = 12000;
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, since, cudaEnableDefault, &found), "the driver");
  return found == cudaDriverEntryPointSuccess ? reinterpret_cast<EncodeTiled>(function) : nullptr;
}
EncodeTiled encode_tiled() {
  static const EncodeTiled function = find_encode_tiled();
  return function;
}

/// Boxes of `rows` rows and 64 columns of one head.
CUtensorMap map_of(const AttentionTiles::Operand& x, int rows) {
  CUtensorMap map{};
  const std::array<cuuint64_t, 3> extents{static_cast<cuuint64_t>(x.width), static_cast<cuuint64_t>(x.heads),
                                          static_cast<cuuint64_t>(x.rows)};
  const std::array<cuuint64_t, 2> strides{static_cast<cuuint64_t>(x.pitch) * sizeof(Bf16),
                                          static_cast<cuuint64_t>(x.stride) * sizeof(Bf16)};
  const std::array<cuuint32_t, 3> box{swizzled, 1, static_cast<cuuint32_t>(rows)}, steps{1, 1, 1};
  const CUresult status = encode_tiled()(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, const_cast<Bf16*>(x.data), extents.data(),
                                         strides.data(), box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
                                         CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) throw DeviceError("cuda: softmax_attention: the operands cannot be mapped, status " + std::to_string(status));
  return map;
}

template <int D, int groups>
void attend(const AttentionTiles& p, cudaStream_t stream) {
  using Memory = HopperMemory<D, groups>;
  const TensorMaps maps{map_of(p.q, Memory::queries), map_of(p.k, Memory::keys), map_of(p.v, Memory::keys)};
  launch("softmax_attention", attend_kernel<D, groups>, tiles_of(p, Memory::queries), threads_of(groups), sizeof(Memory), stream, maps, p);
}

template <int D>
void attend(const AttentionTiles& p, cudaStream_t stream) {
  // Where half of the queries a block still leave one block for each multiprocessor, all of them work.
  const bool few = 2 * tiles_of(p, 2 * warpgroup_queries) <= static_cast<unsigned>(attribute_of_device(cudaDevAttrMultiProcessorCount));
  few ? attend<D, 1>(p, stream) : attend<D, 2>(p, stream);
}

}  // namespace

bool has_warpgroup_products() { return attribute_of_device(cudaDevAttrComputeCapabilityMajor) == 9 && encode_tiled() != nullptr; }

void attend_hopper(const AttentionTiles& p, cudaStream_t stream) {
  const std::int64_t widest = std::max(p.q.width, p.v.width);
  if (widest <= 64) return attend<64>(p, stream);
  if (widest <= 128) return attend<128>(p, stream);
  attend<256>(p, stream);
}

}  // namespace statescope::cuda

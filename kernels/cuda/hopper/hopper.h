// What kernels for compute capability 9.0 share: bulk and TMA copies into shared memory, mbarriers that count them, clusters, wgmma.
#pragma once

#include <cuda.h>

#include <array>

#include "kernels/cuda/common/chunk.h"
#include "kernels/device.h"

namespace statescope::cuda {

constexpr int warpgroup = 128;  // threads

__device__ inline unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
/// Keeps x in a register from here on: the compiler does not recompute it.
__device__ inline unsigned kept(unsigned x) {
  asm volatile("" : "+r"(x));
  return x;
}

// setmaxnreg: registers of each thread of the calling warpgroup from here on. Producers give some back, consumers take them.

template <int count>
__device__ void dealloc_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}
template <int count>
__device__ void alloc_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

// mbarriers in shared memory: a phase ends once all arrivals have come and all expected bytes have been copied.

__device__ inline void init_barrier(std::uint64_t& barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(arrivals) : "memory");
}
/// Orders this thread's writes to shared memory, mbarriers among them, before later TMA copies and wgmma.
__device__ inline void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
/// By the thread that has initialised mbarriers, before copies use them.
__device__ inline void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ inline void arrive_at(unsigned barrier) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory"); }
__device__ inline void arrive(std::uint64_t& barrier) { arrive_at(shared_address(&barrier)); }
__device__ inline void arrive_and_expect(std::uint64_t& barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)), "r"(bytes) : "memory");
}
/// Waits until the phase of this parity is over.
__device__ inline void wait_at(unsigned barrier, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
__device__ inline void wait(std::uint64_t& barrier, int parity) { wait_at(shared_address(&barrier), parity); }

/// Arrives once all cp.async copies of the thread have arrived.
__device__ inline void arrive_after_cp_async(std::uint64_t& barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(&barrier)) : "memory");
}

/// Starts a TMA load of columns … + 63 of a box of rows.
__device__ inline void tma_load(void* to, const CUtensorMap& from, int column, int head, int row, std::uint64_t& full) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(
                   shared_address(to)),
               "l"(&from), "r"(column), "r"(head), "r"(row), "r"(shared_address(&full))
               : "memory");
}

/// Starts a bulk copy of `bytes` bytes, a multiple of 16.
__device__ inline void bulk_copy(void* to, const void* from, unsigned bytes, std::uint64_t& full) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(&full))
               : "memory");
}

// Clusters: blocks that run at the same time and reach each other's shared memory.

/// The rank of the block in its cluster.
__device__ inline int own_rank() {
  int rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
/// A barrier of all threads of a cluster.
__device__ inline void sync_cluster() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}
/// Starts to store x at `to` of block `rank` of the cluster, and counts its four bytes at that block's barrier.
__device__ inline void send(float& to, float x, std::uint64_t& barrier, int rank) {
  asm volatile(
      "{\n"
      ".reg .b32 there, counted;\n"
      "mapa.shared::cluster.u32 there, %0, %3;\n"
      "mapa.shared::cluster.u32 counted, %1, %3;\n"
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [there], %2, [counted];\n"
      "}\n" ::"r"(shared_address(&to)),
      "r"(shared_address(&barrier)), "r"(__float_as_uint(x)), "r"(rank)
      : "memory");
}

// Products of a warpgroup (wgmma).

/// The descriptor of a matrix in shared memory: rows of 64 swizzled columns, 8 rows 1024 bytes from the next, `block_bytes` from 64 columns
/// to the next 64 (used where columns are the outer axis of B).
__device__ inline std::uint64_t matrix_descriptor(const void* start, int block_bytes = 16) {
  constexpr std::uint64_t swizzle_128_bytes = std::uint64_t{1} << 62, eight_rows = std::uint64_t{1024 >> 4} << 32;
  return swizzle_128_bytes | eight_rows | static_cast<std::uint64_t>(block_bytes >> 4) << 16 | (shared_address(start) & 0x3FFFF) >> 4;
}

__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Waits until no more than `pending` committed groups are in flight.
template <int pending>
__device__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}
/// Keeps the compiler from moving accesses of c across this point.
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
#define THIRD_32                                                                                                                       \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, " \
  "%90, %91, %92, %93, %94, %95"
#define FOURTH_32                                                                                                                          \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, " \
  "%119, %120, %121, %122, %123, %124, %125, %126, %127"

/// C [64, 8 n] ← A B, or C + A B; A and B from shared memory, sums along the columns of both.
__device__ inline void multiply(float (&c)[8][4], std::uint64_t a, std::uint64_t b, bool add) {
  asm volatile("{.reg .pred add; setp.ne.b32 add, %34, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" FIRST_32
               "}, %32, %33, add, 1, 1, 0, 0;}"
               : THIRTY_TWO(c, 0)
               : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}
__device__ inline void multiply(float (&c)[16][4], std::uint64_t a, std::uint64_t b, bool add) {
  asm volatile("{.reg .pred add; setp.ne.b32 add, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" FIRST_32 ", " SECOND_32
               "}, %64, %65, add, 1, 1, 0, 0;}"
               : THIRTY_TWO(c, 0), THIRTY_TWO(c, 8)
               : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}
__device__ inline void multiply(float (&c)[32][4], std::uint64_t a, std::uint64_t b, bool add) {
  asm volatile("{.reg .pred add; setp.ne.b32 add, %130, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" FIRST_32 ", " SECOND_32
               ", " THIRD_32 ", " FOURTH_32 "}, %128, %129, add, 1, 1, 0, 0;}"
               : THIRTY_TWO(c, 0), THIRTY_TWO(c, 8), THIRTY_TWO(c, 16), THIRTY_TWO(c, 24)
               : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}
/// C [64, 64] ← A B, or C + A B; A from registers, sums along the columns of B.
__device__ inline void multiply_columns(float (&c)[8][4], const uint4& a, std::uint64_t b, bool add) {
  asm volatile("{.reg .pred add; setp.ne.b32 add, %37, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" FIRST_32
               "}, {%32, %33, %34, %35}, %36, add, 1, 1, 0;}"
               : THIRTY_TWO(c, 0)
               : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b), "r"(static_cast<int>(add)));
}
/// C [64, 8 n] ← C + A B; A from registers, sums along the rows of B.
__device__ inline void multiply(float (&c)[8][4], const uint4& a, std::uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" FIRST_32 "}, {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
               : THIRTY_TWO(c, 0)
               : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b));
}
__device__ inline void multiply(float (&c)[16][4], const uint4& a, std::uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" FIRST_32 ", " SECOND_32 "}, {%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
               : THIRTY_TWO(c, 0), THIRTY_TWO(c, 8)
               : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b));
}
#undef FOUR
#undef THIRTY_TWO
#undef FIRST_32
#undef SECOND_32
#undef THIRD_32
#undef FOURTH_32

/// A of xᵀ, 16 columns from `column` on, from 16 rows of a tile x.
__device__ inline uint4 transposed_rows(const Tile& x, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const uint4 a = ldmatrix_trans(&x[0][0] + swizzle(row + lane % 16, column + lane / 16 * 8));
  return {a.x, a.z, a.y, a.w};
}

/// The A fragments of `part` of the channels of a state, transposed [64, channels] in tiles of C: 16 m channels, 16 in each fragment.
template <int m, int n>
__device__ void pack_part(uint4 (&a)[m], const float (&S)[n][4], int part) {
#pragma unroll
  for (int j = 0; j < m; ++j) a[j] = pack_a(S[2 * (part * m + j)], S[2 * (part * m + j) + 1]);
}
/// Starts C [64, 64] ← S xᵀ for the first part of the channels of rows x, C += S xᵀ for another one or with `add`.
template <int m>
__device__ void multiply_part(float (&c)[chunk_rows / 8][4], const uint4 (&S)[m], const Tile* x, int part, bool add = false) {
#pragma unroll
  for (int j = 0; j < m; ++j) {
    const int channel = 16 * (part * m + j);
    multiply_columns(c, S[j], matrix_descriptor(&x[channel / swizzle_columns][0][channel % swizzle_columns]), add || channel > 0);
  }
}
/// Starts S += a y over 64 rows y; `a` from registers, 16 rows in each fragment.
template <int n>
__device__ void add_outer_products(float (&S)[n][4], const uint4 (&a)[chunk_rows / 16], const Tile* y) {
#pragma unroll
  for (int s = 0; s < chunk_rows / 16; ++s) {
#pragma unroll
    for (int i = 0; i < n; i += 16)
      multiply(reinterpret_cast<float(&)[16][4]>(S[i]), a[s], matrix_descriptor(&y[i * 8 / swizzle_columns][16 * s][0], sizeof(Tile)));
  }
}

/// Keeps the first n of 64 rows as A; those after them, which belong to another segment, become 0.
__device__ inline void keep_rows(uint4 (&a)[chunk_rows / 16], int n) {
  const auto pair = [n](int row) { return row + 1 < n ? ~0U : row < n ? 0xFFFFU : 0U; };
#pragma unroll
  for (int s = 0; s < chunk_rows / 16; ++s) {
    const int row = 16 * s + static_cast<int>(threadIdx.x) % 4 * 2;
    const unsigned first = pair(row), second = pair(row + 8);
    a[s] = {a[s].x & first, a[s].y & first, a[s].z & second, a[s].w & second};
  }
}

// Transposes a warp's 16 columns of rows from tiles of C [64, 64]: movmatrix brings pairs of columns of a row together, then adjacent lanes
// exchange one, so that each has four adjacent columns.

/// A lane's four columns of rows lane / 4, … + 8, ….
using FourColumns = uint2[chunk_rows / 8];
__device__ inline int first_of_four() { return static_cast<int>(threadIdx.x) % 2 * 8 + static_cast<int>(threadIdx.x) % 4 / 2 * 4; }
__device__ inline void side_by_side(FourColumns& four, const float (&c)[chunk_rows / 8][4]) {
  const bool odd = threadIdx.x % 2 == 1;
#pragma unroll
  for (int i = 0; i < chunk_rows / 8; ++i) {
    const unsigned left = transposed(packed(c[i][0], c[i][1])), right = transposed(packed(c[i][2], c[i][3]));
    const unsigned got = __shfl_xor_sync(~0U, odd ? left : right, 1);
    four[i] = odd ? uint2{got, right} : uint2{left, got};
  }
}
/// Stores as many columns as `columns` says to row_of(row), null: nowhere.
template <class RowOf>
__device__ void store_rows(std::int64_t columns, const float (&c)[chunk_rows / 8][4], const RowOf& row_of) {
  const int lane = static_cast<int>(threadIdx.x) % 32, column = first_of_four();
  FourColumns four;
  side_by_side(four, c);
  // All of them are there before the first branch.
#pragma unroll
  for (int i = 0; i < chunk_rows / 8; ++i) {
    Bf16* const to = row_of(8 * i + lane / 4);
    if (to != nullptr && column < columns) *reinterpret_cast<uint2*>(to + column) = four[i];
  }
}
/// Stores to n rows, `stride` values apart at o.
__device__ inline void store_rows(Bf16* o, std::int64_t stride, int n, std::int64_t columns, const float (&c)[chunk_rows / 8][4]) {
  store_rows(columns, c, [=](int t) { return t < n ? o + t * stride : nullptr; });
}
/// Stores to 64 rows of a tile, from `column` on.
__device__ inline void store_rows(Tile& x, int column, const float (&c)[chunk_rows / 8][4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  FourColumns four;
  side_by_side(four, c);
#pragma unroll
  for (int i = 0; i < chunk_rows / 8; ++i)
    *reinterpret_cast<uint2*>(&x[0][0] + swizzle(8 * i + lane / 4, column + first_of_four())) = four[i];
}
/// Loads the lanes' four columns of n rows, `stride` values apart at `from`; 0 after them.
__device__ inline void load_rows(FourColumns& four, const Bf16* from, std::int64_t stride, int n, std::int64_t columns) {
  const int lane = static_cast<int>(threadIdx.x) % 32, column = first_of_four();
#pragma unroll
  for (int i = 0; i < chunk_rows / 8; ++i) {
    const int t = 8 * i + lane / 4;
    four[i] = t < n && column < columns ? *reinterpret_cast<const uint2*>(from + t * stride + column) : uint2{};
  }
}
/// c += these rows
__device__ inline void add_rows(float (&c)[chunk_rows / 8][4], const FourColumns& four) {
  const bool odd = threadIdx.x % 2 == 1;
#pragma unroll
  for (int i = 0; i < chunk_rows / 8; ++i) {
    const unsigned got = __shfl_xor_sync(~0U, odd ? four[i].x : four[i].y, 1);
    const unsigned left = transposed(odd ? got : four[i].x), right = transposed(odd ? four[i].y : got);
    c[i][0] += first_of(left), c[i][1] += second_of(left), c[i][2] += first_of(right), c[i][3] += second_of(right);
  }
}

// on the host

using EncodeTiled = decltype(&cuTensorMapEncodeTiled);

/// The function of the driver; null where it has none.
inline EncodeTiled find_encode_tiled() {
  constexpr unsigned since = 12000;
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, since, cudaEnableDefault, &found), "the driver");
  return found == cudaDriverEntryPointSuccess ? reinterpret_cast<EncodeTiled>(function) : nullptr;
}
inline EncodeTiled encode_tiled() {
  static const EncodeTiled function = find_encode_tiled();
  return function;
}

/// bf16 rows [rows, heads, width], which begin `stride` numbers apart, their heads `pitch`.
struct MappedRows {
  const Bf16* data;
  std::int64_t rows, heads, width, stride, pitch;
};

/// Boxes of `rows` rows and `columns` columns of one head; those of 64 columns swizzled.
inline CUtensorMap tensor_map(const MappedRows& x, int rows, int columns = swizzle_columns) {
  CUtensorMap map{};
  const std::array<cuuint64_t, 3> extents{static_cast<cuuint64_t>(x.width), static_cast<cuuint64_t>(x.heads),
                                          static_cast<cuuint64_t>(x.rows)};
  const std::array<cuuint64_t, 2> strides{static_cast<cuuint64_t>(x.pitch) * sizeof(Bf16),
                                          static_cast<cuuint64_t>(x.stride) * sizeof(Bf16)};
  const std::array<cuuint32_t, 3> box{static_cast<cuuint32_t>(columns), 1, static_cast<cuuint32_t>(rows)}, steps{1, 1, 1};
  const CUresult status = encode_tiled()(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, const_cast<Bf16*>(x.data), extents.data(),
                                         strides.data(), box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
                                         columns == swizzle_columns ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
                                         CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) throw DeviceError("cuda: operands cannot be mapped, status " + std::to_string(status));
  return map;
}

}  // namespace statescope::cuda

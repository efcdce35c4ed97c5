// The cosines of the rows of states on the device, as products of halves on the tensor cores.
#include <cuda_fp16.h>

#include <limits>

#include "kernels/cuda/common/chunk.h"
#include "kernels/cuda/common/operations.h"
#include "kernels/cuda/common/warp.h"

namespace statescope::cuda {
namespace {

constexpr int warp_size = 32;

struct alignas(16) Four {
  float x[4];
};

constexpr int panel_rows = 128, panel_depth = 128, cosine_threads = 512, cosine_warps = cosine_threads / warp_size;
constexpr int warp_tile = 32;  // a warp's rows and columns of 128 × 128 cosines

/// Rows of a state at length `unit`, each number as high + low, right to 22 bits. The unit keeps `low` above the smallest halves.
constexpr float unit = 4096;
struct Panel {
  static constexpr int pitch = panel_depth + 8;  // rows of 16 bytes more than a multiple of 128: no two in the same banks
  __half high[panel_rows][pitch], low[panel_rows][pitch];
};

/// The rows z [R, V] of one state; `fours`: where they may be read four numbers at once.
struct StateRows {
  const float* z;
  std::int64_t R, V;
  bool fours;

  /// Numbers [c, c + 4) of row r, 0 where there is none.
  __device__ Four at(std::int64_t r, std::int64_t c) const {
    Four x = {};
    if (r >= R || c >= V) return x;
    const float* from = z + r * V + c;
    if (fours) return *reinterpret_cast<const Four*>(from);
    for (int l = 0; l < 4 && c + l < V; ++l) x.x[l] = from[l];
    return x;
  }
};

/// unit / ‖z‖, 0 for the shortest rows; NaN where ‖z‖ is not finite
__device__ float scale_of(float square) {
  constexpr float shortest = 1e-12F;
  if (!isfinite(square)) return std::numeric_limits<float>::quiet_NaN();
  const float norm = sqrtf(square);
  return norm < shortest ? 0 : unit / norm;
}

__device__ unsigned halves(float first, float second) {
  const __half2 pair = __floats2half2_rn(first, second);
  return *reinterpret_cast<const unsigned*>(&pair);
}
__device__ float rest(float x) { return x - __half2float(__float2half_rn(x)); }

/// Numbers [from, from + depth) of the rows [first, first + 128). A warp has two rows at a time, a lane four numbers of each.
__device__ void fetch(Panel& to, const StateRows& rows, std::int64_t first, std::int64_t from) {
  constexpr int at_once = 2;
  const int warp = static_cast<int>(threadIdx.x) / warp_size, c = static_cast<int>(threadIdx.x) % warp_size * 4;
  for (int r = warp * at_once; r < panel_rows; r += cosine_warps * at_once) {
    Four x[at_once];
    float square[at_once] = {};
    for (std::int64_t begin = 0; begin < rows.V; begin += panel_depth) {
      Four y[at_once];
#pragma unroll
      for (int a = 0; a < at_once; ++a) y[a] = rows.at(first + r + a, begin + c);
#pragma unroll
      for (int a = 0; a < at_once; ++a) {
        if (begin == from) x[a] = y[a];
        for (const float number : y[a].x) square[a] += number * number;
      }
    }
#pragma unroll
    for (int a = 0; a < at_once; ++a) {
      const float scale = scale_of(sum_of_warp(square[a]));
      for (float& number : x[a].x) number *= scale;
      const auto& [x0, x1, x2, x3] = x[a].x;
      *reinterpret_cast<uint2*>(&to.high[r + a][c]) = {halves(x0, x1), halves(x2, x3)};
      *reinterpret_cast<uint2*>(&to.low[r + a][c]) = {halves(rest(x0), rest(x1)), halves(rest(x2), rest(x3))};
    }
  }
}

/// C ← C + A B, A [16, 16] and B [16, 8] of halves; a lane's numbers as the PTX manual says for mma.m16n8k16
__device__ void multiply(float (&c)[4], const uint4& a, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

/// A warp's 32 × 32 products of rows at length `unit`: of the high terms, and beside them, 2⁻¹¹ as large, those of one high and one low
/// term.
struct WarpProducts {
  static constexpr int across = warp_tile / 16, along = warp_tile / 8;
  float large[across][along][4] = {}, small[across][along][4] = {};

  /// ⟨x_i, y_j⟩ ← ⟨x_i, y_j⟩ + Σ_c (x_i y_j)_c over the first `depth` numbers; i from first_i, j from first_j
  __device__ void add(const Panel& x, const Panel& y, int first_i, int first_j, int depth) {
    const int lane = static_cast<int>(threadIdx.x) % warp_size;
    const int i = first_i + lane % 16, at_i = lane / 16 * 8, j = first_j + lane / 16 * 8 + lane % 8, at_j = lane / 8 % 2 * 8;
    for (int c = 0; c < depth; c += 16) {
      uint4 high[across], low[across];
#pragma unroll
      for (int a = 0; a < across; ++a) {
        high[a] = ldmatrix(&x.high[i + 16 * a][c + at_i]);
        low[a] = ldmatrix(&x.low[i + 16 * a][c + at_i]);
      }
#pragma unroll
      for (int b = 0; b < along; b += 2) {
        const uint4 h = ldmatrix(&y.high[j + 8 * b][c + at_j]), l = ldmatrix(&y.low[j + 8 * b][c + at_j]);
#pragma unroll
        for (int a = 0; a < across; ++a) {
          // (x + δx)(y + δy) = x y + (x δy + δx y), less δx δy
          multiply(small[a][b], high[a], l.x, l.y), multiply(small[a][b + 1], high[a], l.z, l.w);
          multiply(small[a][b], low[a], h.x, h.y), multiply(small[a][b + 1], low[a], h.z, h.w);
          multiply(large[a][b], high[a], h.x, h.y), multiply(large[a][b + 1], high[a], h.z, h.w);
        }
      }
    }
  }

  /// C [R, R] from the rows first_i and first_j on, and its mirror image.
  __device__ void store(float* C, std::int64_t R, std::int64_t first_i, std::int64_t first_j, bool mirrored) const {
    const int lane = static_cast<int>(threadIdx.x) % warp_size;
#pragma unroll
    for (int a = 0; a < across; ++a) {
#pragma unroll
      for (int b = 0; b < along; ++b) {
#pragma unroll
        for (int l = 0; l < 4; l += 2) {
          const std::int64_t i = first_i + 16 * a + 4 * l + lane / 4, j = first_j + 8 * b + lane % 4 * 2;
          // C_ij = ⟨z_i, z_j⟩ / (‖z_i‖ ‖z_j‖)
          const auto cosine = [&](int at) { return (large[a][b][at] + small[a][b][at]) * (1 / (unit * unit)); };
          const float first = cosine(l), second = cosine(l + 1);
          if (i >= R) continue;
          if (R % 2 == 0 && j < R) {
            *reinterpret_cast<float2*>(&C[i * R + j]) = {first, second};
          } else {
            if (j < R) C[i * R + j] = first;
            if (j + 1 < R) C[i * R + j + 1] = second;
          }
          if (mirrored && j < R) C[j * R + i] = first;
          if (mirrored && j + 1 < R) C[(j + 1) * R + i] = second;
        }
      }
    }
  }
};

/// cosine [B, R, R]; a block has 128 rows of a state, against them the same and all later ones, 128 at a time.
__global__ void __launch_bounds__(cosine_threads)
    row_cosine_kernel(float* cosine, const float* z, std::int64_t R, std::int64_t V, bool fours) {
  extern __shared__ __align__(16) unsigned char shared[];
  Panel &X = reinterpret_cast<Panel*>(shared)[0], &Y = reinterpret_cast<Panel*>(shared)[1];
  const std::int64_t panels = (R + panel_rows - 1) / panel_rows, b = blockIdx.x / panels, own = blockIdx.x % panels;
  const StateRows rows{z + b * R * V, R, V, fours};
  const int warp = static_cast<int>(threadIdx.x) / warp_size, across = warp / 4 * warp_tile, along = warp % 4 * warp_tile;
  for (std::int64_t other = own; other < panels; ++other) {
    WarpProducts products;
    for (std::int64_t from = 0; from < V; from += panel_depth) {
      __syncthreads();
      if (other == own || V > panel_depth) fetch(X, rows, own * panel_rows, from);
      if (other != own) fetch(Y, rows, other * panel_rows, from);
      __syncthreads();
      products.add(X, other == own ? X : Y, across, along, static_cast<int>(min(V - from, std::int64_t{panel_depth})));
    }
    products.store(cosine + b * R * R, R, own * panel_rows + across, other * panel_rows + along, other != own);
  }
}

}  // namespace

void row_cosine(Tensor cosine, ConstTensor z, cudaStream_t stream) {
  const std::int64_t B = z.rows(), R = z.shape[1], V = z.shape[2], panels = (R + panel_rows - 1) / panel_rows;
  const bool fours = V % 4 == 0 && reinterpret_cast<std::uintptr_t>(z.data) % sizeof(Four) == 0;
  launch("row_cosine", row_cosine_kernel, static_cast<unsigned>(B * panels), cosine_threads, 2 * sizeof(Panel), stream, cosine.f32(),
         z.f32(), R, V, fours);
}

}  // namespace statescope::cuda

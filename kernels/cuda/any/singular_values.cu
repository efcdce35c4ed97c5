// The singular values of states on the device, from the Gram matrix in double precision: Householder steps make it tridiagonal, bisection
// finds its eigenvalues, each by a thread of its own.
#include <algorithm>
#include <limits>

#include "kernels/cuda/common/operations.h"
#include "kernels/cuda/common/warp.h"
#include "kernels/ops/state_analysis.h"

namespace statescope::cuda {
namespace {

constexpr int warp_size = 32;

/// The tile pair (i ≤ j) of a number among the n (n + 1) / 2 there are.
__device__ void tiles_of(std::int64_t number, std::int64_t n, std::int64_t& i, std::int64_t& j) {
  i = 0;
  while (number >= n - i) number -= n - i, ++i;
  j = i + number;
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// Gram matrices

constexpr int tile = 64, depth = 32, gram_threads = 128;

/// Vectors x_0 … x_{count−1} of `length` numbers each: number c of vector i lies at i · across + c · along.
struct Vectors {
  const float* data;  // of matrix 0
  std::int64_t matrix_descriptor, count, length, across, along;
};

/// Numbers of a tile's vectors: [depth, tile], rows eight banks apart.
struct Slab {
  float x[depth][tile + 8];
};

/// to ← numbers [from, from + depth) of the vectors [first, first + tile), 0 where there is none. Neighbouring threads read
/// what lies side by side.
__device__ void fetch(Slab& to, const float* data, const Vectors& x, std::int64_t first, std::int64_t from) {
  const int thread = static_cast<int>(threadIdx.x);
  const bool along = x.along == 1;
  const int v = along ? thread / depth : thread % tile, next_v = along ? gram_threads / depth : 0;
  const int c = along ? thread % depth : thread / tile, next_c = along ? 0 : gram_threads / tile;
  const float* own = data + (first + v) * x.across + (from + c) * x.along;
  const std::int64_t next = next_v * x.across + next_c * x.along, count = x.count - first - v, length = x.length - from - c;
#pragma unroll
  for (int s = 0; s < tile * depth / gram_threads; ++s) {
    to.x[c + s * next_c][v + s * next_v] = s * next_v < count && s * next_c < length ? own[s * next] : 0;
  }
}

/// C ← C + A B, A [16, 16] and B [16, 8]. With g = lane / 4 and t = lane % 4 a lane has of A (g, t), (g + 8, t), (g, t + 4) … (g + 8, t +
/// 12), of B (t, g), (t + 4, g) … (t + 12, g), of C (g, 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1).
__device__ void multiply(double (&c)[4], const double (&a)[8], const double (&b)[4]) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, "
      "%1, %2, %3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
#else
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(c[k % 2 * 2]), "+d"(c[k % 2 * 2 + 1])
        : "d"(a[k]), "d"(b[k / 2]));
  }
#endif
}

/// gram [B, n, n]; a block has a tile and its mirror image, a warp a quarter of it.
__global__ void __launch_bounds__(gram_threads, 3) gram_kernel(double* gram, Vectors z) {
  __shared__ Slab X, Y;
  constexpr int side = tile / 2, across = side / 16, along = side / 8;
  const std::int64_t n = z.count, tiles = (n + tile - 1) / tile, pairs = tiles * (tiles + 1) / 2, b = blockIdx.x / pairs;
  std::int64_t row = 0, column = 0;
  tiles_of(blockIdx.x % pairs, tiles, row, column);
  const float* data = z.data + b * z.matrix_descriptor;
  const int warp = static_cast<int>(threadIdx.x) / warp_size, lane = static_cast<int>(threadIdx.x) % warp_size;
  const int first_i = warp / 2 * side + lane / 4, first_j = warp % 2 * side;
  double product[across][along][4] = {};
  for (std::int64_t from = 0; from < z.length; from += depth) {
    __syncthreads();
    fetch(X, data, z, row * tile, from);
    if (column != row) fetch(Y, data, z, column * tile, from);
    __syncthreads();
    const Slab& other = column == row ? X : Y;
    for (int c = lane % 4; c < depth; c += 16) {
      double x[across][8], y[along][4];
#pragma unroll
      for (int l = 0; l < 8; ++l) {
#pragma unroll
        for (int i = 0; i < across; ++i) x[i][l] = X.x[c + l / 2 * 4][first_i + 16 * i + l % 2 * 8];
      }
#pragma unroll
      for (int l = 0; l < 4; ++l) {
#pragma unroll
        for (int j = 0; j < along; ++j) y[j][l] = other.x[c + l * 4][first_j + 8 * j + lane / 4];
      }
      // G_ij ← G_ij + Σ_c x_ic x_jc
#pragma unroll
      for (int i = 0; i < across; ++i) {
#pragma unroll
        for (int j = 0; j < along; ++j) multiply(product[i][j], x[i], y[j]);
      }
    }
  }
  double* G = gram + b * n * n;
#pragma unroll
  for (int a = 0; a < across; ++a) {
#pragma unroll
    for (int c = 0; c < along; ++c) {
#pragma unroll
      for (int l = 0; l < 4; ++l) {
        const std::int64_t i = row * tile + first_i + 16 * a + l / 2 * 8, j = column * tile + first_j + 8 * c + lane % 4 * 2 + l % 2;
        if (i < n && j < n) G[i * n + j] = G[j * n + i] = product[a][c][l];
      }
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// tridiagonal matrices

/// What a Householder step takes from x = A[k+1 …, k], its first number apart:
///   α = −sign(x_0) ‖x‖;  v = x − α e_0;  H = I − β v vᵀ,  β = 2 / vᵀv;  none where the rest of x is 0, or so small that β is no number
struct Reflection {
  double alpha, head, beta;

  __device__ Reflection(double first, double rest) {
    constexpr double least = 1e-290;  // squares of float32 numbers, squared, are above 1e-180
    const bool none = rest < least;
    const double norm = sqrt(first * first + rest);
    alpha = none ? first : first > 0 ? -norm : norm;
    head = first - alpha;
    beta = none ? 0 : 2 / (head * head + rest);
  }
};

constexpr int rows_of_warp = 8;
constexpr int most_in_registers = 128;

/// Σ over the lanes of each of 8 sums: lane l gets that of number l / 4.
__device__ double sums_of_warp(double (&s)[rows_of_warp]) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
#pragma unroll
  for (int half = rows_of_warp / 2, distance = warp_size / 2; half > 0; half /= 2, distance /= 2) {
    const bool upper = lane & distance;
#pragma unroll
    for (int a = 0; a < half; ++a) {
      const double other = __shfl_xor_sync(~0U, upper ? s[a] : s[a + half], distance);
      s[a] = (upper ? s[a + half] : s[a]) + other;
    }
  }
  s[0] += __shfl_xor_sync(~0U, s[0], 2);
  return s[0] + __shfl_xor_sync(~0U, s[0], 1);
}

/// The symmetric matrix gram [n, n] of a block, n ≤ 32 `columns`, made tridiagonal: diagonal d [n], beside it e [n] (the last is 0). The
/// matrix lives in registers: warp w of W has the rows w, w + W, …, its lane l the columns l, l + 32, … of them.
template <int columns>
__global__ void __launch_bounds__(columns* warp_size* warp_size / rows_of_warp)
    tridiagonal_kernel(double* diagonal, double* beside, const double* gram, int n) {
  constexpr int most = columns * warp_size, warps = most / rows_of_warp;
  __shared__ double vs[2][most], p[most], shared_beta;
  const int warp = static_cast<int>(threadIdx.x) / warp_size, lane = static_cast<int>(threadIdx.x) % warp_size;
  const double* source = gram + std::int64_t{blockIdx.x} * n * n;
  double *d = diagonal + std::int64_t{blockIdx.x} * n, *e = beside + std::int64_t{blockIdx.x} * n;
  double A[rows_of_warp][columns];
#pragma unroll
  for (int r = 0; r < rows_of_warp; ++r) {
#pragma unroll
    for (int c = 0; c < columns; ++c) {
      const int i = warp + warps * r, j = lane + warp_size * c;
      A[r][c] = i < n && j < n ? source[i * n + j] : 0;
    }
  }
  for (int k = 0; k < n; ++k) {
    double* v = vs[k % 2];  // while others still read the one before
    if (warp == k % warps) {
      double x[columns], first = 0, rest = 0;
#pragma unroll
      for (int r = 0; r < rows_of_warp; ++r) {
#pragma unroll
        for (int c = 0; c < columns; ++c) x[c] = r == 0 || r == k / warps ? A[r][c] : x[c];
      }
#pragma unroll
      for (int c = 0; c < columns; ++c) {
        const int j = lane + warp_size * c;
        if (j == k) d[k] = x[c];
        if (j == k + 1) first = x[c];
        if (j > k + 1) rest += x[c] * x[c];
      }
      const Reflection H(__shfl_sync(~0U, first, (k + 1) % warp_size), sum_of_warp(rest));
#pragma unroll
      for (int c = 0; c < columns; ++c) {
        const int j = lane + warp_size * c;
        v[j] = j <= k ? 0 : j == k + 1 ? H.head : x[c];
      }
      if (lane == 0) e[k] = H.alpha, shared_beta = H.beta;
    }
    __syncthreads();
    // p = A v
    double of_row[rows_of_warp] = {}, v_j[columns], w_j[columns];
#pragma unroll
    for (int c = 0; c < columns; ++c) {
      v_j[c] = v[lane + warp_size * c];
      if (warp_size * (c + 1) <= k + 1) continue;
#pragma unroll
      for (int r = 0; r < rows_of_warp; ++r) of_row[r] += A[r][c] * v_j[c];
    }
    const double sum = sums_of_warp(of_row), beta = shared_beta;
    if (lane % 4 == 0) p[warp + warps * (lane / 4)] = sum;
    __syncthreads();
    // w = β p − (β/2) (β pᵀv) v; where little but rounding is left of A, β² is past the largest number
    double dot = 0;
#pragma unroll
    for (int c = 0; c < columns; ++c) {
      w_j[c] = lane + warp_size * c > k ? p[lane + warp_size * c] : 0;
      dot += w_j[c] * v_j[c];
    }
    const double along_v = beta / 2 * (beta * sum_of_warp(dot));
#pragma unroll
    for (int c = 0; c < columns; ++c) w_j[c] = beta * w_j[c] - along_v * v_j[c];
      // A ← H A H = A − v wᵀ − w vᵀ
#pragma unroll
    for (int r = 0; r < rows_of_warp; ++r) {
      const int i = warp + warps * r;
      if (i <= k) continue;
      const double v_i = v[i], w_i = beta * p[i] - along_v * v_i;
#pragma unroll
      for (int c = 0; c < columns; ++c) A[r][c] -= v_i * w_j[c] + w_i * v_j[c];
    }
  }
}

constexpr int in_memory_threads = 512;

/// The same for a larger matrix, in global memory. A thread has every width-th row of a part of the columns.
__global__ void __launch_bounds__(in_memory_threads) tridiagonal_in_memory_kernel(double* diagonal, double* beside, double* gram, int n) {
  extern __shared__ __align__(16) double numbers[];
  const int width = min((n + warp_size - 1) / warp_size * warp_size, in_memory_threads), parts = in_memory_threads / width;
  const int thread = static_cast<int>(threadIdx.x), part = thread / width, own = thread % width;
  double *v = numbers, *w = v + n, *partial = w + n, *shared_beta = partial + parts * n;
  double* A = gram + std::int64_t{blockIdx.x} * n * n;
  double *d = diagonal + std::int64_t{blockIdx.x} * n, *e = beside + std::int64_t{blockIdx.x} * n;
  for (int k = 0; k < n; ++k) {
    __syncthreads();
    if (thread < warp_size) {
      double rest = 0;
      for (int i = k + 2 + thread; i < n; i += warp_size) rest += A[k * n + i] * A[k * n + i];
      const Reflection H(k + 1 < n ? A[k * n + k + 1] : 0, sum_of_warp(rest));
      for (int i = k + 1 + thread; i < n; i += warp_size) v[i] = i == k + 1 ? H.head : A[k * n + i];
      if (thread == 0) d[k] = A[k * n + k], e[k] = H.alpha, *shared_beta = H.beta;
    }
    __syncthreads();
    const double beta = *shared_beta;
    if (beta == 0) continue;
    // p = β A v
    for (int i = k + 1 + own; part < parts && i < n; i += width) {
      double sum = 0;
      for (int j = k + 1 + part; j < n; j += parts) sum += A[j * n + i] * v[j];
      partial[part * n + i] = sum;
    }
    __syncthreads();
    // w = p − (β/2) (pᵀv) v
    if (thread < warp_size) {
      double dot = 0;
      for (int i = k + 1 + thread; i < n; i += warp_size) {
        double p = 0;
        for (int q = 0; q < parts; ++q) p += partial[q * n + i];
        w[i] = beta * p;
        dot += w[i] * v[i];
      }
      const double half = beta / 2 * sum_of_warp(dot);
      for (int i = k + 1 + thread; i < n; i += warp_size) w[i] -= half * v[i];
    }
    __syncthreads();
    // A ← H A H = A − v wᵀ − w vᵀ
    for (int i = k + 1 + own; part < parts && i < n; i += width) {
      for (int j = k + 1 + part; j < n; j += parts) A[j * n + i] -= v[i] * w[j] + w[i] * v[j];
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// eigenvalues

constexpr int bisection_threads = 128;
constexpr int sturm_steps = 8;  // after which p is rescaled

/// A row of a tridiagonal matrix: its number on the diagonal, and the square of the one before that.
struct alignas(16) TridiagonalRow {
  double d, square;
};

/// How many eigenvalues of T [n, n] are below x (Sturm): the changes of sign in p_i = (d_i − x) p_{i−1} − e²_{i−1} p_{i−2}. No number of T
/// is above 1, no e² is 0, so no two p in a row are 0; n is a multiple of `sturm_steps`.
__device__ int eigenvalues_below(double x, const TridiagonalRow* T, int n) {
  int count = 0;
  double before = 0, p = 1;
  for (int i = 0; i < n; i += sturm_steps) {
#pragma unroll
    for (int l = 0; l < sturm_steps; ++l) {
      const TridiagonalRow row = T[i + l];
      const double next = (row.d - x) * p - row.square * before;
      count += (__double2hiint(next) ^ __double2hiint(p)) < 0;
      before = p, p = next;
    }
    // scale both by the power of two that brings the larger one to 1 … 2
    constexpr int exponent = 0x7FF00000, twice_of_one = 0x7FE00000;
    const int larger = max(__double2hiint(p) & exponent, __double2hiint(before) & exponent);
    const double scale = __hiloint2double(twice_of_one - larger, 0);
    p *= scale, before *= scale;
  }
  return count;
}

/// σ [n] of a block's matrix, largest first: thread i halves an interval around eigenvalue i until it is known to 2⁻²⁶ of itself, or to
/// 2⁻⁵⁴ of the largest.
__global__ void __launch_bounds__(bisection_threads) bisection_kernel(float* sigma, const double* diagonal, const double* beside, int n) {
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ unsigned long long bound;  // its bits: doubles that are not below 0 are ordered like integers, NaN above all
  auto* T = reinterpret_cast<TridiagonalRow*>(shared);
  const double *d = diagonal + std::int64_t{blockIdx.x} * n, *e = beside + std::int64_t{blockIdx.x} * n;
  const int thread = static_cast<int>(threadIdx.x), padded = (n + sturm_steps - 1) / sturm_steps * sturm_steps;
  if (thread == 0) bound = 0;
  __syncthreads();
  // |λ| ≤ max_i |d_i| + |e_i| + |e_{i−1}| (Gershgorin)
  for (int i = thread; i < n; i += bisection_threads) {
    const double radius = fabs(d[i]) + fabs(e[i]) + (i > 0 ? fabs(e[i - 1]) : 0);
    atomicMax(&bound, static_cast<unsigned long long>(__double_as_longlong(radius)));
  }
  __syncthreads();
  const double largest = __longlong_as_double(static_cast<long long>(bound)), scale = largest > 0 ? 1 / largest : 0;
  constexpr double least_square = 1e-34;  // of an e of 10⁻¹⁷, which moves no eigenvalue by more
  for (int i = thread; i < padded; i += bisection_threads) {
    const double beside_it = i > 0 && i < n ? e[i - 1] * scale : 0;
    T[i] = {i < n ? d[i] * scale : 2, max(beside_it * beside_it, least_square)};
  }
  __syncthreads();
  constexpr double relative = 0x1p-26, absolute = 0x1p-54;
  for (int i = thread; i < n; i += bisection_threads) {
    double low = 0, high = 1;
    while (high - low > max(relative * high, absolute)) {
      const double middle = (low + high) / 2;
      (eigenvalues_below(middle, T, padded) <= i ? low : high) = middle;
    }
    const bool finite = isfinite(largest);
    sigma[std::int64_t{blockIdx.x} * n + n - 1 - i] =
        finite ? static_cast<float>(sqrt(low * largest)) : std::numeric_limits<float>::quiet_NaN();
  }
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

void tridiagonal(double* d, double* e, double* gram, int n, unsigned matrices, cudaStream_t stream) {
  constexpr const char* name = "singular_values: tridiagonal";
  const auto in_registers = [&](auto kernel, int columns) {
    launch(name, kernel, matrices, columns * warp_size * warp_size / rows_of_warp, 0, stream, d, e, static_cast<const double*>(gram), n);
  };
  if (n <= 32) return in_registers(tridiagonal_kernel<1>, 1);
  if (n <= 64) return in_registers(tridiagonal_kernel<2>, 2);
  if (n <= most_in_registers) return in_registers(tridiagonal_kernel<4>, 4);
  const int width = std::min((n + warp_size - 1) / warp_size * warp_size, in_memory_threads), parts = in_memory_threads / width;
  const auto numbers = static_cast<std::size_t>((2 + parts) * n + 1);
  launch(name, tridiagonal_in_memory_kernel, matrices, in_memory_threads, numbers * sizeof(double), stream, d, e, gram, n);
}

}  // namespace

void singular_values(Tensor sigma, ConstTensor z, Workspace& workspace, cudaStream_t stream) {
  const std::int64_t B = z.rows(), R = z.shape[1], V = z.shape[2];
  // ZᵀZ is of the columns, ZZᵀ of the rows.
  const Vectors vectors = V <= R ? Vectors{z.f32(), R * V, V, R, 1, V} : Vectors{z.f32(), R * V, R, V, V, 1};
  const Workspace::Mark mark(workspace);
  const auto doubles = [&](std::int64_t count) { return static_cast<double*>(workspace.tensor({2 * count}).data); };
  const auto n = static_cast<int>(vectors.count);
  double *gram = doubles(B * n * n), *d = doubles(B * n), *e = doubles(B * n);
  const std::int64_t tiles = (n + tile - 1) / tile;
  const auto matrices = static_cast<unsigned>(B);
  launch("singular_values: products", gram_kernel, static_cast<unsigned>(B * tiles * (tiles + 1) / 2), gram_threads, 0, stream, gram,
         vectors);
  tridiagonal(d, e, gram, n, matrices, stream);
  const auto padded = static_cast<std::size_t>((n + sturm_steps - 1) / sturm_steps * sturm_steps);
  launch("singular_values: bisection", bisection_kernel, matrices, bisection_threads, padded * sizeof(TridiagonalRow), stream, sigma.f32(),
         static_cast<const double*>(d), static_cast<const double*>(e), n);
}

}  // namespace statescope::cuda

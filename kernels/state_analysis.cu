// The analysis of states on the device. Products of rows in tiles; singular values from the Gram matrix in double precision: Householder
// steps make it tridiagonal, bisection finds its eigenvalues, each by a thread of its own.
#include <algorithm>
#include <limits>

#include "kernels/cuda_operations.h"
#include "kernels/state_analysis.h"

namespace statescope::cuda {
namespace {

constexpr int warp_size = 32;

// ---------------------------------------------------------------------------------------------------------------------------------------
// products of rows

constexpr int tile = 64, depth = 32, side = 8, tile_threads = (tile / side) * (tile / side), padded = tile + 4;

/// Vectors x_0 … x_{count−1} of `length` numbers each: number c of vector i lies at i · across + c · along.
struct Vectors {
  const float* data;  // of matrix 0
  std::int64_t matrix, count, length, across, along;
};

struct alignas(16) Four {
  float x[4];
};

/// Numbers of a tile's vectors: [depth, tile].
struct alignas(16) Slab {
  float x[depth][padded];
};

/// to ← numbers [from, from + depth) of the vectors [first, first + tile), 0 where there is none. Neighbouring threads read
/// what lies side by side.
__device__ void fetch(Slab& to, const float* data, const Vectors& x, std::int64_t first, std::int64_t from) {
  const bool along = x.along == 1;
  for (int i = static_cast<int>(threadIdx.x); i < tile * depth; i += tile_threads) {
    const int v = along ? i / depth : i % tile, c = along ? i % depth : i / tile;
    const bool there = first + v < x.count && from + c < x.length;
    to.x[c][v] = there ? data[(first + v) * x.across + (from + c) * x.along] : 0;
  }
}

/// Number a of a thread's side: two fours, half a tile apart, so that neighbouring threads read side by side.
__device__ int place(int thread, int a) { return a / 4 * (tile / 2) + thread * 4 + a % 4; }

/// A block's products ⟨x_i, x_j⟩, i of tile `row`, j of tile `column`, 8 × 8 of them in each thread; sums of squares of both beside them.
template <class Sum>
struct TileOfProducts {
  Sum product[side][side] = {};
  Sum square_i[side] = {}, square_j[side] = {};

  __device__ void compute(const Vectors& x, std::int64_t first_i, std::int64_t first_j) {
    __shared__ Slab X, Y;
    const float* data = x.data + blockIdx.y * x.matrix;
    const int ti = static_cast<int>(threadIdx.x) / (tile / side), tj = static_cast<int>(threadIdx.x) % (tile / side);
    for (std::int64_t from = 0; from < x.length; from += depth) {
      __syncthreads();
      fetch(X, data, x, first_i, from);
      fetch(Y, data, x, first_j, from);
      __syncthreads();
      for (int c = 0; c < depth; ++c) {
        float a[side], b[side];
#pragma unroll
        for (int h = 0; h < side; h += 4) {
          const Four xi = *reinterpret_cast<const Four*>(&X.x[c][place(ti, h)]), xj = *reinterpret_cast<const Four*>(&Y.x[c][place(tj, h)]);
#pragma unroll
          for (int l = 0; l < 4; ++l) a[h + l] = xi.x[l], b[h + l] = xj.x[l];
        }
#pragma unroll
        for (int i = 0; i < side; ++i) {
#pragma unroll
          for (int j = 0; j < side; ++j) product[i][j] += static_cast<Sum>(a[i]) * static_cast<Sum>(b[j]);
          square_i[i] += static_cast<Sum>(a[i]) * static_cast<Sum>(a[i]);
          square_j[i] += static_cast<Sum>(b[i]) * static_cast<Sum>(b[i]);
        }
      }
    }
  }
};

/// The tile pair (i ≤ j) of a block among the n (n + 1) / 2 there are.
__device__ void tiles_of(std::int64_t index, std::int64_t n, std::int64_t& i, std::int64_t& j) {
  i = 0;
  while (index >= n - i) index -= n - i, ++i;
  j = i + index;
}

__device__ float inverse_norm(float square) {
  constexpr float shortest = 1e-12F;
  const float norm = sqrtf(square);
  return norm < shortest ? 0 : 1 / norm;
}

/// cosine [B, R, R]; a block has a tile and its mirror image.
__global__ void __launch_bounds__(tile_threads) row_cosine_kernel(float* cosine, Vectors z) {
  const std::int64_t R = z.count, tiles = (R + tile - 1) / tile;
  std::int64_t row = 0, column = 0;
  tiles_of(blockIdx.x, tiles, row, column);
  TileOfProducts<float> t;
  t.compute(z, row * tile, column * tile);
  float* C = cosine + blockIdx.y * R * R;
  const int ti = static_cast<int>(threadIdx.x) / (tile / side), tj = static_cast<int>(threadIdx.x) % (tile / side);
  for (int a = 0; a < side; ++a) {
    const std::int64_t i = row * tile + place(ti, a);
    for (int b = 0; b < side; ++b) {
      const std::int64_t j = column * tile + place(tj, b);
      if (i >= R || j >= R) continue;
      // C_ij = ⟨z_i, z_j⟩ / (‖z_i‖ ‖z_j‖)
      const float c = t.product[a][b] * (inverse_norm(t.square_i[a]) * inverse_norm(t.square_j[b]));
      C[i * R + j] = c;
      C[j * R + i] = c;
    }
  }
}

/// gram [B, n, n] of double precision
__global__ void __launch_bounds__(tile_threads) gram_kernel(double* gram, Vectors z) {
  const std::int64_t n = z.count, tiles = (n + tile - 1) / tile;
  std::int64_t row = 0, column = 0;
  tiles_of(blockIdx.x, tiles, row, column);
  TileOfProducts<double> t;
  t.compute(z, row * tile, column * tile);
  double* G = gram + blockIdx.y * n * n;
  const int ti = static_cast<int>(threadIdx.x) / (tile / side), tj = static_cast<int>(threadIdx.x) % (tile / side);
  for (int a = 0; a < side; ++a) {
    const std::int64_t i = row * tile + place(ti, a);
    for (int b = 0; b < side; ++b) {
      const std::int64_t j = column * tile + place(tj, b);
      if (i < n && j < n) G[i * n + j] = G[j * n + i] = t.product[a][b];
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// eigenvalues

constexpr int tridiagonal_threads = 512;

__device__ double sum_of_warp(double x) {
  for (int distance = warp_size / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(~0U, x, distance);
  return x;
}

/// The symmetric matrix gram [n, n] of a block, made tridiagonal: diagonal d [n], beside it e [n] (the last is 0). It is worked on in
/// shared memory where it fits (`in_shared`), else in place. A thread has every width-th row of a part of the columns.
__global__ void __launch_bounds__(tridiagonal_threads)
    tridiagonal_kernel(double* gram, double* diagonal, double* beside, int n, bool in_shared) {
  extern __shared__ __align__(16) double shared[];
  const int width = min((n + warp_size - 1) / warp_size * warp_size, tridiagonal_threads), parts = tridiagonal_threads / width;
  const int thread = static_cast<int>(threadIdx.x), part = thread / width, own = thread % width;
  double *v = shared, *w = v + n, *partial = w + n, *scalar = partial + parts * n;
  double *A = in_shared ? scalar + 2 : gram + std::int64_t{blockIdx.x} * n * n, *source = gram + std::int64_t{blockIdx.x} * n * n;
  const int stride = in_shared ? n + 1 : n;
  double *d = diagonal + std::int64_t{blockIdx.x} * n, *e = beside + std::int64_t{blockIdx.x} * n;
  if (in_shared) {
    for (int i = thread; i < n * n; i += tridiagonal_threads) A[i / n * stride + i % n] = source[i];
  }
  for (int k = 0; k < n; ++k) {
    __syncthreads();
    // x = A[k+1 …, k];  α = −sign(x_0) ‖x‖;  v = x − α e_0;  H = I − β v vᵀ,  β = 2 / vᵀv
    if (thread < warp_size) {
      double rest = 0;
      for (int i = k + 2 + thread; i < n; i += warp_size) rest += A[i * stride + k] * A[i * stride + k];
      rest = sum_of_warp(rest);
      const double first = k + 1 < n ? A[(k + 1) * stride + k] : 0, norm = sqrt(first * first + rest);
      const double alpha = rest == 0 ? first : first > 0 ? -norm : norm, head = first - alpha;
      for (int i = k + 1 + thread; i < n; i += warp_size) v[i] = i == k + 1 ? head : A[i * stride + k];
      if (thread == 0) {
        d[k] = A[k * stride + k];
        e[k] = alpha;
        scalar[0] = rest == 0 ? 0 : 2 / (head * head + rest);
      }
    }
    __syncthreads();
    const double beta = scalar[0];
    if (beta == 0) continue;
    // p = β A v
    for (int i = k + 1 + own; part < parts && i < n; i += width) {
      double sum = 0;
      for (int j = k + 1 + part; j < n; j += parts) sum += A[i * stride + j] * v[j];
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
      for (int j = k + 1 + part; j < n; j += parts) A[i * stride + j] -= v[i] * w[j] + w[i] * v[j];
    }
  }
}

constexpr int bisection_threads = 128;

/// How many eigenvalues of the tridiagonal matrix are below x (Sturm): the signs of q_i = d_i − x − e²_{i−1} / q_{i−1}.
__device__ int eigenvalues_below(double x, const double* d, const double* squares, int n, double smallest) {
  int count = 0;
  double q = 1;
  for (int i = 0; i < n; ++i) {
    q = d[i] - x - (i > 0 ? squares[i - 1] / q : 0);
    if (fabs(q) < smallest) q = -smallest;
    count += q < 0;
  }
  return count;
}

/// σ [n] of a block's matrix, largest first: thread i halves an interval around eigenvalue i.
__global__ void __launch_bounds__(bisection_threads) bisection_kernel(float* sigma, const double* diagonal, const double* beside, int n) {
  extern __shared__ __align__(16) double shared[];
  double *d = shared, *squares = shared + n;
  const double *all_d = diagonal + std::int64_t{blockIdx.x} * n, *all_e = beside + std::int64_t{blockIdx.x} * n;
  double largest = 0;  // of the eigenvalues, at most, by Gershgorin; none is below 0
  bool finite = true;
  for (int i = 0; i < n; ++i) {
    const double bound = all_d[i] + fabs(all_e[i]) + (i > 0 ? fabs(all_e[i - 1]) : 0);
    finite = finite && isfinite(bound);
    largest = max(largest, bound);
  }
  for (int i = static_cast<int>(threadIdx.x); i < n; i += bisection_threads) d[i] = all_d[i], squares[i] = all_e[i] * all_e[i];
  __syncthreads();
  constexpr int halvings = 54;  // to the last digit of double precision of the largest
  constexpr double rounding = 1e-17;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += bisection_threads) {
    double low = 0, high = largest;
    for (int step = 0; step < halvings && finite; ++step) {
      const double middle = (low + high) / 2;
      (eigenvalues_below(middle, d, squares, n, largest * rounding) <= i ? low : high) = middle;
    }
    sigma[std::int64_t{blockIdx.x} * n + n - 1 - i] = finite ? static_cast<float>(sqrt(low)) : std::numeric_limits<float>::quiet_NaN();
  }
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

unsigned tile_pairs(std::int64_t count) {
  const std::int64_t tiles = (count + tile - 1) / tile;
  return static_cast<unsigned>(tiles * (tiles + 1) / 2);
}

/// Matrices are counted by the grid's second axis, which holds no more than this.
constexpr std::int64_t most_matrices = 65535;

void launch_singular_values(float* sigma, const Vectors& z, std::int64_t B, Workspace& workspace, cudaStream_t stream) {
  const Workspace::Mark mark(workspace);
  const auto doubles = [&](std::int64_t count) { return static_cast<double*>(workspace.tensor({2 * count}).data); };
  const auto n = static_cast<int>(z.count);
  double *gram = doubles(B * n * n), *diagonal = doubles(B * n), *beside = doubles(B * n);
  const auto matrices = static_cast<unsigned>(B);
  launch("singular_values: products", gram_kernel, {tile_pairs(n), matrices}, tile_threads, 0, stream, gram, z);

  const int width = std::min((n + warp_size - 1) / warp_size * warp_size, tridiagonal_threads), parts = tridiagonal_threads / width;
  const std::size_t vectors = static_cast<std::size_t>((2 + parts) * n + 2) * sizeof(double), most_shared = 224 << 10;
  const std::size_t with_matrix = vectors + static_cast<std::size_t>(n) * (static_cast<std::size_t>(n) + 1) * sizeof(double);
  const bool in_shared = with_matrix <= most_shared;
  launch("singular_values: tridiagonal", tridiagonal_kernel, matrices, tridiagonal_threads, in_shared ? with_matrix : vectors, stream, gram,
         diagonal, beside, n, in_shared);
  launch("singular_values: bisection", bisection_kernel, matrices, bisection_threads, 2 * static_cast<std::size_t>(n) * sizeof(double),
         stream, sigma, static_cast<const double*>(diagonal), static_cast<const double*>(beside), n);
}

}  // namespace

void row_cosine(Tensor cosine, ConstTensor z, cudaStream_t stream) {
  const std::int64_t R = z.shape[1], V = z.shape[2];
  for (std::int64_t b = 0; b < z.rows(); b += most_matrices) {
    const auto matrices = static_cast<unsigned>(std::min(most_matrices, z.rows() - b));
    launch("row_cosine", row_cosine_kernel, {tile_pairs(R), matrices}, tile_threads, 0, stream, cosine.f32(b),
           Vectors{z.f32(b), R * V, R, V, V, 1});
  }
}

void singular_values(Tensor sigma, ConstTensor z, Workspace& workspace, cudaStream_t stream) {
  const std::int64_t R = z.shape[1], V = z.shape[2];
  for (std::int64_t b = 0; b < z.rows(); b += most_matrices) {
    // ZᵀZ is of the columns, ZZᵀ of the rows.
    const Vectors vectors = V <= R ? Vectors{z.f32(b), R * V, V, R, 1, V} : Vectors{z.f32(b), R * V, R, V, V, 1};
    launch_singular_values(sigma.f32(b), vectors, std::min(most_matrices, z.rows() - b), workspace, stream);
  }
}

}  // namespace statescope::cuda

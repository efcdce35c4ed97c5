// The CUDA form of rotary position embeddings.
#include <algorithm>

#include "kernels/cuda/common/rowwise.h"

namespace statescope::cuda {
namespace {

using namespace rowwise;

/// ω_j = θ^{−2j / rotary}
struct Powers {
  double theta;
  unsigned rotary;
  __device__ double operator()(unsigned j) const { return pow(theta, -2.0 * static_cast<double>(j) / static_cast<double>(rotary)); }
};

/// ω_j as given.
struct Listed {
  float frequencies[Rotation::most_frequencies];
  __device__ double operator()(unsigned j) const { return static_cast<double>(frequencies[j]); }
};

/// cos and sin of position · ω; in float32 as the models were trained, in float64 where float32 no longer tells positions apart.
__device__ void rotation(float& cosine, float& sine, std::int64_t position, double frequency) {
  if (position < (1 << 20)) {
    const float angle = __fmul_rn(static_cast<float>(position), static_cast<float>(frequency));
    sincosf(angle, &sine, &cosine);
  } else {
    double precise_sine = 0, precise_cosine = 0;
    sincos(static_cast<double>(position) * frequency, &precise_sine, &precise_cosine);
    sine = static_cast<float>(precise_sine);
    cosine = static_cast<float>(precise_cosine);
  }
}

constexpr unsigned heads_each = 4;  // an angle serves four heads, whose values are loaded together

/// A thread owns channels j and j + half (j < half), or channel j + half alone (not rotated), of `heads_each` heads of row t. y may be x.
template <class Frequency>
__global__ void rope_kernel(Numbers<void> y, Numbers<const void> x, std::int64_t rows, unsigned own_channels, unsigned heads, unsigned d,
                            unsigned half, std::int64_t first_position, const __grid_constant__ Frequency frequency, float factor) {
  const std::int64_t t = own_row();
  const unsigned j = own_column(), first_head = blockIdx.z * heads_each;
  if (t >= rows || j >= own_channels) return;
  const unsigned count = min(heads_each, heads - first_head);
  const std::int64_t first = std::int64_t{first_head} * d + j;
  const auto in = [&](unsigned i) { return x.number(t, first + i); };
  const auto put = [&](unsigned i, float value) { y.store<1>(t, first + i, {value}); };
  if (j >= half) {
    for (unsigned h = 0; h < count; ++h) put(h * d + half, in(h * d + half));
    return;
  }
  float a[heads_each] = {}, b[heads_each] = {};
#pragma unroll
  for (unsigned h = 0; h < heads_each; ++h) {
    if (h < count) a[h] = in(h * d), b[h] = in(h * d + half);
  }
  float cosine = 0, sine = 0;
  rotation(cosine, sine, first_position + t, frequency(j));
  cosine *= factor, sine *= factor;
#pragma unroll
  for (unsigned h = 0; h < heads_each; ++h) {
    if (h < count) put(h * d, a[h] * cosine - b[h] * sine), put(h * d + half, b[h] * cosine + a[h] * sine);
  }
}

template <class Frequency>
void rotate_rows(Tensor y, ConstTensor x, std::int64_t first, const Frequency& frequency, std::int64_t rotary, float factor,
                 cudaStream_t stream) {
  const std::int64_t d = last_axis(x);
  if (rotary < 0 || rotary > d || rotary % 2 != 0)
    throw std::invalid_argument("rope: " + std::to_string(rotary) + " channels of " + x.shape.to_string());
  require_same_rows("rope", y, x);
  if (x.row_size() == 0) return;
  const bool in_place = y.data == x.data;
  const std::int64_t heads = x.row_size() / d, own_channels = in_place ? rotary / 2 : d - rotary / 2;
  auto [grid, block] = cover(y.rows(), own_channels);
  grid.z = blocks_for(heads, heads_each);
  launch("rope", rope_kernel<Frequency>, grid, block, 0, stream, numbers(y), numbers(x), y.rows(), static_cast<unsigned>(own_channels),
         static_cast<unsigned>(heads), static_cast<unsigned>(d), static_cast<unsigned>(rotary / 2), first, frequency, factor);
}

}  // namespace

void rope(Tensor y, ConstTensor x, std::int64_t first, double theta, std::int64_t rotary, cudaStream_t stream) {
  rotate_rows(y, x, first, Powers{theta, static_cast<unsigned>(rotary)}, rotary, 1, stream);
}

void rope(Tensor y, ConstTensor x, std::int64_t first, const Rotation& rotation, cudaStream_t stream) {
  const std::int64_t count = std::ssize(rotation.frequencies);
  if (count > Rotation::most_frequencies) throw std::invalid_argument("rope: " + std::to_string(count) + " frequencies");
  Listed listed{};
  std::copy(rotation.frequencies.begin(), rotation.frequencies.end(), listed.frequencies);
  rotate_rows(y, x, first, listed, 2 * count, rotation.factor, stream);
}

}  // namespace statescope::cuda

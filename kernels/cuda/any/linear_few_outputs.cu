// Products of many rows with few outputs (gates of heads, routing, the first half of a low-rank gate) on tensor cores: bound by reading x,
// for which the mostly empty tiles of a library are slow.
#include "kernels/cuda/common/activation.h"
#include "kernels/cuda/common/chunk.h"
#include "kernels/cuda/common/linear.h"
#include "kernels/cuda/common/numbers.h"

namespace statescope::cuda {
namespace {

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

constexpr int warps = 4, rows_at_once = 16, most_outputs = 16;  // outputs of a product
constexpr int of_lane = 8, of_step = 4 * of_lane;               // inputs of a lane: 16 bytes; inputs of a warp at a time

/// One of the products of x.
struct SmallProduct {
  Numbers<void> y;
  Rows<const Bf16> weight;
  const float* bias;
  int outputs;
  Activation act;
  const float *A_log, *dt_bias;  // of a decay; null: y = act(z)
};
template <int parts>
struct SmallProducts {
  SmallProduct at[parts];
};

/// The epilogue (projection.h) of one output, with all that it needs.
struct Epilogue {
  float bias, minus_A = 0, dt_bias = 0;
  bool decays;
  Activation act;

  __device__ Epilogue(const SmallProduct& of, int output)
      : bias(of.bias != nullptr ? of.bias[output] : 0), decays(of.A_log != nullptr), act(of.act) {
    if (decays) minus_A = -expf(of.A_log[output]), dt_bias = of.dt_bias[output];
  }
  __device__ float operator()(float product) const {
    const float z = product + bias;
    return decays ? minus_A * softplus(z + dt_bias) : activated(z, act);
  }
};

/// A block computes 16 rows of each y [T, n]; its warps divide the inputs. Four lanes have 32 inputs of a row at a time, 8 adjacent ones
/// each: in which order a product sums them is free, as long as it is the same for x and the weight. At the end a thread has one of the
/// outputs.
template <int parts>
__global__ void __launch_bounds__(32 * warps)
    few_outputs_kernel(const __grid_constant__ SmallProducts<parts> p, Rows<const Bf16> x, std::int64_t T, int inputs) {
  constexpr int columns = parts * most_outputs, rows_together = 32 * warps / columns;
  begin_overlapped();
  __shared__ float sums[warps][rows_at_once][columns + 1];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4 * 2;
  const int column = static_cast<int>(threadIdx.x) % columns, own_row = static_cast<int>(threadIdx.x) / columns;
  const SmallProduct& own = p.at[column / most_outputs];
  const int output = column % most_outputs;
  const bool owns = own_row < rows_together && output < own.outputs;
  const Epilogue epilogue(own, owns ? output : 0);
  const std::int64_t first = std::int64_t{blockIdx.x} * rows_at_once;
  const auto load_vector = [&](const Rows<const Bf16>& from, std::int64_t row, std::int64_t count, int i) {
    return row < count && i < inputs ? *reinterpret_cast<const uint4*>(from.row(row) + i) : uint4{};
  };
  float c[parts][2][4] = {};
#pragma unroll 4
  for (int begin = warp * of_step; begin < inputs; begin += warps * of_step) {
    const int i = begin + lane % 4 * of_lane;
    const uint4 upper = load_vector(x, first + g, T, i), lower = load_vector(x, first + g + 8, T, i);
    uint4 w[parts][2];
#pragma unroll
    for (int part = 0; part < parts; ++part) {
      const SmallProduct& of = p.at[part];
      w[part][0] = load_vector(of.weight, g, of.outputs, i), w[part][1] = load_vector(of.weight, g + 8, of.outputs, i);
    }
#pragma unroll
    for (int n = 0; n < 2 * parts; ++n) {
      const uint4& right = w[n / 2][n % 2];
      multiply(c[n / 2][n % 2], {upper.x, lower.x, upper.y, lower.y}, right.x, right.y);
      multiply(c[n / 2][n % 2], {upper.z, lower.z, upper.w, lower.w}, right.z, right.w);
    }
  }
#pragma unroll
  for (int i = 0; i < parts * 8; ++i) {
    const int part = i / 8, half = i / 4 % 2;
    sums[warp][g + i % 4 / 2 * 8][(2 * part + half) * 8 + t + i % 2] = c[part][half][i % 4];
  }
  __syncthreads();
  if (!owns) return;
  for (int row = own_row; row < rows_at_once && first + row < T; row += rows_together) {
    float sum = 0;
    for (int w = 0; w < warps; ++w) sum += sums[w][row][column];
    own.y.store<1>(first + row, output, {epilogue(sum)});
  }
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

bool in_vectors(ConstTensor x) {
  return x.dtype == DType::bf16 && reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0 && x.stride % of_lane == 0;
}
Rows<const Bf16> bf16_rows(ConstTensor x) { return {static_cast<const Bf16*>(x.data), x.stride}; }

SmallProduct small_product(const LinearProduct& p) {
  SmallProduct part{numbers(p.y), bf16_rows(p.weight), f32(p.bias).data, static_cast<int>(p.weight.rows()), Activation::identity, nullptr,
                    nullptr};
  if (const auto* activate = std::get_if<Activate>(&p.finish)) part.act = activate->act;
  if (const auto* decay = std::get_if<DeltaDecay>(&p.finish)) part.A_log = f32(decay->A_log).data, part.dt_bias = f32(decay->dt_bias).data;
  return part;
}

}  // namespace

bool few_outputs(ConstTensor x, ConstTensor weight) {
  return weight.rows() <= most_outputs && x.row_size() % of_lane == 0 && in_vectors(x) && in_vectors(weight);
}

bool few_outputs_end_with(const Finish& finish) {
  return std::holds_alternative<DeltaDecay>(finish) || std::holds_alternative<Activate>(finish);
}

void linear_few_outputs(std::span<const LinearProduct> products, ConstTensor x, cudaStream_t stream) {
  const auto start = [&]<int parts>() {
    SmallProducts<parts> p;
    for (int i = 0; i < parts; ++i) p.at[i] = small_product(products[static_cast<std::size_t>(i)]);
    launch_overlapped("linear", few_outputs_kernel<parts>, blocks_for(x.rows(), rows_at_once), 32 * warps, 0, stream, p, bf16_rows(x),
                      x.rows(), static_cast<int>(x.row_size()));
  };
  switch (products.size()) {
    case 1:
      return start.template operator()<1>();
    case 2:
      return start.template operator()<2>();
    default:
      return start.template operator()<static_cast<int>(most_few_outputs)>();
  }
}

}  // namespace statescope::cuda

#include "kernels/ops/predictions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd_rows.h"

namespace statescope {
namespace {

constexpr std::int64_t kBlock = 1024;  // numbers whose exponentials are summed in float32

/// What turns logits into probabilities: p = exp(z − largest) / sum.
struct Exponents {
  float largest;
  double sum = 0;

  explicit Exponents(std::span<const float> z) : largest(statescope::largest(z.data(), std::ssize(z))) {
    if (std::ranges::any_of(z, [](float x) { return std::isnan(x); })) sum = std::numeric_limits<double>::quiet_NaN();
    std::array<float, kBlock> scratch;
    for (std::int64_t i = 0; i < std::ssize(z); i += kBlock)
      sum += exp_shifted(scratch.data(), z.data() + i, largest, std::min(kBlock, std::ssize(z) - i));
  }
};

void require(bool fits, const char* operation, ConstTensor y, ConstTensor x) {
  if (!fits)
    throw std::invalid_argument(std::string(operation) + ": " + y.shape.to_string() + " and " + x.shape.to_string() + " do not fit");
}

bool is_a_number_a_row(ConstTensor y, ConstTensor x) {
  return y.rows() == x.rows() && y.row_size() == 1 && y.dtype == DType::f32 && x.dtype == DType::f32;
}

}  // namespace

void check_next_token_nll(ConstTensor nll, ConstTensor logits, const std::int32_t* ids) {
  require(is_a_number_a_row(nll, logits), "next_token_nll", nll, logits);
  for (const std::int32_t id : std::span(ids, static_cast<std::size_t>(logits.rows()))) {
    if (id < 0 || id >= logits.row_size())
      throw std::out_of_range("next_token_nll: id " + std::to_string(id) + " of " + logits.shape.to_string());
  }
}
void check_total_variation(ConstTensor distance, ConstTensor a, ConstTensor b) {
  require(is_a_number_a_row(distance, a), "total_variation", distance, a);
  require(a.rows() == b.rows() && a.row_size() == b.row_size() && b.dtype == DType::f32, "total_variation", a, b);
}
void check_row_norms(ConstTensor norms, ConstTensor x) { require(is_a_number_a_row(norms, x), "row_norms", norms, x); }

void next_token_nll(Tensor nll, ConstTensor logits, const std::int32_t* ids) {
  check_next_token_nll(nll, logits, ids);
  parallel_for(logits.rows(), [&](std::int64_t t) {
    const float* z = logits.f32(t);
    const Exponents of(std::span(z, static_cast<std::size_t>(logits.row_size())));
    *nll.f32(t) = static_cast<float>(std::log(of.sum) - (static_cast<double>(z[ids[t]]) - of.largest));
  });
}

void total_variation(Tensor distance, ConstTensor a, ConstTensor b) {
  check_total_variation(distance, a, b);
  const std::int64_t V = a.row_size();
  parallel_for(a.rows(), [&](std::int64_t t) {
    const std::span<const float> x(a.f32(t), static_cast<std::size_t>(V)), y(b.f32(t), static_cast<std::size_t>(V));
    const Exponents of_x(x), of_y(y);
    std::array<float, kBlock> p, q;
    double sum = 0;
    for (std::int64_t begin = 0; begin < V; begin += kBlock) {
      const std::int64_t n = std::min(kBlock, V - begin);
      exp_shifted(p.data(), x.data() + begin, of_x.largest, n);
      exp_shifted(q.data(), y.data() + begin, of_y.largest, n);
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
        sum += std::abs(static_cast<double>(p[i]) / of_x.sum - static_cast<double>(q[i]) / of_y.sum);
    }
    *distance.f32(t) = static_cast<float>(sum / 2);
  });
}

void row_norms(Tensor norms, ConstTensor x) {
  check_row_norms(norms, x);
  parallel_for(x.rows(), [&](std::int64_t t) {
    double squares = 0;
    for (const float number : std::span(x.f32(t), static_cast<std::size_t>(x.row_size())))
      squares += static_cast<double>(number) * static_cast<double>(number);
    *norms.f32(t) = static_cast<float>(std::sqrt(squares));
  });
}

}  // namespace statescope

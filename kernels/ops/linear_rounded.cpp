#include "kernels/cpu/bfloat16_product.h"
#include "kernels/ops/linear.h"
#include "kernels/ops/linear_blocks.h"

// Highway compiles the part up to HWY_ONCE for every instruction set and picks one at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ops/linear_rounded.cpp"  // NOLINT
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace statescope::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// The nearest bfloat16 of each, ties to even; a NaN stays one.
template <class Floats>
HWY_INLINE hn::Vec<hn::Rebind<std::uint16_t, Floats>> rounded(Floats, hn::Vec<Floats> x) {
  const hn::RebindToUnsigned<Floats> words;
  const auto bits = hn::BitCast(words, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1U));
  const auto nearest = hn::Add(bits, hn::Add(odd, hn::Set(words, 0x7FFFU)));
  const auto quiet = hn::Or(bits, hn::Set(words, 0x400000U));
  const auto kept = hn::IfThenElse(hn::RebindMask(words, hn::IsNaN(x)), quiet, nearest);
  return hn::TruncateTo(hn::Rebind<std::uint16_t, Floats>(), hn::ShiftRight<16>(kept));
}

void round_numbers(std::uint16_t* y, const float* x, std::int64_t n) {
  const hn::ScalableTag<float> vector;
  const hn::CappedTag<float, 1> one;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(vector));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(rounded(vector, hn::LoadU(vector, x + i)), hn::Rebind<std::uint16_t, decltype(vector)>(), y + i);
  for (; i < n; ++i) hn::StoreU(rounded(one, hn::LoadU(one, x + i)), hn::Rebind<std::uint16_t, decltype(one)>(), y + i);
}

}  // namespace
}  // namespace statescope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace statescope {
namespace {

HWY_EXPORT(round_numbers);

constexpr std::int64_t few_rows = 8;  // with so many, reading a bfloat16 weight as it is beats packing it (measured)
/// Fewer inputs or outputs are not worth oneDNN, whose 2.6.3 multiplies 9 rows of one number by one number wrongly.
constexpr std::int64_t least_size = 32;

/// Row `t` of any float type as bfloat16.
void round_row(std::uint16_t* y, ConstTensor x, std::int64_t t) {
  static thread_local Scratch scratch;
  const float* row = nullptr;
  if (x.dtype == DType::f32) {
    row = x.f32(t);
  } else {
    float* const widened = scratch.take(x.row_size());
    widen_row(widened, x, t);
    row = widened;
  }
  HWY_DYNAMIC_DISPATCH(round_numbers)(y, row, x.row_size());
}

std::uint16_t* take_bfloat16(Scratch& scratch, std::int64_t count) {
  return reinterpret_cast<std::uint16_t*>(scratch.take(pieces_of(count, 2)));
}

/// As bfloat16, in memory of the calling thread.
ConstTensor rounded_input(ConstTensor x) {
  static thread_local Scratch scratch;
  constexpr std::int64_t rows_at_once = 16;
  const std::int64_t rows = x.rows(), n = x.row_size();
  std::uint16_t* const numbers = take_bfloat16(scratch, rows * n);
  const auto piece = [&](std::int64_t i) {
    for (std::int64_t t = i * rows_at_once; t < std::min(rows, (i + 1) * rows_at_once); ++t) round_row(numbers + t * n, x, t);
  };
  parallel_for(pieces_of(rows, rows_at_once), piece, rows * n >= worth_a_fork);
  return {numbers, DType::bf16, {rows, n}};
}

/// The rows [begin, end) as bfloat16: themselves, or in memory of the calling thread.
ConstTensor rounded_weights(ConstTensor weight, std::int64_t begin, std::int64_t end) {
  if (weight.dtype == DType::bf16) return weight.slice(begin, end - begin);
  static thread_local Scratch scratch;
  const std::int64_t n = weight.row_size();
  std::uint16_t* const numbers = take_bfloat16(scratch, (end - begin) * n);
  for (std::int64_t o = begin; o < end; ++o) round_row(numbers + (o - begin) * n, weight, o);
  return {numbers, DType::bf16, {end - begin, n}};
}

/// The bfloat16 numbers of `x` as float32.
ConstTensor as_float32(ConstTensor x, Scratch& memory) {
  float* const numbers = memory.take(x.shape.size());
  for (std::int64_t t = 0; t < x.rows(); ++t) widen_row(numbers + t * x.row_size(), x, t);
  return {numbers, DType::f32, x.shape};
}

void add_bias(Tensor y, const float* bias) {
  for (std::int64_t t = 0; t < y.rows(); ++t) {
    float* const row = y.f32(t);
    for (std::int64_t o = 0; o < y.row_size(); ++o) row[o] += bias[o];
  }
}

/// x as bfloat16, or, portably, these numbers as float32
void multiply_rounded(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, bool portably) {
  for_blocks(x.rows(), x.row_size(), weight.rows(), [&](std::int64_t first, std::int64_t rows, std::int64_t begin, std::int64_t end) {
    const ConstTensor block = rounded_weights(weight, begin, end), part = x.slice(first, rows);
    const Tensor result = y.slice(first, rows).columns(begin, {end - begin});
    const ConstTensor added = bias ? ConstTensor(bias.f32() + begin, DType::f32, {end - begin}) : ConstTensor();
    if (portably) return linear_block(result, part, block, added, 0, end - begin);
    multiply_bfloat16(result, part, block);
    if (added) add_bias(result, added.f32());
  });
}

void linear_rounded(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, bool portably) {
  check_linear(y, x, weight, bias);
  if (y.shape.size() == 0) return;
  if (x.row_size() == 0) return linear_streamed(y, x, weight, bias);
  static thread_local Scratch scratch;
  const ConstTensor rounded = rounded_input(x);
  if (x.rows() <= few_rows && weight.dtype == DType::bf16) {
    linear_streamed(y, as_float32(rounded, scratch), weight, bias);
  } else {
    multiply_rounded(y, portably ? as_float32(rounded, scratch) : rounded, weight, bias, portably);
  }
}

}  // namespace

void linear_rounded(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias) {
  const bool small = std::min(x.row_size(), weight.rows()) < least_size;
  linear_rounded(y, x, weight, bias, small || bfloat16_instructions() == nullptr);
}

void linear_rounded_portably(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias) { linear_rounded(y, x, weight, bias, true); }

}  // namespace statescope
#endif  // HWY_ONCE

#include "kernels/ops/linear.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>

#include "kernels/ops/isa/gemm_isa.h"
#include "kernels/ops/linear_blocks.h"

// Highway compiles the part up to HWY_ONCE for every instruction set and picks one at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ops/linear.cpp"  // NOLINT
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <hwy/cache_control.h>

#ifndef STATESCOPE_LINEAR_TYPES
#define STATESCOPE_LINEAR_TYPES
namespace statescope {

/// E4M3 with its exponent and mantissa moved to where float16 has them is 2^-8 times what it was: the difference of the biases.
constexpr float float8_factor = 256;

/// y = x wᵀ + bias for few rows. `x` is packed: see pack_row.
struct StreamedProduct {
  const void* weight;
  DType dtype;
  std::int64_t weight_stride;  // elements
  const float* x;
  std::int64_t x_stride, rows, in;
  float* y;
  std::int64_t y_stride;
  const float* bias;
  const BlockScales* scales;  // of f8
};

}  // namespace statescope
#endif

HWY_BEFORE_NAMESPACE();
namespace statescope::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;

/// A block is two vectors of floats, `first` and `second`; each number type says which of a block's weights go into which.
struct F32 {
  using Number = float;
  static constexpr bool scaled = false;
  static HWY_INLINE void load(const Number* p, Vector& first, Vector& second) {
    first = hn::LoadU(Floats(), p);
    second = hn::LoadU(Floats(), p + hn::Lanes(Floats()));
  }
};

struct F16 {
  using Number = std::uint16_t;
  static constexpr bool scaled = false;
  static constexpr bool in_hardware = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON;
  using Halves = hn::Vec<hn::Rebind<std::uint16_t, Floats>>;
  static HWY_INLINE Vector widen_bits(Halves halves) {
    if constexpr (in_hardware) return hn::PromoteTo(Floats(), hn::BitCast(hn::Rebind<hwy::float16_t, Floats>(), halves));
    // Exponent and mantissa moved into place, then the difference of the exponents' biases multiplied in, which also normalises subnormal
    // numbers; what lies beyond the largest float16 is infinite or NaN.
    const hn::RebindToUnsigned<Floats> words;
    const auto bits = hn::PromoteTo(words, halves);
    const auto magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(words, 0x7FFFU)));
    const Vector finite = hn::Mul(hn::BitCast(Floats(), magnitude), hn::Set(Floats(), 0x1p112F));
    const Vector special = hn::BitCast(Floats(), hn::Or(magnitude, hn::Set(words, 0x7F800000U)));
    const Vector sign = hn::BitCast(Floats(), hn::ShiftLeft<16>(hn::And(bits, hn::Set(words, 0x8000U))));
    return hn::Or(hn::IfThenElse(hn::Ge(finite, hn::Set(Floats(), 65536.0F)), special, finite), sign);
  }
  static HWY_INLINE Vector widen(const Number* p) { return widen_bits(hn::LoadU(hn::Rebind<std::uint16_t, Floats>(), p)); }
  static HWY_INLINE void load(const Number* p, Vector& first, Vector& second) {
    first = widen(p);
    second = widen(p + hn::Lanes(Floats()));
  }
};

/// A bfloat16 is the upper half of a float: one load holds the even weights in the lower and the odd ones in the upper halves of its lanes.
struct BF16 {
  using Number = std::uint16_t;
  static constexpr bool scaled = false;
  static HWY_INLINE void load(const Number* p, Vector& first, Vector& second) {
    const hn::RebindToUnsigned<Floats> words;
    const auto pairs = hn::LoadU(words, reinterpret_cast<const std::uint32_t*>(p));
    first = hn::BitCast(Floats(), hn::ShiftLeft<16>(pairs));
    second = hn::BitCast(Floats(), hn::And(pairs, hn::Set(words, 0xFFFF0000U)));
  }
  static HWY_INLINE Vector widen(const Number* p) {
    const hn::RebindToUnsigned<Floats> words;
    return hn::BitCast(Floats(), hn::ShiftLeft<16>(hn::PromoteTo(words, hn::LoadU(hn::Rebind<std::uint16_t, Floats>(), p))));
  }
};

/// Widened without float8_factor.
struct F8 {
  using Number = std::uint8_t;
  static constexpr bool scaled = true;
  static HWY_INLINE Vector widen(const Number* p) {
    const hn::Rebind<std::uint16_t, Floats> words;
    const auto bits = hn::PromoteTo(words, hn::LoadU(hn::Rebind<std::uint8_t, Floats>(), p));
    const auto magnitude = hn::And(bits, hn::Set(words, 0x7F));
    const auto sign = hn::ShiftLeft<8>(hn::Xor(bits, magnitude));
    const auto half = hn::IfThenElse(hn::Eq(magnitude, hn::Set(words, 0x7F)), hn::Set(words, 0x7FFF), hn::ShiftLeft<7>(magnitude));
    return F16::widen_bits(hn::Or(half, sign));
  }
  static HWY_INLINE void load(const Number* p, Vector& first, Vector& second) {
    first = widen(p);
    second = widen(p + hn::Lanes(Floats()));
  }
};

/// The same for the numbers after the last whole block: padded with zeros.
template <class Type>
HWY_INLINE void load_rest(const typename Type::Number* p, std::int64_t count, Vector& first, Vector& second) {
  HWY_ALIGN typename Type::Number padded[2 * hn::MaxLanes(Floats())] = {};
  std::memcpy(padded, p, static_cast<std::size_t>(count) * sizeof(padded[0]));
  Type::load(padded, first, second);
}

/// y[r … r + Rows, o … o + Outputs): every weight is loaded once, each sum kept in two parts. Scaled weights are summed up block by block.
template <class Type, int Rows, int Outputs>
HWY_INLINE void multiply_outputs(const StreamedProduct& op, std::int64_t row, std::int64_t o) {
  const auto* weight = static_cast<const typename Type::Number*>(op.weight) + o * op.weight_stride;
  const float* rows = op.x + row * op.x_stride;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  Vector sum[Rows][Outputs][2], of_blocks[Rows][Outputs];
  for (int r = 0; r < Rows; ++r) {
    for (int j = 0; j < Outputs; ++j) sum[r][j][0] = sum[r][j][1] = of_blocks[r][j] = hn::Zero(Floats());
  }
  const auto add = [&](std::int64_t i, int j, Vector first, Vector second) HWY_ATTR {
    for (int r = 0; r < Rows; ++r) {
      const float* x = rows + r * op.x_stride + i;
      sum[r][j][0] = hn::MulAdd(first, hn::LoadU(Floats(), x), sum[r][j][0]);
      sum[r][j][1] = hn::MulAdd(second, hn::LoadU(Floats(), x + lanes), sum[r][j][1]);
    }
  };
  const auto add_columns = [&](std::int64_t i, std::int64_t end) HWY_ATTR {
    Vector first, second;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      for (int j = 0; j < Outputs; ++j) {
        hwy::Prefetch(weight + (j + Outputs) * op.weight_stride + i);  // the outputs after these
        Type::load(weight + j * op.weight_stride + i, first, second);
        add(i, j, first, second);
      }
    }
    for (int j = 0; j < Outputs && i < end; ++j) {
      load_rest<Type>(weight + j * op.weight_stride + i, end - i, first, second);
      add(i, j, first, second);
    }
  };
  if constexpr (Type::scaled) {
    for (std::int64_t i = 0, block = 0; i < op.in; i += op.scales->columns, ++block) {
      add_columns(i, std::min(op.in, i + op.scales->columns));
      for (int j = 0; j < Outputs; ++j) {
        const Vector scale = hn::Set(Floats(), float8_factor * op.scales->of_row(o + j)[block]);
        for (int r = 0; r < Rows; ++r) {
          of_blocks[r][j] = hn::MulAdd(scale, hn::Add(sum[r][j][0], sum[r][j][1]), of_blocks[r][j]);
          sum[r][j][0] = sum[r][j][1] = hn::Zero(Floats());
        }
      }
    }
  } else {
    add_columns(0, op.in);
  }
  for (int r = 0; r < Rows; ++r) {
    for (int j = 0; j < Outputs; ++j) {
      const Vector total = hn::SumOfLanes(Floats(), Type::scaled ? of_blocks[r][j] : hn::Add(sum[r][j][0], sum[r][j][1]));
      op.y[(row + r) * op.y_stride + o + j] = hn::GetLane(total) + (op.bias != nullptr ? op.bias[o + j] : 0.0F);
    }
  }
}

/// As many outputs at once as the sums of `Rows` rows leave registers for (32 with AVX-512): each is a stream of memory of its own.
template <class Type, int Rows>
void multiply_rows(const StreamedProduct& op, std::int64_t row, std::int64_t begin, std::int64_t end) {
  constexpr int registers = hn::MaxLanes(Floats()) >= 16 ? 16 : 8;
  constexpr int at_once = registers / (Rows == 3 ? 4 : Rows) / 2;
  std::int64_t o = begin;
  for (; o + at_once <= end; o += at_once) multiply_outputs<Type, Rows, at_once>(op, row, o);
  for (; o < end; ++o) multiply_outputs<Type, Rows, 1>(op, row, o);
}

/// All rows, four at a time; from the second time on the weights are in the cache.
template <class Type>
void multiply_range(const StreamedProduct& op, std::int64_t begin, std::int64_t end) {
  std::int64_t row = 0;
  for (; row + 4 <= op.rows; row += 4) multiply_rows<Type, 4>(op, row, begin, end);
  switch (op.rows - row) {
    case 1:
      return multiply_rows<Type, 1>(op, row, begin, end);
    case 2:
      return multiply_rows<Type, 2>(op, row, begin, end);
    case 3:
      return multiply_rows<Type, 3>(op, row, begin, end);
    default:
      return;
  }
}

void stream_range(const StreamedProduct& op, std::int64_t begin, std::int64_t end) {
  switch (op.dtype) {
    case DType::f32:
      return multiply_range<F32>(op, begin, end);
    case DType::f16:
      return multiply_range<F16>(op, begin, end);
    case DType::bf16:
      return multiply_range<BF16>(op, begin, end);
    case DType::f8:
      return multiply_range<F8>(op, begin, end);
    case DType::i32:
      return;
  }
}

/// Packs x in the order of the weights of a block, padded with zeros to whole blocks.
void pack_row(float* packed, const float* x, std::int64_t n, bool interleaved) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  for (std::int64_t begin = 0; begin < n; begin += 2 * lanes, packed += 2 * lanes) {
    for (std::int64_t i = 0; i < 2 * lanes; ++i) {
      const std::int64_t from = begin + (!interleaved ? i : i < lanes ? 2 * i : 2 * (i - lanes) + 1);
      packed[i] = from < n ? x[from] : 0.0F;
    }
  }
}

/// n numbers as float32, in their order.
template <class Type>
void widen(float* y, const typename Type::Number* x, std::int64_t n) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(Type::widen(x + i), Floats(), y + i);
  if (i == n) return;
  HWY_ALIGN typename Type::Number from[hn::MaxLanes(Floats())] = {};
  HWY_ALIGN float to[hn::MaxLanes(Floats())];
  std::copy_n(x + i, n - i, from);
  hn::Store(Type::widen(from), Floats(), to);
  std::copy_n(to, n - i, y + i);
}

/// Those of f8 without float8_factor and their scales.
void widen_numbers(float* y, const void* x, std::int64_t n, DType dtype) {
  if (dtype == DType::f8) {
    widen<F8>(y, static_cast<const std::uint8_t*>(x), n);
  } else if (dtype == DType::f16) {
    widen<F16>(y, static_cast<const std::uint16_t*>(x), n);
  } else {
    widen<BF16>(y, static_cast<const std::uint16_t*>(x), n);
  }
}

/// The sum of n 64-bit words, read as four streams side by side: a core then waits for many lines of memory at once.
std::uint64_t sum_words(const std::uint64_t* p, std::size_t n) {
  constexpr std::size_t streams = 4;
  const hn::ScalableTag<std::uint64_t> words;
  const std::size_t lanes = hn::Lanes(words), length = n / streams / (2 * lanes) * (2 * lanes);
  hn::Vec<decltype(words)> sum[streams];
  for (auto& s : sum) s = hn::Zero(words);
  for (std::size_t i = 0; i < length; i += 2 * lanes) {
    for (std::size_t s = 0; s < streams; ++s) {
      const std::uint64_t* at = p + s * length + i;
      sum[s] = hn::Add(sum[s], hn::Add(hn::LoadU(words, at), hn::LoadU(words, at + lanes)));
    }
  }
  HWY_ALIGN std::uint64_t parts[hn::MaxLanes(words)];
  std::uint64_t total = std::accumulate(p + streams * length, p + n, std::uint64_t{0});
  for (const auto& s : sum) {
    hn::Store(s, words, parts);
    total = std::accumulate(parts, parts + lanes, total);
  }
  return total;
}

}  // namespace
}  // namespace statescope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace statescope {
namespace {

HWY_EXPORT(stream_range);
HWY_EXPORT(pack_row);
HWY_EXPORT(widen_numbers);
HWY_EXPORT(sum_words);

constexpr std::int64_t widest_block = 128;       // floats: two of the widest vectors that Highway knows
constexpr std::int64_t piece_bytes = 256 << 10;  // of the weight: what a thread takes at a time; less is not worth a second thread

/// So few rows that reading the weight as it is beats packing it for gemm, which has to widen 16-bit numbers first (measured).
bool streams(std::int64_t rows, DType dtype) { return rows <= (dtype == DType::f32 ? 8 : 24); }

}  // namespace

void check_is_weight(const char* operation, ConstTensor weight) {
  if (weight.dtype == DType::i32) throw std::invalid_argument(std::string(operation) + ": a weight of int32");
  if ((weight.dtype == DType::f8) != (weight.scales != nullptr))
    throw std::invalid_argument(std::string(operation) + ": a weight of float8 without scales, or another one with them");
}

void linear_streamed(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias) {
  static thread_local Scratch scratch;
  const std::int64_t rows = x.rows(), in = x.row_size(), out = weight.rows();
  // A block of scaled weights may end anywhere; what is read with its last ones lies after it.
  const std::int64_t packed_stride = (pieces_of(in, widest_block) + (weight.scales ? 1 : 0)) * widest_block;
  float* packed = scratch.take(rows * packed_stride);
  for (std::int64_t t = 0; t < rows; ++t) {
    float* row = packed + t * packed_stride;
    HWY_DYNAMIC_DISPATCH(pack_row)(row, x.f32(t), in, weight.dtype == DType::bf16);
    if (weight.scales) std::fill(row + in, row + packed_stride, 0.0F);
  }
  const StreamedProduct op{weight.data,  weight.dtype, weight.stride, packed,   packed_stride,
                           rows,         in,           y.f32(),       y.stride, bias ? bias.f32() : nullptr,
                           weight.scales};
  const std::int64_t output_bytes = in * static_cast<std::int64_t>(size_of(weight.dtype)) * pieces_of(rows, 4);
  const std::int64_t piece = std::clamp<std::int64_t>(piece_bytes / std::max<std::int64_t>(output_bytes, 1), 1, out);
  parallel_for(pieces_of(out, piece), [&](std::int64_t i) {
    HWY_DYNAMIC_DISPATCH(stream_range)(op, i * piece, std::min(out, (i + 1) * piece));
  });
}

void linear_block(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, std::int64_t begin, std::int64_t end) {
  static thread_local Scratch scratch;
  const std::int64_t in = x.row_size(), n = end - begin;
  const float* block = nullptr;
  std::int64_t stride = weight.stride;
  if (weight.dtype == DType::f32) {
    block = weight.f32(begin);
  } else {
    float* widened = scratch.take(n * in);
    for (std::int64_t j = 0; j < n; ++j) widen_row(widened + j * in, weight, begin + j);
    block = widened;
    stride = in;
  }
  for (std::int64_t t = 0; t < x.rows() && bias; ++t) std::copy_n(bias.f32() + begin, n, y.f32(t) + begin);
  gemm({x.rows(), n, in, x.f32(), x.stride, false, block, stride, true, y.f32() + begin, y.stride, 1, bias ? 1.0F : 0.0F});
}

void check_linear(ConstTensor y, ConstTensor x, ConstTensor weight, ConstTensor bias) {
  check_is_weight("linear", weight);
  const bool fits = weight.shape.rank() == 2 && y.rows() == x.rows() && x.row_size() == weight.row_size() &&
                    y.row_size() == weight.rows() && (!bias || bias.shape.size() == weight.rows());
  if (!fits) {
    throw std::invalid_argument("linear: y " + y.shape.to_string() + ", x " + x.shape.to_string() + ", weight " + weight.shape.to_string() +
                                (bias ? ", bias " + bias.shape.to_string() : ""));
  }
}

void widen_row(float* y, ConstTensor matrix, std::int64_t t) {
  check_is_weight("widen_row", matrix);
  const std::int64_t n = matrix.row_size();
  if (matrix.dtype == DType::f32) {
    std::copy_n(matrix.f32(t), n, y);
  } else {
    HWY_DYNAMIC_DISPATCH(widen_numbers)(y, matrix.slice(t, 1).data, n, matrix.dtype);
  }
  if (!matrix.scales) return;
  const float* scale = matrix.scales->of_row(t);
  for (std::int64_t begin = 0; begin < n; begin += matrix.scales->columns, ++scale) {
    const float factor = float8_factor * *scale;
    for (float* number = y + begin; number < y + std::min(n, begin + matrix.scales->columns); ++number) *number *= factor;
  }
}

void linear(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias) {
  check_linear(y, x, weight, bias);
  if (y.shape.size() == 0) return;
  if (streams(x.rows(), weight.dtype)) {
    linear_streamed(y, x, weight, bias);
  } else {
    for_blocks(x.rows(), x.row_size(), weight.rows(), [&](std::int64_t first, std::int64_t rows, std::int64_t begin, std::int64_t end) {
      linear_block(y.slice(first, rows), x.slice(first, rows), weight, bias, begin, end);
    });
  }
}

void embed(Tensor y, ConstTensor table, const std::int32_t* ids) {
  for (std::int64_t t = 0; t < y.rows(); ++t) {
    if (ids[t] < 0 || ids[t] >= table.rows()) {
      throw std::out_of_range("embed: id " + std::to_string(ids[t]) + " outside a table of " + std::to_string(table.rows()));
    }
    widen_row(y.f32(t), table, ids[t]);
  }
}

namespace {

struct Isa {
  void (*gemm)(const Gemm&);
  const char* name;
};

Isa best_isa() {
#ifdef STATESCOPE_X86_ISAS
  if (__builtin_cpu_supports("x86-64-v4")) return {gemm_v4, "AVX-512"};
  if (__builtin_cpu_supports("x86-64-v3")) return {gemm_v3, "AVX2"};
  return {gemm_baseline, "SSE2"};
#elif defined(__ARM_NEON)
  return {gemm_baseline, "NEON"};
#else
  return {gemm_baseline, "the baseline instruction set"};
#endif
}

const Isa& isa() {
  static const Isa best = best_isa();
  return best;
}

}  // namespace

void gemm(const Gemm& product) { isa().gemm(product); }

const char* instruction_set() { return isa().name; }

std::uint64_t stream_read(const void* data, std::size_t bytes) {
  const auto* words = static_cast<const std::uint64_t*>(data);
  const auto n = static_cast<std::int64_t>(bytes / sizeof(*words)), piece = piece_bytes / 8;
  std::atomic<std::uint64_t> sum = 0;
  parallel_for(pieces_of(n, piece), [&](std::int64_t i) {
    const std::int64_t begin = i * piece;
    sum += HWY_DYNAMIC_DISPATCH(sum_words)(words + begin, static_cast<std::size_t>(std::min(piece, n - begin)));
  });
  return sum;
}

}  // namespace statescope
#endif  // HWY_ONCE

#include "kernels/linear.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "kernels/isa/gemm_isa.h"
#include "kernels/memory_parts.h"

// Highway compiles the part up to HWY_ONCE for every instruction set and picks one at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/linear.cpp"  // NOLINT
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef STATESCOPE_LINEAR_TYPES
#define STATESCOPE_LINEAR_TYPES
namespace statescope {

/// Output features of y = x wᵀ + bias for one to three rows. `x` is packed: see pack_rows.
struct StreamedProduct {
  const void* weight;
  DType dtype;
  std::int64_t weight_stride;  // elements
  const float* x;
  std::int64_t x_stride, rows, in;
  float* y;
  std::int64_t y_stride;
  const float* bias;
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
  static constexpr bool interleaved = false;
  static HWY_INLINE void load(const Number* p, Vector& first, Vector& second) {
    first = hn::LoadU(Floats(), p);
    second = hn::LoadU(Floats(), p + hn::Lanes(Floats()));
  }
};

struct F16 {
  using Number = std::uint16_t;
  static constexpr bool interleaved = false;
  static HWY_INLINE Vector widen(const Number* p) {
    return hn::PromoteTo(Floats(), hn::LoadU(hn::Rebind<hwy::float16_t, Floats>(), reinterpret_cast<const hwy::float16_t*>(p)));
  }
  static HWY_INLINE void load(const Number* p, Vector& first, Vector& second) {
    first = widen(p);
    second = widen(p + hn::Lanes(Floats()));
  }
};

/// A bfloat16 is the upper half of a float: one load holds the even weights in the lower and the odd ones in the upper halves of its lanes.
struct BF16 {
  using Number = std::uint16_t;
  static constexpr bool interleaved = true;
  static HWY_INLINE void load(const Number* p, Vector& first, Vector& second) {
    const hn::RebindToUnsigned<Floats> words;
    const auto pairs = hn::LoadU(words, reinterpret_cast<const std::uint32_t*>(p));
    first = hn::BitCast(Floats(), hn::ShiftLeft<16>(pairs));
    second = hn::BitCast(Floats(), hn::And(pairs, hn::Set(words, 0xFFFF0000U)));
  }
};

/// The same for the numbers after the last whole block: padded with zeros.
template <class Type>
HWY_INLINE void load_rest(const typename Type::Number* p, std::int64_t count, Vector& first, Vector& second) {
  HWY_ALIGN typename Type::Number padded[2 * hn::MaxLanes(Floats())] = {};
  std::memcpy(padded, p, static_cast<std::size_t>(count) * sizeof(padded[0]));
  Type::load(padded, first, second);
}

/// y[r, o … o + Outputs) for all `Rows` rows: every weight is read once, each sum kept in two parts.
template <class Type, int Rows, int Outputs>
HWY_INLINE void multiply_outputs(const StreamedProduct& op, std::int64_t o) {
  const auto* weight = static_cast<const typename Type::Number*>(op.weight) + o * op.weight_stride;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  Vector sum[Rows][Outputs][2];
  for (int r = 0; r < Rows; ++r) {
    for (int j = 0; j < Outputs; ++j) sum[r][j][0] = sum[r][j][1] = hn::Zero(Floats());
  }
  const auto add = [&](std::int64_t i, int j, Vector first, Vector second) HWY_ATTR {
    for (int r = 0; r < Rows; ++r) {
      const float* x = op.x + r * op.x_stride + i;
      sum[r][j][0] = hn::MulAdd(first, hn::Load(Floats(), x), sum[r][j][0]);
      sum[r][j][1] = hn::MulAdd(second, hn::Load(Floats(), x + lanes), sum[r][j][1]);
    }
  };
  Vector first, second;
  std::int64_t i = 0;
  for (; i + 2 * lanes <= op.in; i += 2 * lanes) {
    for (int j = 0; j < Outputs; ++j) {
      Type::load(weight + j * op.weight_stride + i, first, second);
      add(i, j, first, second);
    }
  }
  for (int j = 0; j < Outputs && i < op.in; ++j) {
    load_rest<Type>(weight + j * op.weight_stride + i, op.in - i, first, second);
    add(i, j, first, second);
  }
  for (int r = 0; r < Rows; ++r) {
    for (int j = 0; j < Outputs; ++j) {
      const Vector total = hn::SumOfLanes(Floats(), hn::Add(sum[r][j][0], sum[r][j][1]));
      op.y[r * op.y_stride + o + j] = hn::GetLane(total) + (op.bias != nullptr ? op.bias[o + j] : 0.0F);
    }
  }
}

template <class Type, int Rows>
void multiply_range(const StreamedProduct& op, std::int64_t begin, std::int64_t end) {
  constexpr int at_once = Rows == 1 ? 4 : 2;
  std::int64_t o = begin;
  for (; o + at_once <= end; o += at_once) multiply_outputs<Type, Rows, at_once>(op, o);
  for (; o < end; ++o) multiply_outputs<Type, Rows, 1>(op, o);
}

template <class Type>
void multiply_range_of(const StreamedProduct& op, std::int64_t begin, std::int64_t end) {
  switch (op.rows) {
    case 1:
      return multiply_range<Type, 1>(op, begin, end);
    case 2:
      return multiply_range<Type, 2>(op, begin, end);
    default:
      return multiply_range<Type, 3>(op, begin, end);
  }
}

void stream_range(const StreamedProduct& op, std::int64_t begin, std::int64_t end) {
  switch (op.dtype) {
    case DType::f32:
      return multiply_range_of<F32>(op, begin, end);
    case DType::f16:
      return multiply_range_of<F16>(op, begin, end);
    case DType::bf16:
      return multiply_range_of<BF16>(op, begin, end);
    case DType::i32:
      return;
  }
}

/// x in the order in which a block's weights come, padded with zeros to whole blocks.
void pack_row(float* packed, const float* x, std::int64_t n, bool interleaved) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  for (std::int64_t begin = 0; begin < n; begin += 2 * lanes, packed += 2 * lanes) {
    for (std::int64_t i = 0; i < 2 * lanes; ++i) {
      const std::int64_t from = begin + (!interleaved ? i : i < lanes ? 2 * i : 2 * (i - lanes) + 1);
      packed[i] = from < n ? x[from] : 0.0F;
    }
  }
}

/// n numbers of a 16-bit type as float32.
void widen_f16(float* y, const std::uint16_t* x, std::int64_t n) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(F16::widen(x + i), Floats(), y + i);
  if (i == n) return;
  Vector first, second;
  HWY_ALIGN float rest[hn::MaxLanes(Floats())];
  load_rest<F16>(x + i, n - i, first, second);
  hn::Store(first, Floats(), rest);
  std::copy_n(rest, n - i, y + i);
}

/// The sum of n 64-bit words: eight loads at a time.
std::uint64_t sum_words(const std::uint64_t* p, std::size_t n) {
  const hn::ScalableTag<std::uint64_t> words;
  const std::size_t lanes = hn::Lanes(words);
  auto a = hn::Zero(words), b = a, c = a, d = a;
  std::size_t i = 0;
  for (; i + 8 * lanes <= n; i += 8 * lanes) {
    a = hn::Add(a, hn::Add(hn::LoadU(words, p + i), hn::LoadU(words, p + i + lanes)));
    b = hn::Add(b, hn::Add(hn::LoadU(words, p + i + 2 * lanes), hn::LoadU(words, p + i + 3 * lanes)));
    c = hn::Add(c, hn::Add(hn::LoadU(words, p + i + 4 * lanes), hn::LoadU(words, p + i + 5 * lanes)));
    d = hn::Add(d, hn::Add(hn::LoadU(words, p + i + 6 * lanes), hn::LoadU(words, p + i + 7 * lanes)));
  }
  std::uint64_t sum = hn::GetLane(hn::SumOfLanes(words, hn::Add(hn::Add(a, b), hn::Add(c, d))));
  for (; i < n; ++i) sum += p[i];
  return sum;
}

}  // namespace
}  // namespace statescope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace statescope {
namespace {

HWY_EXPORT(stream_range);
HWY_EXPORT(pack_row);
HWY_EXPORT(widen_f16);
HWY_EXPORT(sum_words);

constexpr std::int64_t streamed_rows = 3;        // more rows than this go through gemm
constexpr std::int64_t widest_block = 128;       // floats: two of the widest vectors that Highway knows
constexpr std::int64_t piece_bytes = 256 << 10;  // of the weight: what a thread takes at a time; less is not worth a second thread

std::int64_t pieces_of(std::int64_t n, std::int64_t piece) { return (n + piece - 1) / piece; }

const void* row_of(ConstTensor x, std::int64_t t) {
  return static_cast<const char*>(x.data) + t * x.stride * static_cast<std::int64_t>(size_of(x.dtype));
}

void widen_bf16(float* y, const std::uint16_t* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t bits = static_cast<std::uint32_t>(x[i]) << 16;
    std::memcpy(y + i, &bits, sizeof bits);
  }
}

/// Row `t` as float32.
void widen_row(float* y, ConstTensor x, std::int64_t t) {
  switch (x.dtype) {
    case DType::f32:
      std::copy_n(x.f32(t), x.row_size(), y);
      return;
    case DType::f16:
      HWY_DYNAMIC_DISPATCH(widen_f16)(y, static_cast<const std::uint16_t*>(row_of(x, t)), x.row_size());
      return;
    case DType::bf16:
      widen_bf16(y, static_cast<const std::uint16_t*>(row_of(x, t)), x.row_size());
      return;
    case DType::i32:
      throw std::invalid_argument("embed: a table of int32");
  }
}

/// Few rows: the weight is read once, as it is.
void linear_streamed(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias) {
  static thread_local Scratch scratch;
  const std::int64_t rows = x.rows(), in = x.row_size(), out = weight.rows();
  const std::int64_t packed_stride = pieces_of(in, widest_block) * widest_block;
  float* packed = scratch.take(rows * packed_stride);
  for (std::int64_t t = 0; t < rows; ++t) {
    HWY_DYNAMIC_DISPATCH(pack_row)(packed + t * packed_stride, x.f32(t), in, weight.dtype == DType::bf16);
  }
  const StreamedProduct op{weight.data, weight.dtype, weight.stride, packed,   packed_stride,
                           rows,        in,           y.f32(),       y.stride, bias ? bias.f32() : nullptr};
  const std::int64_t row_bytes = in * static_cast<std::int64_t>(size_of(weight.dtype));
  const std::int64_t piece = std::clamp<std::int64_t>(piece_bytes / std::max<std::int64_t>(row_bytes, 1), 1, out);
  parallel_for(pieces_of(out, piece),
               [&](std::int64_t i) { HWY_DYNAMIC_DISPATCH(stream_range)(op, i * piece, std::min(out, (i + 1) * piece)); });
}

/// The outputs [begin, end) of the rows of x, by Eigen's product.
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

/// Many rows: blocks of outputs, and of rows where there are few outputs. The blocks do not depend on the number of threads, and so
/// neither do the sums.
void linear_blocked(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias) {
  const std::int64_t rows = x.rows(), out = weight.rows();
  const std::int64_t wide = 256, outputs = pieces_of(out, wide);
  const std::int64_t tall = outputs >= 8 ? rows : 128, heights = pieces_of(rows, tall);
  parallel_for(outputs * heights, [&](std::int64_t i) {
    const std::int64_t o = i / heights * wide, t = i % heights * tall, count = std::min(tall, rows - t);
    linear_block(y.slice(t, count), x.slice(t, count), weight, bias, o, std::min(out, o + wide));
  });
}

void check_linear(ConstTensor y, ConstTensor x, ConstTensor weight, ConstTensor bias) {
  if (weight.dtype == DType::i32) throw std::invalid_argument("linear: a weight of int32");
  const bool fits = weight.shape.rank() == 2 && y.rows() == x.rows() && x.row_size() == weight.row_size() &&
                    y.row_size() == weight.rows() && (!bias || bias.shape.size() == weight.rows());
  if (!fits) {
    throw std::invalid_argument("linear: y " + y.shape.to_string() + ", x " + x.shape.to_string() + ", weight " + weight.shape.to_string() +
                                (bias ? ", bias " + bias.shape.to_string() : ""));
  }
}

}  // namespace

void linear(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias) {
  check_linear(y, x, weight, bias);
  if (y.shape.size() == 0) return;
  if (x.rows() <= streamed_rows) {
    linear_streamed(y, x, weight, bias);
  } else {
    linear_blocked(y, x, weight, bias);
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

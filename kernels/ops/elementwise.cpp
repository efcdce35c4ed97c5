#include "kernels/ops/elementwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "kernels/cpu/parallel.h"

// Highway compiles the part up to HWY_ONCE for every instruction set and picks one at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ops/elementwise.cpp"  // NOLINT
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// After highway.h: the mathematics of the current instruction set.
#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace statescope::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;

/// e^x for x ≤ 88; a NaN stays one, so that it can be seen downstream.
HWY_INLINE Vector exp_of(Vector x) { return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(Floats(), x)); }

/// σ(x) from e^{−|x|}, which cannot overflow.
HWY_INLINE Vector sigmoid_of(Vector x) {
  const Vector one = hn::Set(Floats(), 1.0F), e = exp_of(hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(Floats())), e, one), hn::Add(one, e));
}

struct Identity {
  HWY_INLINE Vector operator()(Vector x) const { return x; }
};
struct Silu {
  HWY_INLINE Vector operator()(Vector x) const { return hn::Mul(x, sigmoid_of(x)); }
};
struct Relu {
  HWY_INLINE Vector operator()(Vector x) const { return hn::IfThenElse(hn::Lt(x, hn::Zero(Floats())), hn::Zero(Floats()), x); }
};
struct Sigmoid {
  HWY_INLINE Vector operator()(Vector x) const { return sigmoid_of(x); }
};
struct EluPlusOne {
  HWY_INLINE Vector operator()(Vector x) const {
    const Vector zero = hn::Zero(Floats());
    return hn::IfThenElse(hn::Gt(x, zero), hn::Add(x, hn::Set(Floats(), 1.0F)), exp_of(hn::IfThenElse(hn::Gt(x, zero), zero, x)));
  }
};
struct Exp {
  HWY_INLINE Vector operator()(Vector x) const {
    const Vector largest = hn::Set(Floats(), 88.72284F);  // whose power float32 still has
    return hn::IfThenElse(hn::Gt(x, largest), hn::Inf(Floats()), exp_of(x));
  }
};
struct LogOneMinus {
  HWY_INLINE Vector operator()(Vector x) const {
    const Vector most = hn::Set(Floats(), 1 - 0x1p-24F);
    return hn::IfThenElse(hn::IsNaN(x), x, hn::Log1p(Floats(), hn::Neg(hn::IfThenElse(hn::Gt(x, most), most, x))));
  }
};

struct Tanh {
  HWY_INLINE Vector operator()(Vector x) const { return hn::IfThenElse(hn::IsNaN(x), x, hn::Tanh(Floats(), x)); }
};

struct ForgetDecay {
  float normalizer, clamp_min;
  HWY_INLINE Vector operator()(Vector x) const {
    // logσ(x) = min(x, 0) − ln(1 + e^{−|x|})
    const Vector zero = hn::Zero(Floats()), e = exp_of(hn::Neg(hn::Abs(x))), least = hn::Set(Floats(), clamp_min);
    const Vector log_sigmoid = hn::Sub(hn::IfThenElse(hn::Lt(x, zero), x, zero), hn::Log1p(Floats(), e));
    const Vector y = hn::Div(log_sigmoid, hn::Set(Floats(), normalizer));
    return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenElse(hn::Lt(y, least), least, y));
  }
};

/// The n < Lanes numbers at p, then `filler`.
HWY_INLINE Vector load_rest(const float* p, std::size_t n, float filler) {
  HWY_ALIGN float padded[hn::MaxLanes(Floats())];
  hn::Store(hn::Set(Floats(), filler), Floats(), padded);
  std::memcpy(padded, p, n * sizeof(float));
  return hn::Load(Floats(), padded);
}

HWY_INLINE void store_rest(Vector v, float* p, std::size_t n) {
  HWY_ALIGN float padded[hn::MaxLanes(Floats())];
  hn::Store(v, Floats(), padded);
  std::memcpy(p, padded, n * sizeof(float));
}

/// y = factor ⊙ f(x); without a factor y = f(x).
template <class Function>
void map_row(float* y, const float* factor, const float* x, std::size_t n, Function f) {
  const std::size_t lanes = hn::Lanes(Floats());
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const Vector v = f(hn::LoadU(Floats(), x + i));
    hn::StoreU(factor != nullptr ? hn::Mul(hn::LoadU(Floats(), factor + i), v) : v, Floats(), y + i);
  }
  if (i == n) return;
  const Vector v = f(load_rest(x + i, n - i, 0));
  store_rest(factor != nullptr ? hn::Mul(load_rest(factor + i, n - i, 0), v) : v, y + i, n - i);
}

/// x Φ(x), number by number: Highway has no error function.
void gelu_row(float* y, const float* factor, const float* x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto gelu = static_cast<float>(0.5 * x[i] * std::erfc(-0.7071067811865476 * x[i]));
    y[i] = factor != nullptr ? factor[i] * gelu : gelu;
  }
}

void activate_row(float* y, const float* factor, const float* x, std::size_t n, Activation act) {
  switch (act) {
    case Activation::identity:
      return map_row(y, factor, x, n, Identity());
    case Activation::silu:
      return map_row(y, factor, x, n, Silu());
    case Activation::relu:
      return map_row(y, factor, x, n, Relu());
    case Activation::sigmoid:
      return map_row(y, factor, x, n, Sigmoid());
    case Activation::elu_plus_one:
      return map_row(y, factor, x, n, EluPlusOne());
    case Activation::exp:
      return map_row(y, factor, x, n, Exp());
    case Activation::log_one_minus:
      return map_row(y, factor, x, n, LogOneMinus());
    case Activation::tanh:
      return map_row(y, factor, x, n, Tanh());
    case Activation::gelu:
      return gelu_row(y, factor, x, n);
  }
}

void log_sigmoid_decay_row(float* y, const float* x, std::size_t n, float normalizer, float clamp_min) {
  map_row(y, nullptr, x, n, ForgetDecay{normalizer, clamp_min});
}

/// y = e^{|temperature| (±x − m)} / Σ with the sign of the temperature, m the largest ±x. The difference comes before the product, which
/// would be rounded. A row that allows nothing (−∞ only) gives zeros.
void softmax_row(float* y, const float* x, std::size_t n, float temperature) {
  const std::size_t lanes = hn::Lanes(Floats()), whole = n / lanes * lanes;
  const float lowest = -std::numeric_limits<float>::infinity();
  const Vector sign = hn::Set(Floats(), temperature < 0 ? -1.0F : 1.0F), factor = hn::Set(Floats(), std::abs(temperature));
  Vector largest = hn::Set(Floats(), lowest);
  for (std::size_t i = 0; i < whole; i += lanes) largest = hn::Max(largest, hn::Mul(sign, hn::LoadU(Floats(), x + i)));
  const Vector rest = whole < n ? hn::Mul(sign, load_rest(x + whole, n - whole, temperature < 0 ? -lowest : lowest)) : largest;
  const float m = hn::GetLane(hn::MaxOfLanes(Floats(), hn::Max(largest, rest)));

  const Vector shift = hn::Set(Floats(), m == lowest ? 0 : m);
  Vector sum = hn::Zero(Floats());
  for (std::size_t i = 0; i < whole; i += lanes) {
    const Vector e = exp_of(hn::Mul(factor, hn::Sub(hn::Mul(sign, hn::LoadU(Floats(), x + i)), shift)));
    sum = hn::Add(sum, e);
    hn::StoreU(e, Floats(), y + i);
  }
  if (whole < n) {
    const Vector e = exp_of(hn::Mul(factor, hn::Sub(rest, shift)));
    sum = hn::Add(sum, e);
    store_rest(e, y + whole, n - whole);
  }
  const float total = hn::GetLane(hn::SumOfLanes(Floats(), sum)), inverse = total == 0 ? 0 : 1 / total;
  for (std::size_t i = 0; i < n; ++i) y[i] *= inverse;
}

}  // namespace
}  // namespace statescope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace statescope {
namespace {

HWY_EXPORT(activate_row);
HWY_EXPORT(log_sigmoid_decay_row);
HWY_EXPORT(softmax_row);

[[noreturn]] void fail(const char* operation, ConstTensor y, ConstTensor x) {
  throw std::invalid_argument(std::string(operation) + ": " + y.shape.to_string() + " and " + x.shape.to_string() + " do not fit");
}

void require_same_rows(const char* operation, ConstTensor y, ConstTensor x) {
  if (y.rows() != x.rows() || y.row_size() != x.row_size()) fail(operation, y, x);
}

/// fn(t) for every row, in pieces large enough for a thread.
template <class Fn>
void for_rows(ConstTensor y, const Fn& fn) {
  const std::int64_t rows = y.rows(), piece = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, y.row_size()));
  parallel_for((rows + piece - 1) / piece, [&](std::int64_t i) {
    for (std::int64_t t = i * piece; t < std::min(rows, (i + 1) * piece); ++t) fn(t);
  });
}

/// fn(y, x) for every group of n numbers of a row.
template <class Fn>
void for_groups(const char* operation, Tensor y, ConstTensor x, std::int64_t n, const Fn& fn) {
  require_same_rows(operation, y, x);
  if (n <= 0 || x.row_size() % n != 0) fail(operation, y, x);
  for_rows(y, [&](std::int64_t t) {
    float* y_row = y.f32(t);
    const float* x_row = x.f32(t);
    for (std::int64_t begin = 0; begin < x.row_size(); begin += n) fn(y_row + begin, x_row + begin);
  });
}

/// fn(y, x, n, g[t, h]) for the n numbers of every head, as many heads as g has columns.
template <class Fn>
void for_heads(const char* operation, Tensor y, ConstTensor x, ConstTensor g, const Fn& fn) {
  require_same_rows(operation, y, x);
  const std::int64_t heads = g.row_size();
  if (g.rows() != x.rows() || heads == 0 || x.row_size() % heads != 0) fail(operation, x, g);
  const std::int64_t n = x.row_size() / heads;
  for_rows(y, [&](std::int64_t t) {
    for (std::int64_t h = 0; h < heads; ++h) fn(y.f32(t) + h * n, x.f32(t) + h * n, n, g.f32(t)[h]);
  });
}

/// y = fn(x), number by number; `fn` also gets the place in the row.
template <class Fn>
void map(const char* operation, Tensor y, ConstTensor x, const Fn& fn) {
  require_same_rows(operation, y, x);
  for_rows(y, [&](std::int64_t t) {
    float* y_row = y.f32(t);
    const float* x_row = x.f32(t);
    for (std::int64_t i = 0; i < x.row_size(); ++i) y_row[i] = fn(x_row[i], i);
  });
}

std::int64_t last_axis(ConstTensor x) { return x.shape.rank() > 1 ? x.shape[x.shape.rank() - 1] : 1; }

float sum_of_squares(const float* x, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += x[i] * x[i];
  return sum;
}

float sum_of(const float* x, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

float inverse_rms(const float* x, std::int64_t n, float eps) { return 1 / std::sqrt(sum_of_squares(x, n) / static_cast<float>(n) + eps); }

// softplus(x) = ln(1 + e^x) = max(x, 0) + ln(1 + e^{−|x|})
float softplus(float x) { return std::max(x, 0.0F) + std::log1p(std::exp(-std::abs(x))); }

void copy_row(Tensor dst, std::int64_t t, ConstTensor src, std::int64_t s) {
  const auto bytes = static_cast<std::int64_t>(size_of(src.dtype));
  std::memcpy(static_cast<char*>(dst.data) + t * dst.stride * bytes, static_cast<const char*>(src.data) + s * src.stride * bytes,
              static_cast<std::size_t>(src.row_size() * bytes));
}

void require_row(const char* operation, std::int32_t row, ConstTensor x) {
  if (row < 0 || row >= x.rows())
    throw std::out_of_range(std::string(operation) + ": row " + std::to_string(row) + " of " + x.shape.to_string());
}

}  // namespace

void rms_norm(Tensor y, ConstTensor x, ConstTensor weight, float eps, float offset) {
  const std::int64_t n = weight.shape.size();
  const float* w = weight.f32();
  for_groups("rms_norm", y, x, n, [=](float* out, const float* in) {
    const float inverse = inverse_rms(in, n, eps);
    for (std::int64_t i = 0; i < n; ++i) out[i] = in[i] * inverse * (w[i] + offset);
  });
}

void rms_norm_plain(Tensor y, ConstTensor x, std::int64_t group, float eps) {
  for_groups("rms_norm_plain", y, x, group, [=](float* out, const float* in) {
    const float inverse = inverse_rms(in, group, eps);
    for (std::int64_t i = 0; i < group; ++i) out[i] = in[i] * inverse;
  });
}

void layer_norm(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, std::int64_t group, float eps) {
  require_same_rows("layer_norm", y, x);
  const std::int64_t n = x.row_size();
  for (const ConstTensor& row : {weight, bias})
    if (row && row.shape.size() != n) fail("layer_norm", x, row);
  if (group < 1 || n % group != 0) fail("layer_norm", y, x);
  for_rows(y, [&](std::int64_t t) {
    for (std::int64_t first = 0; first < n; first += group) {
      const float* in = x.f32(t) + first;
      float* out = y.f32(t) + first;
      const float mean = sum_of(in, group) / static_cast<float>(group);
      for (std::int64_t i = 0; i < group; ++i) out[i] = in[i] - mean;
      const float inverse = inverse_rms(out, group, eps);
      for (std::int64_t i = 0; i < group; ++i) out[i] *= inverse;
      for (std::int64_t i = 0; weight && i < group; ++i) out[i] *= weight.f32()[first + i];
      for (std::int64_t i = 0; bias && i < group; ++i) out[i] += bias.f32()[first + i];
    }
  });
}

void l2_norm(Tensor y, ConstTensor x) {
  const std::int64_t n = last_axis(x);
  for_groups("l2_norm", y, x, n, [=](float* out, const float* in) {
    const float inverse = 1 / std::sqrt(sum_of_squares(in, n) + l2_norm_eps);
    for (std::int64_t i = 0; i < n; ++i) out[i] = in[i] * inverse;
  });
}

void sum_norm(Tensor y, ConstTensor x, float eps) {
  const std::int64_t n = last_axis(x);
  for_groups("sum_norm", y, x, n, [=](float* out, const float* in) {
    const float sum = sum_of(in, n) + eps;
    for (std::int64_t i = 0; i < n; ++i) out[i] = in[i] / sum;
  });
}

void softmax(Tensor y, ConstTensor x, float temperature) {
  const std::int64_t n = last_axis(x);
  if (temperature == 0) return fill(y, 1 / static_cast<float>(n));  // 0 · ∞ has no value
  for_groups("softmax", y, x, n, [=](float* out, const float* in) {
    HWY_DYNAMIC_DISPATCH(softmax_row)(out, in, static_cast<std::size_t>(n), temperature);
  });
}

void activate(Tensor y, ConstTensor x, Activation act) {
  const std::int64_t n = x.row_size();
  for_groups("activate", y, x, n, [=](float* out, const float* in) {
    HWY_DYNAMIC_DISPATCH(activate_row)(out, nullptr, in, static_cast<std::size_t>(n), act);
  });
}

void gate(Tensor y, ConstTensor a, ConstTensor b, Activation act) {
  require_same_rows("gate", y, a);
  require_same_rows("gate", y, b);
  for_rows(y, [&](std::int64_t t) {
    HWY_DYNAMIC_DISPATCH(activate_row)(y.f32(t), a.f32(t), b.f32(t), static_cast<std::size_t>(b.row_size()), act);
  });
}

void add(Tensor y, ConstTensor a, ConstTensor b, float factor) {
  require_same_rows("add", y, a);
  require_same_rows("add", y, b);
  for_rows(y, [&](std::int64_t t) {
    float* out = y.f32(t);
    const float *left = a.f32(t), *right = b.f32(t);
    for (std::int64_t i = 0; i < y.row_size(); ++i) out[i] = left[i] + factor * right[i];
  });
}

void scale_heads(Tensor y, ConstTensor x, ConstTensor g, float scale) {
  for_heads("scale_heads", y, x, g, [=](float* out, const float* in, std::int64_t n, float g_th) {
    const float factor = scale * g_th;
    for (std::int64_t i = 0; i < n; ++i) out[i] = factor * in[i];
  });
}

void divide_heads(Tensor y, ConstTensor x, ConstTensor d, float eps) {
  for_heads("divide_heads", y, x, d, [=](float* out, const float* in, std::int64_t n, float d_th) {
    const float divisor = d_th + eps;
    for (std::int64_t i = 0; i < n; ++i) out[i] = in[i] / divisor;
  });
}

void log_sigmoid_decay(Tensor y, ConstTensor x, float normalizer, float clamp_min) {
  const auto n = static_cast<std::size_t>(x.row_size());
  require_same_rows("log_sigmoid_decay", y, x);
  for_rows(y, [&](std::int64_t t) { HWY_DYNAMIC_DISPATCH(log_sigmoid_decay_row)(y.f32(t), x.f32(t), n, normalizer, clamp_min); });
}

void gated_delta_decay(Tensor y, ConstTensor a, ConstTensor A_log, ConstTensor dt_bias, float lower_bound) {
  const std::int64_t heads = A_log.shape.size();
  if (heads == 0 || a.row_size() % heads != 0 || dt_bias.shape.size() != a.row_size()) fail("gated_delta_decay", a, A_log);
  const std::int64_t K = a.row_size() / heads;
  const float *log_rate = A_log.f32(), *bias = dt_bias.f32();
  if (lower_bound < 0) {
    map("gated_delta_decay", y, a,
        [=](float v, std::int64_t i) { return lower_bound / (1 + std::exp(-std::exp(log_rate[i / K]) * (v + bias[i]))); });
  } else {
    map("gated_delta_decay", y, a, [=](float v, std::int64_t i) { return -std::exp(log_rate[i / K]) * softplus(v + bias[i]); });
  }
}

void softplus_clamp(Tensor y, ConstTensor x, ConstTensor dt_bias, float dt_min, float dt_max) {
  if (dt_bias.shape.size() != x.row_size()) fail("softplus_clamp", x, dt_bias);
  const float* bias = dt_bias.f32();
  map("softplus_clamp", y, x, [=](float v, std::int64_t h) { return std::clamp(softplus(v + bias[h]), dt_min, dt_max); });
}

void one_minus_exp(Tensor y, ConstTensor x) {
  map("one_minus_exp", y, x, [](float v, std::int64_t) { return -std::expm1(v); });
}

namespace {

/// A cos and A sin of position · ω_j, in float32 as the models were trained, in float64 where float32 no longer tells positions apart.
void rotation(float* cosine, float* sine, const double* frequency, std::int64_t n, std::int64_t position, float factor) {
  for (std::int64_t j = 0; j < n; ++j) {
    if (position < (1 << 20)) {
      const float angle = static_cast<float>(position) * static_cast<float>(frequency[j]);
      cosine[j] = std::cos(angle);
      sine[j] = std::sin(angle);
    } else {
      const double angle = static_cast<double>(position) * frequency[j];
      cosine[j] = static_cast<float>(std::cos(angle));
      sine[j] = static_cast<float>(std::sin(angle));
    }
    cosine[j] *= factor;
    sine[j] *= factor;
  }
}

/// One head of 2 · half rotated channels.
void rotate(float* y, const float* x, const float* cosine, const float* sine, std::int64_t half) {
  for (std::int64_t j = 0; j < half; ++j) {
    const float a = x[j], b = x[j + half];
    y[j] = a * cosine[j] - b * sine[j];
    y[j + half] = b * cosine[j] + a * sine[j];
  }
}

/// Rows of heads whose first 2 · half channels turn.
void rotate_rows(Tensor y, ConstTensor x, std::int64_t first, const double* frequency, std::int64_t half, float factor) {
  const std::int64_t d = last_axis(x), rotary = 2 * half;
  if (rotary > d) throw std::invalid_argument("rope: " + std::to_string(rotary) + " channels of " + x.shape.to_string());
  require_same_rows("rope", y, x);
  for_rows(y, [=](std::int64_t t) {
    static thread_local std::vector<float> angles;
    angles.resize(static_cast<std::size_t>(2 * half));
    float *cosine = angles.data(), *sine = cosine + half;
    rotation(cosine, sine, frequency, half, first + t, factor);
    for (std::int64_t begin = 0; begin < x.row_size(); begin += d) {
      float* out = y.f32(t) + begin;
      const float* in = x.f32(t) + begin;
      rotate(out, in, cosine, sine, half);
      if (out != in) std::copy(in + rotary, in + d, out + rotary);
    }
  });
}

/// Memory for n frequencies, of this thread.
double* room_for_frequencies(std::size_t n) {
  static thread_local std::vector<double> frequencies;
  frequencies.resize(n);
  return frequencies.data();
}

}  // namespace

void rope(Tensor y, ConstTensor x, std::int64_t first, double theta, std::int64_t rotary) {
  if (rotary < 0 || rotary % 2 != 0) throw std::invalid_argument("rope: " + std::to_string(rotary) + " channels of " + x.shape.to_string());
  const std::int64_t half = rotary / 2;
  double* frequency = room_for_frequencies(static_cast<std::size_t>(half));
  // ω_j = θ^{−2j / rotary}
  for (std::int64_t j = 0; j < half; ++j) frequency[j] = std::pow(theta, -2.0 * static_cast<double>(j) / static_cast<double>(rotary));
  rotate_rows(y, x, first, frequency, half, 1);
}

void rope(Tensor y, ConstTensor x, std::int64_t first, const Rotation& rotation) {
  double* frequency = room_for_frequencies(rotation.frequencies.size());
  std::ranges::copy(rotation.frequencies, frequency);
  rotate_rows(y, x, first, frequency, std::ssize(rotation.frequencies), rotation.factor);
}

void fill(Tensor x, float value) {
  for_rows(x, [&](std::int64_t t) { std::fill_n(x.f32(t), x.row_size(), value); });
}

void copy(Tensor dst, ConstTensor src) {
  require_same_rows("copy", dst, src);
  if (dst.data == src.data && dst.stride == src.stride) return;
  for_rows(dst, [&](std::int64_t t) { copy_row(dst, t, src, t); });
}

void gather_rows(Tensor dst, ConstTensor src, const std::int32_t* rows) {
  if (dst.row_size() != src.row_size()) fail("gather_rows", dst, src);
  for_rows(dst, [&](std::int64_t t) {
    require_row("gather_rows", rows[t], src);
    copy_row(dst, t, src, rows[t]);
  });
}

void scatter_add_rows(Tensor dst, ConstTensor src, const std::int32_t* rows, ConstTensor weight) {
  if (dst.row_size() != src.row_size()) fail("scatter_add_rows", dst, src);
  for (std::int64_t t = 0; t < src.rows(); ++t) {
    require_row("scatter_add_rows", rows[t], dst);
    float* to = dst.f32(rows[t]);
    const float* from = src.f32(t);
    const float factor = weight ? *weight.f32(t) : 1.0F;
    for (std::int64_t i = 0; i < src.row_size(); ++i) to[i] += factor * from[i];
  }
}

}  // namespace statescope
#endif  // HWY_ONCE

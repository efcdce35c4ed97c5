#include "kernels/cpu/simd_rows.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd_rows.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace statescope::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FullVector = HWY_FULL(float);

template <int N>
struct Vectors {};  // how many vectors side by side a block of columns has

/// e^x; a NaN stays one, so that it can be seen downstream.
template <class D>
HWY_INLINE hn::Vec<D> exp_of(D d, hn::Vec<D> x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x));
}

/// block(d, Vectors<N>, c) over columns [c, width): four vectors at a time, then one, then half a vector, and so on down to one number.
template <class D, class Block>
HWY_INLINE void for_columns(D d, std::int64_t c, std::int64_t width, const Block& block) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (; c + 4 * lanes <= width; c += 4 * lanes) block(d, Vectors<4>(), c);
  for (; c + lanes <= width; c += lanes) block(d, Vectors<1>(), c);
  if constexpr (hn::MaxLanes(D()) > 1) {
    if (c < width) for_columns(hn::Half<D>(), c, width, block);
  }
}

/// sum ← sum + Σ_j c_j x_j over one block of columns.
template <int N, class D>
HWY_INLINE void accumulate(D d, hn::Vec<D> (&sum)[N], const float* c, const float* x, std::int64_t ld, std::int64_t n) {
  const auto lanes = hn::Lanes(d);
  for (std::int64_t j = 0; j < n; ++j, x += ld) {
    const auto factor = hn::Set(d, c[j]);
    for (std::size_t i = 0; i < N; ++i) sum[i] = hn::MulAdd(factor, hn::LoadU(d, x + i * lanes), sum[i]);
  }
}

/// The recurrence for the columns [c, c + N vectors), which are those of v.
template <bool decay_columns, int N, class D>
HWY_INLINE void write_and_read(D d, const StateStep& step, std::int64_t c, const hn::Vec<D> (&v)[N]) {
  const auto lanes = hn::Lanes(d);
  hn::Vec<D> o[N], column_decay[N];
  for (std::size_t i = 0; i < N; ++i) {
    o[i] = hn::Zero(d);
    column_decay[i] = decay_columns ? hn::LoadU(d, step.column_decay + c + i * lanes) : hn::Zero(d);
  }
  for (std::int64_t r = 0; r < step.K; ++r) {
    const float* state = step.state + r * step.V + c;
    float* next = step.next + r * step.V + c;
    const auto q = hn::Set(d, step.q[r]), k = hn::Set(d, step.k[r]), row_decay = hn::Set(d, decay_columns ? 1 : step.row_decay[r]);
    for (std::size_t i = 0; i < N; ++i) {
      // S_r = a_r S_r + k_r v,  o = o + q_r S_r
      const auto S = hn::MulAdd(k, v[i], hn::Mul(decay_columns ? column_decay[i] : row_decay, hn::LoadU(d, state + i * lanes)));
      hn::StoreU(S, d, next + i * lanes);
      o[i] = hn::MulAdd(q, S, o[i]);
    }
  }
  for (std::size_t i = 0; i < N; ++i) hn::StoreU(hn::Mul(hn::Set(d, step.scale), o[i]), d, step.o + c + i * lanes);
}

template <bool decay_columns>
HWY_INLINE void step_columns(const StateStep& step) {
  for_columns(FullVector(), 0, step.V, [&]<int N>(auto d, Vectors<N>, std::int64_t c) HWY_ATTR {
    hn::Vec<decltype(d)> v[N];
    for (std::size_t i = 0; i < N; ++i) v[i] = hn::LoadU(d, step.v + c + i * hn::Lanes(d));
    write_and_read<decay_columns, N>(d, step, c, v);
  });
}

void step_decayed_outer_product(const StateStep& step) {
  if (step.column_decay) {
    step_columns<true>(step);
  } else {
    step_columns<false>(step);
  }
}

void step_gated_delta_rule(const StateStep& step, float beta, const float* decayed_k) {
  const float alpha = decayed_k ? 1 : step.row_decay[0];
  for_columns(FullVector(), 0, step.V, [&]<int N>(auto d, Vectors<N>, std::int64_t c) HWY_ATTR {
    hn::Vec<decltype(d)> prediction[N], u[N];
    for (auto& p : prediction) p = hn::Zero(d);
    accumulate<N>(d, prediction, decayed_k ? decayed_k : step.k, step.state + c, step.V, step.K);
    for (std::size_t i = 0; i < N; ++i) {
      // u = β (v − k S̄),  k S̄ = α (k S) or (k ⊙ a) S
      const auto v = hn::LoadU(d, step.v + c + i * hn::Lanes(d));
      u[i] = hn::Mul(hn::Set(d, beta), hn::NegMulAdd(hn::Set(d, alpha), prediction[i], v));
    }
    write_and_read<false, N>(d, step, c, u);
  });
}

void step_wkv(const StateStep& step, const float* erase_key, const float* erase_along, bool reads_first) {
  for_columns(FullVector(), 0, step.V, [&]<int N>(auto d, Vectors<N>, std::int64_t c) HWY_ATTR {
    const auto lanes = hn::Lanes(d);
    hn::Vec<decltype(d)> v[N], erased[N], o[N];
    for (std::size_t i = 0; i < N; ++i) {
      v[i] = hn::LoadU(d, step.v + c + i * lanes);
      erased[i] = o[i] = hn::Zero(d);
    }
    if (erase_key) accumulate<N>(d, erased, erase_key, step.state + c, step.V, step.K);
    if (reads_first) accumulate<N>(d, o, step.q, step.state + c, step.V, step.K);
    for (std::int64_t r = 0; r < step.K; ++r) {
      const float* state = step.state + r * step.V + c;
      float* next = step.next + r * step.V + c;
      const auto k = hn::Set(d, step.k[r]), alpha = hn::Set(d, step.row_decay[r]), along = hn::Set(d, erase_along ? erase_along[r] : 0);
      const auto q = hn::Set(d, reads_first ? 0 : step.q[r]);
      for (std::size_t i = 0; i < N; ++i) {
        // S_r = a_r S_r − e_r (p S) + k_r v,  o = o + q_r S_r
        const auto left = hn::NegMulAdd(along, erased[i], hn::Mul(alpha, hn::LoadU(d, state + i * lanes)));
        const auto S = hn::MulAdd(k, v[i], left);
        hn::StoreU(S, d, next + i * lanes);
        o[i] = hn::MulAdd(q, S, o[i]);
      }
    }
    for (std::size_t i = 0; i < N; ++i) hn::StoreU(hn::Mul(hn::Set(d, step.scale), o[i]), d, step.o + c + i * lanes);
  });
}

void scan_columns(const ScanColumns& scan) {
  for_columns(FullVector(), 0, scan.width, [&]<int N>(auto d, Vectors<N>, std::int64_t c) HWY_ATTR {
    const auto lanes = hn::Lanes(d);
    for (std::int64_t t = 0; t < scan.rows; ++t) {
      const float *B = scan.B[t], *C = scan.C[t];
      hn::Vec<decltype(d)> dt[N], u[N], o[N];
      for (std::size_t i = 0; i < N; ++i) {
        dt[i] = hn::LoadU(d, scan.dt[t] + c + i * lanes);
        u[i] = hn::Mul(dt[i], hn::LoadU(d, scan.x[t] + c + i * lanes));
        o[i] = hn::Zero(d);
      }
      for (std::int64_t n = 0; n < scan.N; ++n) {
        const float* A = scan.A + n * scan.width + c;
        float* state = scan.S + n * scan.width + c;
        const auto b = hn::Set(d, B[n]), r = hn::Set(d, C[n]);
        for (std::size_t i = 0; i < N; ++i) {
          // S_n = e^{Δ A_n} S_n + B_n Δ x,  o = o + C_n S_n
          const auto decay = exp_of(d, hn::Mul(dt[i], hn::LoadU(d, A + i * lanes)));
          const auto S = hn::MulAdd(b, u[i], hn::Mul(decay, hn::LoadU(d, state + i * lanes)));
          hn::StoreU(S, d, state + i * lanes);
          o[i] = hn::MulAdd(r, S, o[i]);
        }
      }
      for (std::size_t i = 0; i < N; ++i) hn::StoreU(o[i], d, scan.o + t * scan.o_stride + c + static_cast<std::int64_t>(i * lanes));
    }
  });
}

void exp_row(float* y, const float* x, std::int64_t n) {
  for_columns(FullVector(), 0, n, [&]<int N>(auto d, Vectors<N>, std::int64_t c) HWY_ATTR {
    for (std::size_t i = 0; i < N; ++i) {
      const auto at = static_cast<std::size_t>(c) + i * hn::Lanes(d);
      hn::StoreU(exp_of(d, hn::LoadU(d, x + at)), d, y + at);
    }
  });
}

float exp_shifted(float* y, const float* x, float shift, std::int64_t n) {
  float total = 0;
  for_columns(FullVector(), 0, n, [&]<int N>(auto d, Vectors<N>, std::int64_t c) HWY_ATTR {
    auto sum = hn::Zero(d);
    for (std::size_t i = 0; i < N; ++i) {
      const auto at = static_cast<std::size_t>(c) + i * hn::Lanes(d);
      const auto exponential = exp_of(d, hn::Sub(hn::LoadU(d, x + at), hn::Set(d, shift)));
      hn::StoreU(exponential, d, y + at);
      sum = hn::Add(sum, exponential);
    }
    total += hn::GetLane(hn::SumOfLanes(d, sum));
  });
  return total;
}

float largest(const float* x, std::int64_t n) {
  float found = -std::numeric_limits<float>::infinity();
  for_columns(FullVector(), 0, n, [&]<int N>(auto d, Vectors<N>, std::int64_t c) HWY_ATTR {
    auto largest_here = hn::LoadU(d, x + c);
    for (std::size_t i = 1; i < N; ++i) largest_here = hn::Max(largest_here, hn::LoadU(d, x + c + i * hn::Lanes(d)));
    found = std::max(found, hn::GetLane(hn::MaxOfLanes(d, largest_here)));
  });
  return found;
}

/// y_j = q · x_j for `Rows` rows at once, so that q is loaded once for all of them; decayed first if Float is not const.
template <int Rows, class Float>
HWY_INLINE void dot_block(float* y, const float* q, Float* x, std::int64_t ld, const float* a, std::int64_t width) {
  float dot[Rows] = {};
  for_columns(FullVector(), 0, width, [&]<int N>(auto d, Vectors<N>, std::int64_t c) HWY_ATTR {
    hn::Vec<decltype(d)> sum[Rows];
    for (auto& s : sum) s = hn::Zero(d);
    for (std::size_t i = 0; i < N; ++i) {
      const auto at = static_cast<std::size_t>(c) + i * hn::Lanes(d);
      const auto q_here = hn::LoadU(d, q + at);
      for (int j = 0; j < Rows; ++j) {
        auto x_here = hn::LoadU(d, x + j * ld + at);
        if constexpr (!std::is_const_v<Float>) {
          x_here = hn::Mul(x_here, hn::LoadU(d, a + at));
          hn::StoreU(x_here, d, x + j * ld + at);
        }
        sum[j] = hn::MulAdd(q_here, x_here, sum[j]);
      }
    }
    for (int j = 0; j < Rows; ++j) dot[j] += hn::GetLane(hn::SumOfLanes(d, sum[j]));
  });
  std::copy_n(dot, Rows, y);
}

template <class Float>
HWY_INLINE void dot_all(float* y, const float* q, Float* x, std::int64_t ld, const float* a, std::int64_t n, std::int64_t width) {
  std::int64_t j = 0;
  for (; j + 4 <= n; j += 4) dot_block<4>(y + j, q, x + j * ld, ld, a, width);
  for (; j < n; ++j) dot_block<1>(y + j, q, x + j * ld, ld, a, width);
}

void dot_rows(float* y, const float* q, const float* x, std::int64_t ld, std::int64_t n, std::int64_t width, float scale) {
  dot_all(y, q, x, ld, nullptr, n, width);
  for (std::int64_t j = 0; j < n; ++j) y[j] *= scale;
}

void decay_dot_rows(float* y, const float* q, float* x, std::int64_t ld, const float* a, std::int64_t n, std::int64_t width) {
  dot_all(y, q, x, ld, a, n, width);
}

void multiply_rows(float* x, std::int64_t ld, const float* a, std::int64_t n, std::int64_t width) {
  for_columns(FullVector(), 0, width, [&]<int N>(auto d, Vectors<N>, std::int64_t c) HWY_ATTR {
    hn::Vec<decltype(d)> factor[N];
    for (std::size_t i = 0; i < N; ++i) factor[i] = hn::LoadU(d, a + c + i * hn::Lanes(d));
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::size_t i = 0; i < N; ++i) {
        float* at = x + j * ld + c + i * hn::Lanes(d);
        hn::StoreU(hn::Mul(factor[i], hn::LoadU(d, at)), d, at);
      }
    }
  });
}

void add_rows(float* y, const float* c, const float* x, std::int64_t ld, std::int64_t n, std::int64_t width, float factor) {
  for_columns(FullVector(), 0, width, [&]<int N>(auto d, Vectors<N>, std::int64_t column) HWY_ATTR {
    hn::Vec<decltype(d)> sum[N];
    for (auto& s : sum) s = hn::Zero(d);
    accumulate<N>(d, sum, c, x + column, ld, n);
    for (std::size_t i = 0; i < N; ++i) {
      float* at = y + column + i * hn::Lanes(d);
      hn::StoreU(hn::MulAdd(hn::Set(d, factor), sum[i], hn::LoadU(d, at)), d, at);
    }
  });
}

}  // namespace statescope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace statescope {

HWY_EXPORT(step_decayed_outer_product);
HWY_EXPORT(step_gated_delta_rule);
HWY_EXPORT(step_wkv);
HWY_EXPORT(scan_columns);
HWY_EXPORT(exp_row);
HWY_EXPORT(exp_shifted);
HWY_EXPORT(largest);
HWY_EXPORT(dot_rows);
HWY_EXPORT(decay_dot_rows);
HWY_EXPORT(multiply_rows);
HWY_EXPORT(add_rows);

void step_decayed_outer_product(const StateStep& step) { HWY_DYNAMIC_DISPATCH(step_decayed_outer_product)(step); }

void step_gated_delta_rule(const StateStep& step, float beta, const float* decayed_k) {
  HWY_DYNAMIC_DISPATCH(step_gated_delta_rule)(step, beta, decayed_k);
}

void step_wkv(const StateStep& step, const float* erase_key, const float* erase_along, bool reads_first) {
  HWY_DYNAMIC_DISPATCH(step_wkv)(step, erase_key, erase_along, reads_first);
}

void scan_columns(const ScanColumns& scan) { HWY_DYNAMIC_DISPATCH(scan_columns)(scan); }

void exp_row(float* y, const float* x, std::int64_t n) { HWY_DYNAMIC_DISPATCH(exp_row)(y, x, n); }

float exp_shifted(float* y, const float* x, float shift, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(exp_shifted)(y, x, shift, n); }

float largest(const float* x, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(largest)(x, n); }

void dot_rows(float* y, const float* q, const float* x, std::int64_t ld, std::int64_t n, std::int64_t width, float scale) {
  HWY_DYNAMIC_DISPATCH(dot_rows)(y, q, x, ld, n, width, scale);
}

void decay_dot_rows(float* y, const float* q, float* x, std::int64_t ld, const float* a, std::int64_t n, std::int64_t width) {
  HWY_DYNAMIC_DISPATCH(decay_dot_rows)(y, q, x, ld, a, n, width);
}

void multiply_rows(float* x, std::int64_t ld, const float* a, std::int64_t n, std::int64_t width) {
  HWY_DYNAMIC_DISPATCH(multiply_rows)(x, ld, a, n, width);
}

void add_rows(float* y, const float* c, const float* x, std::int64_t ld, std::int64_t n, std::int64_t width, float factor) {
  HWY_DYNAMIC_DISPATCH(add_rows)(y, c, x, ld, n, width, factor);
}

}  // namespace statescope
#endif

// The CUDA forms of the elementwise operations. Clamps compare, since fmaxf and fminf would drop a NaN, which is to stay one.
#include "kernels/cuda/common/rowwise.h"

namespace statescope::cuda {
namespace {

using namespace rowwise;

// ---- kernels -------------------------------------------------------------------------------------------------------------------------

struct Constant {
  float value;
  __device__ float operator()(std::int64_t, unsigned) const { return value; }
};

struct Activated {
  using TakesNeighbours = void;
  Activation act;
  template <int Width>
  __device__ Pack<Width> of(const Pack<Width>& x) const {
    return activated(x, act);
  }
};

struct Gated {
  using TakesNeighbours = void;
  Activation act;
  template <int Width>
  __device__ Pack<Width> of(const Pack<Width>& a, const Pack<Width>& b) const {
    return each(a, activated(b, act), Times());
  }
};

struct WeightedSum {
  float factor;
  __device__ float operator()(std::int64_t, unsigned, float a, float b) const { return a + factor * b; }
};

struct ScaledHead {
  Numbers<const void> g;
  unsigned n;
  float scale;
  __device__ float operator()(std::int64_t t, unsigned i, float x) const { return scale * g.number(t, i / n) * x; }
};

struct DividedHead {
  Numbers<const void> d;
  unsigned n;
  float eps;
  __device__ float operator()(std::int64_t t, unsigned i, float x) const { return x / (d.number(t, i / n) + eps); }
};

struct LogSigmoidDecay {
  float scale, clamp_min;
  __device__ float operator()(std::int64_t, unsigned, float x) const { return log_sigmoid_decay(x, scale, clamp_min); }
};

struct GatedDeltaDecay {
  const float *A_log, *dt_bias;
  unsigned K;  // channels of a head
  float lower_bound;
  __device__ float operator()(std::int64_t, unsigned i, float a) const {
    if (lower_bound < 0) return lower_bound / (1 + expf(-expf(A_log[i / K]) * (a + dt_bias[i])));
    return gated_delta_decay(a, A_log[i / K], dt_bias[i]);
  }
};

struct SoftplusClamp {
  const float* dt_bias;
  float dt_min, dt_max;
  __device__ float operator()(std::int64_t, unsigned h, float x) const {
    const float dt = softplus(x + dt_bias[h]);
    return dt < dt_min ? dt_min : dt > dt_max ? dt_max : dt;
  }
};

struct OneMinusExp {
  __device__ float operator()(std::int64_t, unsigned, float x) const { return -expm1f(x); }
};

/// pair[t, 0] = act(shared[t]), pair[t, 1] = act(sparse[t] + more[t]), rows of n. A thread owns `Width` neighbours of both.
template <int Width, template <class> class Rows>
__global__ void sum_pair_kernel(Rows<void> pair, Rows<const void> shared, Rows<const void> sparse, Rows<const void> more, std::int64_t rows,
                                unsigned n, Activation act) {
  begin_overlapped();
  const std::int64_t t = own_row();
  if (t >= rows) return;
  for (unsigned begin = own_column() * Width; begin < n; begin += all_columns() * Width) {
    const Pack<Width> first = shared.template load<Width>(t, begin),
                      second = each(sparse.template load<Width>(t, begin), more.template load<Width>(t, begin), Plus());
    pair.template store<Width>(t, begin, activated(first, act));
    pair.template store<Width>(t, n + begin, activated(second, act));
  }
}

// ---- launchers -----------------------------------------------------------------------------------------------------------------------

void require_heads(const char* name, Tensor y, ConstTensor x, ConstTensor g) {
  require_same_rows(name, y, x);
  if (g.rows() != x.rows() || g.row_size() == 0 || x.row_size() % g.row_size() != 0) fail(name, x, g);
}

unsigned head_size(ConstTensor x, ConstTensor g) { return static_cast<unsigned>(x.row_size() / g.row_size()); }

}  // namespace

void fill(Tensor x, float value, cudaStream_t stream) { map("fill", x, stream, Constant{value}); }

void activate(Tensor y, ConstTensor x, Activation act, cudaStream_t stream) {
  require_same_rows("activate", y, x);
  map("activate", y, stream, Activated{act}, x);
}

void gate(Tensor y, ConstTensor a, ConstTensor b, Activation act, cudaStream_t stream) {
  require_same_rows("gate", y, a);
  require_same_rows("gate", y, b);
  map("gate", y, stream, Gated{act}, a, b);
}

void add(Tensor y, ConstTensor a, ConstTensor b, float factor, cudaStream_t stream) {
  require_same_rows("add", y, a);
  require_same_rows("add", y, b);
  map("add", y, stream, WeightedSum{factor}, a, b);
}

void scale_heads(Tensor y, ConstTensor x, ConstTensor g, float scale, cudaStream_t stream) {
  require_heads("scale_heads", y, x, g);
  map("scale_heads", y, stream, ScaledHead{numbers(g), head_size(x, g), scale}, x);
}

void sum_pair(Tensor pair, ConstTensor shared, ConstTensor sparse, ConstTensor more, Activation act, cudaStream_t stream) {
  constexpr int wide = 8;
  const std::int64_t n = shared.row_size();
  for (const ConstTensor& x : {shared, sparse, more}) require_same_rows("sum_pair", pair.columns(n, {n}), x);
  const auto start = [&]<template <class> class Rows, int width>() {
    const auto [grid, block] = cover(pair.rows(), n / width);
    launch_overlapped("sum_pair", sum_pair_kernel<width, Rows>, grid, block, 0, stream, Rows<void>(numbers(pair)),
                      Rows<const void>(numbers(shared)), Rows<const void>(numbers(sparse)), Rows<const void>(numbers(more)), pair.rows(),
                      static_cast<unsigned>(n), act);
  };
  const bool packs = n % wide == 0 && in_packs(pair, wide) && in_packs(shared, wide) && in_packs(sparse, wide) && in_packs(more, wide);
  if (packs && all_bf16(pair, shared, sparse, more)) return start.template operator()<Bf16Numbers, wide>();
  packs ? start.template operator()<Numbers, wide>() : start.template operator()<Numbers, 1>();
}

void divide_heads(Tensor y, ConstTensor x, ConstTensor d, float eps, cudaStream_t stream) {
  require_heads("divide_heads", y, x, d);
  map("divide_heads", y, stream, DividedHead{numbers(d), head_size(x, d), eps}, x);
}

void log_sigmoid_decay(Tensor y, ConstTensor x, float normalizer, float clamp_min, cudaStream_t stream) {
  require_same_rows("log_sigmoid_decay", y, x);
  map("log_sigmoid_decay", y, stream, LogSigmoidDecay{1 / normalizer, clamp_min}, x);
}

void gated_delta_decay(Tensor y, ConstTensor a, ConstTensor A_log, ConstTensor dt_bias, float lower_bound, cudaStream_t stream) {
  require_same_rows("gated_delta_decay", y, a);
  const std::int64_t heads = A_log.shape.size();
  if (heads == 0 || a.row_size() % heads != 0 || dt_bias.shape.size() != a.row_size()) fail("gated_delta_decay", a, A_log);
  const auto K = static_cast<unsigned>(a.row_size() / heads);
  map("gated_delta_decay", y, stream, GatedDeltaDecay{f32(A_log).data, f32(dt_bias).data, K, lower_bound}, a);
}

void softplus_clamp(Tensor y, ConstTensor x, ConstTensor dt_bias, float dt_min, float dt_max, cudaStream_t stream) {
  require_same_rows("softplus_clamp", y, x);
  if (dt_bias.shape.size() != x.row_size()) fail("softplus_clamp", x, dt_bias);
  map("softplus_clamp", y, stream, SoftplusClamp{f32(dt_bias).data, dt_min, dt_max}, x);
}

void one_minus_exp(Tensor y, ConstTensor x, cudaStream_t stream) {
  require_same_rows("one_minus_exp", y, x);
  map("one_minus_exp", y, stream, OneMinusExp(), x);
}

}  // namespace statescope::cuda

#include "kernels/ops/convolution.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "kernels/cpu/parallel.h"

namespace statescope {
namespace {

/// The channels [begin, end), which a thread convolves for all segments.
struct Channels {
  std::int64_t begin, end;
};

/// Row `t` of a segment that begins at row `first`; for t < 0 the inputs before it, the last of which is the last row of the cache.
const float* input(const ShortConvolution& op, const float* cache, std::int64_t first, std::int64_t t) {
  const std::int64_t C = op.x.row_size(), past = op.weight.row_size() - 1;
  return t >= 0 ? op.x.f32(first + t) : cache + (past + t) * C;
}

/// y[c] = bias[c] + Σ_j weight[c, j] · taps[j][c]. Taps: w where it is known when compiling, else 0.
template <int Taps>
void convolve_row(const ShortConvolution& op, float* y, const float* const* taps, Channels channels) {
  const std::int64_t w = Taps > 0 ? Taps : op.weight.row_size();
  const float* bias = op.bias ? op.bias.f32() : nullptr;
  for (std::int64_t c = channels.begin; c < channels.end; ++c) {
    const float* weight = op.weight.f32() + c * op.weight.stride;
    float sum = bias != nullptr ? bias[c] : 0.0F;
    for (std::int64_t j = 0; j < w; ++j) sum += weight[j] * taps[j][c];
    y[c] = sum;
  }
}

void convolve_segment(const ShortConvolution& op, std::int64_t s, Channels channels) {
  static thread_local std::vector<const float*> taps;
  const std::int64_t w = op.weight.row_size();
  const std::int64_t first = op.segments.cu_seqlens[static_cast<std::size_t>(s)],
                     end = op.segments.cu_seqlens[static_cast<std::size_t>(s + 1)];
  const float* cache = op.initial_cache.f32(op.segments.slot_of(s));
  taps.resize(static_cast<std::size_t>(w));
  for (std::int64_t t = 0; t < end - first; ++t) {
    for (std::int64_t j = 0; j < w; ++j) taps[static_cast<std::size_t>(j)] = input(op, cache, first, t - (w - 1) + j);
    const auto convolve = w == 4 ? convolve_row<4> : convolve_row<0>;
    convolve(op, op.y.f32(first + t), taps.data(), channels);
  }
}

/// The last w − 1 inputs. Where old and new cache are the same memory, oldest first reads each row before it is overwritten.
void keep_last_inputs(const ShortConvolution& op, std::int64_t s, Channels channels) {
  const std::int64_t C = op.x.row_size(), past = op.weight.row_size() - 1, slot = op.segments.slot_of(s);
  const std::int64_t first = op.segments.cu_seqlens[static_cast<std::size_t>(s)],
                     end = op.segments.cu_seqlens[static_cast<std::size_t>(s + 1)];
  const float* from = op.initial_cache.f32(slot);
  float* to = op.final_cache.f32(slot);
  for (std::int64_t j = 0; j < past; ++j) {
    const float* row = input(op, from, first, end - first - past + j);
    if (row != to + j * C) std::copy(row + channels.begin, row + channels.end, to + j * C + channels.begin);
  }
}

void check(const ShortConvolution& op) {
  const std::int64_t C = op.x.row_size(), past = op.weight.row_size() - 1;
  const bool fits = op.weight.rows() == C && past >= 0 && op.y.row_size() == C && op.y.rows() == op.x.rows() &&
                    (!op.bias || op.bias.shape.size() == C) && op.initial_cache.row_size() == past * C &&
                    op.final_cache.row_size() == past * C;
  if (!fits) {
    throw std::invalid_argument("short_convolution: x " + op.x.shape.to_string() + ", weight " + op.weight.shape.to_string() + ", y " +
                                op.y.shape.to_string() + ", caches " + op.initial_cache.shape.to_string() + " and " +
                                op.final_cache.shape.to_string());
  }
}

}  // namespace

void short_convolution(const ShortConvolution& op) {
  check(op);
  constexpr std::int64_t width = 256;
  const std::int64_t C = op.x.row_size();
  parallel_for((C + width - 1) / width,
               [&](std::int64_t i) {
                 const Channels channels{i * width, std::min(C, (i + 1) * width)};
                 for (std::int64_t s = 0; s < op.segments.count(); ++s) {
                   convolve_segment(op, s, channels);
                   keep_last_inputs(op, s, channels);
                 }
               },
               op.x.rows() * C > 32768);
  if (op.act != Activation::identity && op.segments.count() > 0) {
    const Tensor y = op.y.slice(0, op.segments.cu_seqlens.back());
    activate(y, y, op.act);
  }
}

}  // namespace statescope

// Norms, activations, gates and the other small steps that work on each row alone. All tensors float32 (on a device that keeps activations
// in bf16, each of either type: Backend::activation_type); outputs first; y may be x itself (the same view) unless said otherwise.
#pragma once

#include <span>

#include "kernels/tensor.h"

namespace statescope {

/// exp: e^x; log_one_minus: ln(max(1 − x, 2^−24)), from what is written of a row what is kept of it: finite where float32 has 1 − x for 0.
/// gelu: x Φ(x), Φ(x) = ½ (1 + erf(x/√2)).
enum class Activation { identity, silu, relu, sigmoid, elu_plus_one, exp, log_one_minus, tanh, gelu };

/// y = x · (mean(x²) + eps)^{-1/2} ⊙ (weight + offset) over groups of weight.rows() numbers (a head, or the whole row) (spec §1.2).
/// y, x [T, ...]; weight [n] float32, n divides the row size; `offset` 1 is the zero-centred form of Qwen3-Next (spec §8.1).
void rms_norm(Tensor y, ConstTensor x, ConstTensor weight, float eps, float offset = 0);

/// The same without a weight, over groups of `group` numbers (elementwise_affine = false).
void rms_norm_plain(Tensor y, ConstTensor x, std::int64_t group, float eps);

/// y = (x − m) · (mean((x − m)²) + eps)^{-1/2} ⊙ weight + bias, m = mean(x), over groups of `group` numbers. y, x [T, ...]; weight and bias
/// as long as a row, float32, or absent (spec §17.10).
void layer_norm(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, std::int64_t group, float eps);

constexpr float l2_norm_eps = 1e-6F;
/// y = x / sqrt(Σ x² + l2_norm_eps) over the last axis (spec §1.2).
void l2_norm(Tensor y, ConstTensor x);

/// y = x / (Σ x + eps) over the last axis (spec §3.2, §3.5 "sum").
void sum_norm(Tensor y, ConstTensor x, float eps);

/// y = softmax(temperature · x) over the last axis; temperature 0: uniform; a row of −∞ only gives zeros.
void softmax(Tensor y, ConstTensor x, float temperature = 1);

/// y = act(x)
void activate(Tensor y, ConstTensor x, Activation act);

/// y = a ⊙ act(b), row sizes equal: SwiGLU's product, output gates.
void gate(Tensor y, ConstTensor a, ConstTensor b, Activation act);

/// y = a + factor · b
void add(Tensor y, ConstTensor a, ConstTensor b, float factor = 1);

/// y[t, h, :] = scale · g[t, h] · x[t, h, :]: x, y [T, H, n], g [T, H] (per head) or [T, 1] (per token).
void scale_heads(Tensor y, ConstTensor x, ConstTensor g, float scale = 1);

/// y[t, h, :] = x[t, h, :] / (d[t, h] + eps): x, y [T, H, n], d [T, H] (normalised linear attention, spec §3.2).
void divide_heads(Tensor y, ConstTensor x, ConstTensor d, float eps);

/// y = max(logσ(x) / normalizer, clamp_min): the forget gate of GLA and GSA (spec §3.4, §3.7).
void log_sigmoid_decay(Tensor y, ConstTensor x, float normalizer, float clamp_min);

/// y = −exp(A_log) · softplus(a + dt_bias), per head: a, y [T, H]; A_log, dt_bias [H] (spec §3.6). Per channel of a head, a, y [T, H·K] and
/// dt_bias [H·K], A_log is that of the head (spec §17.3). With a lower bound < 0:  y = lower_bound · σ(exp(A_log) · (a + dt_bias)).
void gated_delta_decay(Tensor y, ConstTensor a, ConstTensor A_log, ConstTensor dt_bias, float lower_bound = 0);

/// dt = clamp(softplus(x + dt_bias), dt_min, dt_max): x, y [T, H] (Mamba-2, spec §3.9).
void softplus_clamp(Tensor y, ConstTensor x, ConstTensor dt_bias, float dt_min, float dt_max);

/// y = −expm1(x): the write weight 1 − f of GSA from log f (spec §3.7).
void one_minus_exp(Tensor y, ConstTensor x);

/// Rotates the first `rotary` channels of every head, half-split (spec §1.6); the rest are copied. x, y [T, H, d]; row t has position first
/// + t. Angles in float32, in float64 beyond position 2^20.
void rope(Tensor y, ConstTensor x, std::int64_t first, double theta, std::int64_t rotary);

/// Frequencies of other kinds: ω_j, on the host, at most `most_frequencies`, and what multiplies cos and sin.
struct Rotation {
  static constexpr std::int64_t most_frequencies = 256;
  std::span<const float> frequencies;
  float factor = 1;
};
/// The same with these: pair j is channels j and j + n of the first 2n (spec §19.15).
void rope(Tensor y, ConstTensor x, std::int64_t first, const Rotation& rotation);

/// x = value everywhere.
void fill(Tensor x, float value);

/// dst = src: the same shape, strides may differ.
void copy(Tensor dst, ConstTensor src);

/// dst[t] = src[rows[t]] and dst[rows[t]] += weight · src[t] (weight [T] or absent = 1): rows are host indices, ascending or not.
void gather_rows(Tensor dst, ConstTensor src, const std::int32_t* rows);
void scatter_add_rows(Tensor dst, ConstTensor src, const std::int32_t* rows, ConstTensor weight = {});

}  // namespace statescope

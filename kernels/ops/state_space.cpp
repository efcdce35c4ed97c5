#include "kernels/ops/state_space.h"

#include <algorithm>

#include "kernels/ops/memory_parts.h"

namespace statescope {
namespace {

/// Channels that one piece of work takes through all rows.
constexpr std::int64_t kBlock = 64;

/// x [P, N, channels] (or [N, N, channels]): state n of the part p, from the block's first channel on.
struct States {
  const float* data;
  std::int64_t N, channels;
  const float* operator()(std::int64_t p, std::int64_t n) const { return data + (p * N + n) * channels; }
};

/// The channels [first, first + width) through all rows, with their states X in scratch memory.
class Block {
 public:
  Block(const StateSpace& op, std::int64_t first)
      : op_(op),
        parts_(op.B.shape[0]),
        N_(op.B.shape[1]),
        channels_(op.B.shape[2]),
        first_(first),
        width_(std::min(kBlock, channels_ - first)) {}

  void read() {
    thread_local Scratch memory;
    float* X = memory.take(2 * parts_ * N_ * width_);
    float* next = X + parts_ * N_ * width_;
    for (std::int64_t i = 0; i < parts_ * N_; ++i) std::copy_n(op_.initial_state.f32() + i * channels_ + first_, width_, X + i * width_);
    for (std::int64_t t = 0; t < op_.o.rows(); ++t) {
      float* const o = op_.o.f32(t) + first_;
      std::fill_n(o, width_, 0.0F);
      if (parts_ == 2) {
        step_diagonal(X, op_.u.f32(t) + first_, o);
      } else {
        step_dense(next, X, op_.u.f32(t) + first_, o);
        std::swap(X, next);
      }
    }
    for (std::int64_t i = 0; i < parts_ * N_; ++i) std::copy_n(X + i * width_, width_, op_.final_state.f32() + i * channels_ + first_);
  }

 private:
  States states(ConstTensor x) const { return {x.f32() + first_, N_, channels_}; }

  void step_diagonal(float* X, const float* u, float* o) const {
    const States A = states(op_.A), B = states(op_.B), C = states(op_.C);
    for (std::int64_t n = 0; n < N_; ++n) {
      const float *a = A(0, n), *a_im = A(1, n), *b = B(0, n), *b_im = B(1, n), *c = C(0, n), *c_im = C(1, n);
      float *x = X + n * width_, *x_im = X + (N_ + n) * width_;
      for (std::int64_t i = 0; i < width_; ++i) {
        // X = A X + B u,   o += 2 Re(C X)
        const float re = a[i] * x[i] - a_im[i] * x_im[i] + b[i] * u[i], im = a[i] * x_im[i] + a_im[i] * x[i] + b_im[i] * u[i];
        x[i] = re;
        x_im[i] = im;
        o[i] += 2 * (c[i] * re - c_im[i] * im);
      }
    }
  }

  void step_dense(float* next, const float* X, const float* u, float* o) const {
    const States A = states(op_.A), B = states(op_.B), C = states(op_.C);
    for (std::int64_t n = 0; n < N_; ++n) {
      float* const y = next + n * width_;
      // X_n = Σ_m A_nm X_m + B_n u,   o += C_n X_n
      std::transform(B(0, n), B(0, n) + width_, u, y, std::multiplies<>());
      for (std::int64_t m = 0; m < N_; ++m) {
        const float *a = A(n, m), *x = X + m * width_;
        for (std::int64_t i = 0; i < width_; ++i) y[i] += a[i] * x[i];
      }
      const float* c = C(0, n);
      for (std::int64_t i = 0; i < width_; ++i) o[i] += c[i] * y[i];
    }
  }

  const StateSpace& op_;
  std::int64_t parts_, N_, channels_, first_, width_;
};

}  // namespace

void check_state_space(const StateSpace& op) {
  const OperandCheck check("state_space");
  const Shape& B = op.B.shape;
  check.require(B.rank() == 3 && (B[0] == 1 || B[0] == 2), "B", "found " + B.to_string() + ", expected [1 or 2, states, channels]");
  const std::int64_t rows = op.o.rows(), parts = B[0], N = B[1], channels = B[2];
  check.tensor("A", op.A, {parts == 2 ? 2 : N, N, channels});
  check.tensor("B", op.B, B);
  check.tensor("C", op.C, B);
  check.tensor("u", op.u, {rows, channels});
  check.tensor("initial_state", op.initial_state, {parts, 1, N, channels});
  check.tensor("final_state", op.final_state, {parts, 1, N, channels});
  check.tensor("o", op.o, {rows, channels});
}

void state_space(const StateSpace& op) {
  check_state_space(op);
  const std::int64_t N = op.B.shape[1], channels = op.B.shape[2];
  const auto read = [&](std::int64_t block) {
    const FlushToZero flush;
    Block(op, block * kBlock).read();
  };
  const std::int64_t of_row = op.B.shape[0] == 2 ? 8 * N : N * N;
  parallel_for((channels + kBlock - 1) / kBlock, read, op.o.rows() * channels * of_row >= worth_a_fork);
}

}  // namespace statescope

// What the CPU forms of the memories share: checks of operands, the rows of one head, scratch memory, the scalar decay inside a chunk.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <string>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd_rows.h"
#include "kernels/ops/memory.h"

#ifdef __SSE__
#include <xmmintrin.h>
#endif

namespace statescope {

/// Compares operands with what an operation expects; throws std::invalid_argument that says which, what was found, what was expected.
class OperandCheck {
 public:
  explicit OperandCheck(const char* operation) : operation_(operation) {}

  void require(bool holds, const char* operand, const std::string& complaint) const {
    if (!holds) fail(operand, complaint);
  }
  /// `found` has exactly this shape and type.
  void tensor(const char* operand, ConstTensor found, const Shape& expected, DType dtype = DType::f32) const;
  /// The same, but axis 1 (heads) may be any divisor of the expected one.
  void heads(const char* operand, ConstTensor found, const Shape& expected) const;
  /// Ascends from 0 to `rows`.
  void offsets(const char* operand, std::span<const std::int32_t> cu_seqlens, std::int64_t rows) const;
  /// The rows of all segments are the `rows` rows, and no two segments share one of the `slots` slots.
  void segments(const Segments& segments, std::int64_t rows, std::int64_t slots) const;
  /// No segment has more than one row.
  void single_rows(const Segments& segments) const;
  void chunk_size(std::int64_t rows) const;

 private:
  [[noreturn]] void fail(const char* operand, const std::string& complaint) const;
  const char* operation_;
};

/// q, k, v, o and the states of a recurrent memory; `Op` is one of their structs. Its gates are checked by the caller.
template <class Op>
void check_recurrence(const OperandCheck& check, const Op& op) {
  check.require(op.initial_state.shape.rank() == 4, "initial_state",
                "found " + op.initial_state.shape.to_string() + ", expected [slots, heads, K, V]");
  const Shape& state = op.initial_state.shape;
  const std::int64_t rows = op.o.rows();
  check.tensor("initial_state", op.initial_state, state);
  check.tensor("final_state", op.final_state, state);
  check.tensor("o", op.o, {rows, state[1], state[3]});
  check.heads("q", op.q, {rows, state[1], state[2]});
  check.heads("k", op.k, {rows, state[1], state[2]});
  check.heads("v", op.v, {rows, state[1], state[3]});
  check.segments(op.segments, rows, state[0]);
}

/// The rows that one head of a memory reads or writes: row t is `stride` numbers after row t − 1. An absent operand has no data.
template <class Float>
struct HeadRows {
  Float* data;
  std::int64_t stride;
  Float* operator[](std::int64_t t) const { return data + t * stride; }
  HeadRows from(std::int64_t t) const { return {data ? data + t * stride : nullptr, stride}; }
};

/// Head `h` of `all_heads` of x [rows, ≤all_heads, width], from row `first` on.
template <class Byte>
auto head_rows(const BasicTensor<Byte>& x, std::int64_t first, std::int64_t h, std::int64_t all_heads, std::int64_t width) {
  return HeadRows{x ? x.f32(first) + producer_head(h, x.shape[1], all_heads) * width : nullptr, x.stride};
}

/// Prefetches the row of a chunk of n that follows row i: successive rows of a head lie pages apart in memory, which the prefetchers of
/// processors do not follow.
inline void prefetch(HeadRows<const float> x, std::int64_t i, std::int64_t n, std::int64_t width) {
  constexpr std::int64_t ahead = 8, line = 64 / sizeof(float);
  for (std::int64_t c = 0; c < width; c += line) __builtin_prefetch(x[std::min(n - 1, i + ahead)] + c);
}

/// Multiplications that keep one core busy for long enough (some 50 µs) to wake the others.
constexpr std::int64_t worth_a_fork = 1 << 19;

/// Rows whose scores are one block of a chunk (spec §9.3).
constexpr std::int64_t sub_chunk = 16;

/// Uninitialised float32 memory that grows and is kept; one for each thread and purpose (`thread_local`).
class Scratch {
 public:
  float* take(std::int64_t count);

 private:
  struct Free {
    void operator()(float* memory) const { ::operator delete(memory, alignment); }
  };
  static constexpr std::align_val_t alignment{64};
  std::unique_ptr<float, Free> memory_;
  std::int64_t capacity_ = 0;
};

/// While it lives, denormal results (below 1e-38) are flushed to 0 on this thread: decays leave ever smaller values behind, and x86
/// computes with denormals a hundred times more slowly.
class FlushToZero {
 public:
#ifdef __SSE__
  FlushToZero() { _mm_setcsr(before_ | _MM_FLUSH_ZERO_ON); }
  ~FlushToZero() { _mm_setcsr(before_); }

 private:
  unsigned before_ = _mm_getcsr();
#else
  FlushToZero() = default;
#endif
 public:
  FlushToZero(const FlushToZero&) = delete;
  FlushToZero& operator=(const FlushToZero&) = delete;
};

/// state [K, V] ← initial, unless it is the same memory; `shape` is that of all states.
void carry_state(float* state, const float* initial, const Shape& shape);

/// work(first row, rows, h, initial, state) for every head h of every segment that has rows, over the cores if there is enough to do; the
/// state of an empty segment is carried over. `initial` and `state` [K, V] lie in op.initial_state and op.final_state.
template <class Op, class Work>
void for_each_state(const Op& op, const Work& work) {
  const Shape& shape = op.initial_state.shape;
  const std::int64_t H = shape[1], size = shape[2] * shape[3];
  const auto visit = [&](std::int64_t piece) {
    const std::int64_t s = piece / H, h = piece % H;
    const std::int64_t first = op.segments.cu_seqlens[static_cast<std::size_t>(s)];
    const std::int64_t rows = op.segments.cu_seqlens[static_cast<std::size_t>(s) + 1] - first;
    const float* initial = op.initial_state.f32(op.segments.slot_of(s)) + h * size;
    float* state = op.final_state.f32(op.segments.slot_of(s)) + h * size;
    if (rows == 0) return carry_state(state, initial, shape);
    const FlushToZero flush;
    work(first, rows, h, initial, state);
  };
  parallel_for(op.segments.count() * H, visit, (op.o.rows() + op.segments.count()) * H * size >= worth_a_fork);
}

/// Row i of Γ_ij = Π_{j<m≤i} α_m for j ≤ i inside a chunk, made from row i − 1 (spec §9.2). Products of numbers ≤ 1 instead of exponents of
/// differences: a sum of logarithms that has passed −1100 has no digits left for the weak decays after it.
class DecayRow {
 public:
  /// `gamma` has room for a chunk.
  explicit DecayRow(float* gamma) : gamma_(gamma) {}

  void advance(float alpha) {
    for (std::int64_t j = 0; j < count_; ++j) gamma_[j] *= alpha;
    gamma_[count_++] = 1;
    from_start_ *= alpha;
  }
  /// Γ_i0 … Γ_ii, where i is the row of the last advance.
  const float* gamma() const { return gamma_; }
  /// e^{G_i}: what is left of the entering state.
  float from_start() const { return from_start_; }

 private:
  float* gamma_;
  std::int64_t count_ = 0;
  float from_start_ = 1;
};

/// Row i of a score matrix [n, n]: x_j ← factor · Γ_ij x_j for j ≤ i, 0 for j > i.
void mask_row(float* x, const DecayRow& decay, std::int64_t i, std::int64_t n, float factor);

/// The rows x_j of a chunk as they have decayed until now: x_j ⊙ e^{G_now − G_j}, by running products (each factor ≤ 1, so underflow to 0
/// is the right limit). Sub-chunk by sub-chunk: rows of the current one follow every token, earlier rows each finished sub-chunk.
struct DecayedRows {
  std::int64_t width;
  float* x;           // [n, width]
  float* from_start;  // e^{G} at the end of the last finished sub-chunk [width]
  float* in_sub;      // e^{G_i − G} since then [width]

  void begin_sub_chunk() const { std::fill_n(in_sub, width, 1.0F); }
  void append(std::int64_t i, const float* row) const { std::copy_n(row, width, x + i * width); }
  void end_sub_chunk(std::int64_t first) const {
    multiply_rows(x, width, in_sub, first, width);
    multiply_rows(from_start, width, in_sub, 1, width);
  }
};
/// n rows; they are valid until the thread's next call.
DecayedRows decayed_rows(std::int64_t n, std::int64_t width);

/// x ← factor · x
void scale_row(float* x, float factor, std::int64_t n);

}  // namespace statescope

#include "kernels/ops/selective_scan.h"

#include <algorithm>

#include "kernels/cpu/simd_rows.h"
#include "kernels/ops/memory_parts.h"

namespace statescope {
namespace {

/// Channels that one piece of work takes through all rows of a segment: their states and A stay in the core's nearest cache.
constexpr std::int64_t kBlock = 64;

/// The channels [c, c + width) of head h over one segment, whose rows begin at `first`.
void scan_block(const SelectiveScan& op, std::int64_t s, std::int64_t h, std::int64_t c) {
  thread_local Scratch memory;
  const Shape& shape = op.initial_state.shape;
  const std::int64_t H = shape[1], N = shape[2], P = shape[3], width = std::min(kBlock, P - c), at = h * N * P + c;
  const std::int64_t first = op.segments.cu_seqlens[static_cast<std::size_t>(s)];
  const std::int64_t rows = op.segments.cu_seqlens[static_cast<std::size_t>(s) + 1] - first, slot = op.segments.slot_of(s);
  float *S = memory.take(2 * N * width), *A = S + N * width;
  for (std::int64_t n = 0; n < N; ++n) {
    std::copy_n(op.initial_state.f32(slot) + at + n * P, width, S + n * width);
    std::transform(op.A.f32(h) + n * P + c, op.A.f32(h) + n * P + c + width, A + n * width, [&](float a) { return op.decay_factor * a; });
  }
  const auto channels = [&](const auto& x) { return head_rows(x, first, h, H, P).from(0).data + c; };
  const HeadRows<const float> B = head_rows(op.B, first, h, H, N), C = head_rows(op.C, first, h, H, N);
  if (rows > 0) {
    const FlushToZero flush;
    scan_columns({.N = N,
                  .width = width,
                  .rows = rows,
                  .A = A,
                  .S = S,
                  .x = {channels(op.x), op.x.stride},
                  .dt = {channels(op.dt), op.dt.stride},
                  .B = {B.data, B.stride},
                  .C = {C.data, C.stride},
                  .o = channels(op.o),
                  .o_stride = op.o.stride});
  }
  for (std::int64_t n = 0; n < N; ++n) std::copy_n(S + n * width, width, op.final_state.f32(slot) + at + n * P);
}

}  // namespace

void check_selective_scan(const SelectiveScan& op, DType activations) {
  const OperandCheck check("selective_scan");
  check.require(op.initial_state.shape.rank() == 4, "initial_state",
                "found " + op.initial_state.shape.to_string() + ", expected [slots, heads, states, channels]");
  const Shape& state = op.initial_state.shape;
  const std::int64_t rows = op.o.rows(), H = state[1], N = state[2], P = state[3];
  check.tensor("initial_state", op.initial_state, state);
  check.tensor("final_state", op.final_state, state);
  check.tensor("o", op.o, {rows, H, P}, activations);
  check.tensor("x", op.x, {rows, H, P}, activations);
  check.tensor("dt", op.dt, {rows, H, P});
  check.tensor("A", op.A, {H, N, P});
  check.heads("B", op.B, {rows, H, N});
  check.heads("C", op.C, {rows, H, N});
  check.segments(op.segments, rows, state[0]);
}

void selective_scan(const SelectiveScan& op) {
  check_selective_scan(op);
  const Shape& shape = op.initial_state.shape;
  const std::int64_t H = shape[1], blocks = (shape[3] + kBlock - 1) / kBlock;
  const auto scan = [&](std::int64_t piece) { scan_block(op, piece / (H * blocks), piece / blocks % H, piece % blocks * kBlock); };
  constexpr std::int64_t exponential = 8;  // what one costs in multiplications
  const std::int64_t work = (op.o.rows() + op.segments.count()) * H * shape[2] * shape[3] * exponential;
  parallel_for(op.segments.count() * H * blocks, scan, work >= worth_a_fork);
}

}  // namespace statescope

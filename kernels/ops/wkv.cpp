#include "kernels/ops/wkv.h"

#include "kernels/cpu/simd_rows.h"
#include "kernels/ops/memory_parts.h"

namespace statescope {

void check_wkv(const Wkv& op) {
  const OperandCheck check("wkv");
  check_recurrence(check, op);
  const Shape channels{op.o.rows(), op.initial_state.shape[1], op.initial_state.shape[2]};
  check.heads("log_decay", op.log_decay, channels);
  check.require(static_cast<bool>(op.erase_key) == static_cast<bool>(op.erase_along), "erase_along", "must come with erase_key");
  if (!op.erase_key) return;
  check.heads("erase_key", op.erase_key, channels);
  check.heads("erase_along", op.erase_along, channels);
}

void wkv(const Wkv& op) {
  check_wkv(op);
  const Shape& shape = op.initial_state.shape;
  const std::int64_t H = shape[1], K = shape[2], V = shape[3];
  for_each_state(op, [&](std::int64_t first, std::int64_t rows, std::int64_t h, const float* initial, float* state) {
    thread_local Scratch scratch;
    float* const alpha = scratch.take(K);
    const auto of_head = [&](ConstTensor x, std::int64_t width) { return head_rows(x, first, h, H, width); };
    const HeadRows<const float> q = of_head(op.q, K), k = of_head(op.k, K), v = of_head(op.v, V), log_decay = of_head(op.log_decay, K),
                                erase_key = of_head(op.erase_key, K), erase_along = of_head(op.erase_along, K);
    const HeadRows<float> o = head_rows(op.o, first, h, H, V);
    const float* before = initial;
    for (std::int64_t t = 0; t < rows; ++t) {
      exp_row(alpha, log_decay[t], K);
      const StateStep step{.K = K,
                           .V = V,
                           .state = before,
                           .next = state,
                           .q = q[t],
                           .k = k[t],
                           .v = v[t],
                           .row_decay = alpha,
                           .column_decay = nullptr,
                           .scale = op.scale,
                           .o = o[t]};
      step_wkv(step, erase_key.data ? erase_key[t] : nullptr, erase_along.data ? erase_along[t] : nullptr, op.reads_first);
      before = state;
    }
  });
}

}  // namespace statescope

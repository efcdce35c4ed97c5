#include "kernels/fused/delta_rules.h"

#include <array>

#include "kernels/fused/by_parts.h"

namespace statescope {
namespace {

/// x [rows, H] as [rows, H, 1]
template <class Any>
Any as_heads(Any x) {
  return x.with_row({x.row_size(), 1});
}

/// x [T, n·H, width], or [T, n·H], with a row for each step.
ConstTensor step_rows(ConstTensor x, std::int64_t steps, Backend& device, Workspace& workspace) {
  x = together(x, device, workspace);
  const std::int64_t rows = x.rows() * steps, heads = x.shape[1] / steps;
  return {x.data, x.dtype, x.shape.rank() == 3 ? Shape{rows, heads, x.shape[2]} : Shape{rows, heads}};
}

/// The same of x [T, H, …] in step `at` of each token, and 0 in the others.
ConstTensor in_step(ConstTensor x, std::int64_t at, std::int64_t steps, Backend& device, Workspace& workspace) {
  const std::int64_t width = x.row_size(), rows = x.rows() * steps;
  const Tensor all = workspace.tensor({x.rows(), steps * width}, x.dtype);
  device.fill(all, 0);
  device.copy(all.columns(at * width, {width}), x.with_row({width}));
  return {all.data, all.dtype, x.shape.rank() == 3 ? Shape{rows, x.shape[1], x.shape[2]} : Shape{rows, width}};
}

ConstTensor row_of(ConstTensor x, std::int64_t row) { return x ? x.slice(row, 1) : x; }

}  // namespace

GatedDeltaRule with_undecayed_erase(const GatedDeltaRule& op, ConstTensor c, Backend& device, Workspace& workspace) {
  GatedDeltaRule ordinary = op;
  const Tensor log_decay = workspace.tensor(op.log_decay.shape), ratio = workspace.tensor(op.log_decay.shape),
               beta = workspace.tensor(op.beta.shape), v = workspace.tensor(op.v.shape, op.v.dtype);
  // ln α = ln(1 − (1 − α)), which is at least that of 2^−24
  device.one_minus_exp(log_decay, op.log_decay);
  device.activate(log_decay, log_decay, Activation::log_one_minus);
  // α/c
  device.activate(ratio, log_decay, Activation::exp);
  device.divide_heads(as_heads(ratio), as_heads(ratio), c, 0);
  // β' = β c/α,   v' = (α/c) v
  device.divide_heads(as_heads(beta), as_heads(op.beta), ratio, 0);
  device.scale_heads(v, op.v, ratio);
  ordinary.log_decay = log_decay;
  ordinary.beta = beta;
  ordinary.v = v;
  return ordinary;
}

void gated_delta_rule_steps(const GatedDeltaRule& op, std::int64_t steps, std::int64_t chunk_size, Backend& device, Workspace& workspace) {
  const Workspace::Mark mark(workspace);
  const std::int64_t T = op.o.rows(), H = op.o.shape[1], V = op.o.shape[2];
  const Tensor o = workspace.tensor({T * steps, H, V}, op.o.dtype);
  GatedDeltaRule rows = op;
  rows.q = in_step(op.q, steps - 1, steps, device, workspace);
  rows.k = step_rows(op.k, steps, device, workspace);
  rows.v = step_rows(op.v, steps, device, workspace);
  rows.beta = step_rows(op.beta, steps, device, workspace);
  if (op.log_decay) rows.log_decay = in_step(op.log_decay, 0, steps, device, workspace);
  rows.o = o;
  const std::array<std::int32_t, 2> all{0, static_cast<std::int32_t>(T * steps)}, alone{0, 1};
  if (chunk_size > 0) {
    rows.segments = {all, {}};
    device.gated_delta_rule(rows, chunk_size);
  } else {
    for (std::int64_t row = 0; row < T * steps; ++row) {
      GatedDeltaRule one = rows;
      one.segments = {alone, {}};
      for (ConstTensor* x : {&one.q, &one.k, &one.v, &one.beta, &one.log_decay}) *x = row_of(*x, row);
      one.o = o.slice(row, 1);
      if (row > 0) one.initial_state = op.final_state;
      device.gated_delta_rule(one, 0);
    }
  }
  const Tensor by_token(o.data, o.dtype, {T, steps * H * V});
  device.copy(op.o.with_row({H * V}), by_token.columns((steps - 1) * H * V, {H * V}));
}

}  // namespace statescope

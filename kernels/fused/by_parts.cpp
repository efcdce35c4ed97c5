#include "kernels/fused/by_parts.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

namespace statescope {
namespace {

/// y = x̂ of projection.h, of a norm that there is; y may be x.
void apply(const InputNorm& norm, Tensor y, ConstTensor x, Backend& device) {
  if (norm.gate) {
    device.gated_rms_norm(y, x, norm.weight, norm.group, norm.eps, norm.gate, norm.act);
  } else if (norm.weight) {
    device.rms_norm(y, x, norm.weight, norm.eps, norm.offset);
  } else {
    device.rms_norm_plain(y, x, norm.group, norm.eps);
  }
}

/// y = finish(z) by single operations; z may be y, except for a convolution. Convolutions are only collected, to be computed together.
struct Finishing {
  Backend& device;
  Tensor y;
  ConstTensor z;
  std::vector<ShortConvolution>* convolutions = nullptr;

  void operator()(const Activate& finish) const {
    if (finish.addend) device.add(y, z, finish.addend);
    const ConstTensor sum = finish.addend ? ConstTensor(y) : z;
    if (finish.act != Activation::identity || sum.data != y.data) device.activate(y, sum, finish.act);
  }
  void operator()(const ForgetGate& finish) const { device.log_sigmoid_decay(y, z, finish.normalizer, finish.clamp_min); }
  void operator()(const DeltaDecay& finish) const { device.gated_delta_decay(y, z, finish.A_log, finish.dt_bias); }
  void operator()(const Convolve& finish) const {
    if (convolutions == nullptr) throw std::logic_error("products of one input together: none may be convolved");
    convolutions->push_back({.x = z,
                             .weight = finish.weight,
                             .bias = finish.bias,
                             .act = finish.act,
                             .segments = {},
                             .initial_cache = finish.cache,
                             .final_cache = finish.cache,
                             .y = y});
  }
};

bool has_one_input(const Projection& a, const Projection& b) {
  return a.x.data == b.x.data && a.norm.weight.data == b.norm.weight.data && a.norm.gate.data == b.norm.gate.data &&
         a.norm.group == b.norm.group;
}
const ForgetGate* low_rank_gate(const Projection& p) { return p.z ? nullptr : std::get_if<ForgetGate>(&p.finish); }
/// y = y + z
bool adds(const Projection& p) {
  const auto* activate = std::get_if<Activate>(&p.finish);
  return activate != nullptr && activate->act == Activation::identity && activate->addend && activate->addend.data == p.y.data && !p.z &&
         !p.bias;
}
/// Whether the product can compute its epilogue itself: z is not wanted, and there is no addend.
bool ends_with_product(const Projection& p) {
  const auto* activate = std::get_if<Activate>(&p.finish);
  return !p.z && !std::holds_alternative<Convolve>(p.finish) && !(activate != nullptr && activate->addend);
}
/// Whether a product that writes to y would overwrite its addend.
bool needs_y(const Projection& p) {
  const auto* activate = std::get_if<Activate>(&p.finish);
  return activate != nullptr && activate->addend && activate->addend.data == p.y.data;
}

}  // namespace

bool Backend::run_by_parts(const Operation& operation) {
  const auto run_parts = [this]<class Op>(const Op& op) {
    if constexpr (Fused<Op>) by_parts(op, *this);
    return Fused<Op>;
  };
  return std::visit(run_parts, operation);
}

void finish(const LinearProduct& p, Backend& device) { std::visit(Finishing{device, p.y, p.y}, p.finish); }

ConstTensor normed(ConstTensor x, const InputNorm& norm, Backend& device, Workspace& workspace) {
  if (norm.group == 0) return x;
  const Tensor y = workspace.tensor(x.shape, device.activation_type(x.rows()));
  apply(norm, y, x, device);
  return y;
}

void by_parts(const ops::SparseState& op, Backend& device) {
  if (op.from == nullptr) return sparse_state(op.memory, op.chunk_size, device, op.workspace);
  device.make(*op.from, op.workspace);
  device.sparse_state(op.memory, op.chunk_size, op.workspace);
}

void by_parts(const ops::LinearTogether& op, Backend& device) {
  for (const LinearProduct& p : op.products) {
    device.linear(p.y, op.x, p.weight, p.bias);
    finish(p, device);
  }
}

void by_parts(const ops::AddLinear& op, Backend& device) {
  const Workspace::Mark mark(op.workspace);
  const Tensor product = op.workspace.tensor(op.y.shape, device.activation_type(op.y.rows()));
  device.linear(product, op.x, op.weight);
  device.add(op.y, op.y, product);
}

void by_parts(const ops::Project& op, Backend& device) {
  const Workspace::Mark mark(op.workspace);
  for (auto first = op.projections.begin(); first != op.projections.end();) {
    const auto last = std::find_if_not(first, op.projections.end(), [first](const Projection& p) { return has_one_input(*first, p); });
    device.run(ops::ProjectOne{{first, last}, normed(first->x, first->norm, device, op.workspace), op.workspace});
    first = last;
  }
}

void by_parts(const ops::ProjectOne& op, Backend& device) {
  const ConstTensor x = op.normed_x;
  std::vector<LinearProduct> products;
  std::vector<Tensor> z;
  for (const Projection& p : op.projections) {
    const auto* convolve = std::get_if<Convolve>(&p.finish);
    z.push_back(p.z ? p.z : convolve ? convolve->room : needs_y(p) && !adds(p) ? op.workspace.tensor(p.y.shape, p.y.dtype) : p.y);
    if (!low_rank_gate(p) && !adds(p)) products.push_back({z.back(), p.weight, p.bias, ends_with_product(p) ? p.finish : Finish{}});
  }
  device.linear_together(products, x);
  std::vector<ShortConvolution> convolutions;
  for (std::size_t i = 0; i < op.projections.size(); ++i) {
    const Projection& p = op.projections[i];
    if (const ForgetGate* gate = low_rank_gate(p)) {
      device.low_rank_decay(p.y, x, p.weight, p.bias, gate->normalizer, gate->clamp_min);
    } else if (adds(p)) {
      device.add_linear(p.y, x, p.weight, op.workspace);
    } else if (!ends_with_product(p)) {
      std::visit(Finishing{device, p.y, z[i], &convolutions}, p.finish);
    }
  }
  const std::array<std::int32_t, 2> all{0, static_cast<std::int32_t>(x.rows())};
  for (ShortConvolution& convolution : convolutions) convolution.segments = {all, {}};
  if (!convolutions.empty()) device.short_convolutions(convolutions);
}

void by_parts(const ops::SwiGlu& op, Backend& device) {
  const Workspace::Mark mark(op.workspace);
  const Shape inner{op.x.rows(), op.gate_proj.rows()};
  const Tensor gate_logits = op.workspace.tensor(inner), up = op.workspace.tensor(inner);
  const ConstTensor in = normed(op.x, op.norm, device, op.workspace);
  device.linear(gate_logits, in, op.gate_proj);
  device.linear(up, in, op.up_proj);
  device.gate(up, up, gate_logits, Activation::silu);
  const Projection down{
      .x = up, .norm = {}, .weight = op.down_proj, .bias = {}, .y = op.y, .finish = Activate{.addend = op.addend}, .z = {}};
  device.project(std::span(&down, 1), op.workspace);
}

ConstTensor together(ConstTensor x, Backend& device, Workspace& workspace) {
  if (x.contiguous()) return x;
  const Tensor copy = workspace.tensor(x.shape, x.dtype);
  device.copy(copy, x);
  return copy;
}

void by_parts(const ops::ForgetGatedOuterProduct& op, Backend& device) {
  device.project(std::span(&op.gate, 1), op.workspace);
  device.decayed_outer_product(op.memory, op.chunk_size);
}

void by_parts(const ops::UnitDeltaRule& op, Backend& device) {
  if (op.readout.group > 0) {
    const Tensor heads = op.memory.o.with_row({op.memory.o.row_size()});
    device.unit_delta_rule(op.memory, op.chunk_size, op.workspace);
    return apply(op.readout, heads, heads, device);
  }
  const Workspace::Mark mark(op.workspace);
  const auto unit = [&](ConstTensor x) {
    const Tensor y = op.workspace.tensor(x.shape, x.dtype);
    device.l2_norm(y, x);
    return y;
  };
  GatedDeltaRule of_units = op.memory;
  of_units.q = unit(op.memory.q);
  of_units.k = unit(op.memory.k);
  device.gated_delta_rule(of_units, op.chunk_size);
}

void by_parts(const ops::LowRankDecay& op, Backend& device) {
  device.linear(op.y, op.x, op.weight, op.bias);
  device.log_sigmoid_decay(op.y, op.y, op.normalizer, op.clamp_min);
}

void by_parts(const ops::SumPair& op, Backend& device) {
  const std::int64_t n = op.shared.row_size();
  const Tensor first = op.pair.columns(0, {n}), second = op.pair.columns(n, {n});
  device.activate(first, op.shared, op.act);
  device.add(second, op.sparse, op.more);
  device.activate(second, second, op.act);
}

void by_parts(const ops::SoftmaxPair& op, Backend& device) {
  device.sum_pair(op.pair, op.shared, op.sparse, op.more, Activation::identity);
  device.softmax(op.pair, op.pair);
}

void by_parts(const ops::AddRmsNorm& op, Backend& device) {
  device.add(op.x, op.x, op.added);
  op.weight ? device.rms_norm(op.y, op.x, op.weight, op.eps, op.offset) : device.rms_norm_plain(op.y, op.x, op.x.row_size(), op.eps);
}

void by_parts(const ops::GatedRmsNorm& op, Backend& device) {
  op.weight ? device.rms_norm(op.y, op.x, op.weight, op.eps) : device.rms_norm_plain(op.y, op.x, op.group, op.eps);
  device.gate(op.y, op.y, op.gate, op.act);
}

}  // namespace statescope

#include "kernels/backend.h"

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>
#include <vector>

#include "kernels/cpu/host_memory.h"

namespace statescope {
namespace {

class Downloaded final : public Download {
 public:
  void wait() override {}
};

}  // namespace

std::unique_ptr<Download> Backend::download_later(Tensor host, ConstTensor device) {
  download(host, device);
  return std::make_unique<Downloaded>();
}

std::size_t Backend::free_bytes() { return available_memory(); }

void Backend::sparse_state(const SparseState& op, std::int64_t chunk_size, Workspace& workspace) {
  statescope::sparse_state(op, chunk_size, *this, workspace);
}

void Backend::make_choices(const SparseSources& from) {
  for (const SparsePair* x : {&from.q, &from.k}) {
    if (x->softmax) {
      softmax_pair(x->pair, x->shared, x->sparse, x->more);
    } else {
      sum_pair(x->pair, x->shared, x->sparse, x->more, x->act);
    }
  }
  softmax(from.gate, from.logits);
  if (from.selected) top_k(from.selected, from.by_logits ? from.logits : from.gate);
}

void Backend::make(const SparseSources& from, Workspace& workspace) {
  make_choices(from);
  project(from.decays, workspace);
}

void Backend::sparse_state(const SparseState& op, const SparseSources& from, std::int64_t chunk_size, Workspace& workspace) {
  make(from, workspace);
  sparse_state(op, chunk_size, workspace);
}

void Backend::apply(const InputNorm& norm, Tensor y, ConstTensor x) {
  if (norm.gate) {
    gated_rms_norm(y, x, norm.weight, norm.group, norm.eps, norm.gate, norm.act);
  } else if (norm.weight) {
    rms_norm(y, x, norm.weight, norm.eps, norm.offset);
  } else {
    rms_norm_plain(y, x, norm.group, norm.eps);
  }
}

ConstTensor Backend::normed(ConstTensor x, const InputNorm& norm, Workspace& workspace) {
  if (norm.group == 0) return x;
  const Tensor y = workspace.tensor(x.shape, activation_type(x.rows()));
  apply(norm, y, x);
  return y;
}

namespace {

/// y = finish(z) by single operations; z may be y, except for a convolution. Convolutions are only collected, to be computed together.
struct Finishing {
  Backend& backend;
  Tensor y;
  ConstTensor z;
  std::vector<ShortConvolution>* convolutions = nullptr;

  void operator()(const Activate& finish) const {
    if (finish.addend) backend.add(y, z, finish.addend);
    const ConstTensor sum = finish.addend ? ConstTensor(y) : z;
    if (finish.act != Activation::identity || sum.data != y.data) backend.activate(y, sum, finish.act);
  }
  void operator()(const ForgetGate& finish) const { backend.log_sigmoid_decay(y, z, finish.normalizer, finish.clamp_min); }
  void operator()(const DeltaDecay& finish) const { backend.gated_delta_decay(y, z, finish.A_log, finish.dt_bias); }
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

}  // namespace

void Backend::linear_together(std::span<const LinearProduct> products, ConstTensor x) {
  for (const LinearProduct& p : products) {
    linear(p.y, x, p.weight, p.bias);
    finish(p);
  }
}

void Backend::finish(const LinearProduct& p) { std::visit(Finishing{*this, p.y, p.y}, p.finish); }

namespace {

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

void Backend::project(std::span<const Projection> projections, Workspace& workspace) {
  const Workspace::Mark mark(workspace);
  for (auto first = projections.begin(); first != projections.end();) {
    const auto last = std::find_if_not(first, projections.end(), [first](const Projection& p) { return has_one_input(*first, p); });
    project_one({first, last}, normed(first->x, first->norm, workspace), workspace);
    first = last;
  }
}

void Backend::project_one(std::span<const Projection> projections, ConstTensor x, Workspace& workspace) {
  std::vector<LinearProduct> products;
  std::vector<Tensor> z;
  for (const Projection& p : projections) {
    const auto* convolve = std::get_if<Convolve>(&p.finish);
    z.push_back(p.z ? p.z : convolve ? convolve->room : needs_y(p) && !adds(p) ? workspace.tensor(p.y.shape, p.y.dtype) : p.y);
    if (!low_rank_gate(p) && !adds(p)) products.push_back({z.back(), p.weight, p.bias, ends_with_product(p) ? p.finish : Finish{}});
  }
  linear_together(products, x);
  std::vector<ShortConvolution> convolutions;
  for (std::size_t i = 0; i < projections.size(); ++i) {
    const Projection& p = projections[i];
    if (const ForgetGate* gate = low_rank_gate(p)) {
      low_rank_decay(p.y, x, p.weight, p.bias, gate->normalizer, gate->clamp_min);
    } else if (adds(p)) {
      add_linear(p.y, x, p.weight, workspace);
    } else if (!ends_with_product(p)) {
      std::visit(Finishing{*this, p.y, z[i], &convolutions}, p.finish);
    }
  }
  const std::array<std::int32_t, 2> all{0, static_cast<std::int32_t>(x.rows())};
  for (ShortConvolution& op : convolutions) op.segments = {all, {}};
  if (!convolutions.empty()) short_convolutions(convolutions);
}

void Backend::add_linear(Tensor y, ConstTensor x, ConstTensor weight, Workspace& workspace) {
  const Workspace::Mark mark(workspace);
  const Tensor product = workspace.tensor(y.shape, activation_type(y.rows()));
  linear(product, x, weight);
  add(y, y, product);
}

void Backend::swiglu(Tensor y, ConstTensor x, ConstTensor gate_proj, ConstTensor up_proj, ConstTensor down_proj, Workspace& workspace,
                     const InputNorm& norm, ConstTensor addend) {
  const Workspace::Mark mark(workspace);
  const Shape inner{x.rows(), gate_proj.rows()};
  const Tensor gate_logits = workspace.tensor(inner), up = workspace.tensor(inner);
  const ConstTensor in = normed(x, norm, workspace);
  linear(gate_logits, in, gate_proj);
  linear(up, in, up_proj);
  gate(up, up, gate_logits, Activation::silu);
  const Projection down{.x = up, .norm = {}, .weight = down_proj, .bias = {}, .y = y, .finish = Activate{.addend = addend}, .z = {}};
  project(std::span(&down, 1), workspace);
}

void Backend::forget_gated_outer_product(const DecayedOuterProduct& op, const Projection& gate, std::int64_t chunk_size,
                                         Workspace& workspace) {
  project(std::span(&gate, 1), workspace);
  decayed_outer_product(op, chunk_size);
}

void Backend::unit_delta_rule(const GatedDeltaRule& op, std::int64_t chunk_size, Workspace& workspace, const InputNorm& readout) {
  if (readout.group > 0) {
    const Tensor heads = op.o.with_row({op.o.row_size()});
    unit_delta_rule(op, chunk_size, workspace);
    return apply(readout, heads, heads);
  }
  const Workspace::Mark mark(workspace);
  const auto unit = [&](ConstTensor x) {
    const Tensor y = workspace.tensor(x.shape, x.dtype);
    l2_norm(y, x);
    return y;
  };
  GatedDeltaRule of_units = op;
  of_units.q = unit(op.q);
  of_units.k = unit(op.k);
  gated_delta_rule(of_units, chunk_size);
}

void Backend::low_rank_decay(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, float normalizer, float clamp_min) {
  linear(y, x, weight, bias);
  log_sigmoid_decay(y, y, normalizer, clamp_min);
}

void Backend::sum_pair(Tensor pair, ConstTensor shared, ConstTensor sparse, ConstTensor more, Activation act) {
  const std::int64_t n = shared.row_size();
  activate(pair.columns(0, {n}), shared, act);
  add(pair.columns(n, {n}), sparse, more);
  activate(pair.columns(n, {n}), pair.columns(n, {n}), act);
}

void Backend::softmax_pair(Tensor pair, ConstTensor shared, ConstTensor sparse, ConstTensor more) {
  sum_pair(pair, shared, sparse, more, Activation::identity);
  softmax(pair, pair);
}

void Backend::add_rms_norm(Tensor y, Tensor x, ConstTensor added, ConstTensor weight, float eps, float offset) {
  add(x, x, added);
  weight ? rms_norm(y, x, weight, eps, offset) : rms_norm_plain(y, x, x.row_size(), eps);
}

void Backend::gated_rms_norm(Tensor y, ConstTensor x, ConstTensor weight, std::int64_t group, float eps, ConstTensor gate_logits,
                             Activation act) {
  weight ? rms_norm(y, x, weight, eps) : rms_norm_plain(y, x, group, eps);
  gate(y, y, gate_logits, act);
}

}  // namespace statescope

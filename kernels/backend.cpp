#include "kernels/backend.h"

#include <array>
#include <span>

#include "kernels/host_memory.h"

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

void Backend::make(const SparseSources& from) {
  for (const SparsePair* x : {&from.q, &from.k}) {
    sum_pair(x->pair, x->shared, x->sparse, x->more, x->softmax ? Activation::identity : x->act);
    if (x->softmax) softmax(x->pair, x->pair);
  }
  softmax(from.gate, from.logits);
  if (from.selected) top_k(from.selected, from.by_logits ? from.logits : from.gate);
}

void Backend::sparse_state(const SparseState& op, const SparseSources& from, std::int64_t chunk_size, Workspace& workspace) {
  make(from);
  sparse_state(op, chunk_size, workspace);
}

namespace {

/// x̂ of projection.h: x itself where no norm stands before the product.
ConstTensor normed(Backend& backend, ConstTensor x, const InputNorm& norm, Workspace& workspace) {
  if (norm.group == 0) return x;
  const Tensor y = workspace.tensor(x.shape, x.dtype);
  if (norm.gate) {
    backend.gated_rms_norm(y, x, norm.weight, norm.group, norm.eps, norm.gate, norm.act);
  } else if (norm.weight) {
    backend.rms_norm(y, x, norm.weight, norm.eps, norm.offset);
  } else {
    backend.rms_norm_plain(y, x, norm.group, norm.eps);
  }
  return y;
}

/// y = finish(z) in parts; z may be y, save for a convolution.
struct Finishing {
  Backend& backend;
  Tensor y;
  ConstTensor z;

  void operator()(const Activate& finish) const {
    if (finish.addend) backend.add(y, z, finish.addend);
    const ConstTensor sum = finish.addend ? ConstTensor(y) : z;
    if (finish.act != Activation::identity || sum.data != y.data) backend.activate(y, sum, finish.act);
  }
  void operator()(const ForgetGate& finish) const { backend.log_sigmoid_decay(y, z, finish.normalizer, finish.clamp_min); }
  void operator()(const DeltaDecay& finish) const { backend.gated_delta_decay(y, z, finish.A_log, finish.dt_bias); }
  void operator()(const Convolve& finish) const {
    const std::array<std::int32_t, 2> all{0, static_cast<std::int32_t>(z.rows())};
    backend.short_convolution({.x = z,
                               .weight = finish.weight,
                               .bias = finish.bias,
                               .act = finish.act,
                               .segments = {all, {}},
                               .initial_cache = finish.cache,
                               .final_cache = finish.cache,
                               .y = y});
  }
};

}  // namespace

void Backend::project(std::span<const Projection> projections, Workspace& workspace) {
  const Workspace::Mark mark(workspace);
  const Projection* last = nullptr;
  ConstTensor x;
  for (const Projection& p : projections) {
    const bool same = last != nullptr && p.x.data == last->x.data && p.norm.weight.data == last->norm.weight.data &&
                      p.norm.gate.data == last->norm.gate.data && p.norm.group == last->norm.group;
    if (!same) x = normed(*this, p.x, p.norm, workspace);
    last = &p;
    if (const auto* gate = std::get_if<ForgetGate>(&p.finish); gate != nullptr && !p.z) {
      low_rank_decay(p.y, x, p.weight, p.bias, gate->normalizer, gate->clamp_min);
      continue;
    }
    const auto* activate = std::get_if<Activate>(&p.finish);
    const bool needs_y = activate != nullptr && activate->addend.data == p.y.data;  // it would be overwritten
    const Tensor z = p.z ? p.z : needs_y ? workspace.tensor(p.y.shape, p.y.dtype) : p.y;
    linear(z, x, p.weight, p.bias);
    std::visit(Finishing{*this, p.y, z}, p.finish);
  }
}

void Backend::swiglu(Tensor y, ConstTensor x, ConstTensor gate_proj, ConstTensor up_proj, ConstTensor down_proj, Workspace& workspace,
                     const InputNorm& norm, ConstTensor addend) {
  const Workspace::Mark mark(workspace);
  const Shape inner{x.rows(), gate_proj.rows()};
  const Tensor gate_logits = workspace.tensor(inner), up = workspace.tensor(inner);
  const ConstTensor in = normed(*this, x, norm, workspace);
  linear(gate_logits, in, gate_proj);
  linear(up, in, up_proj);
  gate(up, up, gate_logits, Activation::silu);
  const Projection down{.x = up, .norm = {}, .weight = down_proj, .bias = {}, .y = y, .finish = Activate{.addend = addend}, .z = {}};
  project(std::span(&down, 1), workspace);
}

void Backend::unit_delta_rule(const GatedDeltaRule& op, std::int64_t chunk_size, Workspace& workspace) {
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

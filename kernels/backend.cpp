#include "kernels/backend.h"

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

void Backend::swiglu(Tensor y, ConstTensor x, ConstTensor gate_proj, ConstTensor up_proj, ConstTensor down_proj, Workspace& workspace) {
  const Workspace::Mark mark(workspace);
  const Shape inner{x.rows(), gate_proj.rows()};
  const Tensor gate_logits = workspace.tensor(inner), up = workspace.tensor(inner);
  linear(gate_logits, x, gate_proj);
  linear(up, x, up_proj);
  gate(up, up, gate_logits, Activation::silu);
  linear(y, up, down_proj);
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

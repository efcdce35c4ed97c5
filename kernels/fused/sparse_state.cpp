#include "kernels/ops/sparse_state.h"

#include <algorithm>
#include <initializer_list>
#include <stdexcept>

#include "kernels/backend.h"

namespace statescope {
namespace {

/// What the host decides before the memory runs. Its vectors keep their capacity.
struct Plan {
  std::vector<std::int32_t> selected;          // [T · W]
  std::vector<float> gate;                     // [T · N]
  PartitionOrder order;                        // of the items: one per token and choice
  std::vector<float> read, write;              // [items]: factors of q and of k
  std::vector<bool> writes;                    // [items]
  std::vector<std::int32_t> cu_seqlens, slot;  // of all segments: the shared ones, then the runs
  std::int64_t items() const { return static_cast<std::int64_t>(order.token.size()); }
};

/// The numbers of a tensor that may be strided and may live on a device.
template <class Number>
void read_back(std::vector<Number>& host, ConstTensor x, Backend& backend, Workspace& workspace) {
  Workspace::Mark mark(workspace);
  if (!x.contiguous()) {
    const Tensor contiguous = workspace.tensor(x.shape, x.dtype);
    backend.copy(contiguous, x);
    x = contiguous;
  }
  host.resize(static_cast<std::size_t>(x.shape.size()));
  backend.download(Tensor(host.data(), x.dtype, x.shape), x);
}

/// An item's read factor is e if it reads, its write factor e if it writes; the gate flags replace e by 1.
void weigh_items(Plan& plan, const SparseState& op) {
  const PartitionOrder& order = plan.order;
  const auto N = static_cast<std::size_t>(op.gate.row_size());
  plan.read.clear();
  plan.write.clear();
  plan.writes.clear();
  for (std::size_t i = 0; i < order.token.size(); ++i) {
    const float e = plan.gate[static_cast<std::size_t>(order.token[i]) * N + static_cast<std::size_t>(order.partition[i])];
    const bool reads = order.rank[i] < op.readers, writes = order.rank[i] < op.writers;
    plan.read.push_back(!reads ? 0 : op.gate_q ? e : 1);
    plan.write.push_back(!writes ? 0 : op.write_scale * (op.gate_k ? e : 1));
    plan.writes.push_back(writes);
  }
}

/// The segments of the rows [T shared ; items], spec §10, step 5: sequence a owns the states a (1 + N) (shared) and a (1 + N) + 1 + n.
void list_segments(Plan& plan, const SparseState& op) {
  const auto N = static_cast<std::int32_t>(op.gate.row_size());
  plan.cu_seqlens.assign(op.cu_seqlens.begin(), op.cu_seqlens.end());
  plan.slot.clear();
  for (std::int32_t a = 0; a + 1 < static_cast<std::int32_t>(op.cu_seqlens.size()); ++a) plan.slot.push_back(a * (1 + N));
  const std::int32_t T = op.cu_seqlens.back();
  for (std::size_t r = 0; r < plan.order.run.size(); ++r) {
    plan.cu_seqlens.push_back(T + plan.order.cu_seqlens[r + 1]);
    plan.slot.push_back(plan.order.run[r] / N * (1 + N) + 1 + plan.order.run[r] % N);
  }
}

/// The rows [T shared ; items] of the operands, gathered on the device.
class Rows {
 public:
  Rows(const Plan& plan, std::int64_t tokens, Backend& backend, Workspace& workspace)
      : plan_(plan), tokens_(tokens), backend_(backend), workspace_(workspace) {}

  Tensor items(Tensor rows) const { return rows.slice(tokens_, plan_.items()); }
  Tensor tensor(Shape shape) const {
    shape[0] = tokens_ + plan_.items();
    return workspace_.tensor(shape);
  }
  Tensor gathered(ConstTensor shared, ConstTensor sparse) const {
    const Tensor rows = tensor(shared.shape);
    backend_.copy(rows.slice(0, tokens_), shared);
    backend_.gather_rows(items(rows), sparse, plan_.order.token.data());
    return rows;
  }
  /// Of x [T, 2, ...], index 0 for the shared state and index 1 for the items.
  Tensor gathered(ConstTensor x) const { return gathered(half(x, 0), half(x, 1)); }
  void scale(Tensor rows, const std::vector<float>& factor) const {
    Workspace::Mark mark(workspace_);
    const Shape shape{plan_.items(), 1};
    const Tensor g = workspace_.tensor(shape);
    backend_.upload(g, ConstTensor(factor.data(), DType::f32, shape));
    backend_.scale_heads(items(rows), items(rows), g);
  }

 private:
  static ConstTensor half(ConstTensor x, std::int64_t index) {
    const std::int64_t size = x.row_size() / 2;
    return x.shape.rank() == 3 ? x.columns(index * size, {x.shape[2]}) : x.columns(index * size, {x.shape[2], x.shape[3]});
  }

  const Plan& plan_;
  std::int64_t tokens_;
  Backend& backend_;
  Workspace& workspace_;
};

/// The sparse q (or k) times its factor; for the delta rule x̂ = L2(e x) or e L2(x), and L2(x) in the shared rows (spec §4.3).
Tensor gated(const Rows& rows, ConstTensor x, const std::vector<float>& factor, const SparseState& op, Backend& backend) {
  const bool delta_rule = static_cast<bool>(op.beta);
  const Tensor result = rows.gathered(x);
  if (delta_rule && op.gate_place == GatePlace::after_l2) backend.l2_norm(result, result);
  rows.scale(result, factor);
  if (delta_rule && op.gate_place == GatePlace::before_l2) backend.l2_norm(result, result);
  return result;
}

/// log decay or β: zero where an item only reads, so that its state stays as it is. Absent stays absent.
ConstTensor written(const Rows& rows, ConstTensor x, const Plan& plan, const SparseState& op, Backend& backend) {
  if (!x) return x;
  const Tensor result = rows.gathered(x), items = rows.items(result);
  if (op.readers <= op.writers) return result;
  const auto first = plan.writes.begin(), last = plan.writes.end();
  for (auto begin = std::find(first, last, false); begin != last;) {
    const auto end = std::find(begin, last, true);
    backend.fill(items.slice(begin - first, end - begin), 0);  // not times 0: a log decay may be −∞
    begin = std::find(end, last, false);
  }
  return result;
}

/// One call over all segments, in place on the final state.
template <class Memory>
Memory memory_of(const SparseState& op, const Plan& plan, const Rows& rows, Backend& backend) {
  Memory memory;
  memory.q = gated(rows, op.q, plan.read, op, backend);
  memory.k = gated(rows, op.k, plan.write, op, backend);
  memory.v = rows.gathered(op.v, op.v);
  memory.log_decay = written(rows, op.log_decay, plan, op, backend);
  memory.scale = op.scale;
  memory.segments = {plan.cu_seqlens, plan.slot};
  memory.initial_state = op.final_state;
  memory.final_state = op.final_state;
  memory.o = rows.tensor(op.o.shape);
  return memory;
}

Tensor run_memory(const SparseState& op, const Plan& plan, const Rows& rows, std::int64_t chunk_size, Backend& backend) {
  if (op.beta) {
    auto memory = memory_of<GatedDeltaRule>(op, plan, rows, backend);
    memory.beta = written(rows, op.beta, plan, op, backend);
    backend.gated_delta_rule(memory, chunk_size);
    return memory.o;
  }
  const auto memory = memory_of<DecayedOuterProduct>(op, plan, rows, backend);
  backend.decayed_outer_product(memory, chunk_size);
  return memory.o;
}

}  // namespace

void check_sparse_state(const SparseState& op, DType operands) {
  const std::int64_t T = op.v.rows(), sequences = static_cast<std::int64_t>(op.cu_seqlens.size()) - 1;
  const auto all_of_type = [](DType type, std::initializer_list<ConstTensor> tensors) {
    return std::all_of(tensors.begin(), tensors.end(), [type](ConstTensor x) { return !x || x.dtype == type; });
  };
  const bool types = all_of_type(operands, {op.q, op.k, op.v, op.o}) &&
                     all_of_type(DType::f32, {op.log_decay, op.beta, op.gate, op.initial_state, op.final_state});
  const bool fits = types && op.selected.dtype == DType::i32 && sequences >= 0 && op.cu_seqlens.back() == T && op.q.rows() == T &&
                    op.k.rows() == T && op.o.rows() == T && op.gate.rows() == T && op.selected.rows() == T &&
                    op.selected.row_size() == std::max(op.writers, op.readers) && op.q.shape.rank() == 4 && op.q.shape == op.k.shape &&
                    op.q.shape[1] == 2 && op.o.shape == op.v.shape && op.final_state.rows() == sequences * (1 + op.gate.row_size()) &&
                    op.final_state.shape == op.initial_state.shape;
  if (!fits) {
    throw std::invalid_argument("sparse_state: q " + op.q.shape.to_string() + ", v " + op.v.shape.to_string() + ", gate " +
                                op.gate.shape.to_string() + ", selected " + op.selected.shape.to_string() + ", states " +
                                op.final_state.shape.to_string());
  }
}

void sparse_state(const SparseState& op, std::int64_t chunk_size, Backend& backend, Workspace& workspace) {
  check_sparse_state(op);
  static thread_local Plan plan;
  const Workspace::Mark mark(workspace);
  const std::int64_t T = op.v.rows();

  read_back(plan.selected, op.selected, backend, workspace);
  read_back(plan.gate, op.gate, backend, workspace);
  order_by_partition(plan.order, ConstTensor(plan.selected.data(), DType::i32, op.selected.shape), op.cu_seqlens, op.gate.row_size());
  weigh_items(plan, op);
  list_segments(plan, op);

  // States that no token chose are carried over; all others continue from here in place.
  if (op.final_state.data != op.initial_state.data) backend.copy(op.final_state, op.initial_state);
  const Rows rows(plan, T, backend, workspace);
  const Tensor o = run_memory(op, plan, rows, chunk_size, backend);

  // o_t = o_t⁰ + Σ_n o_tⁿ
  backend.copy(op.o, o.slice(0, T));
  backend.scatter_add_rows(op.o, rows.items(o), plan.order.token.data());
}

}  // namespace statescope

#include "app/bench/sse_forms.h"

#include <stdexcept>
#include <vector>

#include "kernels/backend.h"

namespace statescope {
namespace {

void check(const SparseState& op) {
  check_sparse_state(op, op.q.dtype);
  if (op.beta || op.readers != op.writers || !op.gate_q || !op.gate_k || op.write_scale != 1)
    throw std::invalid_argument("sse: only the decayed outer product with readers = writers and both gates");
}

/// Of x [T, 2, H, n] what the shared state takes (0) or the partitions (1).
ConstTensor half(ConstTensor x, std::int64_t index) { return x.columns(index * x.row_size() / 2, {x.shape[2], x.shape[3]}); }

/// Numbers of a tensor that may live on a device.
template <class Number>
std::vector<Number> read_back(ConstTensor x, Backend& backend) {
  std::vector<Number> host(static_cast<std::size_t>(x.shape.size()));
  backend.download(Tensor(host.data(), x.dtype, x.shape), x);
  return host;
}

/// The tokens of one partition of one sequence, and their gates.
struct Chosen {
  std::vector<std::int32_t> token;
  std::vector<float> gate;
};

/// One sequence from one state, in place.
void run_alone(const SparseState& op, std::int64_t slot, ConstTensor q, ConstTensor k, ConstTensor v, ConstTensor log_decay, Tensor o,
               std::int64_t chunk_size, Backend& backend) {
  const std::int32_t bounds[] = {0, static_cast<std::int32_t>(q.rows())};
  const Tensor state = op.final_state.slice(slot, 1);
  backend.decayed_outer_product({.q = q,
                                 .k = k,
                                 .v = v,
                                 .log_decay = log_decay,
                                 .scale = op.scale,
                                 .segments = {bounds, {}},
                                 .initial_state = state,
                                 .final_state = state,
                                 .o = o},
                                chunk_size);
}

void run_partition(const SparseState& op, std::int64_t slot, const Chosen& chosen, std::int64_t chunk_size, Backend& backend,
                   Workspace& workspace) {
  if (chosen.token.empty()) return;
  const Workspace::Mark mark(workspace);
  const auto n = static_cast<std::int64_t>(chosen.token.size());
  const Tensor e = workspace.tensor({n, 1});
  backend.upload(e, ConstTensor(chosen.gate.data(), DType::f32, {n, 1}));
  const auto gathered = [&](ConstTensor x) {
    Shape shape = x.shape;
    shape[0] = n;
    const Tensor rows = workspace.tensor(shape, x.dtype);
    backend.gather_rows(rows, x, chosen.token.data());
    return rows;
  };
  const Tensor q = gathered(half(op.q, 1)), k = gathered(half(op.k, 1)), v = gathered(op.v);
  backend.scale_heads(q, q, e);
  backend.scale_heads(k, k, e);
  const Tensor o = workspace.tensor(v.shape, op.o.dtype);
  run_alone(op, slot, q, k, v, gathered(half(op.log_decay, 1)), o, chunk_size, backend);
  backend.scatter_add_rows(op.o, o, chosen.token.data());
}

/// 1, or the gate e, where a token chose a partition, and 0 elsewhere.
struct Masks {
  Tensor one, gate;  // [T, N]
};
Masks masks_of(const SparseState& op, Backend& backend, Workspace& workspace) {
  const std::int64_t N = op.gate.row_size();
  const Masks masks{workspace.tensor(op.gate.shape), workspace.tensor(op.gate.shape)};
  const auto selected = read_back<std::int32_t>(op.selected, backend);
  std::vector<float> one(static_cast<std::size_t>(op.gate.shape.size()));
  for (std::size_t i = 0; i < selected.size(); ++i) {
    const auto token = static_cast<std::int64_t>(i) / op.writers;
    one[static_cast<std::size_t>(token * N + selected[i])] = 1;
  }
  backend.upload(masks.one, ConstTensor(one.data(), DType::f32, op.gate.shape));
  backend.gate(masks.gate, op.gate, masks.one, Activation::identity);
  return masks;
}

/// [T, (1 + N) · H, n]: `shared`, then for each partition `sparse`, times the partition's column of `mask`.
Tensor repeated(ConstTensor shared, ConstTensor sparse, ConstTensor mask, Backend& backend, Workspace& workspace) {
  const std::int64_t heads = shared.shape[1], n = shared.shape[2], N = mask.row_size();
  const Tensor wide = workspace.tensor({shared.rows(), (1 + N) * heads, n}, shared.dtype);
  backend.copy(wide.columns(0, {heads, n}), shared);
  for (std::int64_t p = 0; p < N; ++p) backend.scale_heads(wide.columns((1 + p) * heads * n, {heads, n}), sparse, mask.columns(p, {1}));
  return wide;
}

}  // namespace

void sse_sequential(const SparseState& op, std::int64_t chunk_size, Backend& backend, Workspace& workspace) {
  check(op);
  const std::int64_t N = op.gate.row_size();
  const auto gate = read_back<float>(op.gate, backend);
  const auto selected = read_back<std::int32_t>(op.selected, backend);
  if (op.final_state.data != op.initial_state.data) backend.copy(op.final_state, op.initial_state);
  for (std::size_t a = 0; a + 1 < op.cu_seqlens.size(); ++a) {
    const std::int64_t begin = op.cu_seqlens[a], count = op.cu_seqlens[a + 1] - begin, first = static_cast<std::int64_t>(a) * (1 + N);
    const auto rows = [&](auto x) { return x.slice(begin, count); };
    run_alone(op, first, rows(half(op.q, 0)), rows(half(op.k, 0)), rows(op.v), rows(half(op.log_decay, 0)), rows(op.o), chunk_size,
              backend);
    std::vector<Chosen> partitions(static_cast<std::size_t>(N));
    for (std::int64_t i = begin * op.writers; i < (begin + count) * op.writers; ++i) {
      const auto token = static_cast<std::int32_t>(i / op.writers);
      const std::int32_t p = selected[static_cast<std::size_t>(i)];
      partitions[static_cast<std::size_t>(p)].token.push_back(token);
      partitions[static_cast<std::size_t>(p)].gate.push_back(gate[static_cast<std::size_t>(token * N + p)]);
    }
    for (std::int64_t p = 0; p < N; ++p) {
      run_partition(op, first + 1 + p, partitions[static_cast<std::size_t>(p)], chunk_size, backend, workspace);
    }
  }
}

void sse_masking(const SparseState& op, std::int64_t chunk_size, Backend& backend, Workspace& workspace) {
  check(op);
  const Workspace::Mark mark(workspace);
  const std::int64_t T = op.v.rows(), H = op.v.shape[1], K = op.q.shape[3], V = op.v.shape[2], N = op.gate.row_size(),
                     sequences = static_cast<std::int64_t>(op.cu_seqlens.size()) - 1;
  const Masks masks = masks_of(op, backend, workspace);
  const auto wide = [&](ConstTensor x, ConstTensor mask) { return repeated(half(x, 0), half(x, 1), mask, backend, workspace); };
  // The states of a sequence lie one behind the other: (1 + N) · H heads of one state.
  const Shape states{sequences, (1 + N) * H, K, V};
  const Tensor o = workspace.tensor({T, (1 + N) * H, V}, op.o.dtype);
  backend.decayed_outer_product({.q = wide(op.q, masks.gate),
                                 .k = wide(op.k, masks.gate),
                                 .v = repeated(op.v, op.v, masks.one, backend, workspace),
                                 .log_decay = wide(op.log_decay, masks.one),
                                 .scale = op.scale,
                                 .segments = {op.cu_seqlens, {}},
                                 .initial_state = ConstTensor(op.initial_state.data, DType::f32, states),
                                 .final_state = Tensor(op.final_state.data, DType::f32, states),
                                 .o = o},
                                chunk_size);
  // o_t = o_t⁰ + Σ_n o_tⁿ
  backend.copy(op.o, o.columns(0, {H, V}));
  for (std::int64_t p = 0; p < N; ++p) backend.add(op.o, op.o, o.columns((1 + p) * H * V, {H, V}));
}

}  // namespace statescope

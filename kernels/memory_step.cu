#include "kernels/cuda_levels.h"

namespace statescope::cuda {

using namespace memory_step;

namespace {

/// Begins while the kernels before it end.
template <bool delta_rule, int RowsPerThread>
__global__ void __launch_bounds__(threads) step_kernel(const __grid_constant__ Step p) {
  __shared__ Shared shared;
  let_next_begin();
  step<delta_rule, RowsPerThread, false>(p, shared, static_cast<int>(blockIdx.x), [] { wait_for_results(); });
}

// ---- launchers -----------------------------------------------------------------------------------------------------------------------

template <bool delta_rule>
void start(const Step& p, cudaStream_t stream) {
  const auto begin = [&](auto kernel) {
    // As the kernels beside it want it (levels_hopper.cu): another division of the first cache would wait for them.
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared), "shared memory");
    launch_overlapped("memory, one row", kernel, static_cast<unsigned>(blocks_of(p)), threads, 0, stream, p);
  };
  const int rows = rows_of_thread(p);
  if (rows <= 2) return begin(step_kernel<delta_rule, 2>);
  if (rows <= 4) return begin(step_kernel<delta_rule, 4>);
  begin(step_kernel<delta_rule, most_rows>);
}

Operand operand(ConstTensor x, bool per_head) {
  if (!x) return {};
  const int axis = x.shape.rank() - 1;
  return {x.f32(), static_cast<int>(x.shape[per_head ? axis : axis - 1]), per_head ? 1 : static_cast<int>(x.shape[axis]), false};
}

Source source(const SparsePair& x) { return {x.pair.f32(), x.shared.f32(), x.sparse.f32(), x.more.f32(), x.act, x.softmax}; }

bool fits(ConstTensor q, ConstTensor v, ConstTensor initial, Tensor final, Tensor o) {
  const auto aligned = [](ConstTensor x) { return reinterpret_cast<std::uintptr_t>(x.data) % sizeof(float4) == 0; };
  return v.rows() == 1 && q.dtype == DType::f32 && v.dtype == DType::f32 && o.dtype == DType::f32 && initial.data == final.data &&
         initial.shape[2] <= most_channels && initial.shape[3] % own_columns == 0 && initial.contiguous() && aligned(v) &&
         aligned(initial) && aligned(o);
}

template <class Memory>
Step step_of(const Memory& op, Tensor state) {
  Step p{};
  p.v = operand(op.v, false);
  p.state = state.f32();
  p.o = op.o.f32();
  p.H = static_cast<int>(state.shape[1]);
  p.K = static_cast<int>(state.shape[2]);
  p.V = static_cast<int>(state.shape[3]);
  p.scale = op.scale;
  // Small blocks, so that the states are read from everywhere at once, as long as there is a multiprocessor for each.
  p.columns = few_columns;
  int device = 0, multiprocessors = 0;
  check(cudaGetDevice(&device), "the device");
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), "the device's properties");
  if (blocks_of(p) > multiprocessors && p.K <= most_rows * rows_at_once(many_columns)) p.columns = many_columns;
  return p;
}

/// A matrix memory: the state that its one segment owns.
template <class Memory>
Tensor own_state(const Memory& op) {
  return op.final_state.slice(op.segments.slot_of(0), 1);
}

template <class Memory>
bool steps(const Memory& op) {
  return op.segments.count() == 1 && fits(op.q, op.v, op.initial_state, op.final_state, op.o);
}

}  // namespace

void start_step(const Step& op, bool delta_rule, cudaStream_t stream) { delta_rule ? start<true>(op, stream) : start<false>(op, stream); }

bool decayed_outer_product_step(const DecayedOuterProduct& op, Levels& levels, cudaStream_t stream) {
  if (!steps(op) || op.decay_axis != DecayAxis::rows) return false;
  Step p = step_of(op, own_state(op));
  p.q = operand(op.q, false);
  p.k = operand(op.k, false);
  p.log_decay = operand(op.log_decay, op.log_decay && op.log_decay.shape.rank() == 2);
  levels.memory(p, false, stream);
  return true;
}

bool gated_delta_rule_step(const GatedDeltaRule& op, bool l2, Levels& levels, cudaStream_t stream) {
  if (!steps(op)) return false;
  Step p = step_of(op, own_state(op));
  p.q = operand(op.q, false);
  p.k = operand(op.k, false);
  p.log_decay = operand(op.log_decay, true);
  p.beta = operand(op.beta, true);
  p.l2 = l2;
  levels.memory(p, true, stream);
  return true;
}

bool sparse_state_step(const SparseState& op, const SparseSources* from, Levels& levels, cudaStream_t stream) {
  if (op.cu_seqlens.size() != 2 || op.selected.row_size() > most_choices || !fits(op.q, op.v, op.initial_state, op.final_state, op.o))
    return false;
  Step p = step_of(op, op.final_state);
  p.q = operand(op.q, false);
  p.k = operand(op.k, false);
  p.log_decay = operand(op.log_decay, op.log_decay && op.log_decay.shape.rank() == 3);
  p.beta = operand(op.beta, true);
  p.l2 = static_cast<bool>(op.beta);
  p.choices = {op.selected.i32(),
               op.gate.f32(),
               static_cast<int>(op.selected.row_size()),
               static_cast<int>(op.writers),
               static_cast<int>(op.readers),
               op.gate_q,
               op.gate_k,
               op.gate_place == GatePlace::before_l2,
               op.write_scale};
  if (from != nullptr) {
    if (from->logits.row_size() > most_partitions || p.q.heads != p.H || p.k.heads != p.H) return false;
    p.q_source = source(from->q);
    p.k_source = source(from->k);
    p.routing = {from->gate.f32(), from->selected.i32(), from->logits.f32(), false, static_cast<int>(from->logits.row_size()),
                 from->by_logits};
  }
  levels.memory(p, static_cast<bool>(op.beta), stream);
  return true;
}

}  // namespace statescope::cuda

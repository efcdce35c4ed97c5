// One row of one sequence and its memory, a matrix or sparse states: a token's step as a launch of its own. Many blocks with few columns
// each, so that the states are read and written at once; all states that a token touches are in one launch.
#include "kernels/cuda/common/decode_queue.h"
#include "kernels/cuda/common/memory_step.h"

namespace statescope::cuda {
namespace {

using namespace memory_step;

// ---- kernels -------------------------------------------------------------------------------------------------------------------------

/// `early`: the next kernel may start while this one still waits.
template <bool delta_rule, bool sparse, int RowsPerThread>
__global__ void __launch_bounds__(threads) step_kernel(const __grid_constant__ Step p, bool early) {
  __shared__ Shared shared;
  if (early) launch_dependents();
  prefetch_task(p, static_cast<int>(blockIdx.x), static_cast<int>(threadIdx.x), threads);  // while the kernels before this one still run
  grid_dependency_wait();
  launch_dependents();
  Task task;
  locate(task, p, static_cast<int>(blockIdx.x), [](const float* x) { return x; });
  run_step<delta_rule, sparse, RowsPerThread>(p, task, shared, GlobalReader{}, [](int, float4) {});
}

// ---- launchers -----------------------------------------------------------------------------------------------------------------------

StepOperand step_operand(ConstTensor x, bool per_head) {
  if (!x) return {};
  const int axis = x.shape.rank() - 1;
  return {x.f32(), static_cast<int>(x.shape[per_head ? axis : axis - 1]), per_head ? 1 : static_cast<int>(x.shape[axis])};
}

PairSource pair_source(const SparsePair& x) { return {x.pair.f32(), x.shared.f32(), x.sparse.f32(), x.more.f32(), x.act, x.softmax}; }

bool fits(ConstTensor q, ConstTensor v, ConstTensor initial, Tensor final, Tensor o) {
  const auto aligned = [](ConstTensor x) { return reinterpret_cast<std::uintptr_t>(x.data) % sizeof(float4) == 0; };
  return v.rows() == 1 && q.dtype == DType::f32 && v.dtype == DType::f32 && o.dtype == DType::f32 && initial.data == final.data &&
         initial.shape[2] <= most_channels && initial.shape[3] % own_columns == 0 && initial.contiguous() && aligned(v) &&
         aligned(initial) && aligned(o);
}

template <bool delta_rule, bool sparse>
void start(const Step& p, DecodeQueue& queue) {
  if (queue.add(p, delta_rule)) return;
  const auto blocks = static_cast<unsigned>(p.tasks());
  const auto begin = [&](auto kernel) {
    // The same carveout as the kernels around it (linear_one_row.cu): changing how L1 and shared memory are divided would wait for them.
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared), "shared memory");
    // Where some multiprocessors have none of these blocks, those of the next kernel seem to be placed there in pairs: a layer of GLA 1.3B
    // takes 46.3 µs instead of 45.4.
    const bool early = blocks > multiprocessors();
    launch_overlapped("memory, one row", kernel, blocks, threads, 0, queue.stream(), p, early);
  };
  p.rows_per_thread() == few_rows_per_thread ? begin(step_kernel<delta_rule, sparse, few_rows_per_thread>)
                                             : begin(step_kernel<delta_rule, sparse, most_rows_per_thread>);
}

template <class Memory>
Step step_of(const Memory& op, Tensor state) {
  Step p{};
  p.v = step_operand(op.v, false);
  p.state = state.f32();
  p.o = op.o.f32();
  p.H = static_cast<int>(state.shape[1]);
  p.K = static_cast<int>(state.shape[2]);
  p.V = static_cast<int>(state.shape[3]);
  p.scale = op.scale;
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

bool decayed_outer_product_step(const DecayedOuterProduct& op, DecodeQueue& queue) {
  if (!steps(op) || op.decay_axis != DecayAxis::rows) return false;
  Step p = step_of(op, own_state(op));
  p.q = step_operand(op.q, false);
  p.k = step_operand(op.k, false);
  p.log_decay = step_operand(op.log_decay, op.log_decay && op.log_decay.shape.rank() == 2);
  start<false, false>(p, queue);
  return true;
}

bool gated_delta_rule_step(const GatedDeltaRule& op, bool l2, DecodeQueue& queue) {
  if (!steps(op)) return false;
  Step p = step_of(op, own_state(op));
  p.q = step_operand(op.q, false);
  p.k = step_operand(op.k, false);
  p.log_decay = step_operand(op.log_decay, op.log_decay && op.log_decay.shape.rank() == 2);
  p.beta = step_operand(op.beta, true);
  p.l2 = l2;
  start<true, false>(p, queue);
  return true;
}

bool sparse_state_step(const SparseState& op, const SparseSources* from, DecodeQueue& queue) {
  if (op.cu_seqlens.size() != 2 || op.selected.row_size() > most_choices || !fits(op.q, op.v, op.initial_state, op.final_state, op.o))
    return false;
  Step p = step_of(op, op.final_state);
  p.q = step_operand(op.q, false);
  p.k = step_operand(op.k, false);
  p.log_decay = step_operand(op.log_decay, op.log_decay && op.log_decay.shape.rank() == 3);
  p.beta = step_operand(op.beta, true);
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
    p.q_source = pair_source(from->q);
    p.k_source = pair_source(from->k);
    p.routing = {from->gate.f32(), from->selected.i32(), from->logits.f32(), static_cast<int>(from->logits.row_size()), from->by_logits};
  }
  op.beta ? start<true, true>(p, queue) : start<false, true>(p, queue);
  return true;
}

}  // namespace statescope::cuda

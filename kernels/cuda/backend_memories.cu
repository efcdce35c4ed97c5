// Which form of a memory the CUDA backend takes: a token's step, chunks on tensor cores, or the float32 recurrence.
#include "kernels/cuda/backend.h"

namespace statescope::cuda {

void CudaBackend::compute(const ops::ForgetGatedOuterProduct& op) {
  use();
  if (!in_chunks(longest(op.memory.segments.cu_seqlens)) || !decayed_outer_product_hopper_supported(op.memory) ||
      !decayed_outer_product_hopper_makes(op.gate, op.memory.log_decay))
    return by_parts(op, *this);
  in_tiles(op.memory, sent(op.memory.segments), {}, &op.gate);
}

void CudaBackend::compute(const ops::UnitDeltaRule& op) {
  use();
  const std::int64_t rows = longest(op.memory.segments.cu_seqlens);
  const bool reads_out = op.readout.group > 0, chunks = in_chunks(rows);
  if (!reads_out && gated_delta_rule_step(op.memory, true, queue())) return;
  if (!chunks || !(reads_out ? gated_delta_rule_reads_out(op.memory, op.readout, rows) : gated_delta_rule_normalises(op.memory)))
    return by_parts(op, *this);
  gated_delta_rule_in_chunks(op.memory, sent(op.memory.segments), true, op.readout);
}

void CudaBackend::compute(const ops::SoftmaxAttention& attention) {
  const SoftmaxAttention& op = attention.memory;
  const auto [queries, slots, keys] = sent(IndexRing::Arrays<3>{op.segments.cu_seqlens, op.segments.slot, op.cu_seqlens_k});
  const DeviceSegments segments = on_device(op.segments, queries, slots);
  if (in_chunks(segments) && softmax_attention_tiles_supported(op)) {
    return softmax_attention_tiles(op, segments, keys, scratch(softmax_attention_tiles_scratch(op)), stream());
  }
  const std::int64_t most_keys = longest(op.cu_seqlens_k);
  if (softmax_attention_few_queries_supported(op, segments)) {
    void* const parts = scratch(softmax_attention_few_queries_scratch(op, most_keys));
    return softmax_attention_few_queries(op, segments, keys, most_keys, parts, stream());
  }
  cuda::softmax_attention(op, segments, keys, most_keys, stream());
}

void CudaBackend::compute(const ops::CompressedAttention& attention) {
  const CompressedAttention& op = attention.memory;
  check_compressed_attention(op);
  const auto [queries, slots, keys] = sent(IndexRing::Arrays<3>{op.segments.cu_seqlens, op.segments.slot, op.cu_seqlens_k});
  const DeviceSegments segments = on_device(op.segments, queries, slots);
  const std::int64_t most_keys = longest(op.cu_seqlens_k);
  cuda::compressed_attention(op, segments, keys, most_keys, scratch(compressed_attention_scratch(op, segments, most_keys)), stream());
}

void CudaBackend::compute(const ops::ChooseTokens& chooses) {
  const TokenChoice& op = chooses.choice;
  check_token_choice(op);
  const auto [queries, slots, keys] = sent(IndexRing::Arrays<3>{op.segments.cu_seqlens, op.segments.slot, op.cu_seqlens_k});
  const DeviceSegments segments = on_device(op.segments, queries, slots);
  const std::int64_t most_keys = longest(op.cu_seqlens_k);
  cuda::choose_tokens(op, segments, keys, most_keys, scratch(token_choice_scratch(segments, most_keys)), stream());
}

void CudaBackend::compute(const ops::SparseState& op) {
  const auto& [memory, from, chunk_size, workspace] = op;
  check_sparse_state(memory, memory.q.dtype == DType::bf16 ? DType::bf16 : DType::f32);
  use();
  const bool decays_are_there = from == nullptr || from->decays.empty();
  if (decays_are_there && sparse_state_step(memory, from, queue())) return;
  if (from == nullptr) return sparse_state_of_rows(memory, {}, chunk_size, workspace);
  make_choices(*from);
  if (decays_are_there) return sparse_state(memory, chunk_size, workspace);
  sparse_state_of_rows(memory, from->decays, chunk_size, workspace);
}

void CudaBackend::sparse_state_of_rows(const SparseState& op, std::span<const Projection> gates, std::int64_t chunk_size,
                                       Workspace& workspace) {
  const std::int64_t runs = (static_cast<std::int64_t>(op.cu_seqlens.size()) - 1) * op.gate.row_size();
  const bool sorted_here = runs <= most_sparse_runs(), chunks = sorted_here && in_chunks(op.v.rows()) && gathered_by_chunks(op);
  if (!chunks || op.beta) project(gates, workspace);
  if (!chunks && !in_float32(op)) return with_float32(op, [&](const SparseState& exact) { sparse_state(exact, chunk_size, workspace); });
  if (!sorted_here) return by_parts(ops::SparseState{op, nullptr, chunk_size, workspace}, *this);
  const Workspace::Mark mark(workspace);
  const SparseOrder order = sparse_order(op, sent(IndexRing::Arrays<1>{op.cu_seqlens})[0], workspace, stream());
  if (chunks) return op.beta ? sparse_delta_chunks(op, order, workspace) : sparse_chunks(op, gates, order, workspace);
  const SparseRows rows = sparse_rows(op, order, workspace, stream());
  if (op.beta) {
    auto delta_rule = memory_of<GatedDeltaRule>(op, rows.q, rows.k, rows.v, rows.log_decay, rows.o);
    delta_rule.beta = rows.beta;
    gated_delta_rule(delta_rule, order.segments);
  } else {
    decayed_outer_product(memory_of<DecayedOuterProduct>(op, rows.q, rows.k, rows.v, rows.log_decay, rows.o), order.segments);
  }
  sum_sparse_rows(op, order, rows, stream());
}

void CudaBackend::decayed_outer_product(const DecayedOuterProduct& op, const DeviceSegments& segments) {
  if (in_chunks(segments) && decayed_outer_product_hopper_supported(op)) return in_tiles(op, segments, {}, nullptr);
  const bool one_type = op.k.dtype == op.q.dtype && op.v.dtype == op.q.dtype && op.o.dtype == op.q.dtype;
  if (one_type && in_chunks(segments) && !decayed_outer_product_chunks_supported(op) && divisible(op)) return halves_of_keys(op, segments);
  if (!one_type || !in_chunks(segments) || !decayed_outer_product_chunks_supported(op)) {
    if (!in_float32(op)) return with_float32(op, [&](const auto& exact) { decayed_outer_product(exact, segments); });
    return cuda::decayed_outer_product(op, segments, stream());
  }
  decayed_outer_product_chunks(op, segments, scratch(decayed_outer_product_chunks_scratch(op, segments.count, segments.longest)), stream());
}

void CudaBackend::in_tiles(const DecayedOuterProduct& op, const DeviceSegments& segments, const GatheredSegments& gathered,
                           const Projection* gate) {
  void* const tiles = scratch(decayed_outer_product_hopper_scratch(op, segments, gathered));
  decayed_outer_product_hopper(op, segments, tiles, stream(), gathered, gate);
}

void CudaBackend::gated_delta_rule(const GatedDeltaRule& op, const DeviceSegments& segments) {
  if (!in_chunks(segments) || !gated_delta_rule_chunks_supported(op)) {
    if (!in_float32(op)) return with_float32(op, [&](const auto& exact) { gated_delta_rule(exact, segments); });
    return cuda::gated_delta_rule(op, segments, stream());
  }
  gated_delta_rule_in_chunks(op, segments, false);
}

void CudaBackend::gated_delta_rule_in_chunks(const GatedDeltaRule& op, const DeviceSegments& segments, bool unit,
                                             const InputNorm& readout) {
  void* const memory_scratch = scratch(gated_delta_rule_chunks_scratch(op, segments.count, segments.longest));
  gated_delta_rule_chunks(op, segments, memory_scratch, stream(), {}, unit, readout);
}

bool CudaBackend::divisible(const DecayedOuterProduct& op) {
  const std::int64_t H = op.initial_state.shape[1], K = op.initial_state.shape[2];
  return K > most_channels_in_chunks && K <= 2 * most_channels_in_chunks && K % 2 == 0 && op.decay_axis == DecayAxis::rows &&
         op.q.shape[1] == H && op.k.shape[1] == H && (!op.log_decay || op.log_decay.shape.rank() == 2 || op.log_decay.shape[1] == H) &&
         op.o.contiguous();
}

void CudaBackend::halves_of_keys(DecayedOuterProduct op, const DeviceSegments& segments) {
  const Workspace::Mark mark(widened_);
  const Tensor o = op.o;
  const std::int64_t T = o.rows(), H = o.shape[1], V = o.shape[2], half = op.q.shape[2] / 2;
  const auto in_halves = [&](auto x) { return x.with_row({2 * H, half}); };
  op.q = in_halves(op.q), op.k = in_halves(op.k);
  if (op.log_decay && op.log_decay.shape.rank() == 3) op.log_decay = in_halves(op.log_decay);
  op.initial_state = op.initial_state.with_row({2 * H, half, V});
  op.final_state = op.final_state.with_row({2 * H, half, V});
  op.o = widened_.tensor({T, 2 * H, V}, o.dtype);
  decayed_outer_product(op, segments);
  // o = q₁ S₁ + q₂ S₂
  const Tensor pairs(op.o.data, o.dtype, {T * H, 2 * V});
  add(Tensor(o.data, o.dtype, {T * H, V}), pairs.columns(0, {V}), pairs.columns(V, {V}), 1);
}

GatheredSegments CudaBackend::gathered_of(const SparseState& op, const SparseOrder& order, Workspace& workspace) {
  const std::int64_t T = op.v.rows(), choices = op.selected.row_size(), S = static_cast<std::int64_t>(op.cu_seqlens.size()) - 1;
  return {half(op.q, 1),
          half(op.k, 1),
          half(op.log_decay, 1),
          half(op.beta, 1),
          workspace.tensor({T * choices, op.o.shape[1], op.o.shape[2]}, op.o.dtype),
          nullptr,
          order.items,
          T * choices,
          S,
          choices,
          op.writers,
          op.readers,
          op.gate_place == GatePlace::before_l2};
}

void CudaBackend::sparse_chunks(const SparseState& op, std::span<const Projection> gates, const SparseOrder& order, Workspace& workspace) {
  const auto memory = own_part<DecayedOuterProduct>(op);
  GatheredSegments gathered = gathered_of(op, order, workspace);
  const DeviceSegments& segments = order.segments;
  constexpr std::int64_t worth_a_tile = 32;  // items of a run
  const bool long_runs = gathered.count >= worth_a_tile * (segments.count - gathered.first_segment);
  const bool tiles = long_runs && decayed_outer_product_hopper_supported(memory, gathered);
  if (tiles && !gates.empty() && decayed_outer_product_hopper_makes(gates[0], memory.log_decay) &&
      decayed_outer_product_hopper_makes(gates[1], gathered.log_decay)) {
    gathered.gate = &gates[1];
    gathered.while_sorted = order.cu_seqlens;
    return in_tiles(memory, segments, gathered, &gates[0]);
  }
  project(gates, workspace);
  if (gates.empty()) gathered.while_sorted = order.cu_seqlens;
  if (tiles) return in_tiles(memory, segments, gathered, nullptr);
  void* const memory_scratch = scratch(decayed_outer_product_chunks_scratch(memory, segments.count, segments.longest, gathered));
  decayed_outer_product_chunks(memory, segments, memory_scratch, stream(), gathered);
}

void CudaBackend::sparse_delta_chunks(SparseState op, const SparseOrder& order, Workspace& workspace) {
  for (ConstTensor* x : {&op.q, &op.k, &op.v}) {
    if (gated_delta_rule_gathers(*x)) continue;
    const Tensor rounded = workspace.tensor(x->shape, DType::bf16);
    copy(rounded, *x);
    *x = rounded;
  }
  auto memory = own_part<GatedDeltaRule>(op);
  memory.beta = half(op.beta, 0);
  const GatheredSegments gathered = gathered_of(op, order, workspace);
  const DeviceSegments& segments = order.segments;
  void* const memory_scratch = scratch(gated_delta_rule_chunks_scratch(memory, segments.count, segments.longest, gathered));
  gated_delta_rule_chunks(memory, segments, memory_scratch, stream(), gathered);
}

bool CudaBackend::gathered_by_chunks(const SparseState& op) {
  constexpr std::int64_t numbers = 8;  // bf16 numbers that the delta rule reads at once
  if (!op.beta) return decayed_outer_product_chunks_supported(own_part<DecayedOuterProduct>(op));
  if (op.log_decay.shape.rank() == 4) return false;  // channels that decay each by itself
  return op.q.shape[3] % numbers == 0 && op.v.shape[2] % numbers == 0 && gated_delta_rule_chunks_supported(own_part<GatedDeltaRule>(op));
}

ConstTensor CudaBackend::half(ConstTensor x, std::int64_t index) {
  if (!x) return x;
  const std::int64_t size = x.row_size() / 2;
  return x.shape.rank() == 3 ? x.columns(index * size, {x.shape[2]}) : x.columns(index * size, {x.shape[2], x.shape[3]});
}

}  // namespace statescope::cuda

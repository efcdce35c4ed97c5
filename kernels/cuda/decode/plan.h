// How recorded operations are prepared for the kernel, on the host: tiles, the order of outputs, what is published in the mailbox and
// where. Included by .cu files alone.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "kernels/cuda/decode/operation.h"

namespace statescope::cuda::decode {

/// The most that any block has of n items (share_of).
int most_per_block(int n);

/// Whether the next operation waits for a product.
using IsCritical = std::function<bool(const Product&)>;
/// Cuts a GEMV into tiles. False where it does not fit the kernel.
bool tile(TiledGemv& tiled, const Gemv& op, const IsCritical& is_critical);

/// The step with wider tasks, where not all tasks would run at once otherwise and threads have room for the rows.
Step with_concurrent_tasks(const Step& step);

/// A step and the GEMV right before it: what the step waits for is computed first, and low-rank decays by the step itself.
void let_step_start_early(Operation& operation, Operation& products, const Gemv& op);

/// A gate is activated where it is computed, if nobody else reads it from the mailbox.
void activate_gates_early(std::vector<Operation>& operations);

/// Gives all outputs an address in a mailbox that begins at `begin`, and redirects later operations that read them. Returns its size in
/// bytes. With a null `begin` only the size counts.
std::size_t assign_mailbox(std::vector<Operation>& operations, float* begin);

/// visit(p) for each pointer at which an operation reads what earlier operations may have written.
template <class AnyOperation, class Visit>
void for_each_read(AnyOperation& operation, const Visit& visit) {
  const auto visit_state = [&](const float* state) { visit(state); };  // state that is kept from one token to the next
  if (operation.kind == OperationKind::gemv) {
    visit(operation.gemv.input.x), visit(operation.gemv.input.gate);
    for (int n = 0; n < operation.gemv.product_count; ++n)
      visit(operation.gemv.products[n].addend), visit_state(operation.gemv.products[n].cache);
    return;
  }
  auto& step = operation.step;
  visit_state(step.state);
  if (step.q_source.pair == nullptr) visit(step.q.x);
  if (step.k_source.pair == nullptr) visit(step.k.x);
  visit(step.v.x), visit(step.beta.x);
  if (step.decays[0].out == 0) visit(step.log_decay.x);
  for (auto& product : step.decays) visit(product.intermediate);
  for (auto* x : {&step.q_source, &step.k_source}) visit(x->shared), visit(x->sparse), visit(x->more);
  visit(step.routing.logits);
}

/// visit(p, count, n) for what an operation writes; n: which entry of `mailbox` it has, −1 for what is not published.
template <class Visit>
void for_each_write(const Operation& operation, const Visit& visit) {
  if (operation.kind == OperationKind::gemv) {
    for (int n = 0; n < operation.gemv.product_count; ++n) {
      const Product& p = operation.gemv.products[n];
      visit(p.z, p.out, -1), visit(p.y, p.out, n);
      if (p.cache != nullptr) visit(p.cache, (p.width - 1) * p.out, -1);
    }
    return;
  }
  const Step& step = operation.step;
  visit(step.state, step.H * step.K * step.V, -1);
  for (const Product& product : step.decays) visit(product.y, product.out, -1);
  for (float* pair : {step.q_source.pair, step.k_source.pair}) visit(pair, 2 * step.H * step.K, -1);
  visit(step.routing.gate, step.routing.N, -1);
  visit(step.o, step.H * step.V, 0);
}

/// Where the outputs of the operations so far can be read.
class MailboxMap {
 public:
  /// The values at p are at `mailbox`; null: they are not published.
  void add(const float* p, std::int64_t count, float* mailbox);
  void redirect(const float*& p) const;
  bool is_unpublished(const float* p) const;

 private:
  struct Range {
    const float* end;
    float* mailbox;
  };
  using Ranges = std::map<const float*, Range>;
  Ranges::const_iterator of(const float* p) const;
  Ranges ranges_;
};

}  // namespace statescope::cuda::decode

// How operations become levels of a chain (chain_hopper.cu): which tiles, what is made first, what is handed on by mail and where. On the
// host. Included by .cu files alone.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "kernels/cuda/decode/chain_levels.h"

namespace statescope::cuda::chain {

/// The most that a block has of n.
int most_of(int n);

/// Whether the next level waits for a product.
using IsAwaited = std::function<bool(const Product&)>;
/// Products as the kernel sees them. False where they do not fit it.
bool as_tiles(Tiles& tiles, const OneRow& op, const IsAwaited& is_awaited);

/// With wider tasks where not all of them would run at once, if a thread can have so many rows.
Step with_tasks_at_once(const Step& step);

/// The level of a step and the products right before it: what the step waits for is made first, and low-rank decays by the step itself.
void let_step_begin_early(Level& level, Level& products, const OneRow& op);

/// What gates an input passes its activation where it is made, if nobody else reads it from the mail.
void activate_gates_early(std::vector<Level>& levels);

/// Gives all that levels make a place from `begin` on, and lets those behind read it there. Returns the bytes of these places; null: only
/// that.
std::size_t address_mail(std::vector<Level>& levels, float* begin);

/// visit(p) for each p that a level reads numbers at which levels before it may have made.
template <class AnyLevel, class Visit>
void for_what_is_read(AnyLevel& level, const Visit& visit) {
  const auto visit_kept = [&](const float* kept) { visit(kept); };  // from one token to the next
  if (level.kind == Kind::products) {
    visit(level.tiles.input.x), visit(level.tiles.input.gate);
    for (int n = 0; n < level.tiles.product_count; ++n) visit(level.tiles.products[n].addend), visit_kept(level.tiles.products[n].cache);
    return;
  }
  auto& step = level.step;
  visit_kept(step.state);
  if (step.q_source.pair == nullptr) visit(step.q.x);
  if (step.k_source.pair == nullptr) visit(step.k.x);
  visit(step.v.x), visit(step.beta.x);
  if (step.decays[0].out == 0) visit(step.log_decay.x);
  for (auto& product : step.decays) visit(product.made);
  for (auto* x : {&step.q_source, &step.k_source}) visit(x->shared), visit(x->sparse), visit(x->more);
  visit(step.routing.logits);
}

/// visit(p, count, n) for what a level writes; n: which place in its mail, −1 for what is not handed on.
template <class Visit>
void for_what_is_written(const Level& level, const Visit& visit) {
  if (level.kind == Kind::products) {
    for (int n = 0; n < level.tiles.product_count; ++n) {
      const Product& p = level.tiles.products[n];
      visit(p.z, p.out, -1), visit(p.y, p.out, n);
      if (p.cache != nullptr) visit(p.cache, (p.width - 1) * p.out, -1);
    }
    return;
  }
  const Step& step = level.step;
  visit(step.state, step.H * step.K * step.V, -1);
  for (const Product& product : step.decays) visit(product.y, product.out, -1);
  for (float* pair : {step.q_source.pair, step.k_source.pair}) visit(pair, 2 * step.H * step.K, -1);
  visit(step.routing.gate, step.routing.N, -1);
  visit(step.o, step.H * step.V, 0);
}

/// Where what a chain has made so far stands.
class Addresses {
 public:
  /// Numbers at p have their place at `mail`; null: they are not handed on.
  void written(const float* p, std::int64_t count, float* mail);
  void look_up(const float*& p) const;
  bool is_not_handed_on(const float* p) const;

 private:
  struct Range {
    const float* end;
    float* mail;
  };
  using Ranges = std::map<const float*, Range>;
  Ranges::const_iterator of(const float* p) const;
  Ranges ranges_;
};

}  // namespace statescope::cuda::chain

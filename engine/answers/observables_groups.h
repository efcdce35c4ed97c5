// The groups of the table of observables; each gives its quantities in the table's order.
#pragma once

#include "engine/answers/observables.h"

namespace statescope {

using ObservedGroup = std::vector<Observed>;

ObservedGroup observe_routing(const LayerSpan& span, Evidence& evidence);
ObservedGroup observe_balance(const LayerSpan& span, Evidence& evidence);
ObservedGroup observe_mom_loss(const LayerSpan& span, Evidence& evidence);
ObservedGroup observe_experts(const LayerSpan& span, Evidence& evidence);
ObservedGroup observe_choices(const LayerSpan& span, Evidence& evidence);
ObservedGroup observe_branch_gates(const LayerSpan& span, Evidence& evidence);
ObservedGroup observe_head_gates(const LayerSpan& span, Evidence& evidence);

ObservedGroup observe_writes(const LayerSpan& span, Evidence& evidence);
ObservedGroup observe_chosen_rows(const LayerSpan& span, Evidence& evidence);
ObservedGroup observe_decay(const LayerSpan& span, Evidence& evidence);
ObservedGroup observe_delta_rule(const LayerSpan& span, Evidence& evidence);
ObservedGroup observe_ages(const LayerSpan& span, Evidence& evidence);
ObservedGroup observe_readout(const LayerSpan& span, Evidence& evidence);

ObservedGroup observe_similarity(const LayerSpan& span, Evidence& evidence);
ObservedGroup observe_distinguishability(const LayerSpan& span, Evidence& evidence);
ObservedGroup observe_norms(const LayerSpan& span, Evidence& evidence);
ObservedGroup observe_output_gate(const LayerSpan& span, Evidence& evidence);

ObservedGroup observe_two_readouts(const LayerSpan& span, Evidence& evidence);
ObservedGroup observe_memory_tokens(const LayerSpan& span, Evidence& evidence);

ObservedGroup observe_eigenvalues(const LayerSpan& span, Evidence& evidence);
ObservedGroup observe_kernel(const LayerSpan& span, Evidence& evidence);
ObservedGroup observe_remembered(const LayerSpan& span, Evidence& evidence);

ObservedGroup observe_residual(const LayerSpan& span, Evidence& evidence);

}  // namespace statescope

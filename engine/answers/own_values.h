// What a token's value is multiplied with before a memory takes it, and what of it goes past the memory.
#pragma once

#include <vector>

#include "engine/analysis/evidence.h"
#include "engine/analysis/memory_reading.h"

namespace statescope {

/// [T] of one of the trace's heads; empty: none. Mamba-2 writes dt x, with A of x; SLA on GDN G^K v, with A of v (spec §12.8); Comba α/c v.
std::vector<float> value_gate(std::int64_t layer, std::int64_t head, const MemoryTrace& trace, Evidence& evidence);

/// α/c of Comba, of whose values and readings the trace has so much (spec §17.13); empty: another family.
std::vector<float> undecayed_ratio(std::int64_t layer, std::int64_t head, const MemoryTrace& trace, Evidence& evidence);

/// The delta rule at one visit of such a memory, as that family says it: of β, of v and of the reading c k S of the state before its decay.
DeltaStep undecayed(DeltaStep step, double ratio);

/// [T]: how much of its own value a token reads beside the memory: D of Mamba-2's y = C S + D x, where it is one number a head; MetaLA's
/// K^{-1/2} Σ_r q_r aug_r k_r (spec §17.15). Empty: nothing.
std::vector<float> skip_weights(std::int64_t layer, std::int64_t head, const MemoryTrace& trace, Evidence& evidence);

}  // namespace statescope

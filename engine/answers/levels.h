// Log-linear attention, whose tokens move from level to level: what is asked of it by token (spec §17.14).
#pragma once

#include "engine/analysis/attention_map.h"
#include "engine/analysis/evidence.h"

namespace statescope {

bool has_levels(const LayerInfo& layer);

/// Its gates as those of a memory: log α of every token, the same in all levels. Nothing else is told.
MemoryTrace decays_of_levels(std::int64_t layer, Evidence& evidence);

/// A_{t,s} = λ_{t,ℓ(t,s)} (C_t·B_s) dt_s exp(Σ_{j=s+1..t} log α_j), ℓ(t,s) the level of token t that holds s: of values without dt. `level`
/// −1: all of them. Throws Error.
AttentionRows attention_of_levels(std::int64_t layer, std::int64_t level, std::int64_t head, const AttentionPart& part, Evidence& evidence,
                                  const Done& done);

}  // namespace statescope

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

/// Tokens [from, to).
struct LevelTokens {
  std::int64_t from = 0, to = 0;
};
/// Those that a level of token t holds: level 0 t itself, level ℓ where bit ℓ − 1 of t is set the 2^{ℓ−1} before t − (t mod 2^{ℓ−1}).
LevelTokens tokens_of_level(std::int64_t level, std::int64_t t);

/// One head of a level as token t has it, as a memory of a single slot that only those tokens wrote to: k = B, v = dt x, and what t reads
/// of it, q = λ C; `state` is the level's [K, V]. Throws Error where an intervention has changed the layer's states.
MemoryTrace trace_of_level(std::int64_t layer, std::int64_t level, std::int64_t head, std::int64_t t, const float* state,
                           Evidence& evidence);

/// All levels as one memory of Mamba-2's kind, whose sum they are: k = B, v = dt x, q = C. Merging levels takes nothing from it. Throws
/// Error where an intervention has changed the layer's states.
MemoryTrace trace_of_levels(std::int64_t layer, Evidence& evidence);
/// The same as token t reads it: every value v_s times λ_{t,ℓ(t,s)}.
MemoryTrace levels_as_read(MemoryTrace trace, std::int64_t layer, std::int64_t t, Evidence& evidence);
/// ℓ(t, s): the level of t that holds s.
std::int64_t level_of(std::int64_t t, std::int64_t s);

}  // namespace statescope

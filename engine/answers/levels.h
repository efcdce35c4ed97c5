// Log-linear attention, whose tokens move from level to level: what is asked of it by token (spec §17.14).
#pragma once

#include "engine/analysis/attention_map.h"
#include "engine/analysis/evidence.h"
#include "engine/answers/state_edits.h"
#include "engine/findings/update.h"

namespace statescope {

bool has_levels(const LayerInfo& layer);

/// Its gates as those of a memory: log α of every token, the same in all levels. Nothing else is told.
MemoryTrace decays_of_levels(std::int64_t layer, Evidence& evidence);

/// What tokens write, as that of a memory of so many slots: to level 0, in which each is alone.
MemoryTrace writes_of_levels(std::int64_t layer, Evidence& evidence);
/// One head's levels after token t as the slots of a memory: in each the keys of the tokens that it holds.
MemoryTrace levels_after(std::int64_t layer, std::int64_t head, std::int64_t t, Evidence& evidence);
/// What token t does to a head: all levels decay; those that merge are taken from their slots and written into that of the larger level.
Update update_of_levels(const UpdateQuestion& question, Evidence& evidence);

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

/// ℓ(t, s): the level of t that holds s.
std::int64_t level_of(std::int64_t t, std::int64_t s);

/// Levels as one memory of Mamba-2's kind, whose sum they are: k = B, v = dt x, q = C. Merging levels takes nothing from it.
struct LevelsTrace {
  MemoryTrace trace;
  std::vector<LevelTokens> holds;  // what each visit stands for: its token; those of a level that was replaced; nothing, of a scaling

  /// Whether a visit is in a level that token t has.
  bool is_in(std::int64_t visit, std::int64_t level, std::int64_t t) const;
};
/// Of heads [first, first + heads). Throws Error.
LevelsTrace trace_of_levels(std::int64_t layer, std::int64_t first, std::int64_t heads, Evidence& evidence);
/// The same as token t reads it: every value v_s times λ_{t,ℓ(t,s)}.
LevelsTrace levels_as_read(LevelsTrace levels, std::int64_t layer, std::int64_t first, std::int64_t t, Evidence& evidence);
/// One head of a level as token t has it: keys of what the level does not hold are 0. t reads it with q = λ C; `state` is the level's [K,
/// V].
LevelsTrace trace_of_level(std::int64_t layer, std::int64_t level, std::int64_t head, std::int64_t t, const float* state,
                           Evidence& evidence);

}  // namespace statescope

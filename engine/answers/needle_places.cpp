#include "engine/answers/needle_places.h"

#include "engine/answers/levels.h"
#include "engine/answers/state_space.h"

namespace statescope {
namespace {

using Tell = std::function<void(double fraction)>;

std::vector<NeedlePlace> in_levels(std::int64_t layer, TokenRange needle, std::int64_t question, std::size_t events, Evidence& evidence,
                                   const Tell& tell) {
  const LevelsTrace all = trace_of_levels(layer, 0, evidence.layer(layer).heads, evidence);
  const LevelsTrace as_read = levels_as_read(all, layer, 0, question, evidence);
  std::vector<NeedlePlace> places = needle_places(all.trace, needle, question, events, tell, &as_read.trace);
  for (NeedlePlace& place : places) place.fate.slot = level_of(question, needle.end - 1);
  return places;
}

}  // namespace

std::vector<NeedlePlace> needle_places(std::int64_t layer, TokenRange needle, std::int64_t question, std::size_t events, Evidence& evidence,
                                       const Tell& tell) {
  if (has_levels(evidence.layer(layer))) return in_levels(layer, needle, question, events, evidence, tell);
  if (is_state_space(evidence.layer(layer))) return needle_in_state_space(layer, needle, question, events, evidence, tell);
  const MemoryTrace* trace = evidence.trace(layer);
  return trace ? needle_places(*trace, needle, question, events, tell) : std::vector<NeedlePlace>();
}

}  // namespace statescope

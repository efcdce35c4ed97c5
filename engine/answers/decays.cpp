#include "engine/answers/decays.h"

#include <cmath>
#include <numeric>

#include "engine/answers/levels.h"
#include "engine/answers/state_space.h"

namespace statescope {
namespace {

/// log |Ā| = Δ Re A of every state.
std::optional<MemoryTrace> decays_of_state_space(std::int64_t layer, Evidence& evidence) {
  const StateSpaceParameters space = state_space_parameters(layer, evidence);
  if (!space.diagonal || space.A.empty()) return {};
  const LayerInfo& info = evidence.layer(layer);
  std::vector<float> rates;
  for (std::int64_t n = 0; n < space.states; ++n) {
    double sum = 0;
    for (std::int64_t c = 0; c < space.channels; ++c)
      sum -= space.step(c) * std::exp(double{space.A[static_cast<std::size_t>(c * space.states + n)]});
    rates.push_back(static_cast<float>(sum / static_cast<double>(space.channels)));
  }
  SlotVisits visits;
  visits.token.resize(static_cast<std::size_t>(evidence.tokens()));
  std::iota(visits.token.begin(), visits.token.end(), 0);
  for (std::int64_t t = 0; t < evidence.tokens(); ++t) visits.log_decay.insert(visits.log_decay.end(), rates.begin(), rates.end());
  MemoryTrace trace{.H = 1, .K = info.rows, .V = info.columns, .decay_width = info.rows, .rates = {}, .slots = {}};
  trace.slots.assign(info.slot_names.size(), visits);
  return trace;
}

}  // namespace

Decays::Decays(std::int64_t layer, Evidence& evidence) {
  const LayerInfo& info = evidence.layer(layer);
  if (has_levels(info)) {
    own_ = decays_of_levels(layer, evidence);
  } else if (is_state_space(info)) {
    own_ = decays_of_state_space(layer, evidence);
  } else {
    shared_ = evidence.trace(layer);
  }
}

}  // namespace statescope

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/accuracy.h"

namespace statescope {

/// What has a name of all that spec §12 asks of a layer and a token (engine/answers/observables.h has the list).
struct Observables {
  struct Quantity {
    std::string name;                 // "routing_entropy"
    std::string axes;                 // of one token's numbers: "[slots, heads]"; empty: one number
    std::string unit, equation;       // and its source
    Accuracy accuracy;                // how exact it is
    std::vector<std::int64_t> shape;  // of one token's numbers; empty: one number
    std::vector<float> values;        // [tokens, shape …]; NaN where there is none
  };
  std::vector<Quantity> quantities;  // those that the layer has
};

/// Of the tokens in [from, to), at most 512.
struct ObservablesQuestion {
  std::int64_t layer = 0, from = 0, to = 0;
  std::vector<std::string> names;  // empty: all
  std::int64_t since = 0;          // the token s that quantities called …_since are of
  using Answer = Observables;
  bool operator==(const ObservablesQuestion&) const = default;
};

}  // namespace statescope

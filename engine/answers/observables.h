// Every quantity of spec §12.1–12.7, §12.9–12.11, §17.9, §17.17 and §18.2–18.4 that one layer has at one token, by its name, so that all of
// them can be asked of any run. What is a map over tokens has a question of its own (engine/findings/findings.h): implicit attention, who
// wrote a state, what became of a needle.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "engine/analysis/evidence.h"

namespace statescope {

/// Tokens [from, to) of a layer.
struct LayerSpan {
  std::int64_t layer = 0, from = 0, to = 0;
  std::int64_t since = 0;  // the token s that quantities called …_since are of
  std::int64_t count() const { return to - from; }
};

/// A quantity's numbers of all tokens of a span.
struct Observed {
  std::vector<std::int64_t> shape;  // of one token's; empty: one number
  std::vector<float> values;        // [tokens, shape …]; NaN where there is none, as in a slot that the token did not visit

  Observed(const LayerSpan& span, std::vector<std::int64_t> shape_);
  /// One index for each axis of the shape.
  template <class... Index>
  float& at(std::int64_t token, Index... index) {
    std::int64_t place = token - first_;
    std::size_t axis = 0;
    ((place = place * shape[axis++] + index), ...);
    return values[static_cast<std::size_t>(place)];
  }

 private:
  std::int64_t first_;
};

struct ObservableRow {
  std::string_view name;
  std::string_view axes;      // of one token's numbers: "[slots, heads]"; empty: one number
  std::string_view unit;      // "1", "probability", "nat", "tokens", "rad"; "state", "value", "hidden": in that of its entries
  std::string_view equation;  // with its source
  Accuracy accuracy = kRecomputed;
};

/// Quantities that are worked out together.
struct ObservableGroup {
  std::vector<ObservableRow> rows;
  /// One for each row; none where the layer has no such thing. Throws Error.
  std::vector<Observed> (*measure)(const LayerSpan& span, Evidence& evidence);
};

/// All of them, in the order of the specification.
std::span<const ObservableGroup> observable_groups();

}  // namespace statescope

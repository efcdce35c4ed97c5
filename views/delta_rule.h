// The delta rule: what a token's key already reads, what its value wants, and how much of the difference the update mends (spec §12.9).
#pragma once

#include <array>
#include <string>
#include <vector>

#include "views/matrix.h"
#include "views/plot.h"

namespace statescope {

enum class DeltaMode { overview, prediction, angle, change, gates };

struct DeltaRuleData {
  Message message;  // of the empty state
  DeltaMode mode = DeltaMode::overview;
  std::string place;       // "layer 2, partition 3, head 0"
  std::int64_t token = 0;  // whose step is the last one shown; −1: none
  TokenAxis tokens;        // the slot's visits
  DeltaRule rule;
  std::array<ValueAxis, 4> axes;  // of the lanes
  std::int64_t visit = -1;        // the last one not after `token`; −1: none
  std::int64_t negative = 0;      // visits that turn the old state around along the key that reads it
  /// "step 2 of 2" of a visit, where a token takes several; else empty.
  std::string step_words(std::int64_t visit) const;
  bool here() const { return visit >= 0 && rule.token[static_cast<std::size_t>(visit)] == token; }
};

DeltaRuleData build_delta_rule(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, DeltaMode mode);
void draw(const DeltaRuleData& data, Canvas& canvas, Rect area, const Frame& frame);

/// Prediction and value in their own plane, the value along x: lengths and angles are those of the vectors, which side π is on is not.
struct DeltaPicture {
  Point value, prediction;  // from the origin
  Point after;  // what the key reads after the update, without decay: π + β ‖k‖² (v − π), of two keys (1 − p·e) π + (p·k) v
};
DeltaPicture delta_picture(const DeltaRule& rule, std::int64_t visit);

std::unique_ptr<View> make_delta_rule();

}  // namespace statescope

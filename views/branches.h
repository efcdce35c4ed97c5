// What an intervention changed: predictions along the branch, states at the cursor, both against the branch that was left.
#pragma once

#include <string>
#include <vector>

#include "views/plot.h"

namespace statescope {

enum class BranchesMode { divergence, logits };

/// ‖S′ − S‖ / ‖S‖ of a layer's states after the cursor's token.
struct LayerChange {
  std::int64_t layer = 0;
  double left = 0, here = 0, difference = 0;  // Frobenius norms
  float relative = 0;
};

struct BranchesData {
  Message message;  // instead of all else
  BranchesMode mode = BranchesMode::divergence;
  std::string title;                       // the answer in a sentence
  std::vector<std::string> interventions;  // of the branch
  Message curve_message;                   // instead of the curve
  TokenAxis tokens;                        // the window
  std::vector<float> values;               // [tokens] by mode; NaN before the branch
  std::vector<float> divergence, logits;   // [tokens]
  ValueAxis axis;
  std::int64_t changed = -1;        // the first token after which another next token is the most probable; −1: none
  std::vector<LayerChange> layers;  // with a state
  std::string states_after;         // "after token 12 “␣anna”"
};

BranchesData build_branches(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, BranchesMode mode);
void draw(const BranchesData& data, Canvas& canvas, Rect area, const Frame& frame);

std::unique_ptr<View> make_branches();

}  // namespace statescope

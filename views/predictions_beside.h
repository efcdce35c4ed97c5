// What two models say next, side by side: the most probable tokens of both, and along the run how probable the token was that followed.
#pragma once

#include <string>
#include <vector>

#include "views/predictions.h"

namespace statescope {

/// One token's probability under both; NaN: the model has it among those less probable than its least one known.
struct PairedBar {
  std::string text;
  float own = 0, other = 0;
  bool right = false;  // it is what the right answer says next

  float difference() const { return own - other; }
};

struct PredictionsBesideData {
  Message message;                 // instead of all else
  std::string own_letter, letter;  // "A", "B"
  std::int64_t token = 0;          // after which both predict
  std::string token_text;
  std::vector<PairedBar> bars;  // the one that either holds for more probable first
  float own_least = 0, other_least = 0;
  Message curves_message;                     // instead of the curves
  TokenAxis tokens;                           // the window
  bool window = false;                        // the run is longer
  std::vector<float> own, other, difference;  // [tokens] probability of the token that follows in both runs; NaN where they go apart
  std::vector<RightToken> own_right, other_right;
};

PredictionsBesideData build_predictions_beside(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings,
                                               const PredictionsQuestion& question);
void draw(const PredictionsBesideData& data, Canvas& canvas, Rect area, const Frame& frame);

/// "After token 118 “is” A expects “4”, 0.91, which is right; B “7”, 0.31"
std::string summary(const PredictionsBesideData& data);

}  // namespace statescope

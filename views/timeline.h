// The run as lanes over its tokens: how the chosen layer's memory grows and moves, how decided its routing and its gates are, and how well
// the model predicts (spec §12.1, §12.7, §12.10).
#pragma once

#include <string>
#include <vector>

#include "views/plot.h"

namespace statescope {

/// One curve of a lane.
struct LaneCurve {
  std::string name;
  std::int64_t identity = -1;  // of a partition or head; −1: none
  std::vector<float> values;   // [n]
};

struct Lane {
  std::string name;   // "‖S‖"
  std::string title;  // "size of the state, by partition"
  std::string source;
  Accuracy accuracy;
  double low = 0;
  double high = 0;  // 0: as the values ask for
  std::vector<LaneCurve> curves;
  Message missing;  // instead of curves
};

struct TimelineData {
  Message message;  // of the empty state
  std::int64_t layer = 0, trained_length = 0;
  TokenAxis tokens;  // of the window
  std::int64_t from = 0, to = 0, run = 0;
  std::vector<Lane> lanes;
};

/// As many tokens as `wanted` with the cursor's among them, moved on by halves of it, so that it seldom changes while stepping.
TokenWindow timeline_window(std::int64_t token, std::int64_t tokens, std::int64_t wanted);

TimelineData build_timeline(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, std::int64_t wanted);
void draw(const TimelineData& data, Canvas& canvas, Rect area, const Frame& frame);

std::unique_ptr<View> make_timeline();

}  // namespace statescope

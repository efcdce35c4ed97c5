// Where two models part along the run: routing, decay and head gates of one less those of the other, token by token.
#pragma once

#include <string>
#include <vector>

#include "views/matrix.h"

namespace statescope {

enum class DifferenceMode { routing, decay, writing_gates, reading_gates };

struct DifferenceData {
  Message message;  // of the empty state
  DifferenceMode mode = DifferenceMode::routing;
  std::string title;                // the answer in a sentence
  std::string models;               // "A − B"
  Pyramid cells;                    // [channels, n] A − B; NaN: not both have a number there
  std::vector<AxisGroup> channels;  // partitions, heads, or rows and columns of the state
  std::vector<std::string> names;   // [channels] "partition 3", "head 1", "row 7"
  TokenAxis tokens;                 // the window
  float range = 1;                  // colours span −range … range
  std::string quantity;             // "e", "α", "G^K", "G^Q"
  std::string recurrence;           // what α is of, with the source
  bool of_rows = false;             // the channels are key rows of the state
};

DifferenceData build_difference(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, DifferenceMode mode);
void draw(const DifferenceData& data, Canvas& canvas, Rect area, const Frame& frame);

std::unique_ptr<View> make_difference();

}  // namespace statescope

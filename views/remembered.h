// What a state of Legendre coefficients still says of the input of a channel.
#pragma once

#include <string>
#include <vector>

#include "views/plot.h"

namespace statescope {

struct RememberedData {
  Message message;    // instead of all else
  std::string place;  // "layer 2, channel 3"
  std::string title;  // the answer in a sentence
  TokenAxis tokens;
  std::vector<float> entered, remembered;  // [tokens] u and û; û is NaN behind the cursor's token
};

/// ‖û − u‖ / ‖u‖ over the last `count` tokens that û is of; NaN where u is 0 there.
double forgotten_part(const RememberedData& data, std::int64_t count);

RememberedData build_remembered(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings);
void draw(const RememberedData& data, Canvas& canvas, Rect area, const Frame& frame);

std::unique_ptr<View> make_remembered();

}  // namespace statescope

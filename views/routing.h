// Partition routing (SSE, MoM): which partitions each token writes to, how sure the router is, and how the load spreads.
#pragma once

#include <string>
#include <vector>

#include "views/view.h"

namespace statescope {

/// One token that was routed to a slot, and the gate value it was written with.
struct Write {
  std::int64_t slot = 0;
  float gate = 1;  // e of the partition; 1 for the shared slot
};

struct RoutedToken {
  std::int64_t token = 0;
  std::string text;
  bool needle = false;
  std::vector<Write> writes;  // empty for tokens that have not been read
};

struct PartitionBox {
  std::int64_t slot = 0;
  std::int64_t identity = 0;  // 0: shared, n: partition n
  std::string name;           // "shared", "3"
  bool shared = false;
  bool written = false;    // by the token whose numbers are shown
  float gate = 0;          // e of that token; of no meaning for the shared slot
  std::int64_t load = 0;   // tokens routed here so far
  float load_ratio = 0;    // visits ÷ (all visits ÷ N): 1 is fair
  std::string_view alarm;  // "dead", "overloaded" or empty
};

struct RoutingData {
  std::string headline, detail;  // of the empty state; empty when there is routing
  std::int64_t layer = 0;
  std::int64_t token = 0;  // the cursor's
  std::int64_t shown = 0;  // the token whose numbers are shown: token, or token − 1 while it moves; −1: none yet
  float progress = 1;
  std::int64_t chosen_slot = 0;
  std::vector<RoutedToken> tokens;  // up to 40 before the cursor's, the cursor's, up to 4 after it
  std::vector<PartitionBox> boxes;  // shared first

  bool moving() const { return progress < 1; }
};

/// Of load_alarm, in the reader's language.
std::string alarm_words(std::string_view alarm);

RoutingData build_routing(const Snapshot& snapshot, const Cursor& cursor);
void draw(const RoutingData& data, Canvas& canvas, Rect area, const Frame& frame);

/// "dead" after 32·N tokens without one, "overloaded" above twice the fair load; nothing is said before 32·N tokens.
std::string_view load_alarm(std::int64_t load, float load_ratio, std::int64_t tokens, std::int64_t partitions);

/// The place of a chip that has gone the share `progress` of a ribbon's way (Canvas::ribbon).
Point point_on_ribbon(Point from, Point to, float progress);

std::unique_ptr<View> make_routing();

}  // namespace statescope

// What views that compare with another model share.
#pragma once

#include "views/plot.h"

namespace statescope {

/// Where there is no other model to compare with, or nothing is known of it at this place; else false.
Message without_peer(const Findings& findings);
/// Also where the other model has no such layer.
Message without_peer_layer(const Snapshot& snapshot, const Findings& findings);

}  // namespace statescope

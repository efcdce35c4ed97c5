// When a session that is being recorded is saved.
#pragma once

#include <chrono>

namespace statescope {

/// After a pass of so long, `since` the last saving began, which took `saving`: where that is an interval ago, or would be more than one
/// and its slack once another such pass has been read and saved.
constexpr bool saving_is_due(std::chrono::steady_clock::duration since, std::chrono::steady_clock::duration pass,
                             std::chrono::steady_clock::duration saving, std::chrono::milliseconds interval,
                             std::chrono::milliseconds slack) {
  return since >= interval || since + pass + saving >= interval + slack;
}

}  // namespace statescope

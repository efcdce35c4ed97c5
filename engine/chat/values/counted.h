// Elements by position.
#pragma once

#include "engine/chat/values/value.h"

namespace statescope::chat {

/// at(0) … at(count − 1), one after the other.
template <class At>
Next counted(std::size_t count, At at) {
  return [count, at, i = std::size_t{0}]() mutable -> std::optional<Value> {
    if (i >= count) return std::nullopt;
    return at(i++);
  };
}

}  // namespace statescope::chat

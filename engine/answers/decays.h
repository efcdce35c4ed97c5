// By what a layer's states decay, token by token.
#pragma once

#include <optional>

#include "engine/analysis/evidence.h"

namespace statescope {

/// Of the memory that the snapshot's state is of; of levels and of diagonal state spaces, which have no list of writes, log α and nothing
/// else. A state space's is of each state the mean over its channels, the same at every token.
class Decays {
 public:
  /// Throws Error.
  Decays(std::int64_t layer, Evidence& evidence);

  /// Null: the layer has no matrix state, or a state space whose states do not decay one by one.
  const MemoryTrace* trace() const { return own_ ? &*own_ : shared_; }

 private:
  std::optional<MemoryTrace> own_;
  const MemoryTrace* shared_ = nullptr;
};

}  // namespace statescope

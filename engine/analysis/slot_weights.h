// How the read-outs of a layer's slots are put together.
#pragma once

#include <memory>

#include "engine/analysis/evidence.h"

namespace statescope {

/// What a slot's read-out counts with in the layer's: MoM o = Σ_m w_m o_m with w = e over the chosen ones, the shared one 1; else 1.
class SlotWeights {
 public:
  SlotWeights(Evidence& evidence, std::int64_t layer) : first_(evidence.layer(layer).has_shared_slot ? 1 : 0) {
    if (evidence.layer(layer).mixer == "mom") routing_ = evidence.routing(layer);
  }
  double of(std::int64_t token, std::int64_t slot) const {
    if (!routing_ || slot < first_) return 1;
    double sum = 0;
    for (std::int64_t n = 0; n < routing_->partitions; ++n) sum += routing_->selected_at(token, n) ? routing_->gate_at(token, n) : 0;
    return routing_->gate_at(token, slot - first_) / sum;
  }

 private:
  std::int64_t first_;
  std::shared_ptr<const Routing> routing_;
};

}  // namespace statescope

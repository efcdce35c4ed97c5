// What interventions change of one layer's rules (engine/run/intervention.h): edits of its program.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/program/program.h"

namespace statescope {

/// One of so many heads; of none: no head.
struct HeadOf {
  std::int64_t head = 0, heads = 0;
  bool operator==(const HeadOf&) const = default;
};

/// By default nothing.
struct Rules {
  float decay = 1;                        // log α ← decay · log α
  std::int64_t writers = 0, readers = 0;  // partitions of a token; 0: as many as the model has
  std::vector<std::int32_t> route;        // the partitions that every token is written to and read from; empty: as the model routes
  float sharpness = 1;                    // λ of SLA theorem 4.2: G = softmax_h(λ · logits)
  bool unread = false;                    // the memory goes on, but nothing is read from it: its part of the output is 0
  HeadOf unread_head;                     // nor from this one head
  bool operator==(const Rules&) const = default;
};

namespace program {

/// Makes of the program what the rules want.
void apply_rules(Program& program, const Rules& rules);

}  // namespace program
}  // namespace statescope

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/accuracy.h"

namespace statescope {

/// What became of a needle (engine/analysis/needle_fate.h says what each number is): parts of what it had written, after each token from
/// its last one to the question.
struct NeedleStory {
  static constexpr Accuracy accuracy = kRecomputed;
  struct Curve {
    std::int64_t slot = 0, head = 0;
    double written = 0;               // ‖C‖ after the needle's last visit: heads compare within a layer
    double read_share = 0;            // of what the question reads there; NaN where it does not read
    std::vector<std::int32_t> token;  // [n ≤ 512] visits from the needle's last on, evenly, the last before the question included
    std::vector<float> kept;          // [n] ‖C‖ over `written`
  };
  struct Cause {
    std::int64_t layer = 0, slot = 0, head = 0;
    std::string what;        // "decay", "erasure", "overwriting", "misrouting"
    double lost = 0;         // of all that the needle wrote
    std::int64_t token = 0;  // that took most of it
  };
  struct LayerFate {
    bool has_memory = false;                                                    // that the needle wrote to
    double clear = 0, decayed = 0, erased = 0, overwritten = 0, misrouted = 0;  // parts of 1
    double read_share = 0;                                                      // the largest over heads and slots
    std::int64_t read_slot = 0, read_head = 0;                                  // where that is
    std::vector<float> kept;    // [question − end + 2], token end − 1 first: 1 − decayed − erased as they grow
    std::vector<Curve> curves;  // most written first, at most 12
    std::int64_t places = 0;    // slots and heads that the needle wrote to
  };
  struct Fall {
    std::int64_t token = 0;
    double by = 0;  // from the token before to this one
  };
  std::vector<LayerFate> layers;
  LayerFate all;              // its kept: mean over the layers; no curves
  std::vector<Cause> causes;  // largest first, at most 64
  std::vector<Fall> falls;    // of all.kept: the largest five of those by 0.02 and more, ascending
};

struct NeedleQuestion {
  std::int64_t begin = 0, end = 0, question = 0;
  using Answer = NeedleStory;
  bool operator==(const NeedleQuestion&) const = default;
};

}  // namespace statescope

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/accuracy.h"

namespace statescope {

/// What stays the same for the whole run: what each layer is made of.
struct ModelMap {
  static constexpr Accuracy accuracy = kExact;
  struct TensorRow {
    std::string name;  // as in the checkpoint
    std::vector<std::int64_t> shape;
    std::string dtype;  // "bfloat16"
    std::int64_t bytes = 0;
  };
  struct LayerRow {
    std::vector<TensorRow> tensors;
    std::int64_t parameters = 0, weight_bytes = 0;
    std::int64_t state_bytes = 0;            // float32, whatever the length; softmax layers: 0
    std::int64_t state_bytes_per_token = 0;  // of keys and values that grow with the run
    std::vector<std::string> program;        // the mixer's operations, a line each, in the paper's terms; empty: there is no mixer
  };
  std::vector<LayerRow> layers;
  LayerRow rest;  // embedding, last norm, head
};

struct ModelMapQuestion {
  using Answer = ModelMap;
  bool operator==(const ModelMapQuestion&) const = default;
};

}  // namespace statescope

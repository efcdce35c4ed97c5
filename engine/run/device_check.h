// Two devices beside each other: do they compute the same of the same tokens, and if not, which named value is the first that differs?
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace statescope {

class Model;

/// A number that two devices have apart.
struct DeviceDifference {
  std::int64_t layer = 0;             // the block's; number of layers: behind the last
  std::string name;                   // "residual stream", a channel's, "state recurrent", "convolution cache 0", "logits"
  std::int64_t token = 0;             // of a state: the last that was read
  std::vector<std::int64_t> element;  // within the token's part, or within the state [slot, head, row, column]
  double one = 0, other = 0;
  double relative = 0;    // |one − other| / the largest |number| of the value, over the tokens of a pass
  bool stepwise = false;  // in the step of a token, with nothing watched: as text is generated

  /// "layer 2, beta after token 17 [3]: 0.5012 and 0.4988"
  std::string text(std::int64_t layers) const;
};

/// What was found, by layer: the value that differs most.
struct DeviceCheck {
  std::int64_t tokens = 0, steps = 0;     // read in passes; one by one after them
  std::int64_t values = 0;                // numbers compared
  std::vector<DeviceDifference> largest;  // [layers + 1]; relative 0: to the bit
  std::optional<DeviceDifference> first;  // beyond the tolerance, in the order in which a model computes
};

/// Both models, of one checkpoint, read `ids` with every channel and residual stream watched, then the last `steps` tokens (fewer than
/// there are) one by one with nothing watched, which takes other, fused ways. The first difference ends it. A number that is none differs.
/// `progress` takes the share that is done and returns false to cancel. Throws Error, Cancelled.
DeviceCheck check_devices(Model& one, Model& other, std::span<const std::int32_t> ids, std::int64_t steps, double tolerance,
                          const std::function<bool(double)>& progress = {});

}  // namespace statescope

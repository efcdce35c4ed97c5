// Which device each layer of a model lives on, where it may use several.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/model/family.h"
#include "kernels/devices.h"

namespace statescope {

struct Placement {
  std::vector<std::size_t> of_layer;      // the number of its device; layers of one device follow one another. Empty: there is one device
  std::vector<std::string> reasons;       // a sentence for each device: what lives there, and why
  std::int64_t first_on_host = -1;        // the experts of this layer and of those behind it stay in the host's memory; −1: those of none
  std::vector<std::size_t> expert_bytes;  // of each device for those of them that it holds at a time; empty: there are none
};

/// What a part of a model takes, in bytes: weights, two copies of its states (one is a keyframe), and what is cached and recorded of
/// kPlacedTokens tokens.
struct PartBytes {
  std::size_t own = 0;      // on a device with memory of its own, where float8 is widened
  std::size_t host = 0;     // in the host's memory
  std::size_t experts = 0;  // of `own`, what experts take that could stay in the host's memory; float8, which no device reads, could not
};
constexpr std::int64_t kPlacedTokens = 8192;

/// Where parts could go.
struct DeviceRoom {
  std::string name;
  std::size_t bytes = 0;  // that parts may take
  bool own_memory = true;
};

/// What every layer takes, and behind them what belongs to none: embeddings, the last norm, the head.
std::vector<PartBytes> part_bytes(const Plan& plan, const std::vector<StoredTensor>& tensors);

/// In the order of the devices, the same share of the room of each; what has no room on those with memory of their own is left to the host.
/// The last of `parts` is the first device's, beside its share. Throws Error where there is no room.
Placement place_layers(std::span<const PartBytes> parts, std::span<const DeviceRoom> rooms);

/// The same, but where there is no room, and the host is not among the devices, the experts of the last layers stay in the host's memory,
/// of as few layers as will do. An eighth of each device's room is then for those of them that were chosen last. Throws Error.
Placement place_layers_and_experts(std::span<const PartBytes> parts, std::span<const DeviceRoom> rooms);

/// The same of a checkpoint on devices, or on a single one, where it names nothing if all has room or nothing helps. Devices of which as
/// few shall be used as will do (kernels/devices.h) are opened here. Seven eighths of what is free there are room, the rest is scratch
/// memory.
Placement place_layers(const Plan& plan, const std::vector<StoredTensor>& tensors, Backend& device);

/// So many layers on each device, as somebody said. Throws Error where they are not all layers.
Placement place_layers(const Plan& plan, std::span<const std::int64_t> layers_of_devices, Devices& devices);

}  // namespace statescope

#include "engine/model/placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "engine/error.h"
#include "engine/model/counted_weights.h"
#include "engine/model/model.h"

namespace statescope {
namespace {

std::string gigabytes(std::size_t bytes) {
  constexpr double gigabyte = 1e9, megabyte = 1e6;
  const auto count = static_cast<double>(bytes);
  return count < gigabyte / 10 ? fmt::format("{:.1f} MB", count / megabyte) : fmt::format("{:.1f} GB", count / gigabyte);
}

std::size_t bytes_on(const PartBytes& part, const DeviceRoom& room) { return room.own_memory ? part.own : part.host; }

/// Layers in order, up to the share of each device's room, but on the host exactly so many. None where some are left over.
std::optional<std::vector<std::size_t>> filled(std::span<const PartBytes> parts, std::span<const DeviceRoom> rooms, double share,
                                               std::size_t on_host) {
  const std::size_t layers = parts.size() - 1;
  std::vector<std::size_t> of_layer;
  for (std::size_t device = 0; device < rooms.size(); ++device) {
    const DeviceRoom& room = rooms[device];
    std::size_t taken = device == Devices::home ? bytes_on(parts.back(), room) : 0, count = 0;
    const double all = static_cast<double>(room.bytes);
    const double most = room.own_memory ? std::min(all, share * all + static_cast<double>(taken)) : all;
    if (static_cast<double>(taken) > all) return std::nullopt;
    while (of_layer.size() < layers && (room.own_memory || count < on_host)) {
      taken += bytes_on(parts[of_layer.size()], room);
      if (static_cast<double>(taken) > most) break;
      of_layer.push_back(device);
      ++count;
    }
    if (!room.own_memory && count < on_host) return std::nullopt;
  }
  return of_layer.size() == layers ? std::optional(of_layer) : std::nullopt;
}

std::string layers_text(std::size_t first, std::size_t count) {
  if (count == 0) return "no layer";
  return count == 1 ? fmt::format("layer {}", first) : fmt::format("layers {} to {}", first, first + count - 1);
}

std::vector<std::string> reasons_of(std::span<const PartBytes> parts, std::span<const DeviceRoom> rooms,
                                    std::span<const std::size_t> of_layer) {
  std::vector<std::string> reasons;
  std::size_t first = 0;
  for (std::size_t device = 0; device < rooms.size(); ++device) {
    const DeviceRoom& room = rooms[device];
    const auto count = static_cast<std::size_t>(std::ranges::count(of_layer, device));
    std::size_t bytes = device == Devices::home ? bytes_on(parts.back(), room) : 0;
    for (std::size_t i = first; i < first + count; ++i) bytes += bytes_on(parts[i], room);
    const char* const more = device == Devices::home ? ", embedding and unembedding" : "";
    const char* const why = rooms.size() == 1 ? ""
                            : room.own_memory ? "; layers fill the same share of each device's room"
                            : count > 0       ? "; the other devices have no room for them"
                                              : "; the other devices have room for all layers";
    reasons.push_back(fmt::format("{}: {}{}, {} of the {} that it has room for{}", room.name, layers_text(first, count), more,
                                  gigabytes(bytes), gigabytes(room.bytes), why));
    first += count;
  }
  return reasons;
}

}  // namespace

std::vector<PartBytes> part_bytes(const Plan& plan, const std::vector<StoredTensor>& tensors) {
  CountedWeights weights(tensors, plan.layers.size());
  const Stack counted(plan, weights);  // only asks
  const auto add = [](PartBytes& part, std::int64_t numbers) {
    part.own += static_cast<std::size_t>(numbers) * sizeof(float);
    part.host += static_cast<std::size_t>(numbers) * sizeof(float);
  };
  for (std::size_t i = 0; i < plan.layers.size(); ++i) {
    const MixerLayout& layout = counted.blocks[i].layout;
    std::int64_t state = 0;
    for (const MixerLayout::Memory& memory : layout.memory) state += memory.shape.size();
    for (const Shape& cache : layout.conv_caches) state += cache.size();
    const std::int64_t of_token = layout.kv_heads * (layout.key_dim + layout.value_dim) + layout.index_dim + plan.hidden;
    add(weights.parts[i], 2 * state + kPlacedTokens * of_token);
  }
  add(weights.parts.back(), kPlacedTokens * plan.hidden);
  return weights.parts;
}

namespace {

/// None where there is no room.
std::optional<Placement> placed_where_there_is_room(std::span<const PartBytes> parts, std::span<const DeviceRoom> rooms) {
  const std::size_t layers = parts.size() - 1;
  const bool with_host = !std::ranges::all_of(rooms, &DeviceRoom::own_memory);
  for (std::size_t on_host = 0; on_host <= (with_host ? layers : 0); ++on_host) {
    std::optional<std::vector<std::size_t>> placed = filled(parts, rooms, 1, on_host);
    if (!placed) continue;
    double least = 0, most = 1;
    constexpr int halvings = 30;
    for (int i = 0; i < halvings; ++i) {
      const double share = (least + most) / 2;
      std::optional<std::vector<std::size_t>> smaller = filled(parts, rooms, share, on_host);
      (smaller ? most : least) = share;
      if (smaller) placed = std::move(smaller);
    }
    return Placement{.of_layer = *placed, .reasons = reasons_of(parts, rooms, *placed), .expert_bytes = {}};
  }
  return std::nullopt;
}

/// The experts of the layers from `first` on in the host's memory. None where there is still no room.
std::optional<Placement> with_experts_on_host(std::span<const PartBytes> parts, std::span<const DeviceRoom> rooms, std::size_t first) {
  std::vector<PartBytes> rest(parts.begin(), parts.end());
  std::vector<DeviceRoom> smaller(rooms.begin(), rooms.end());
  std::vector<std::size_t> for_experts;
  std::size_t on_host = 0;
  for (std::size_t layer = first; layer + 1 < parts.size(); ++layer) {
    rest[layer].own -= parts[layer].experts;
    on_host += parts[layer].experts;
  }
  for (DeviceRoom& room : smaller) room.bytes -= for_experts.emplace_back(room.bytes / 8);
  std::optional<Placement> placement = placed_where_there_is_room(rest, smaller);
  if (!placement) return std::nullopt;
  for (std::size_t device = 0; device < rooms.size(); ++device)
    placement->reasons[device] += fmt::format("; {} more for the experts chosen last", gigabytes(for_experts[device]));
  placement->reasons.push_back(fmt::format("the experts of {}, {}, stay in the host's memory and come to the device as they are chosen",
                                           layers_text(first, parts.size() - 1 - first), gigabytes(on_host)));
  placement->first_on_host = static_cast<std::int64_t>(first);
  placement->expert_bytes = std::move(for_experts);
  return placement;
}

[[noreturn]] void refuse(std::span<const PartBytes> parts, std::span<const DeviceRoom> rooms) {
  const std::size_t all =
      std::accumulate(parts.begin(), parts.end(), std::size_t{0}, [](std::size_t sum, const PartBytes& part) { return sum + part.own; });
  std::vector<std::string> have;
  for (const DeviceRoom& room : rooms) have.push_back(fmt::format("{} has room for {}", room.name, gigabytes(room.bytes)));
  throw Error(fmt::format("no room: layers, embedding and unembedding take {} with what {} tokens leave behind, and {}", gigabytes(all),
                          kPlacedTokens, fmt::join(have, ", ")));
}

std::optional<Placement> placed_with_experts(std::span<const PartBytes> parts, std::span<const DeviceRoom> rooms) {
  std::optional<Placement> placement = placed_where_there_is_room(parts, rooms);
  const bool with_host = !std::ranges::all_of(rooms, &DeviceRoom::own_memory);
  for (std::size_t first = parts.size() - 1; !placement && !with_host && first-- > 0;) {
    if (parts[first].experts > 0) placement = with_experts_on_host(parts, rooms, first);
  }
  return placement;
}

DeviceRoom room_of(std::string name, Backend& device) {
  const std::size_t free = device.free_bytes();
  return {std::move(name), free - free / 8, device.has_own_memory()};
}

std::vector<DeviceRoom> rooms_of(const Devices& devices) {
  std::vector<DeviceRoom> rooms;
  for (const Devices::Device& one : devices.all()) rooms.push_back(room_of(one.name, *one.backend));
  return rooms;
}

/// On the first devices, as few as have room. The host is the last of them, and experts would rather stay in its memory than layers on it.
Placement place_on_as_few(std::span<const PartBytes> parts, Devices& devices) {
  for (std::size_t count = 1;; ++count) {
    const bool is_there = count <= devices.all().size() || devices.open_next();
    const std::vector<DeviceRoom> rooms = rooms_of(devices);
    if (!is_there) refuse(parts, rooms);
    if (!rooms[count - 1].own_memory) {
      if (std::optional<Placement> placement = placed_with_experts(parts, std::span(rooms).first(count - 1))) return *placement;
    }
    if (std::optional<Placement> placement = placed_where_there_is_room(parts, std::span(rooms).first(count))) return *placement;
  }
}

}  // namespace

Placement place_layers(std::span<const PartBytes> parts, std::span<const DeviceRoom> rooms) {
  if (std::optional<Placement> placement = placed_where_there_is_room(parts, rooms)) return *placement;
  refuse(parts, rooms);
}

Placement place_layers_and_experts(std::span<const PartBytes> parts, std::span<const DeviceRoom> rooms) {
  if (std::optional<Placement> placement = placed_with_experts(parts, rooms)) return *placement;
  refuse(parts, rooms);
}

Placement place_layers(const Plan& plan, const std::vector<StoredTensor>& tensors, Backend& device) {
  if (Devices* const devices = device.devices()) {
    const std::vector<PartBytes> parts = part_bytes(plan, tensors);
    return devices->as_few_as_will_do() ? place_on_as_few(parts, *devices) : place_layers_and_experts(parts, rooms_of(*devices));
  }
  const bool has_experts = std::ranges::any_of(plan.layers, [](const LayerPlan& layer) { return layer.ffn == FfnKind::experts; });
  if (!has_experts || !device.has_own_memory()) return {};
  const DeviceRoom room = room_of("the device", device);
  const std::optional<Placement> placement = placed_with_experts(part_bytes(plan, tensors), {&room, 1});
  return placement && placement->first_on_host >= 0 ? *placement : Placement{};
}

Placement place_layers(const Plan& plan, std::span<const std::int64_t> layers_of_devices, Devices& devices) {
  Placement placement;
  for (std::size_t device = 0; device < layers_of_devices.size(); ++device) {
    const auto count = static_cast<std::size_t>(layers_of_devices[device]);
    const std::string name = device < devices.all().size() ? devices.all()[device].name : "a device that is not there";
    placement.reasons.push_back(fmt::format("{}: {}, as was said", name, layers_text(placement.of_layer.size(), count)));
    placement.of_layer.insert(placement.of_layer.end(), count, device);
  }
  if (layers_of_devices.size() > devices.all().size() || placement.of_layer.size() != plan.layers.size())
    throw Error(fmt::format("{} layers cannot be placed as {} on {} devices", plan.layers.size(), fmt::join(layers_of_devices, ", "),
                            devices.all().size()));
  return placement;
}

}  // namespace statescope

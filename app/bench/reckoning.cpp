#include "app/bench/reckoning.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"
#include "engine/error.h"

namespace statescope {
namespace {

using nlohmann::json;

constexpr std::size_t kMostBytes = 1 << 20;
constexpr double kGigabyte = 1e9;
constexpr double kCrossing = 1e-5;  // seconds that a copy from one device to the next takes, however little it is

/// As a folder's config says it, of the text model where there is one around it.
DType stored_type(const json& config) {
  const json& inner = config.contains("text_config") && config["text_config"].is_object() ? config["text_config"] : config;
  for (const json* place : {&inner, &config}) {
    for (const char* key : {"dtype", "torch_dtype"}) {
      if (!place->contains(key) || !(*place)[key].is_string()) continue;
      const std::string name = (*place)[key];
      if (name == "bfloat16") return DType::bf16;
      if (name == "float16") return DType::f16;
      if (name == "float32") return DType::f32;
    }
  }
  return DType::bf16;
}

double sum_of(const std::vector<TokenTraffic>& traffic, double TokenTraffic::*what) {
  return std::accumulate(traffic.begin(), traffic.end(), 0.0, [&](double sum, const TokenTraffic& part) { return sum + part.*what; });
}

}  // namespace

double PaperModel::takes() const {
  return std::accumulate(parts.begin(), parts.end(), 0.0,
                         [](double sum, const PartBytes& part) { return sum + static_cast<double>(part.own); });
}
double PaperModel::weights() const { return sum_of(traffic, &TokenTraffic::weights); }
double PaperModel::states() const { return sum_of(traffic, &TokenTraffic::states); }
double PaperModel::cache() const { return sum_of(traffic, &TokenTraffic::cache); }

PaperModel paper_model(const std::filesystem::path& path) {
  const std::filesystem::path file = std::filesystem::is_directory(path) ? path / "config.json" : path;
  const std::string text = read_file(file, kMostBytes);
  check_json_text(file, "the config", text);
  PaperModel model;
  const std::filesystem::path whole = std::filesystem::absolute(file).lexically_normal();
  model.name = whole.filename() == "config.json" ? whole.parent_path().filename().string() : whole.stem().string();
  try {
    model.config = Config::parse(text);
    model.plan = plan_model(model.config);
    model.dtype = stored_type(model.config.raw());
    const std::vector<StoredTensor> tensors = tensors_without_data(model.config, model.dtype);
    for (const StoredTensor& tensor : tensors) model.parameters += static_cast<double>(tensor.size());
    model.parts = part_bytes(model.plan, tensors);
    model.traffic = token_traffic(model.plan, tensors);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", file.string(), error.what()));
  }
  return model;
}

Reckoned reckon(std::span<const PartBytes> parts, std::span<const TokenTraffic> traffic, std::int64_t hidden, int gpus, const GpuKind& kind,
                const HostKind& host, std::int64_t context) {
  // Seven eighths are room, as on devices that are there; the rest is scratch memory.
  const auto room_of = [](double memory) { return static_cast<std::size_t>(memory) - static_cast<std::size_t>(memory) / 8; };
  std::vector<DeviceRoom> rooms;
  for (int gpu = 0; gpu < gpus; ++gpu) rooms.push_back({fmt::format("cuda:{}", gpu), room_of(kind.memory), true});
  if (host.memory > 0) rooms.push_back({"cpu", room_of(host.memory), false});
  Reckoned reckoned;
  Placement placement;
  try {
    placement = place_layers(parts, rooms);
  } catch (const Error& error) {
    reckoned.no_room = error.what();
    return reckoned;
  }
  reckoned.reasons = placement.reasons;
  reckoned.layers.resize(rooms.size());
  std::vector<double> bytes(rooms.size());
  const auto moved = [&](const TokenTraffic& part) { return part.weights + part.states + part.cache * static_cast<double>(context); };
  bytes.front() = moved(traffic.back());
  for (std::size_t layer = 0; layer < placement.of_layer.size(); ++layer) {
    const std::size_t device = placement.of_layer[layer];
    ++reckoned.layers[device];
    bytes[device] += moved(traffic[layer]);
  }
  if (host.memory > 0 && reckoned.layers.back() == 0) {
    reckoned.layers.pop_back();
    bytes.pop_back();
  }
  // t = Σ_d bytes_d / bandwidth_d
  for (std::size_t device = 0; device < bytes.size(); ++device)
    reckoned.memory_seconds += bytes[device] / (device < static_cast<std::size_t>(gpus) ? kind.bandwidth : host.bandwidth);
  // One crossing into each device behind the first that has layers, and one back to it.
  const auto stops = std::count_if(reckoned.layers.begin() + 1, reckoned.layers.end(), [](std::int64_t layers) { return layers > 0; });
  if (stops > 0)
    reckoned.link_seconds = static_cast<double>(stops + 1) * (kCrossing + static_cast<double>(hidden) * sizeof(float) / kind.link);
  return reckoned;
}

KnownGpus known_gpus(const std::filesystem::path& file) {
  const json all = json::parse(read_file(file, kMostBytes), nullptr, /*allow_exceptions=*/false);
  try {
    KnownGpus known;
    for (const json& gpu : all.at("gpus"))
      known.kinds.push_back({gpu.at("name"), gpu.at("memory").get<double>() * kGigabyte, gpu.at("bandwidth").get<double>() * kGigabyte,
                             gpu.at("link").get<double>() * kGigabyte});
    known.reached = all.at("reached").at("share");
    known.where = all.at("reached").at("where");
    return known;
  } catch (const json::exception&) {
    throw Error(file.string() + ": is damaged; install the program anew");
  }
}

}  // namespace statescope

// From a checkpoint to a model on its devices.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "engine/error.h"
#include "engine/model/expert_cache.h"
#include "engine/model/model.h"

namespace statescope {
namespace {

/// Tensors that the forward pass did not ask for: heads for other tasks are noted. Throws Error naming all others, for they may belong to
/// the computation.
void account_for_unused(std::vector<std::string> unused, Plan& plan) {
  const auto is_other_task = [](const std::string& name) {
    const std::array<std::string_view, 4> heads{"score.", "classifier.", "v_head.", "value_head."};
    return std::ranges::any_of(heads, [&](std::string_view head) { return name.starts_with(head); });
  };
  const auto heads = std::ranges::stable_partition(unused, [&](const std::string& name) { return !is_other_task(name); });
  if (!heads.empty()) plan.notes.push_back(fmt::format("passed over: a head for another task, {}", heads.front()));
  unused.erase(heads.begin(), heads.end());
  if (unused.empty()) return;
  constexpr std::size_t named = 4;
  const std::string more = unused.size() > named ? fmt::format(" and {} more", unused.size() - named) : "";
  unused.resize(std::min(unused.size(), named));
  throw Error(
      fmt::format("tensor{} {}{}: not used by a {} model of this config, which lacks what says how they enter, unless they do not "
                  "belong into this file",
                  unused.size() > 1 ? "s" : "", fmt::join(unused, ", "), more, plan.family));
}

}  // namespace

Model::Loaded::Loaded(std::shared_ptr<const Checkpoint> checkpoint_, Plan plan_, Placement placement_, StoredWeights weights)
    : checkpoint(std::move(checkpoint_)), plan(std::move(plan_)), stack(plan, weights), placement(std::move(placement_)) {
  account_for_unused(weights.unused(), plan);
  weight_memory = weights.take_buffers();
}

namespace {

/// Of each layer whose experts stay in the host's memory its device's; null: they do not.
std::vector<std::shared_ptr<ExpertCache>> expert_caches(const Placement& placement, Backend& backend) {
  std::vector<std::shared_ptr<ExpertCache>> of_devices, of_layers;
  for (std::size_t device = 0; device < placement.expert_bytes.size(); ++device) {
    Backend& one = backend.devices() ? backend.devices()->at(device) : backend;
    of_devices.push_back(std::make_shared<ExpertCache>(one, placement.expert_bytes[device]));
  }
  for (std::size_t layer = 0; placement.first_on_host >= 0 && layer < placement.of_layer.size(); ++layer)
    of_layers.push_back(std::cmp_less(layer, placement.first_on_host) ? nullptr : of_devices[placement.of_layer[layer]]);
  return of_layers;
}

}  // namespace

std::shared_ptr<Model> Model::load(std::shared_ptr<const Checkpoint> checkpoint, std::shared_ptr<Backend> backend,
                                   std::span<const std::int64_t> layers_of_devices) {
  const std::string name = checkpoint->path.string();
  std::shared_ptr<const Loaded> loaded;
  try {
    Plan plan = plan_model(Config::parse(checkpoint->config));
    plan.notes.insert(plan.notes.begin(), checkpoint->notes.begin(), checkpoint->notes.end());
    std::vector<StoredTensor> tensors = regular_tensors(*checkpoint, plan);
    Placement placement;
    std::vector<Backend*> of_layers;
    Backend* at_home = backend.get();
    Devices* const devices = backend->devices();
    placement =
        devices && !layers_of_devices.empty() ? place_layers(plan, layers_of_devices, *devices) : place_layers(plan, tensors, *backend);
    if (devices) {
      for (const std::size_t device : placement.of_layer) of_layers.push_back(&devices->at(device));
      at_home = &devices->at(Devices::home);
    }
    StoredWeights weights(std::move(tensors), *at_home, std::move(of_layers));
    weights.keep_experts_on_host(expert_caches(placement, *backend));
    loaded = std::make_shared<const Loaded>(std::move(checkpoint), std::move(plan), std::move(placement), std::move(weights));
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", name, error.what()));
  }
  loaded->checkpoint->require_whole_files();
  return std::shared_ptr<Model>(new Model(std::move(loaded), std::move(backend)));
}

std::shared_ptr<Model> Model::beside(std::shared_ptr<Backend> backend) const {
  return std::shared_ptr<Model>(new Model(loaded_, std::move(backend)));
}

}  // namespace statescope

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "app/cli/commands.h"
#include "app/cli/job_place.h"
#include "app/common/console.h"
#include "engine/checkpoint/printable.h"
#include "engine/place_words.h"

namespace statescope {
namespace {

std::string heads_text(std::int64_t heads) { return heads == 1 ? "1 head" : fmt::format("{} heads", heads); }

/// How many states a head has.
std::string slots_text(const LayerInfo& layer) {
  if (layer.slots() < 2) return "";
  if (layer.memory == "state space") return ", complex";
  return fmt::format(", {} {}", layer.slots(), layer.memory == "log-linear attention" ? "levels" : "of them");
}

/// As it goes on behind what is said of a layer's state.
std::string detail_text(const std::string& detail, const LayerInfo& layer) {
  if (detail.empty()) return "";
  return (layer.attends_beside() ? ", " : layer.has_state() ? "; " : "  ") + detail;
}

void print_layers(const ModelInfo& info, const std::vector<std::string>& details) {
  const bool placed = std::ranges::any_of(info.layers, [](const LayerInfo& layer) { return !layer.device.empty(); });
  fmt::print("{:<7}{}{:<22}{:<24}{:>6}{:>10}\n", "layer", placed ? "device   " : "", "mixer", "memory", "heads", "state");
  for (std::size_t i = 0; i < info.layers.size(); ++i) {
    const LayerInfo& layer = info.layers[i];
    const std::string state = layer.rows > 0 ? fmt::format("{} × {}", layer.rows, layer.columns) : "";
    const std::string slots = slots_text(layer);
    const std::string axes = layer.rows > 0 ? fmt::format("  {} × {}", layer.row_name, layer.column_name) : "";
    const std::string device = placed ? fmt::format("{:<9}", layer.device) : "";
    const std::string experts = layer.experts > 0 ? fmt::format("  {} experts, {} a token", layer.experts, layer.chosen_experts) : "";
    const std::string beside =
        layer.attends_beside() ? fmt::format("; beside it softmax attention, {}", heads_text(layer.attention_heads)) : "";
    const std::int64_t heads = layer.has_state() ? layer.heads : layer.attention_heads;
    fmt::print("{:<7}{}{:<22}{:<24}{:>6}{:>10}{}{}{}{}{}\n", i, device, layer.mixer, layer.memory,
               heads > 0 ? fmt::format("{}", heads) : "", state, axes, slots, beside, detail_text(details[i], layer), experts);
  }
  for (const std::string& reason : info.placement) fmt::print("{}\n", reason);
}

/// Each program once, under the layers that have it.
void print_programs(const ModelFound& found, bool after_passes) {
  fmt::print(
      "what the mixers compute of x, which enters each; S0, S1, … are a layer's states{}; not shown: embedding, norms, what lies behind a "
      "mixer (MLP or experts), unembedding\n",
      after_passes ? "; a value is written over where nobody reads it again" : "");
  for (const auto& [text, layers] : found.programs) {
    const bool all = layers.size() == found.info.layers.size() && layers.size() > 1;
    fmt::print("{}:\n{}\n", all ? "all layers" : counted("layer", layers), text);
  }
}

}  // namespace

int model_command(const ModelArguments& arguments) {
  JobPlace place(arguments.device, arguments.engine);
  const ModelJob job{
      .programs = arguments.program, .layer = arguments.layer, .after_passes = arguments.after_passes, .one_token = arguments.one_token};
  const ModelFound found = place.done(arguments.checkpoint, job, "model");
  print_notes(found.info.notes);
  fmt::print("{}: {}, {} parameters, {} layers of width {}, vocabulary of {}\n", printable(arguments.checkpoint), found.info.family,
             found.info.parameters, found.info.layers.size(), found.hidden, found.vocab);
  arguments.program ? print_programs(found, arguments.after_passes) : print_layers(found.info, found.details);
  return 0;
}

}  // namespace statescope

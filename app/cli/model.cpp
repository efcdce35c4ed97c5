#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "app/cli/commands.h"
#include "app/cli/job_place.h"
#include "app/common/console.h"
#include "engine/checkpoint/printable.h"

namespace statescope {
namespace {

std::string heads_text(std::int64_t heads) { return heads == 1 ? "1 head" : fmt::format("{} heads", heads); }

void print_layers(const ModelInfo& info) {
  const bool placed = std::ranges::any_of(info.layers, [](const LayerInfo& layer) { return !layer.device.empty(); });
  fmt::print("{:<7}{}{:<22}{:<24}{:>6}{:>10}\n", "layer", placed ? "device   " : "", "mixer", "memory", "heads", "state");
  for (std::size_t i = 0; i < info.layers.size(); ++i) {
    const LayerInfo& layer = info.layers[i];
    const std::string state = layer.rows > 0 ? fmt::format("{} × {}", layer.rows, layer.columns) : "";
    const std::string slots = layer.slot_names.size() > 1 ? fmt::format(", {} of them", layer.slot_names.size()) : "";
    const std::string axes = layer.rows > 0 ? fmt::format("  {} × {}", layer.row_name, layer.column_name) : "";
    const std::string device = placed ? fmt::format("{:<9}", layer.device) : "";
    const std::string experts = layer.experts > 0 ? fmt::format("  {} experts, {} a token", layer.experts, layer.chosen_experts) : "";
    const std::string beside =
        layer.attends_beside() ? fmt::format("; beside it softmax attention, {}", heads_text(layer.attention_heads)) : "";
    const std::int64_t heads = layer.has_state() ? layer.heads : layer.attention_heads;
    fmt::print("{:<7}{}{:<22}{:<24}{:>6}{:>10}{}{}{}{}\n", i, device, layer.mixer, layer.memory, heads > 0 ? fmt::format("{}", heads) : "",
               state, axes, slots, beside, experts);
  }
  for (const std::string& reason : info.placement) fmt::print("{}\n", reason);
}

/// Each program once, under the layers that have it.
void print_programs(const ModelFound& found) {
  fmt::print(
      "what the mixers compute of x, which enters each; not shown: embedding, norms, what lies behind a mixer (MLP or experts), "
      "unembedding\n");
  for (const auto& [text, layers] : found.programs) {
    const bool all = layers.size() == found.info.layers.size() && layers.size() > 1;
    fmt::print("{}:\n{}\n", all ? "all layers" : fmt::format("layer {}", fmt::join(layers, ", ")), text);
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
  arguments.program ? print_programs(found) : print_layers(found.info);
  return 0;
}

}  // namespace statescope

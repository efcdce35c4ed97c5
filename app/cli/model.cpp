#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "app/cli/commands.h"
#include "app/common/running.h"
#include "engine/checkpoint/printable.h"
#include "engine/error.h"
#include "kernels/passes/passes.h"

namespace statescope {
namespace {

void print_layers(const ModelInfo& info) {
  const bool placed = !info.placement.empty();
  fmt::print("{:<7}{}{:<22}{:<24}{:>6}{:>10}\n", "layer", placed ? "device   " : "", "mixer", "memory", "heads", "state");
  for (std::size_t i = 0; i < info.layers.size(); ++i) {
    const LayerInfo& layer = info.layers[i];
    const std::string state = layer.rows > 0 ? fmt::format("{} × {}", layer.rows, layer.columns) : "";
    const std::string slots = layer.slot_names.size() > 1 ? fmt::format(", {} of them", layer.slot_names.size()) : "";
    const std::string axes = layer.rows > 0 ? fmt::format("  {} × {}", layer.row_name, layer.column_name) : "";
    const std::string device = placed ? fmt::format("{:<9}", layer.device) : "";
    fmt::print("{:<7}{}{:<22}{:<24}{:>6}{:>10}{}{}\n", i, device, layer.mixer, layer.memory,
               layer.heads > 0 ? fmt::format("{}", layer.heads) : "", state, axes, slots);
  }
  for (const std::string& reason : info.placement) fmt::print("{}\n", reason);
}

/// The program of a layer, as text.
std::string program_of(const Model& model, std::int64_t layer, const ModelArguments& arguments) {
  if (model.mixer(layer) == nullptr) return "this layer has no mixer\n";
  const program::Program& program = model.mixer(layer)->program();
  if (!arguments.after_passes) return program::to_string(program);
  const program::Purpose purpose{.wanted = std::vector<bool>(program.channels.size(), false), .one_token = arguments.one_token};
  return program::to_string(program::compiled(program, purpose));
}

/// Each program once, under the layers that have it.
void print_programs(const Model& model, const ModelArguments& arguments) {
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> programs;
  for (std::int64_t layer = 0; layer < model.layers(); ++layer) {
    if (arguments.layer && layer != *arguments.layer) continue;
    const std::string text = program_of(model, layer, arguments);
    auto known = std::ranges::find(programs, text, &std::pair<std::string, std::vector<std::int64_t>>::first);
    if (known == programs.end()) known = programs.insert(programs.end(), {text, {}});
    known->second.push_back(layer);
  }
  for (const auto& [text, layers] : programs) {
    const bool all = std::ssize(layers) == model.layers() && model.layers() > 1;
    fmt::print("{}:\n{}\n", all ? "all layers" : fmt::format("layer {}", fmt::join(layers, ", ")), text);
  }
}

}  // namespace

int model_command(const ModelArguments& arguments) {
  const auto model = load_model(open_checkpoint(arguments.checkpoint), arguments.device);
  if (arguments.layer && *arguments.layer >= model->layers())
    throw Error(
        fmt::format("--layer: there is no layer {}: the model has {}, 0 to {}", *arguments.layer, model->layers(), model->layers() - 1));
  const ModelInfo info = model->info();
  fmt::print("{}: {}, {} parameters, {} layers of width {}, vocabulary of {}\n", printable(arguments.checkpoint), info.family,
             info.parameters, model->layers(), model->hidden(), model->vocab());
  if (!arguments.program) return print_layers(info), 0;
  print_programs(*model, arguments);
  return 0;
}

}  // namespace statescope

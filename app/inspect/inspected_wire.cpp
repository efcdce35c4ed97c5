#include <algorithm>

#include "app/inspect/inspected_fields.h"

namespace statescope {
namespace {

constexpr std::int64_t kMostTokens = std::int64_t{1} << 40;

bool is_whole(const RoutingReport& routing) {
  const auto& [frequency, probability, load, variation, loss] = routing.balance;
  const auto are_there = [&](const std::vector<std::int64_t>& partitions) {
    return std::ranges::all_of(partitions, [&](std::int64_t n) { return n >= 0 && n < std::ssize(load); });
  };
  return !load.empty() && frequency.size() == load.size() && probability.size() == load.size() && are_there(routing.uneven.dead) &&
         are_there(routing.uneven.overloaded);
}

bool is_whole(const LayerReport& layer) {
  const auto are_of_heads = [&](const std::vector<double>& numbers) { return numbers.size() == layer.heads.size(); };
  return (layer.norm_by_eighth.empty() || layer.norm_by_eighth.size() == 8) && layer.moments.size() == layer.norm_by_eighth.size() &&
         are_of_heads(layer.heads_read_effect) && are_of_heads(layer.heads_norm) && are_of_heads(layer.heads_likeness) &&
         are_of_heads(layer.heads_same_reads) && (!layer.routing || is_whole(*layer.routing));
}

}  // namespace

bool is_whole(const Inspected& inspected) {
  const std::vector<SequenceReport>& sequences = inspected.sequences;
  const auto is_sound = [&](const SequenceReport& report) {
    return report.tokens >= 0 && report.tokens < kMostTokens && report.layers.size() == sequences.front().layers.size() &&
           std::ranges::all_of(report.layers, [](const LayerReport& layer) { return is_whole(layer); });
  };
  const auto has_heads = [](const Diagnosis& found) {
    return found.heads_by_layer.empty() || found.heads_by_layer.size() == found.layers.size();
  };
  return inspected.names.size() == sequences.size() && std::ranges::all_of(sequences, is_sound) &&
         std::ranges::all_of(inspected.judgement.diagnoses, has_heads);
}

namespace remote {

template std::string pack(const Inspected&);
template Inspected unpack(std::string_view);

}  // namespace remote
}  // namespace statescope

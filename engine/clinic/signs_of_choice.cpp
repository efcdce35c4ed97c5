// Signs of choice: partitions that are not chosen, head gates that no longer compete.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "engine/analysis/parts.h"
#include "engine/clinic/signs.h"

namespace statescope::signs {
namespace {

/// (H − log W) / (log N − log W) of loads, W of N chosen: 1 if all are chosen equally often, 0 if the same W always are.
double spread(std::span<const double> loads, double chosen) {
  const auto count = static_cast<double>(loads.size());
  std::vector<double> share(loads.begin(), loads.end());
  for (double& x : share) x /= count;
  return (entropy(std::span<const double>(share)) - std::log(chosen)) / (std::log(count) - std::log(chosen));
}

}  // namespace

std::optional<Symptom> routing_collapse(const LayerSigns& layer, const ReadOn&) {
  const std::vector<double> loads = layer.loads();
  if (loads.empty()) return {};
  double chosen = 0;
  for (const double f : layer.any().routing->balance.frequency) chosen += f;
  if (!(chosen + 0.5 < static_cast<double>(loads.size()))) return {};  // every token chooses all
  const double value = spread(loads, std::max(1.0, std::round(chosen)));
  if (!(value < kLeastSpread)) return {};
  return Symptom{
      .evidence = {{"spread", value}, {"threshold", kLeastSpread}, {"largest_load", std::ranges::max(loads)}},
      .sentence = fmt::format(
          "Tokens crowd into few partitions: their spread is {:.2f} (1: all alike, 0: the same ones always); loads {:.2f} (1: fair).",
          value, fmt::join(loads, " ")),
      .severity = -value};
}

std::optional<Symptom> dead_partition(const LayerSigns& layer, const ReadOn&) {
  const std::vector<double> loads = layer.loads();
  std::vector<std::size_t> dead;
  for (std::size_t n = 0; n < loads.size(); ++n) {
    if (loads[n] <= kDeadLoad) dead.push_back(n + 1);
  }
  if (dead.empty()) return {};
  const double least = std::ranges::min(loads);
  return Symptom{.evidence = {{"least_load", least}, {"threshold", kDeadLoad}, {"partitions", static_cast<double>(dead.size())}},
                 .sentence = fmt::format("Partition{} {} {} hardly ever chosen: a load of {:.2g} (1: fair).", dead.size() > 1 ? "s" : "",
                                         fmt::join(dead, ", "), dead.size() > 1 ? "are" : "is", least),
                 .severity = static_cast<double>(dead.size())};
}

std::optional<Symptom> head_gate_collapse(const LayerSigns& layer, const ReadOn&) {
  for (const auto& [what, gate] : {std::pair{"written", &LayerReport::writing}, std::pair{"read", &LayerReport::reading}}) {
    if (!(layer.any().*gate)) continue;
    const double of_mean = layer.of([&](const LayerReport& l) { return (l.*gate)->entropy_of_mean; });
    const double mean_entropy = layer.of([&](const LayerReport& l) { return (l.*gate)->mean_entropy; });
    const std::int64_t winner = (layer.any().*gate)->winner;
    const std::vector<std::pair<std::string, double>> evidence{{"entropy_of_mean_gate", of_mean}, {"mean_entropy", mean_entropy}};
    if (mean_entropy < kHardGates && of_mean >= kLeastGateEntropy)
      return Symptom{.evidence = evidence,
                     .sentence = fmt::format(
                         "Heads no longer compete: at every token one head alone is {} (entropy of a token's gates {:.2g} of log H).", what,
                         mean_entropy),
                     .severity = -mean_entropy};
    if (of_mean < kLeastGateEntropy)
      return Symptom{.evidence = evidence,
                     .heads = {winner},
                     .sentence = fmt::format("Head {} always wins: the mean gate by which heads are {} has an entropy of {:.2g} of log H.",
                                             winner, what, of_mean),
                     .severity = -of_mean};
    const bool alike = layer.of([](const LayerReport& l) { return l.likest_heads; }) > kSameHeads;  // then gates cannot differ
    if (mean_entropy > kMostGateEntropy && !alike)
      return Symptom{
          .evidence = evidence,
          .sentence = fmt::format("No head ever wins: the gates by which heads are {} are even at every token (entropy {:.4f} of log H).",
                                  what, mean_entropy),
          .severity = mean_entropy};
  }
  return {};
}

}  // namespace statescope::signs

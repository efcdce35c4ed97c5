// Signs of time: a memory that forgets at once or never, a state that leaves what it was trained on.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/clinic/signs.h"

namespace statescope::signs {
namespace {

double growth_in_second_half(const LayerReport& layer) {
  return layer.moments.empty() ? NAN : layer.moments.back().norm / layer.moments[layer.moments.size() / 2 - 1].norm;
}

/// How far back the reads of a layer reach, mean over the channels of what every token is written to; NaN where there is no such slot.
double reach_of(const LayerReport& layer) {
  double reach = NAN;
  for (const SlotReport& slot : layer.slots) {
    const bool is_partition = layer.routing && slot.name != "shared";
    if (!is_partition && slot.receptive_field) reach = std::fmax(reach, *slot.receptive_field);
  }
  return reach;
}

}  // namespace

std::optional<Symptom> forgets_at_once(const LayerSigns& layer, const ReadOn&) {
  const double longest = layer.of([](const LayerReport& l) { return l.longest_median.value_or(NAN); });
  const double reach = layer.of(reach_of);
  // A few channels that remember are a memory, too. The lower bound of HGRN2's gates is 0 in its first layer and grows with the layer: the
  // lower ones are made to forget (HGRN2, arXiv 2404.07904).
  const bool made_to_forget = layer.any().mixer == "hgrn2";
  if (!(longest < kShortestMemory) || reach > (made_to_forget ? kShortestByDesign : kShortestReach)) return {};
  Symptom symptom{.evidence = {{"longest_median_half_life", longest}, {"threshold", kShortestMemory}},
                  .sentence = fmt::format(
                      "Nothing outlives a few tokens: half of it is gone after {:.2g} tokens (the median channel's half-life).", longest),
                  .severity = -longest};
  if (std::isfinite(reach)) symptom.evidence.emplace_back("receptive_field", reach);
  return symptom;
}

std::optional<Symptom> never_forgets(const LayerSigns& layer, const ReadOn&) {
  if (layer.any().memory == "state space") return {};  // it has no gate
  double longest = 0;
  for (const SequenceReport& sequence : layer.sequences()) longest = std::max(longest, static_cast<double>(sequence.tokens));
  const double shortest = layer.of([](const LayerReport& l) { return l.shortest_half_life.value_or(NAN); });
  const double growth = layer.of(growth_in_second_half);
  // A delta rule erases what it writes over: there a gate that hardly decays is no illness, one that cannot is.
  const bool erases = layer.any().memory.find("delta") != std::string::npos;
  const double median = layer.of([](const LayerReport& l) { return l.shortest_median.value_or(NAN); });
  const bool decays = !(shortest > (erases ? kCannotDecay : kNeverDecays * longest)) && !(median > kCannotDecay);
  if (decays || !(growth > kStillGrows)) return {};
  return Symptom{.evidence = {{"shortest_half_life", std::min(shortest, 1e30)},
                              {"shortest_median_half_life", std::min(median, 1e30)},
                              {"tokens", longest},
                              {"norm_growth", growth}},
                 .sentence = fmt::format("It has a forget gate and never forgets: half-lives are {:.3g} tokens and more (the median "
                                         "channel's {:.3g}), and the state's norm grows "
                                         "{:.2f} times in the second half.",
                                         shortest, median, growth),
                 .severity = growth};
}

std::optional<Symptom> length_drift(const LayerSigns& layer, const ReadOn& read) {
  if (read.trained_length == 0) return {};
  double inside = 0, outside = 0, furthest = 0;  // the largest norm up to the training length, and behind it
  for (const SequenceReport& sequence : layer.sequences()) {
    for (const Moments& moments : sequence.layers[static_cast<std::size_t>(layer.index())].moments) {
      if (static_cast<double>(moments.tokens) > kFarthest * static_cast<double>(read.trained_length)) continue;
      const bool is_inside = static_cast<double>(moments.tokens) <= kWithin * static_cast<double>(read.trained_length);
      (is_inside ? inside : outside) = std::max(is_inside ? inside : outside, moments.norm);
      furthest = std::max(furthest, static_cast<double>(moments.tokens));
    }
  }
  const double growth = outside / inside;
  if (!(inside > 0) || !(growth > kDriftGrowth)) return {};
  return Symptom{.evidence = {{"norm_inside", inside},
                              {"norm_outside", outside},
                              {"growth", growth},
                              {"threshold", kDriftGrowth},
                              {"trained_length", static_cast<double>(read.trained_length)},
                              {"tokens", furthest}},
                 .sentence = fmt::format(
                     "Past its training length of {} tokens the state leaves what it was trained on: its norm reaches {:.3g}, up to "
                     "there it was {:.3g} at most.",
                     read.trained_length, outside, inside),
                 .severity = growth};
}

}  // namespace statescope::signs

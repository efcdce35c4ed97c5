// Which experts the tokens of a layer go to (spec §8.1), for a picture and as quantities.
#include <fmt/format.h>

#include <algorithm>

#include "engine/analysis/routing_analysis.h"
#include "engine/answers/answers.h"
#include "engine/answers/observables_groups.h"
#include "engine/error.h"

namespace statescope {
namespace {

/// The choices of all tokens of a layer.
struct Chosen {
  const ChannelRows *ids, *weights;  // null: the layer has no experts
  std::int64_t E, k;

  Chosen(std::int64_t layer, Evidence& evidence)
      : ids(nullptr), weights(nullptr), E(evidence.layer(layer).experts), k(evidence.layer(layer).chosen_experts) {
    if (E == 0) return;
    ids = evidence.channel(layer, "moe_selected");
    weights = evidence.channel(layer, "moe_weights");
  }
  explicit operator bool() const { return ids != nullptr; }
  std::int64_t expert(std::int64_t t, std::int64_t i) const { return static_cast<std::int64_t>(ids->values[at(t, i)]); }
  float weight(std::int64_t t, std::int64_t i) const { return weights->values[at(t, i)]; }

 private:
  std::size_t at(std::int64_t t, std::int64_t i) const { return static_cast<std::size_t>(t * k + i); }
};

}  // namespace

Experts answer(const ExpertsQuestion& question, Evidence& evidence) {
  const auto [layer, from, to] = question;
  if (from < 0 || to > evidence.tokens() || to <= from || to - from > 512)
    throw Error(fmt::format("no window of tokens {} to {}", from, to));
  const Chosen chosen(layer, evidence);
  if (!chosen) return {};
  Experts all{.experts = chosen.E, .chosen = chosen.k, .expert = {}, .weight = {}, .load = {}};
  all.load.resize(static_cast<std::size_t>(all.experts));
  for (std::int64_t t = 0; t < to; ++t) {
    for (std::int64_t i = 0; i < all.chosen; ++i) {
      if (t < from) {
        ++all.load[static_cast<std::size_t>(chosen.expert(t, i))];
      } else {
        all.expert.push_back(static_cast<std::int32_t>(chosen.expert(t, i)));
        all.weight.push_back(chosen.weight(t, i));
      }
    }
  }
  return all;
}

ObservedGroup observe_experts(const LayerSpan& span, Evidence& evidence) {
  const Chosen chosen(span.layer, evidence);
  if (!chosen) return {};
  Observed expert(span, {chosen.k}), weight(span, {chosen.k}), load(span, {chosen.E}), variation(span, {});
  std::vector<double> times(static_cast<std::size_t>(chosen.E));
  for (std::int64_t t = 0; t < span.to; ++t) {
    for (std::int64_t i = 0; i < chosen.k; ++i) ++times[static_cast<std::size_t>(chosen.expert(t, i))];
    if (t < span.from) continue;
    for (std::int64_t i = 0; i < chosen.k; ++i) {
      expert.at(t, i) = static_cast<float>(chosen.expert(t, i));
      weight.at(t, i) = chosen.weight(t, i);
    }
    // f_e / (k / E)
    const double even = static_cast<double>((t + 1) * chosen.k) / static_cast<double>(chosen.E);
    for (std::int64_t e = 0; e < chosen.E; ++e) load.at(t, e) = static_cast<float>(times[static_cast<std::size_t>(e)] / even);
    variation.at(t) = static_cast<float>(coefficient_of_variation(times));
  }
  return {expert, weight, load, variation};
}

}  // namespace statescope

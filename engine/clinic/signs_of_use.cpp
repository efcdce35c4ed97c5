// Signs of use: a memory that is not written, or that nobody reads.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/clinic/signs.h"

namespace statescope::signs {
namespace {

double read_effect(const LayerSigns& layer, std::size_t head) { return of_head(layer, head, &LayerReport::heads_read_effect); }

/// A small state whose read is scaled up is missed; one as good as 0 cannot be.
bool is_unwritten(const LayerSigns& layer, std::size_t head) {
  const double norm = of_head(layer, head, &LayerReport::heads_norm);
  const double residual = layer.of([](const LayerReport& l) { return l.residual_norm; });
  return norm <= kAsGoodAsNothing * residual || (norm <= kLeastWritten * residual && read_effect(layer, head) < kLeastHeadEffect);
}

}  // namespace

std::vector<std::int64_t> heads_where(const LayerSigns& layer, const std::function<bool(const LayerSigns&, std::size_t)>& says) {
  std::vector<std::int64_t> heads;
  for (std::size_t h = 0; h < layer.any().heads.size(); ++h) {
    if (says(layer, h)) heads.push_back(static_cast<std::int64_t>(h));
  }
  return heads;
}

std::string heads_text(std::span<const std::int64_t> heads) {
  return fmt::format("head{} {}", heads.size() > 1 ? "s" : "", fmt::join(heads, ", "));
}

double of_head(const LayerSigns& layer, std::size_t head, std::vector<double> LayerReport::*figure) {
  return layer.of([&](const LayerReport& l) { return (l.*figure)[head]; });
}

std::optional<Symptom> unwritten(const LayerSigns& layer, const ReadOn&) {
  const double state = layer.of([](const LayerReport& l) {
    double most = 0;
    for (const SlotReport& slot : l.slots) most = std::max(most, slot.norm);
    return most;
  });
  const double residual = layer.of([](const LayerReport& l) { return l.residual_norm; });
  const double effect = layer.of([](const LayerReport& l) { return l.read_effect; });
  if (!(state <= kLeastWritten * residual) || effect > kLeastReadEffect) return {};
  return Symptom{.evidence = {{"state_norm", state}, {"residual_norm", residual}, {"read_effect", effect}},
                 .sentence = fmt::format("Next to nothing is written: the state's norm is {:.2g} where the residual stream's is {:.2g}.",
                                         state, residual),
                 .severity = -state};
}

std::optional<Symptom> unread(const LayerSigns& layer, const ReadOn&) {
  const double effect = layer.of([](const LayerReport& l) { return l.read_effect; });
  if (!(effect < kLeastReadEffect)) return {};
  return Symptom{.evidence = {{"read_effect", effect}, {"threshold", kLeastReadEffect}},
                 .sentence = fmt::format(
                     "Nobody misses this memory: with its read set to 0 the last predictions change by {:.2g} (total variation).", effect),
                 .severity = -effect};
}

/// Single heads of a layer that is written.
std::optional<Symptom> unwritten_heads(const LayerSigns& layer, const ReadOn&) {
  const std::vector<std::int64_t> heads = heads_where(layer, is_unwritten);
  if (heads.empty()) return {};
  double most = 0;
  for (const std::int64_t head : heads) most = std::max(most, of_head(layer, static_cast<std::size_t>(head), &LayerReport::heads_norm));
  const double residual = layer.of([](const LayerReport& l) { return l.residual_norm; });
  return Symptom{
      .evidence = {{"heads", static_cast<double>(heads.size())}, {"state_norm", most}, {"residual_norm", residual}},
      .heads = heads,
      .sentence = fmt::format("Next to nothing is written to {}: the state's norm is {:.2g} where the residual stream's is {:.2g}.",
                              heads_text(heads), most, residual),
      .severity = static_cast<double>(heads.size())};
}

/// Single heads of a layer that is read.
std::optional<Symptom> unread_heads(const LayerSigns& layer, const ReadOn&) {
  const std::vector<std::int64_t> heads = heads_where(
      layer, [](const LayerSigns& l, std::size_t head) { return !is_unwritten(l, head) && read_effect(l, head) < kLeastHeadEffect; });
  if (heads.empty()) return {};
  const double least = read_effect(layer, static_cast<std::size_t>(std::ranges::min(heads, {}, [&](std::int64_t head) {
                                     return read_effect(layer, static_cast<std::size_t>(head));
                                   })));
  return Symptom{
      .evidence = {{"read_effect", least}, {"threshold", kLeastHeadEffect}},
      .heads = heads,
      .sentence = fmt::format("Nobody misses {}: with one read set to 0 the last predictions change by {:.2g} (total variation).",
                              heads_text(heads), least),
      .severity = -least};
}

}  // namespace statescope::signs

// Signs of content: heads that hold the same, states that hold one direction.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "engine/clinic/signs.h"

namespace statescope::signs {
namespace {

/// Two heads, or several of which each has another that is like it.
std::string alike_text(std::span<const std::int64_t> heads, std::string_view what) {
  if (heads.size() == 2) return fmt::format("Heads {} and {} {} the same", heads[0], heads[1], what);
  return fmt::format("Heads {}: each {}s the same as another of them", fmt::join(heads, ", "), what);
}

/// Largest effective rank of a head's slots; 0 of a state of zeros.
double slot_rank(const StateSimilarity& head) {
  double most = 0;
  for (const Spectrum& slot : head.partitions) most = std::fmax(most, slot.rank);
  return most;
}

/// Mean over heads that hold something.
double mean_slot_rank(const LayerReport& layer) {
  std::vector<double> ranks;
  for (const StateSimilarity& head : layer.heads) {
    if (slot_rank(head) > 0) ranks.push_back(slot_rank(head));
  }
  return mean_of_known(ranks);
}

}  // namespace

std::optional<Symptom> duplicate_heads(const LayerSigns& layer, const ReadOn&) {
  const auto above = [&layer](std::vector<double> LayerReport::*figure, double threshold) {
    return heads_where(layer, [=](const LayerSigns& l, std::size_t head) { return of_head(l, head, figure) > threshold; });
  };
  const double cosine = layer.of([](const LayerReport& l) { return l.likest_heads; });
  if (cosine > kSameHeads) {
    std::vector<std::int64_t> heads = above(&LayerReport::heads_likeness, kSameHeads);
    if (heads.size() < 2) heads = {layer.any().likest[0], layer.any().likest[1]};  // not always the same two
    return Symptom{.evidence = {{"cosine", cosine}, {"threshold", kSameHeads}},
                   .heads = heads,
                   .sentence = fmt::format("{}: |cosine| of their states {:.4f}.", alike_text(heads, "hold"), cosine),
                   .severity = cosine};
  }
  const std::vector<std::int64_t> heads = above(&LayerReport::heads_same_reads, kSameReads);
  if (heads.size() < 2) return {};
  double reads = 0;
  for (const std::int64_t head : heads)
    reads = std::max(reads, of_head(layer, static_cast<std::size_t>(head), &LayerReport::heads_same_reads));
  return Symptom{.evidence = {{"reads_cosine", reads}, {"threshold", kSameReads}},
                 .heads = heads,
                 .sentence = fmt::format("{}, their keys in another order: cosine of SᵀS {:.4f}.", alike_text(heads, "read"), reads),
                 .severity = reads};
}

std::optional<Symptom> rank_collapse(const LayerSigns& layer, const ReadOn&) {
  const double rank = layer.of(mean_slot_rank);
  const bool alike = layer.of([](const LayerReport& l) { return l.likest_heads; }) > kSameHeads;
  const double threshold = alike ? kOneDirectionAlike : kOneDirection;
  if (!(rank < threshold)) return {};
  return Symptom{.evidence = {{"effective_rank", rank}, {"threshold", threshold}},
                 .sentence = fmt::format("States hold nearly one direction: effective rank {:.2f}, mean over heads.", rank),
                 .severity = -rank};
}

/// Single heads of a layer whose others hold more.
std::optional<Symptom> one_direction_heads(const LayerSigns& layer, const ReadOn&) {
  const auto rank = [&layer](std::size_t head) { return layer.of([head](const LayerReport& l) { return slot_rank(l.heads[head]); }); };
  const std::vector<std::int64_t> heads =
      heads_where(layer, [&rank](const LayerSigns&, std::size_t head) { return rank(head) > 0 && rank(head) <= kOneDirectionHead; });
  if (heads.empty()) return {};
  double most = 0;
  for (const std::int64_t head : heads) most = std::max(most, rank(static_cast<std::size_t>(head)));
  return Symptom{.evidence = {{"heads", static_cast<double>(heads.size())}, {"effective_rank", most}, {"threshold", kOneDirectionHead}},
                 .heads = heads,
                 .sentence = fmt::format("The state of {} holds one direction: effective rank {:.4f}.", heads_text(heads), most),
                 .severity = static_cast<double>(heads.size())};
}

}  // namespace statescope::signs

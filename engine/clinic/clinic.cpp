#include "engine/clinic/clinic.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/analysis/parts.h"

namespace statescope {
namespace {

constexpr std::array<IllnessRow, 12> kIllnesses{{
    {Illness::not_finite, "not_finite", "not finite", "weights, or what is computed of them, are NaN or infinite",
     "the first tensor, layer and token with such a number", "ours"},
    {Illness::untrained, "untrained", "untrained", "predictions say no more than the frequencies of the tokens",
     "nat a token above the entropy of the tokens' frequencies, and predictions as flat as chance (entropy at least 0.9 of log V), or "
     "three times as far off",
     "ours"},
    {Illness::memory_unwritten, "memory_unwritten", "memory unwritten", "what is written is negligible",
     "norm of the state, or of a head's that nobody misses, at most a thousandth of the residual stream's", "ours"},
    {Illness::forgets_at_once, "forgets_at_once", "forgets at once", "nothing outlives a few tokens",
     "the median half-life is below 3 tokens in every slot of the state (a partition's: tokens that are written to it)",
     "half-life: SSE (arXiv 2507.16577), Fig. 9; threshold ours"},
    {Illness::memory_unread, "memory_unread", "memory unread", "predictions do not change without the memory",
     "with the layer's read set to 0 the last predictions change by less than 0.001 (total variation); with a single head's, by less than "
     "0.00001",
     "ablation in the manner of effective remembrance (arXiv 2507.02782); threshold ours"},
    {Illness::routing_collapse, "routing_collapse", "routing collapse", "tokens go to too few partitions",
     "(H − log W) / (log N − log W) of the loads is below 0.4: W of N partitions chosen",
     "SSE (arXiv 2507.16577), its balance loss; threshold ours"},
    {Illness::dead_partition, "dead_partition", "dead partition", "a partition is hardly ever chosen",
     "its load is at most 0.1 of the fair share", "Mixture-of-Memories (arXiv 2502.13685), its balance loss; threshold ours"},
    {Illness::head_gate_collapse, "head_gate_collapse", "head gates collapsed",
     "of competing heads one always wins, alone, or none ever does",
     "entropy of the mean gate over log H below 0.1, or the mean of a token's below 0.01 or above 0.999",
     "softmax linear attention (SLA), Theorem 4.2; thresholds ours"},
    {Illness::rank_collapse, "rank_collapse", "rank collapse", "states hold (nearly) one direction",
     "effective rank of the states, mean over heads, below 1.4 (1.1 where heads are alike), or a single head's at most 1.005",
     "effective rank: Roy and Vetterli 2007; State Rank Dynamics (arXiv 2602.02195); threshold ours"},
    {Illness::duplicate_heads, "duplicate_heads", "duplicate heads", "heads hold the same",
     "|cosine| of two heads' states above 0.955, or of their SᵀS above 0.98", "ours"},
    {Illness::never_forgets, "never_forgets", "never forgets", "a gated memory does not decay and its norm grows with the length",
     "the shortest half-life is above 16 times the sequence, or every slot's median one above 10¹², and the norm still grows in the second "
     "half",
     "Stuffed Mamba (arXiv 2410.07145); threshold ours"},
    {Illness::length_drift, "length_drift", "drift past the training length",
     "past its training length the state leaves what it was trained on",
     "up to twice the training length the state's norm reaches more than 2.5 times what it reached within",
     "Stuffed Mamba (arXiv 2410.07145); threshold ours"},
}};

double mean(std::span<const double> values) {
  double sum = 0, count = 0;
  for (const double x : values) {
    if (std::isnan(x)) continue;
    sum += x;
    ++count;
  }
  return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

/// What several sequences say of one layer: means over those that say something.
class LayerSigns {
 public:
  LayerSigns(std::span<const SequenceReport> sequences, std::size_t layer) : sequences_(sequences), layer_(layer) {}

  std::int64_t index() const { return static_cast<std::int64_t>(layer_); }
  const LayerReport& any() const { return sequences_.front().layers[layer_]; }
  bool has_memory() const { return !any().heads.empty(); }
  double of(const std::function<double(const LayerReport&)>& figure) const {
    std::vector<double> values;
    for (const SequenceReport& sequence : sequences_) values.push_back(figure(sequence.layers[layer_]));
    return mean(values);
  }
  /// [N] 1 is fair
  std::vector<double> loads() const {
    std::vector<double> loads(any().routing ? any().routing->balance.load.size() : 0);
    double tokens = 0;
    for (const SequenceReport& sequence : sequences_) tokens += static_cast<double>(sequence.tokens);
    for (const SequenceReport& sequence : sequences_) {
      const std::vector<double>& one = sequence.layers[layer_].routing ? sequence.layers[layer_].routing->balance.load : loads;
      for (std::size_t n = 0; n < loads.size(); ++n) loads[n] += one[n] * static_cast<double>(sequence.tokens) / tokens;
    }
    return loads;
  }
  std::span<const SequenceReport> sequences() const { return sequences_; }

 private:
  std::span<const SequenceReport> sequences_;
  std::size_t layer_;
};

/// What a sign says of a layer; unset: nothing.
struct Finding {
  std::vector<std::pair<std::string, double>> evidence;
  std::vector<std::int64_t> heads = {};
  std::string sentence;  // of this layer, without its number
  double severity = 0;   // the layer with most is told about
};
using Sign = std::optional<Finding> (*)(const LayerSigns&, const ReadOn&);

std::optional<Finding> unwritten(const LayerSigns& layer, const ReadOn&) {
  const double state = layer.of([](const LayerReport& l) {
    double most = 0;
    for (const SlotReport& slot : l.slots) most = std::max(most, slot.norm);
    return most;
  });
  const double residual = layer.of([](const LayerReport& l) { return l.residual_norm; });
  const double effect = layer.of([](const LayerReport& l) { return l.read_effect; });
  if (!(state <= kLeastWritten * residual) || effect > kLeastReadEffect) return {};
  return Finding{.evidence = {{"state_norm", state}, {"residual_norm", residual}, {"read_effect", effect}},
                 .sentence = fmt::format("Next to nothing is written: the state's norm is {:.2g} where the residual stream's is {:.2g}.",
                                         state, residual),
                 .severity = -state};
}

std::optional<Finding> forgets_at_once(const LayerSigns& layer, const ReadOn&) {
  const double longest = layer.of([](const LayerReport& l) { return l.longest_median.value_or(NAN); });
  if (!(longest < kShortestMemory)) return {};
  return Finding{.evidence = {{"longest_median_half_life", longest}, {"threshold", kShortestMemory}},
                 .sentence = fmt::format(
                     "Nothing outlives a few tokens: half of it is gone after {:.2g} tokens (the median channel's half-life).", longest),
                 .severity = -longest};
}

std::optional<Finding> unread(const LayerSigns& layer, const ReadOn&) {
  const double effect = layer.of([](const LayerReport& l) { return l.read_effect; });
  if (!(effect < kLeastReadEffect)) return {};
  return Finding{.evidence = {{"read_effect", effect}, {"threshold", kLeastReadEffect}},
                 .sentence = fmt::format(
                     "Nobody misses this memory: with its read set to 0 the last predictions change by {:.2g} (total variation).", effect),
                 .severity = -effect};
}

/// Of the heads for which `says` is true of what was measured of them.
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
double read_effect(const LayerSigns& layer, std::size_t head) { return of_head(layer, head, &LayerReport::heads_read_effect); }

/// A small state whose read is scaled up is missed; one as good as 0 cannot be.
bool is_unwritten(const LayerSigns& layer, std::size_t head) {
  const double norm = of_head(layer, head, &LayerReport::heads_norm);
  const double residual = layer.of([](const LayerReport& l) { return l.residual_norm; });
  return norm <= kAsGoodAsNothing * residual || (norm <= kLeastWritten * residual && read_effect(layer, head) < kLeastHeadEffect);
}

/// Single heads of a layer that is written.
std::optional<Finding> unwritten_heads(const LayerSigns& layer, const ReadOn&) {
  const std::vector<std::int64_t> heads = heads_where(layer, is_unwritten);
  if (heads.empty()) return {};
  double most = 0;
  for (const std::int64_t head : heads) most = std::max(most, of_head(layer, static_cast<std::size_t>(head), &LayerReport::heads_norm));
  const double residual = layer.of([](const LayerReport& l) { return l.residual_norm; });
  return Finding{
      .evidence = {{"heads", static_cast<double>(heads.size())}, {"state_norm", most}, {"residual_norm", residual}},
      .heads = heads,
      .sentence = fmt::format("Next to nothing is written to {}: the state's norm is {:.2g} where the residual stream's is {:.2g}.",
                              heads_text(heads), most, residual),
      .severity = static_cast<double>(heads.size())};
}

/// Single heads of a layer that is read.
std::optional<Finding> unread_heads(const LayerSigns& layer, const ReadOn&) {
  const std::vector<std::int64_t> heads = heads_where(
      layer, [](const LayerSigns& l, std::size_t head) { return !is_unwritten(l, head) && read_effect(l, head) < kLeastHeadEffect; });
  if (heads.empty()) return {};
  const double least = read_effect(layer, static_cast<std::size_t>(std::ranges::min(heads, {}, [&](std::int64_t head) {
                                     return read_effect(layer, static_cast<std::size_t>(head));
                                   })));
  return Finding{
      .evidence = {{"read_effect", least}, {"threshold", kLeastHeadEffect}},
      .heads = heads,
      .sentence = fmt::format("Nobody misses {}: with one read set to 0 the last predictions change by {:.2g} (total variation).",
                              heads_text(heads), least),
      .severity = -least};
}

/// (H − log W) / (log N − log W) of loads, W of N chosen: 1 if all are chosen equally often, 0 if the same W always are.
double spread(std::span<const double> loads, double chosen) {
  const auto count = static_cast<double>(loads.size());
  std::vector<double> share(loads.begin(), loads.end());
  for (double& x : share) x /= count;
  return (entropy(std::span<const double>(share)) - std::log(chosen)) / (std::log(count) - std::log(chosen));
}

std::optional<Finding> routing_collapse(const LayerSigns& layer, const ReadOn&) {
  const std::vector<double> loads = layer.loads();
  if (loads.empty()) return {};
  double chosen = 0;
  for (const double f : layer.any().routing->balance.frequency) chosen += f;
  if (!(chosen + 0.5 < static_cast<double>(loads.size()))) return {};  // every token chooses all
  const double value = spread(loads, std::max(1.0, std::round(chosen)));
  if (!(value < kLeastSpread)) return {};
  return Finding{
      .evidence = {{"spread", value}, {"threshold", kLeastSpread}, {"largest_load", std::ranges::max(loads)}},
      .sentence = fmt::format("Tokens crowd into few partitions: their spread is {:.2f} (1: even, 0: the same ones always); loads {:.2f}.",
                              value, fmt::join(loads, " ")),
      .severity = -value};
}

std::optional<Finding> dead_partition(const LayerSigns& layer, const ReadOn&) {
  const std::vector<double> loads = layer.loads();
  std::vector<std::size_t> dead;
  for (std::size_t n = 0; n < loads.size(); ++n) {
    if (loads[n] <= kDeadLoad) dead.push_back(n + 1);
  }
  if (dead.empty()) return {};
  const double least = std::ranges::min(loads);
  return Finding{.evidence = {{"least_load", least}, {"threshold", kDeadLoad}, {"partitions", static_cast<double>(dead.size())}},
                 .sentence = fmt::format("Partition{} {} {} hardly ever chosen: a load of {:.2g} of the fair share.",
                                         dead.size() > 1 ? "s" : "", fmt::join(dead, ", "), dead.size() > 1 ? "are" : "is", least),
                 .severity = static_cast<double>(dead.size())};
}

std::optional<Finding> head_gates(const LayerSigns& layer, const ReadOn&) {
  for (const auto& [what, gate] : {std::pair{"written", &LayerReport::writing}, std::pair{"read", &LayerReport::reading}}) {
    if (!(layer.any().*gate)) continue;
    const double of_mean = layer.of([&](const LayerReport& l) { return (l.*gate)->entropy_of_mean; });
    const double mean_entropy = layer.of([&](const LayerReport& l) { return (l.*gate)->mean_entropy; });
    const std::int64_t winner = (layer.any().*gate)->winner;
    const std::vector<std::pair<std::string, double>> evidence{{"entropy_of_mean_gate", of_mean}, {"mean_entropy", mean_entropy}};
    if (mean_entropy < kHardGates && of_mean >= kLeastGateEntropy)
      return Finding{.evidence = evidence,
                     .sentence = fmt::format(
                         "Heads no longer compete: at every token one head alone is {} (entropy of a token's gates {:.2g} of log H).", what,
                         mean_entropy),
                     .severity = -mean_entropy};
    if (of_mean < kLeastGateEntropy)
      return Finding{.evidence = evidence,
                     .heads = {winner},
                     .sentence = fmt::format("Head {} always wins: the mean gate by which heads are {} has an entropy of {:.2g} of log H.",
                                             winner, what, of_mean),
                     .severity = -of_mean};
    const bool alike = layer.of([](const LayerReport& l) { return l.likest_heads; }) > kSameHeads;  // then gates cannot differ
    if (mean_entropy > kMostGateEntropy && !alike)
      return Finding{
          .evidence = evidence,
          .sentence = fmt::format("No head ever wins: the gates by which heads are {} are even at every token (entropy {:.4f} of log H).",
                                  what, mean_entropy),
          .severity = mean_entropy};
  }
  return {};
}

/// Two heads, or several of which each has another that is like it.
std::string alike_text(std::span<const std::int64_t> heads, std::string_view what) {
  if (heads.size() == 2) return fmt::format("Heads {} and {} {} the same", heads[0], heads[1], what);
  return fmt::format("Heads {}: each {}s the same as another of them", fmt::join(heads, ", "), what);
}

std::optional<Finding> duplicate_heads(const LayerSigns& layer, const ReadOn&) {
  const auto above = [&layer](std::vector<double> LayerReport::*figure, double threshold) {
    return heads_where(layer, [=](const LayerSigns& l, std::size_t head) { return of_head(l, head, figure) > threshold; });
  };
  const double cosine = layer.of([](const LayerReport& l) { return l.likest_heads; });
  if (cosine > kSameHeads) {
    std::vector<std::int64_t> heads = above(&LayerReport::heads_likeness, kSameHeads);
    if (heads.size() < 2) heads = {layer.any().likest[0], layer.any().likest[1]};  // not always the same two
    return Finding{.evidence = {{"cosine", cosine}, {"threshold", kSameHeads}},
                   .heads = heads,
                   .sentence = fmt::format("{}: |cosine| of their states {:.4f}.", alike_text(heads, "hold"), cosine),
                   .severity = cosine};
  }
  const std::vector<std::int64_t> heads = above(&LayerReport::heads_same_reads, kSameReads);
  if (heads.size() < 2) return {};
  double reads = 0;
  for (const std::int64_t head : heads)
    reads = std::max(reads, of_head(layer, static_cast<std::size_t>(head), &LayerReport::heads_same_reads));
  return Finding{.evidence = {{"reads_cosine", reads}, {"threshold", kSameReads}},
                 .heads = heads,
                 .sentence = fmt::format("{}, their keys in another order: cosine of SᵀS {:.4f}.", alike_text(heads, "read"), reads),
                 .severity = reads};
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
  return mean(ranks);
}

std::optional<Finding> rank_collapse(const LayerSigns& layer, const ReadOn&) {
  const double rank = layer.of(mean_slot_rank);
  // Of heads that are alike the mean says no more than one head's rank, and one of several may be low.
  constexpr double of_alike_heads = 1.1;
  const bool alike = layer.of([](const LayerReport& l) { return l.likest_heads; }) > kSameHeads;
  const double threshold = alike ? of_alike_heads : kOneDirection;
  if (!(rank < threshold)) return {};
  return Finding{.evidence = {{"effective_rank", rank}, {"threshold", threshold}},
                 .sentence = fmt::format("States hold nearly one direction: effective rank {:.2f}, mean over heads.", rank),
                 .severity = -rank};
}

/// Single heads of a layer whose others hold more.
std::optional<Finding> one_direction_heads(const LayerSigns& layer, const ReadOn&) {
  const auto rank = [&layer](std::size_t head) { return layer.of([head](const LayerReport& l) { return slot_rank(l.heads[head]); }); };
  const std::vector<std::int64_t> heads =
      heads_where(layer, [&rank](const LayerSigns&, std::size_t head) { return rank(head) > 0 && rank(head) <= kOneDirectionHead; });
  if (heads.empty()) return {};
  double most = 0;
  for (const std::int64_t head : heads) most = std::max(most, rank(static_cast<std::size_t>(head)));
  return Finding{.evidence = {{"heads", static_cast<double>(heads.size())}, {"effective_rank", most}, {"threshold", kOneDirectionHead}},
                 .heads = heads,
                 .sentence = fmt::format("The state of {} holds one direction: effective rank {:.4f}.", heads_text(heads), most),
                 .severity = static_cast<double>(heads.size())};
}

double growth_in_second_half(const LayerReport& layer) {
  return layer.moments.empty() ? NAN : layer.moments.back().norm / layer.moments[layer.moments.size() / 2 - 1].norm;
}

std::optional<Finding> never_forgets(const LayerSigns& layer, const ReadOn&) {
  double longest = 0;
  for (const SequenceReport& sequence : layer.sequences()) longest = std::max(longest, static_cast<double>(sequence.tokens));
  const double shortest = layer.of([](const LayerReport& l) { return l.shortest_half_life.value_or(NAN); });
  const double growth = layer.of(growth_in_second_half);
  constexpr double grows = 1.02;
  // A delta rule erases what it writes over: there a gate that hardly decays is no illness, one that cannot is.
  const bool erases = layer.any().memory.find("delta") != std::string::npos;
  const double median = layer.of([](const LayerReport& l) { return l.shortest_median.value_or(NAN); });
  const bool decays = !(shortest > (erases ? kCannotDecay : kNeverDecays * longest)) && !(median > kCannotDecay);
  if (decays || !(growth > grows)) return {};
  return Finding{.evidence = {{"shortest_half_life", std::min(shortest, 1e30)},
                              {"shortest_median_half_life", std::min(median, 1e30)},
                              {"tokens", longest},
                              {"norm_growth", growth}},
                 .sentence = fmt::format("It has a forget gate and never forgets: half-lives are {:.3g} tokens and more (the median "
                                         "channel's {:.3g}), and the state's norm grows "
                                         "{:.2f} times in the second half.",
                                         shortest, median, growth),
                 .severity = growth};
}

std::optional<Finding> length_drift(const LayerSigns& layer, const ReadOn& read) {
  if (read.trained_length == 0) return {};
  double inside = 0, outside = 0, furthest = 0;  // the largest norm up to the training length, and behind it
  for (const SequenceReport& sequence : layer.sequences()) {
    for (const Moments& moments : sequence.layers[static_cast<std::size_t>(layer.index())].moments) {
      constexpr double about = 1.1;
      if (static_cast<double>(moments.tokens) > kFarthest * static_cast<double>(read.trained_length)) continue;
      const bool is_inside = static_cast<double>(moments.tokens) <= about * static_cast<double>(read.trained_length);
      (is_inside ? inside : outside) = std::max(is_inside ? inside : outside, moments.norm);
      furthest = std::max(furthest, static_cast<double>(moments.tokens));
    }
  }
  const double growth = outside / inside;
  if (!(inside > 0) || !(growth > kDriftGrowth)) return {};
  return Finding{.evidence = {{"norm_inside", inside},
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

struct SignRow {
  Illness illness;
  Sign sign;
  bool explains;  // what others would find in the layer behind it
};
constexpr std::array<SignRow, 13> kSigns{{
    {Illness::memory_unwritten, unwritten, true},
    {Illness::forgets_at_once, forgets_at_once, true},
    {Illness::memory_unread, unread, true},
    {Illness::routing_collapse, routing_collapse, true},
    {Illness::dead_partition, dead_partition, false},
    {Illness::head_gate_collapse, head_gates, true},
    {Illness::rank_collapse, rank_collapse, true},
    {Illness::duplicate_heads, duplicate_heads, true},
    {Illness::never_forgets, never_forgets, true},
    {Illness::length_drift, length_drift, true},
    {Illness::memory_unwritten, unwritten_heads, false},
    {Illness::memory_unread, unread_heads, false},
    {Illness::rank_collapse, one_direction_heads, false},
}};

/// Adds what a layer shows to the diagnosis of the same illness in other layers; the worst speaks.
void add(Diagnosis& diagnosis, double& worst, std::int64_t layer, const Finding& finding) {
  diagnosis.layers.push_back(layer);
  diagnosis.heads_by_layer.push_back(finding.heads);
  if (diagnosis.layers.size() > 1 && finding.severity <= worst) return;
  worst = finding.severity;
  diagnosis.heads = finding.heads;
  diagnosis.evidence = finding.evidence;
  diagnosis.evidence.insert(diagnosis.evidence.begin(), {"layer", static_cast<double>(layer)});
  diagnosis.sentence = finding.sentence;
}

/// Means over sequences.
struct PredictionSigns {
  double nll, unigram, asked, flatness, uniform;

  explicit PredictionSigns(std::span<const SequenceReport> sequences) {
    const auto of = [&](double Predicting::*figure) {
      std::vector<double> values;
      for (const SequenceReport& sequence : sequences) values.push_back(sequence.predicting.*figure);
      return mean(values);
    };
    nll = of(&Predicting::nll);
    unigram = of(&Predicting::unigram);
    asked = of(&Predicting::asked);
    uniform = of(&Predicting::uniform);
    flatness = of(&Predicting::entropy) / uniform;
  }
  bool is_flat() const { return !(nll < unigram) && flatness >= kFlatPredictions; }
  bool is_random() const { return nll > kWorseThanChance * uniform && !(asked <= kWorseThanChance * uniform); }
  bool gains_nothing() const { return !(nll < unigram) && !(asked < kFlatPredictions * uniform); }
};

Diagnosis untrained(const PredictionSigns& signs) {
  return {.illness = Illness::untrained,
          .layers = {},
          .heads = {},
          .evidence = {{"nll", signs.nll}, {"unigram_nll", signs.unigram}, {"uniform_nll", signs.uniform}, {"flatness", signs.flatness}},
          .sentence = fmt::format(
              "Predictions say no more than the tokens' frequencies: {:.2f} nat a token, where frequencies reach {:.2f} and chance "
              "{:.2f}; their entropy is {:.2f} of what chance has.",
              signs.nll, signs.unigram, signs.uniform, signs.flatness)};
}

/// Without those that are far longer than what the model was trained on; 0: unknown.
std::vector<SequenceReport> within_reach(std::span<const SequenceReport> sequences, std::int64_t trained_length) {
  std::vector<SequenceReport> within;
  const double farthest = trained_length > 0 ? kFarthest * static_cast<double>(trained_length) : std::numeric_limits<double>::infinity();
  std::ranges::copy_if(sequences, std::back_inserter(within),
                       [=](const SequenceReport& one) { return static_cast<double>(one.tokens) <= farthest; });
  return within;
}

/// Why the sequences are no evidence of illness; empty: they are.
std::string no_evidence(std::span<const SequenceReport> sequences, const PredictionSigns& signs, const ReadOn& read) {
  constexpr std::int64_t few = 32;
  if (sequences.empty()) return "nothing was read";
  const auto longest = std::ranges::max(sequences, {}, &SequenceReport::tokens).tokens;
  if (longest < few)
    return fmt::format("the longest of what was read has {} token{}; a memory shows itself from {} on", longest, longest == 1 ? "" : "s",
                       few);
  const bool has_memory = std::ranges::any_of(sequences.front().layers, [](const LayerReport& l) { return !l.heads.empty(); });
  if (!has_memory && !signs.is_flat()) return "no layer keeps a matrix state: there is no memory to judge";
  if (read.own_task || signs.flatness >= kFlatPredictions) return "";
  if (read.own_nll && *read.own_nll > signs.uniform)
    return "of its own task the model predicts only what is asked for, the rest is noise; so nothing tells whether it was made for this "
           "prompt";
  constexpr double worse = 1;  // nat a token
  if (read.own_nll && signs.nll > *read.own_nll + worse)
    return fmt::format("the model was not made for such a prompt: {:.2f} nat a token, on its own task {:.2f}", signs.nll, *read.own_nll);
  if (!read.own_nll && signs.nll > signs.uniform)
    return fmt::format("the model was not made for such a prompt: {:.2f} nat a token, chance would reach {:.2f}", signs.nll, signs.uniform);
  return "";
}

}  // namespace

std::span<const IllnessRow> illnesses() { return kIllnesses; }

const IllnessRow& row_of(Illness illness) { return kIllnesses[static_cast<std::size_t>(illness)]; }

Judgement judge(std::span<const SequenceReport> all, const ReadOn& read) {
  Judgement judgement;
  const std::vector<SequenceReport> sequences = within_reach(all, read.trained_length);
  if (sequences.empty() && !all.empty()) {
    judgement.cannot_say = fmt::format("all that was read is more than {} times as long as the {} tokens that the model was trained on",
                                       kFarthest, read.trained_length);
    return judgement;
  }
  const PredictionSigns predictions(sequences);
  judgement.cannot_say = no_evidence(sequences, predictions, read);
  if (!judgement.cannot_say.empty()) return judgement;
  if (predictions.is_flat() || (read.own_task && predictions.is_random())) {
    judgement.diagnoses.push_back(untrained(predictions));
    return judgement;
  }
  std::set<std::int64_t> explained;
  for (const auto& [illness, sign, explains] : kSigns) {
    Diagnosis diagnosis{.illness = illness, .layers = {}, .heads = {}, .evidence = {}, .sentence = {}};
    double worst = 0;
    for (std::size_t l = 0; l < sequences.front().layers.size(); ++l) {
      const LayerSigns signs(sequences, l);
      if (!signs.has_memory() || explained.contains(signs.index())) continue;
      if (const std::optional<Finding> finding = sign(signs, read)) add(diagnosis, worst, signs.index(), *finding);
    }
    if (explains) explained.insert(diagnosis.layers.begin(), diagnosis.layers.end());
    if (diagnosis.layers.size() > 1)
      diagnosis.sentence += fmt::format(" This is layer {:.0f}, the worst.", diagnosis.evidence.front().second);
    if (!diagnosis.layers.empty()) judgement.diagnoses.push_back(std::move(diagnosis));
  }
  if (judgement.diagnoses.empty() && read.own_task && predictions.gains_nothing()) judgement.diagnoses.push_back(untrained(predictions));
  return judgement;
}

nlohmann::json to_json(const Diagnosis& diagnosis) {
  nlohmann::json evidence = nlohmann::json::object();
  for (const auto& [name, value] : diagnosis.evidence)
    evidence[name] = std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
  const IllnessRow& row = row_of(diagnosis.illness);
  return {{"id", row.id},
          {"status", diagnosis.ill ? "ill" : "watch"},
          {"layers", diagnosis.layers},
          {"heads", diagnosis.heads},
          {"heads_by_layer", diagnosis.heads_by_layer},
          {"evidence", evidence},
          {"sentence", diagnosis.sentence},
          {"source", row.source}};
}

}  // namespace statescope

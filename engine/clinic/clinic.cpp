#include "engine/clinic/clinic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/clinic/means.h"
#include "engine/clinic/signs.h"

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
     "the median half-life is below 3 tokens in every slot of the state (a partition's: tokens that are written to it), and what every "
     "token is written to reaches back at most 32 tokens (4 in HGRN2, whose lower layers are made to forget)",
     "half-life: SSE (arXiv 2507.16577), Fig. 9; threshold ours"},
    {Illness::memory_unread, "memory_unread", "memory unread", "predictions do not change without the memory",
     "with the layer's read set to 0 the last predictions change by less than 0.001 (total variation); with a single head's, by less than "
     "0.00001",
     "ablation in the manner of effective remembrance (arXiv 2507.02782); threshold ours"},
    {Illness::routing_collapse, "routing_collapse", "routing collapse", "tokens go to too few partitions",
     "(H − log W) / (log N − log W) of the loads is below 0.4: W of N partitions chosen",
     "SSE (arXiv 2507.16577), its balance loss; threshold ours"},
    {Illness::dead_partition, "dead_partition", "dead partition", "a partition is hardly ever chosen", "its load is at most 0.1 (1: fair)",
     "Mixture-of-Memories (arXiv 2502.13685), its balance loss; threshold ours"},
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

struct SignRow {
  Illness illness;
  std::optional<Symptom> (*sign)(const LayerSigns&, const ReadOn&);
  bool explains;  // what others would find in the layer behind it
};
constexpr std::array<SignRow, 13> kSigns{{
    {Illness::memory_unwritten, signs::unwritten, true},
    {Illness::forgets_at_once, signs::forgets_at_once, true},
    {Illness::memory_unread, signs::unread, true},
    {Illness::routing_collapse, signs::routing_collapse, true},
    {Illness::dead_partition, signs::dead_partition, false},
    {Illness::head_gate_collapse, signs::head_gate_collapse, true},
    {Illness::rank_collapse, signs::rank_collapse, true},
    {Illness::duplicate_heads, signs::duplicate_heads, true},
    {Illness::never_forgets, signs::never_forgets, true},
    {Illness::length_drift, signs::length_drift, true},
    {Illness::memory_unwritten, signs::unwritten_heads, false},
    {Illness::memory_unread, signs::unread_heads, false},
    {Illness::rank_collapse, signs::one_direction_heads, false},
}};

/// Adds what a layer shows to the diagnosis of the same illness in other layers; the worst speaks.
void add(Diagnosis& diagnosis, double& worst, std::int64_t layer, const Symptom& symptom) {
  diagnosis.layers.push_back(layer);
  diagnosis.heads_by_layer.push_back(symptom.heads);
  if (diagnosis.layers.size() > 1 && symptom.severity <= worst) return;
  worst = symptom.severity;
  diagnosis.heads = symptom.heads;
  diagnosis.evidence = symptom.evidence;
  diagnosis.evidence.insert(diagnosis.evidence.begin(), {"layer", static_cast<double>(layer)});
  diagnosis.sentence = symptom.sentence;
}

/// Means over sequences.
struct PredictionSigns {
  double nll, unigram, asked, flatness, uniform;

  explicit PredictionSigns(std::span<const SequenceReport> sequences) {
    const auto of = [&](double Predicting::*figure) {
      std::vector<double> values;
      for (const SequenceReport& sequence : sequences) values.push_back(sequence.predicting.*figure);
      return mean_of_known(values);
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
  if (sequences.empty()) return "nothing was read";
  const auto longest = std::ranges::max(sequences, {}, &SequenceReport::tokens).tokens;
  if (longest < kFewTokens)
    return fmt::format("the longest of what was read has {} token{}; a memory shows itself from {} on", longest, longest == 1 ? "" : "s",
                       kFewTokens);
  const bool has_memory = std::ranges::any_of(sequences.front().layers, [](const LayerReport& l) { return !l.heads.empty(); });
  if (!has_memory && !signs.is_flat()) return "no layer keeps a matrix state: there is no memory to judge";
  if (read.own_task || signs.flatness >= kFlatPredictions) return "";
  if (read.own_nll && *read.own_nll > signs.uniform)
    return "of its own task the model predicts only what is asked for, the rest is noise; so nothing tells whether it was made for this "
           "prompt";
  if (read.own_nll && signs.nll > *read.own_nll + kNotMadeFor)
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
      if (const std::optional<Symptom> symptom = sign(signs, read)) add(diagnosis, worst, signs.index(), *symptom);
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

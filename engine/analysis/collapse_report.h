// Does a checkpoint's memory do its work? Figures of every layer after reading a sequence, and verdicts with their thresholds.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/analysis/routing_analysis.h"
#include "engine/analysis/similarity_analysis.h"
#include "engine/model/model.h"

namespace statescope {

/// One state slot of a layer after the last token.
struct SlotReport {
  static constexpr Accuracy accuracy = kRecomputed;
  std::string name;
  double norm = 0;  // ‖S‖_F, mean over the heads (spec §12.10)
  double load = 1;  // share of the tokens over the ideal share; 1 where nothing is routed
  /// Where the layer has a decay of its own channel: median over channels, tokens; and the receptive field (spec §12.3, §12.4), mean over
  /// channels, with the part of the measured tokens for which it reaches back to the first one.
  std::optional<double> half_life, receptive_field, censored;
};

struct RoutingReport {
  static constexpr Accuracy accuracy = kRecomputed;
  Balance balance;
  UnevenLoads uneven;
  double load_entropy = 0;   // −Σ f'_n log f'_n / log N with f' = f / Σf: 1 if all partitions are chosen equally often
  double token_entropy = 0;  // mean over tokens of the routing entropy (spec §12.1)
  double margin = 0;         // mean over tokens
};

/// Heads by the relative effective rank of their state (State Rank Dynamics in Linear Attention LLMs, arXiv 2602.02195, finds two groups,
/// near zero and saturating, that stay the same over inputs). The thresholds are ours.
enum class HeadClass { low_rank, middle, high_rank };
constexpr double kLowRank = 0.1, kHighRank = 0.5;
/// `relative_rank`: effective rank (Roy and Vetterli) over the largest possible. NaN is low.
HeadClass head_class(double relative_rank);
/// "low", "middle", "high"
std::string_view name_of(HeadClass head);

struct LayerReport {
  static constexpr Accuracy accuracy = kRecomputed;  // but for what has its own: `heads`
  std::string mixer;
  double residual_norm = 0;  // mean over tokens of ‖x_t‖ as it enters the block
  /// ‖S‖_F after each eighth of the sequence, mean over slots and heads; empty below 16 tokens and without a matrix state. A memory that
  /// neither forgets nor fills up grows on past its training length.
  std::vector<double> norm_by_eighth;
  double outlier = 0;                  // the largest row norm of the last state over the median one of rows that are not 0; NaN without
  std::vector<StateSimilarity> heads;  // [H]; empty without a matrix state
  std::vector<SlotReport> slots;
  std::optional<RoutingReport> routing;

  /// Mean over the heads of the stacked state's effective rank (Roy and Vetterli), divided by the largest it could have; NaN without state.
  double relative_rank() const;
  std::int64_t full_rank = 0;  // min(slots · K, V)
};

/// How much the predictions at the end change when the first tokens are left out: the total variation ½ Σ_v |p_v − p'_v|, mean over the
/// last predictions (effective remembrance: Understanding and Improving Length Generalization, arXiv 2507.02782).
struct Remembrance {
  static constexpr Accuracy accuracy = kRecomputed;
  std::int64_t dropped = 0;  // the first of the sequence
  double change = 0;         // 0: nothing of them is remembered (or needed), 1: everything depends on them
};
constexpr std::int64_t kRememberedAt = 16;  // the last predictions

struct SequenceReport {
  std::int64_t tokens = 0;
  std::vector<Remembrance> remembrance;  // by eighths; empty below 8 · kRememberedAt tokens
  std::vector<double>
      nll_by_eighth;  // mean negative log likelihood of the next token, nat, in eighths of the sequence; empty below 16 tokens
  std::vector<LayerReport> layers;
};

/// Reads a sequence with a fresh state. Partitions with a load of at most `thresholds.dead` are dead. Throws Error.
constexpr LoadThresholds kLoadThresholds{.dead = 0.1, .overloaded = 2.5};
SequenceReport inspect_sequence(Model& model, std::span<const std::int32_t> ids, LoadThresholds thresholds = kLoadThresholds);

/// Every figure's mean over reports of one model on sequences of one kind, of those that have it; which partitions are dead follows from
/// the mean loads. Nothing where some report has other figures than the first (a sequence too short for eighths).
std::optional<SequenceReport> mean_report(std::span<const SequenceReport> reports, LoadThresholds thresholds = kLoadThresholds);

/// A statement about all sequences together, decided by its worst layer.
struct Verdict {
  std::string name;       // "routing"
  std::string statement;  // what is so: "tokens are spread over the partitions", or, where not healthy, "tokens crowd into few partitions"
  bool healthy = true;
  double value = 0, threshold = 0;  // healthy: value ≥ threshold
  std::int64_t layer = 0;           // of the worst value
  std::string why;                  // what the value is and where its threshold comes from
};

/// Thresholds of ours, from the shipped models on examples of their own tasks (a quarter of the training length to twice it). Those that
/// were trained with a balance loss have load entropies from 0.72 on, the one without 0.31 and less; half means that tokens are spread like
/// over √N partitions. Relative ranks are 0.08 and more; a state that is down to a twentieth of its directions holds one or two of the
/// 16 to 64 that they have.
constexpr double kLeastLoadEntropy = 0.5, kLeastRelativeRank = 0.05;
std::vector<Verdict> verdicts(const std::vector<SequenceReport>& sequences);

/// As app/inspect/inspection.schema.json describes a sequence, without its name; a number that does not exist is null.
nlohmann::json to_json(const SequenceReport& report);

/// How exact the figures of all reports are: {"cosine": "within …", "entropy": …, "effective_rank": …, "other": "recomputed …"}, and as one
/// sentence.
nlohmann::json accuracy_json();
std::string accuracy_text();
nlohmann::json to_json(const Verdict& verdict);

}  // namespace statescope

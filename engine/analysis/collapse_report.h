// Does a checkpoint's memory do its work? Figures of every layer after reading a sequence, and verdicts with their thresholds.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <optional>
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

struct LayerReport {
  static constexpr Accuracy accuracy = kRecomputed;  // but for what has its own: `heads`
  std::string mixer;
  double residual_norm = 0;            // mean over tokens of ‖x_t‖ as it enters the block
  std::vector<StateSimilarity> heads;  // [H]; empty without a matrix state
  std::vector<SlotReport> slots;
  std::optional<RoutingReport> routing;

  /// Mean over the heads of the stacked state's effective rank (Roy and Vetterli), divided by the largest it could have; NaN without state.
  double relative_rank() const;
  std::int64_t full_rank = 0;  // min(slots · K, V)
};

struct SequenceReport {
  std::int64_t tokens = 0;
  std::vector<double>
      nll_by_eighth;  // mean negative log likelihood of the next token, nat, in eighths of the sequence; empty below 16 tokens
  std::vector<LayerReport> layers;
};

/// Reads a sequence with a fresh state. Partitions with a load of at most `thresholds.dead` are dead. Throws Error.
constexpr LoadThresholds kLoadThresholds{.dead = 0.1, .overloaded = 2.5};
SequenceReport inspect_sequence(Model& model, std::span<const std::int32_t> ids, LoadThresholds thresholds = kLoadThresholds);

/// A statement about all sequences together, decided by its worst layer.
struct Verdict {
  std::string name;       // "routing"
  std::string statement;  // what is so: "tokens are spread over the partitions", or, where not healthy, "tokens crowd into few partitions"
  bool healthy = true;
  double value = 0, threshold = 0;  // healthy: value ≥ threshold
  std::int64_t layer = 0;           // of the worst value
  std::string why;                  // what the value is and where its threshold comes from
};

/// Thresholds of ours. Reading needles-512.json the shipped needle models have load entropies from 0.92 on, the one without balance loss
/// 0.31; their relative ranks are 0.22 and more.
constexpr double kLeastLoadEntropy = 0.75, kLeastRelativeRank = 0.05;
std::vector<Verdict> verdicts(const std::vector<SequenceReport>& sequences);

/// {"tokens", "nll_by_eighth", "layers": [{"mixer", "residual_norm", "full_rank", "heads": […], "slots": […], "routing": {…}}]}; a number
/// that does not exist is null.
nlohmann::json to_json(const SequenceReport& report);

/// How exact the figures of all reports are: {"cosine": "within …", "entropy": …, "effective_rank": …, "other": "recomputed …"}, and as one
/// sentence.
nlohmann::json accuracy_json();
std::string accuracy_text();
nlohmann::json to_json(const Verdict& verdict);

}  // namespace statescope

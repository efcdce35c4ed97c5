// Does a checkpoint's memory do its work? Figures of every layer after reading a sequence. What they mean is the clinic's to say.
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/analysis/routing_analysis.h"
#include "engine/analysis/similarity_analysis.h"
#include "engine/clinic/ablation.h"
#include "engine/run/scoring.h"

namespace statescope {

/// One state slot of a layer after the last token.
struct SlotReport {
  static constexpr Accuracy accuracy = kRecomputed;
  std::string name;
  double norm = 0;  // ‖S‖_F, mean over the heads (spec §12.10)
  double load = 1;  // share of the tokens over the fair share; 1 where nothing is routed
  /// Where the layer decays: median over channels, tokens (of a state space over its eigenvalues, spec §17.17); and, where tokens say how
  /// much, the receptive field (spec §12.3, §12.4), mean over channels, with the part of the measured tokens for which it reaches back to
  /// the first one. A selective scan's rows decay by their mean over channels.
  std::optional<double> half_life, receptive_field, censored;
  std::optional<double> longest, shortest;  // half-lives of its channels
};

struct RoutingReport {
  static constexpr Accuracy accuracy = kRecomputed;
  Balance balance;
  UnevenLoads uneven;
  double load_entropy = 0;   // −Σ f'_n log f'_n / log N with f' = f / Σf: 1 if all partitions are chosen equally often
  double token_entropy = 0;  // mean over tokens of the routing entropy (spec §12.1)
  double margin = 0;         // mean over tokens
};

/// How heads compete: their gates G_t, softmax over heads (SLA eq. 4), entropies over log H, in [0, 1].
struct Competition {
  static constexpr Accuracy accuracy = kRecomputed;
  double entropy_of_mean = 0;  // of the mean gate: 0 where one head has every token
  double mean_entropy = 0;     // 1 where no head ever has more than the others
  std::int64_t winner = 0;     // the head with the largest mean gate
};

/// The numbers of a layer's states after some tokens: all slots and heads.
struct Moments {
  static constexpr Accuracy accuracy = kRecomputed;
  std::int64_t tokens = 0;
  double norm = 0;                // ‖S‖_F, mean over slots and heads
  double mean = 0, variance = 0;  // of all numbers
  double largest = 0;             // of their magnitudes: the largest channel
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
  std::string mixer, memory;                         // its name; the kind of its memory, "gated delta rule"
  double residual_norm = 0;                          // mean over tokens of ‖x_t‖ as it enters the block
  /// ‖S‖_F after each eighth of the sequence, mean over slots and heads; empty below 16 tokens and without a matrix state. A memory that
  /// neither forgets nor fills up grows on past its training length.
  std::vector<double> norm_by_eighth;
  std::vector<Moments> moments;        // after each eighth; empty like the norms, whose they are too
  double outlier = 0;                  // the largest row norm of the last state over the median one of rows that are not 0; NaN without
  std::vector<StateSimilarity> heads;  // [H]; empty without a matrix state
  std::vector<SlotReport> slots;
  std::optional<RoutingReport> routing;
  /// How much the last predictions change when the layer writes its memory but reads nothing from it (Ablation); NaN without a memory.
  double read_effect = 0;
  std::vector<double> heads_read_effect;  // [H] the same of one head; NaN where it was not tried (Ablation)
  std::vector<double> heads_norm;         // [H] ‖S‖_F of all its slots
  /// [H] the largest |cosine| between a head's state and another's, as likest_heads has it; NaN where there is no other.
  std::vector<double> heads_likeness;
  /// [H] the largest cosine between a head's SᵀS [V, V] and another's: 1 where both give the same reads, whatever the order of their keys.
  std::vector<double> heads_same_reads;
  /// The largest |cosine| between two heads' states, all slots of a head as one vector, and which heads; heads whose keys and values are
  /// the same by design do not count. NaN where there are no two.
  double likest_heads = 0;
  std::array<std::int64_t, 2> likest{};
  /// Over slots that were written to and their channels, tokens; unset where nothing decays. Infinite without decay.
  std::optional<double> longest_half_life, shortest_half_life;
  /// The same of a slot's median channel, a partition's half-lives in tokens that are written to it; unset where no gate says it.
  std::optional<double> longest_median, shortest_median;
  std::optional<Competition> writing, reading;  // G^K, G^Q; unset where heads do not compete

  /// Mean over the heads of the stacked state's effective rank (Roy and Vetterli), divided by the largest it could have; NaN without state.
  double relative_rank() const;
  std::int64_t full_rank = 0;  // min(slots · K, V)
};

/// How well the next tokens are predicted, nat a token.
struct Predicting {
  static constexpr Accuracy accuracy = kRecomputed;
  double nll = 0;      // mean negative log likelihood of every token but the first
  double unigram = 0;  // what the frequencies of the tokens in this very sequence would reach: their entropy
  double asked = 0;    // mean negative log likelihood of the tokens that were asked for; NaN: nobody said which
  double entropy = 0;  // of the last predictions, mean
  double uniform = 0;  // log V
};

struct SequenceReport {
  std::int64_t tokens = 0;
  std::vector<Remembrance> remembrance;  // by eighths; empty below 8 · kRememberedAt tokens
  std::vector<double>
      nll_by_eighth;  // mean negative log likelihood of the next token, nat, in eighths of the sequence; empty below 16 tokens
  Predicting predicting;
  double all_reads_effect = 0;  // as LayerReport::read_effect, of all memories at once; NaN without one
  std::vector<LayerReport> layers;
};

/// Reads a sequence with a fresh state; `asked` are the tokens that a task asks for. Partitions with a load of at most kLoadThresholds
/// are dead. Throws Error; Cancelled where `tell` returns false.
constexpr LoadThresholds kLoadThresholds{.dead = 0.1, .overloaded = 2.5};
SequenceReport inspect_sequence(Model& model, std::span<const std::int32_t> ids, std::span<const Target> asked = {},
                                const ReadingProgress::Tell& tell = {});

/// Every figure's mean over reports of one model on sequences of one kind, of those that have it; which partitions are dead follows from
/// the mean loads. Nothing where some report has other figures than the first (a sequence too short for eighths).
std::optional<SequenceReport> mean_report(std::span<const SequenceReport> reports);

/// As app/schemas/inspection.schema.json describes a sequence, without its name; a number that does not exist is null.
nlohmann::json to_json(const SequenceReport& report);

/// How exact the figures of all reports are: {"cosine": "within …", "entropy": …, "effective_rank": …, "other": "recomputed …"}, and as one
/// sentence.
nlohmann::json accuracy_json();
std::string accuracy_text();

}  // namespace statescope

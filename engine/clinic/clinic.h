// What ails a memory: illnesses by name, each with the numbers that show it and the prompts that it was seen on.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/clinic/collapse_report.h"

namespace statescope {

enum class Illness {
  not_finite,
  untrained,
  memory_unwritten,
  forgets_at_once,
  memory_unread,
  routing_collapse,
  dead_partition,
  head_gate_collapse,
  rank_collapse,
  duplicate_heads,
  never_forgets,
  length_drift,
};

struct IllnessRow {
  Illness illness;
  std::string_view id;       // as JSON has it: "dead_partition"
  std::string_view name;     // "dead partition"
  std::string_view meaning;  // "a partition is hardly ever chosen"
  std::string_view measure;  // which number decides, and from where on
  std::string_view source;   // of the notion, and of the threshold
};
/// In the order in which they are looked for: an illness explains what others would find in the same layer behind it.
std::span<const IllnessRow> illnesses();
const IllnessRow& row_of(Illness illness);

/// Thresholds; README of this folder says what chose them. Numbers are means over the sequences that were read.
constexpr double kWorseThanChance = 3;       // times log V: what is random is sure of what is wrong
constexpr double kFlatPredictions = 0.9;     // entropy of the predictions over log V, from here on they say nothing
constexpr double kLeastWritten = 1e-3;       // norm of the state over that of the residual stream
constexpr double kAsGoodAsNothing = 1e-6;    // likewise, whatever it is scaled by
constexpr double kShortestMemory = 3;        // tokens: the longest half-life of a layer
constexpr double kShortestReach = 32;        // tokens: the receptive field of what every token is written to
constexpr double kShortestByDesign = 4;      // likewise where the layer is made to forget: what a short convolution spans
constexpr double kLeastReadEffect = 1e-3;    // total variation
constexpr double kLeastHeadEffect = 1e-5;    // total variation, of a single head: one of several may say little
constexpr double kLeastSpread = 0.4;         // (H − log W) / (log N − log W) of the mean loads
constexpr double kDeadLoad = 0.1;            // of the fair share
constexpr double kLeastGateEntropy = 0.1;    // of the mean head gate, over log H: below, one head has nearly everything
constexpr double kHardGates = 0.01;          // mean over tokens: below, a token has one head alone
constexpr double kMostGateEntropy = 0.999;   // mean over tokens: above, no head ever wins
constexpr double kSameHeads = 0.955;         // |cosine| of two heads' states
constexpr double kSameReads = 0.98;          // cosine of their SᵀS: healthy heads reach 0.88
constexpr double kOneDirection = 1.4;        // effective rank, mean over heads
constexpr double kOneDirectionAlike = 1.1;   // where heads are alike: the mean is then one head's, and one of several may be low
constexpr double kOneDirectionHead = 1.005;  // effective rank, of a single head: one of several may hold little
constexpr double kNeverDecays = 16;          // the shortest half-life over the tokens read
constexpr double kCannotDecay = 1e12;        // tokens: of a memory that erases as well
constexpr double kStillGrows = 1.02;         // norm of the state at the end over that after half of the tokens
constexpr double kDriftGrowth = 2.5;         // largest norm of the state behind the training length over that up to it
constexpr double kWithin = 1.1;              // times the training length: up to there the state is where it was trained
constexpr double kFarthest =
    2.2;  // times the training length: what is longer is no evidence (a unit of it may be a word, a token and a bit)
constexpr std::int64_t kFewTokens = 32;  // below, a memory does not show itself
constexpr double kNotMadeFor = 1;        // nat a token worse than on the model's own task

struct Diagnosis {
  Illness illness{};
  bool ill = true;                                        // false: worth watching
  std::vector<std::int64_t> layers, heads;                // heads: of the worst layer
  std::vector<std::vector<std::int64_t>> heads_by_layer;  // of each of `layers`; an empty one: all, or it is not one of heads
  std::vector<std::pair<std::string, double>> evidence;   // by name, of the worst layer: what was measured, what it was held against
  std::string sentence;
};

/// What was read, as far as it bears on what may be said of it.
struct ReadOn {
  std::int64_t trained_length = 0;  // tokens of the longest sequences of the training; 0: unknown
  std::optional<double> own_nll;    // nat a token on the model's own task, where something else was read and that task is known
  bool own_task = false;            // the sequences are of the task that it was trained on
};

struct Judgement {
  std::vector<Diagnosis> diagnoses;  // in the order of illnesses()
  std::string cannot_say;            // why these sequences are no evidence; empty: they are
};

/// Of sequences read by one model, of the same layers. Without any: cannot say.
Judgement judge(std::span<const SequenceReport> sequences, const ReadOn& read);

/// {"id", "status": "ill" or "watch", "layers", "heads", "heads_by_layer", "evidence": {…}, "sentence", "source"}
nlohmann::json to_json(const Diagnosis& diagnosis);

}  // namespace statescope

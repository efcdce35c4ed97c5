// What may be changed of a run at a token: what a memory holds, the rules that it follows from there on, the token itself. Plain values, as
// a line of text for a command line or a session file; a Schedule applies them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/model/model.h"

namespace statescope {

/// S ← factor · S after the token: of a partition (0: the shared state), a head, a row; unset: of all. A row is one of the first memory,
/// and of its normaliser.
struct ScaleState {
  std::optional<std::int64_t> partition, head, row;
  float factor = 0;
  bool operator==(const ScaleState&) const = default;
};
/// State passing: after the token a layer holds what it held in another run after `token` (unset: the same): memories, caches of
/// convolutions, keys and values. A layer with keys and values takes them from the same token alone: its cache has a row for every token of
/// the run, keys are turned to their places (RoPE), and a window counts rows, so from another token there would be too many or too few, at
/// wrong distances from all that is read behind them.
struct ImportState {
  std::int64_t run = 0;
  std::optional<std::int64_t> token;
  bool operator==(const ImportState&) const = default;
};
struct ReplaceToken {
  std::int32_t id = 0;
  bool operator==(const ReplaceToken&) const = default;
};
/// log α ← factor · log α; 0: nothing decays.
struct ScaleDecay {
  float factor = 0;
  bool operator==(const ScaleDecay&) const = default;
};
/// How many partitions a token is written to, and read from; unset: as before.
struct ChangeTopK {
  std::optional<std::int64_t> writers, readers;
  bool operator==(const ChangeTopK&) const = default;
};
/// All tokens go to these partitions, counted from 1; how strongly they are written and read stays with the model.
struct ForceRouting {
  std::vector<std::int64_t> partitions;
  bool operator==(const ForceRouting&) const = default;
};
/// G = softmax_h(λ · logits): λ > 1 sharpens the head gates, λ < 1 flattens them, 0 makes them equal (SLA theorem 4.2).
struct SharpenGates {
  float lambda = 1;
  bool operator==(const SharpenGates&) const = default;
};

using Change = std::variant<ScaleState, ImportState, ReplaceToken, ScaleDecay, ChangeTopK, ForceRouting, SharpenGates>;

struct Intervention {
  Change change;
  std::int64_t at = 0;                // states change once this token has been read; rules hold from it on
  std::optional<std::int64_t> until;  // the last token under a rule; unset: no end
  std::optional<std::int64_t> layer;  // unset: every layer where it has a meaning
  bool operator==(const Intervention&) const = default;
};

/// Whether states change once the token has been read, not before or while it is.
bool edits_state(const Intervention& intervention);

/// "zero row 3 of head 1 of partition 2 of layer 0 at 30", "scale decay of layer 1 by 0.5 from 30 until 40", "route layer 1 to partition
/// 2,3 from 30": what parse_intervention reads.
std::string to_text(const Intervention& intervention);
/// Throws Error, which says what is not understood and what would be.
Intervention parse_intervention(std::string_view text);
/// One line for each form.
std::string_view intervention_forms();

/// Where a partition, counted from 1 (0: the shared state), lies in a layer's states.
std::int64_t slot_of(std::int64_t partition, const MixerLayout& layout);

/// The layers that it changes. Throws Error where there is none, or where what it names does not exist in the model or in a run of
/// `tokens`.
std::vector<std::int64_t> changed_layers(const Intervention& intervention, const Model& model, std::int64_t tokens);

/// Interventions on one run, those that come later over those before; tokens are not replaced here.
class Schedule {
 public:
  /// What a layer of a run kept after a token, to be had.
  using Import = std::function<MixerState(std::int64_t run, std::int64_t layer, std::int64_t token)>;

  Schedule() = default;
  /// Of interventions that have been checked (changed_layers).
  Schedule(const Model& model, std::span<const Intervention> interventions, std::int64_t tokens, const Import& import);

  /// [layers] while the token is read; empty: the model's own.
  std::span<const Rules> rules(std::int64_t token) const;
  /// The next number of tokens > `tokens` after which states are edited or other rules hold.
  std::int64_t next_stop(std::int64_t tokens) const;
  /// Edits a layer's state where it is due after `tokens` tokens.
  void edit(std::int64_t layer, MixerState& state, std::int64_t tokens, const Model& model) const;

  /// What is done to a layer's state after `tokens` tokens: nothing, or scaling, or, where another run's took its place, more than that.
  struct Edits {
    std::vector<ScaleState> scaled;
    bool imported = false;
  };
  Edits edits(std::int64_t layer, std::int64_t tokens) const;

  /// The first token that is read by other rules than under `other`; none: int64's largest.
  std::int64_t first_with_other_rules(const Schedule& other) const;

 private:
  struct Edit {
    std::int64_t layer;
    ScaleState scale;
    std::optional<MixerState> imported;  // in place of that
  };
  std::map<std::int64_t, std::vector<Rules>> rules_;  // from this token on
  std::multimap<std::int64_t, Edit> edits_;           // after so many tokens
};

}  // namespace statescope

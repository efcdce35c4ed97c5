// Decay: how fast a slot's rows or columns forget, token by token and in the long run (spec §12.3, §12.4).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "views/matrix.h"
#include "views/shading.h"

namespace statescope {

/// What the reader looks at: Δ_{t,s} at the cursor, each token's α, or what the run says about every channel.
enum class DecayMode { cumulative, each_token, half_life, receptive_field };

/// One channel as the modes half-life and receptive field rank them.
struct DecayRank {
  std::int64_t channel = 0;
  float half_life = 0;        // tokens; infinite without decay
  float width = 0;            // receptive field, tokens
  std::int64_t censored = 0;  // of the tokens measured, how many still feel the run's first one
};

struct DecayData {
  Message message;  // of the empty state
  DecayMode mode = DecayMode::cumulative;
  std::string place;       // "layer 2, partition 3, head 0"
  std::int64_t token = 0;  // whose step is the last one shown; −1: none
  Decay::Axis axis = Decay::Axis::none;
  std::string channel_word;  // what a channel is: "key row", "head"
  std::string recurrence;    // what α is of, with the source
  std::int64_t channels = 0, chosen = 0;
  TokenAxis tokens;                  // the slot's visits in the window
  std::int64_t until = 0;            // how many of them are not after `token`
  std::int64_t run = 0;              // tokens of the run
  std::vector<float> alpha;          // [channels, n]
  std::vector<float> left;           // [channels, until] Δ_{t,s}
  Pyramid cells;                     // [channels, until] Δ, or [channels, n] 1 − α
  std::optional<Coloring> coloring;  // of the cells
  bool names_alpha = true;           // beside the colours of 1 − α
  std::vector<DecayRank> ranks;      // ascending by half-life or width
  std::int64_t measured = 0;         // tokens that the width is a mean over

  /// "row 5", "head 2"
  std::string channel_name(std::int64_t channel) const;
  /// What channels are ranked by.
  float ranked_value(const DecayRank& rank) const;
};

inline constexpr float kLeastFelt = 0.001f;  // of a write: below, it is outside the receptive field

DecayData build_decay(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, DecayMode mode,
                      const RangeChoice& range = {});
/// The answer in a sentence.
std::string summary(const DecayData& data);
/// What chooses the channel.
CursorMove to_channel(const DecayData& data, std::int64_t channel);
void draw(const DecayData& data, Canvas& canvas, Rect area, const Frame& frame);

/// How many tokens back a write must lie for less than `share` of it to be left in the channel; −1: nowhere in the window.
std::int64_t tokens_until(const DecayData& data, std::int64_t channel, float share);

std::unique_ptr<View> make_decay();

}  // namespace statescope

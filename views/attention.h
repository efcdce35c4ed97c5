// What each token reads from which earlier token: A_{t,s} with o_t = Σ_s A_{t,s} v_s, worked out of the memory; softmax layers: their
// weights.
#pragma once

#include <string>
#include <vector>

#include "views/matrix.h"

namespace statescope {

/// What is shown of a layer.
enum class WeightKind {
  implicit,  // A of a memory, signed
  softmax,   // weights, which add up to 1
  branches,  // of NSA: the weights of its three branches, times their gates
  channels,  // of a selective scan, whose channels each have an A of their own: the mean of |A|
};

struct AttentionData {
  static constexpr std::size_t kMostSources = 512;
  Message message;  // of the empty state
  std::string title;
  WeightKind kind = WeightKind::implicit;
  bool shares = false;  // |A_{t,s}| / Σ_s |A_{t,s}|, else A itself, signed
  std::string place;    // "layer 2, head 1, partition 3"
  TokenAxis tokens;     // [n] those shown, along both sides; of many one of every `step`
  std::int64_t step = 1;
  Pyramid cells;  // [n, n] row t, column s: of `step` tokens the one farthest from 0; 0 for s > t, NaN: not worked out yet
  std::int64_t known = 0, parts = 0;  // of the map's parts
  Shading shading;                    // few cells lie beyond its range unless the reader wants it so
  std::vector<ScaleMark> marks;
  float most = 0;  // the largest |cell|

  // Of the cursor's token, whatever `step` is.
  struct Source {
    std::int64_t token = 0;
    float weight = 0;
  };
  std::vector<Source> row;        // [n] of `step` tokens the one farthest from 0
  std::vector<bool> needle;       // [n] there is one among them
  std::vector<Source> strongest;  // of those shown, the largest |weight| first, at most kMostSources
  float before = 0;               // Σ |A_{t,s}| over the tokens before those shown
  double all = 0, of_needle = 0;  // the same over all tokens, over those of the needle that are shown
  ValueAxis row_axis;

  /// Of one number, as bars, tables and colour bars call it: "A"; and what it is.
  std::string symbol() const;
  std::string equation() const;
  std::int64_t count() const { return tokens.count(); }
  std::int64_t token_at(std::int64_t place_) const { return tokens.tokens[static_cast<std::size_t>(place_)]; }
};

/// `shown`: about so many tokens, the cursor's among them. `slot` −1: all together.
AttentionData build_attention(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, std::int64_t slot, bool shares,
                              std::int64_t shown, const RangeChoice& range = {});
void draw(const AttentionData& data, Canvas& canvas, Rect area, const Frame& frame);

/// `shown` of the tokens in `window`, `token` among them, two thirds of them before it where there are so many.
TokenWindow part_around(std::int64_t token, TokenWindow window, std::int64_t shown);

std::unique_ptr<View> make_attention();

}  // namespace statescope

// Who wrote a cell, a row or all of a state: a strip of the tokens that are most of it, under the state.
#pragma once

#include <string>
#include <vector>

#include "views/view.h"

namespace statescope {

struct HistoryPart {
  std::int64_t token = 0;
  std::string text;  // white space made visible
  bool needle = false;
  float contribution = 0;  // signed; all of them add up to what the state has
  float coefficient = 0, written = 0;
};

struct HistoryStrip {
  enum class Of { cell, row, all_rows };
  Of of = Of::cell;                // of the last two the norm
  std::string what;                // "S[3, 5]", "‖row 3‖", "‖S‖"; empty: nothing is chosen
  std::string waiting;             // instead of the parts: how far the work is, or why there are none
  std::vector<HistoryPart> parts;  // largest first, at most 24
  std::int64_t others = 0;         // tokens that are not among them
  double rest = 0;                 // what these add
  double sum = 0, shown = 0;       // of all tokens; the state's own number

  /// How a token's part comes from its value vector v, and how much of it is left: c.
  std::string equation() const;
  /// "S[3, 5] = 0.031, written by 118 tokens that add up to 0.031"
  std::string sentence() const;
  /// "anna +0.21, is −0.13"
  std::string largest(std::size_t count) const;
};

/// Nothing of it where the question has not been asked.
HistoryStrip build_history(const RunInfo& run, const HistoryQuestion& question, const Findings& findings);

/// A line of words and two of parts.
float history_height(const Frame& frame);
/// Part i answers the pointer as the i-th place of the sheet's axis.
void draw(const HistoryStrip& strip, Canvas& canvas, Rect area, const Frame& frame, int sheet);

}  // namespace statescope

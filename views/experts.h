// Which experts of a layer each token goes to, and how evenly they are used.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "views/matrix.h"
#include "views/shading.h"

namespace statescope {

struct ExpertsData {
  Message message;           // instead of all else
  std::string place;         // "layer 2"
  std::string title;         // the answer in a sentence
  TokenAxis tokens;          // [n] who chooses
  std::int64_t until = 0;    // of them read by now
  std::vector<float> share;  // [E, until] w_e / Σ w; NaN: not chosen
  std::optional<Coloring> coloring;

  // The shares, NaN where nothing is chosen, with neighbouring experts in one row, the largest of them.
  struct Rows {
    std::int64_t each = 1;
    Pyramid cells;  // [E / each, until]
  };
  std::vector<Rows> rows;  // of 1, 2, 4, … experts each; empty before the first token

  // By the cursor's token, the largest weight first.
  struct Chosen {
    std::int64_t expert = 0;
    float weight = 0;  // w_e
    float share = 0;   // w_e / Σ w
  };
  std::vector<Chosen> chosen;

  // Up to the cursor's token.
  struct Load {
    std::int64_t tokens = 0;
    float ratio = 0;         // load, f_e / (k / E): 1 is fair
    std::string_view alarm;  // load_alarm
  };
  std::vector<Load> loads;  // [E]

  std::int64_t experts() const { return std::ssize(loads); }
};

ExpertsData build_experts(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, const RangeChoice& range = {});
void draw(const ExpertsData& data, Canvas& canvas, Rect area, const Frame& frame);

/// The first whose rows are no smaller than a unit on `height` of them; else the last.
const ExpertsData::Rows& rows_on(const std::vector<ExpertsData::Rows>& rows, float height);

std::unique_ptr<View> make_experts();

}  // namespace statescope

// Matrices as pictures: cells too small to draw are gathered and the strongest of them shown; partitions or tokens along both sides.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/findings/findings.h"
#include "views/plot.h"

namespace statescope {

/// Its cells answer as the places of a sheet whose first two axes are those of the matrix.
void draw_matrix(Canvas& canvas, const Plot& plot, const Pyramid& cells, const ColorScale& scale, const Hit& first);
/// The same without answers to the pointer.
void draw_cells(Canvas& canvas, const Plot& plot, const Pyramid& cells, const ColorScale& scale);
/// "4 × 4 cells in one, the strongest"; empty where each cell has a place of its own.
std::string gathered_text(const Canvas& canvas, const Pyramid& cells, const Plot& plot);

/// Texts along an axis that do not touch.
class TextPlaces {
 public:
  /// Takes [from, to] unless something is there.
  bool take(float from, float to) {
    if (std::ranges::any_of(taken_, [&](const auto& other) { return from < other.second && other.first < to; })) return false;
    taken_.emplace_back(from, to);
    return true;
  }

 private:
  std::vector<std::pair<float, float>> taken_;
};

/// Neighbouring rows that belong together, such as those of a partition.
struct AxisGroup {
  std::int64_t begin = 0, end = 0;
  std::string text;
  std::int64_t identity = 0;
};
/// Left of `plot` and below it: a stripe in the colour of each group, its name where it fits; `lines`: between the groups, through the
/// plot. Needs group_axis_width and group_axis_height.
void draw_group_axes(Canvas& canvas, const Plot& plot, std::int64_t count, std::span<const AxisGroup> groups, bool lines,
                     const Frame& frame);
/// Either of the two alone, of a matrix whose rows and columns are not the same things.
void draw_group_side(Canvas& canvas, const Plot& plot, std::int64_t count, std::span<const AxisGroup> groups, bool lines,
                     const Frame& frame);
void draw_group_foot(Canvas& canvas, const Plot& plot, std::int64_t count, std::span<const AxisGroup> groups, bool lines,
                     const Frame& frame);
/// Likewise, numbers from 0 on. Needs group_axis_width of one group named with the last number.
void draw_number_axes(Canvas& canvas, const Plot& plot, std::int64_t count, const Frame& frame);
/// Left of `plot` alone, `gap` away from it; none reaches beyond it where they stay `within`.
void draw_number_side(Canvas& canvas, const Plot& plot, std::int64_t count, float gap, bool within, const Frame& frame);
float group_axis_width(const Canvas& canvas, std::span<const AxisGroup> groups, const Frame& frame);
float group_axis_height(const Frame& frame);

/// Left of `plot`, as draw_token_axis below it: tokens downwards.
void draw_token_side(Canvas& canvas, const Plot& plot, const TokenAxis& axis, const Frame& frame);
float token_side_width(const Frame& frame);

/// A number with its name.
struct Fact {
  std::string name, value;
};
/// One below the other, as many as fit; none where captions are left out.
void draw_facts(Canvas& canvas, Rect area, std::span<const Fact> facts, const Frame& frame);
/// In lines, as many as fit: where there is no room for a picture.
void draw_fact_lines(Canvas& canvas, Rect area, std::span<const Fact> facts, const Frame& frame);

/// Where a map stands that has tokens across and other things down, with facts beside it.
struct TokenMap {
  Rect title, facts;          // w 0: left out
  Plot map;                   // the same
  bool names_tokens = false;  // there is room for the tokens' axis

  /// `left`: for the names of what goes down; `right`: for what stands between map and facts.
  TokenMap(Canvas& canvas, Rect area, float left, float right, const Frame& frame);
  /// The map's edge, notes above it, tokens below it.
  void draw_edges(Canvas& canvas, const TokenAxis& tokens, const std::vector<std::string>& notes, const Frame& frame) const;
};

/// A view's first line: what is shown, and at its right end how exact it is.
void draw_caption(Canvas& canvas, Rect line, std::string_view text, const Accuracy& accuracy, const Frame& frame);
float caption_height(const Frame& frame);

}  // namespace statescope

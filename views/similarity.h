// How alike the parts of a memory are: rows, partitions, heads, and the same state after different tokens.
#pragma once

#include <string>
#include <vector>

#include "views/matrix.h"

namespace statescope {

enum class SimilarityMode { rows, clustered, partitions, heads, tokens, other_heads, other_rows };  // the last two: cross_similarity.h

struct SimilarityData {
  Message message;  // of the empty state
  SimilarityMode mode = SimilarityMode::rows;
  std::string title;                 // the answer in a sentence
  Pyramid cells;                     // [n, n] cosines in the order shown; NaN: one of the two is zero
  std::vector<std::int64_t> order;   // [n] what stands where: rows slot · K + row, slots, heads, or tokens
  std::vector<std::int64_t> across;  // [n] likewise along the columns
  std::vector<AxisGroup> groups;     // all but tokens
  TokenAxis side, tokens;            // tokens alone: down and across
  std::vector<Fact> facts;
  bool is_signed = true;
  ColorRange range{-1, 1};  // of the colours
  Shading shading;
  std::vector<ScaleMark> marks;
  std::int64_t rows = 1;     // K
  std::string row_name;      // what a row is
  std::int64_t chosen = -1;  // the cursor's place of n; −1: none
  std::string place;         // "layer 2, head 1"
  std::string when;          // "after token 41"
  std::vector<std::string> slot_titles;
  std::vector<AxisGroup> legend;  // the slots, where the groups do not say their names

  std::int64_t count() const { return cells.rows(); }
  /// Of `order` or `across`: "row 3 of partition 2", "head 1", "after token 41 “␣anna”"
  std::string name(std::int64_t what) const;
};

/// `shown`: tokens of the map of tokens, around the cursor's and the one it is compared with.
SimilarityData build_similarity(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, SimilarityMode mode,
                                std::int64_t shown = std::int64_t{1} << 40, const RangeChoice& range = {});
void draw(const SimilarityData& data, Canvas& canvas, Rect area, const Frame& frame);

std::unique_ptr<View> make_similarity();

}  // namespace statescope

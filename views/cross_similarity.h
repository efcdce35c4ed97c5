// How alike the memories of two models are: rows of the picture stand for this model's heads or rows, columns for the other's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "views/matrix.h"

namespace statescope {

enum class CrossSimilarityMode { heads, rows };

struct CrossSimilarityData {
  Message message;  // of the empty state
  CrossSimilarityMode mode = CrossSimilarityMode::heads;
  std::string title;                                // the answer in a sentence
  std::string own_letter, letter;                   // "A", "B"
  Pyramid cells;                                    // [n, n'] cosines; NaN: one of the two is zero
  std::vector<AxisGroup> own, other;                // along the side, along the foot
  std::vector<std::string> own_names, other_names;  // [n], [n'] "row 3 of partition 2", "head 1"
  std::vector<Fact> facts;
  std::int64_t rows = 1;  // K, of this model
  std::string place;      // "layer 2, head 1 of A and head 1 of B, after token 41 …"
};

/// What the other model is asked: its states beside this one's, once those are among the `own` findings.
std::optional<CrossSimilarityQuestion> cross_similarity_question(const Snapshot& snapshot, const Findings& own, const Snapshot& peer,
                                                                 const Cursor& cursor);

CrossSimilarityData build_cross_similarity(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings,
                                           CrossSimilarityMode mode);
void draw(const CrossSimilarityData& data, Canvas& canvas, Rect area, const Frame& frame);
std::string sentence_of(const CrossSimilarityData& data);

}  // namespace statescope

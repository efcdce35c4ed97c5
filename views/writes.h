// Which rows of a memory are written: how long ago each was, and to how many of them a token writes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "views/shading.h"

namespace statescope {

enum class WritesMode { written, halved, spread };

struct WritesData {
  Message message;  // instead of all else
  WritesMode mode = WritesMode::written;
  std::string place;     // "layer 2, head 1"
  std::string title;     // the answer in a sentence
  std::string row_name;  // what a row is
  std::int64_t rows = 0, slots = 0, slot = 0, token = 0;
  std::int64_t row = -1;                             // the chosen one; −1: none
  std::vector<std::string> slot_names, short_names;  // "partition 3", "3"
  std::vector<float> ages;                           // [K, slots] tokens; NaN: none; empty in `spread`
  std::optional<Coloring> coloring;                  // of the ages
  // Of `spread`, of the chosen slot:
  TokenAxis tokens;
  std::vector<float> effective, counted;  // [tokens] rows; NaN where a token does not come
};

WritesData build_writes(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, WritesMode mode,
                        const RangeChoice& range = {});
void draw(const WritesData& data, Canvas& canvas, Rect area, const Frame& frame);

std::unique_ptr<View> make_writes();

}  // namespace statescope

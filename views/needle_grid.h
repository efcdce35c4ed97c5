// How often the open checkpoint finds a needle, by how deep it stands and how long the text is; a failed prompt can be opened.
#pragma once

#include <string>
#include <vector>

#include "views/plot.h"

namespace statescope {

struct NeedleGridData {
  Message message;  // instead of all else
  std::string model;
  NeedleGridQuestion question;
  NeedleGrid grid;
  double progress = 0;              // 1: all prompts have been read
  std::int64_t trained_length = 0;  // 0: unknown
  std::int64_t mark = -1;           // the chosen cell; −1: none

  std::int64_t columns() const { return std::ssize(question.lengths); }
  std::int64_t count() const { return std::ssize(grid.cells); }
  std::int64_t length_of(std::int64_t cell) const { return question.lengths[static_cast<std::size_t>(cell % columns())]; }
  int depth_of(std::int64_t cell) const { return question.depths[static_cast<std::size_t>(cell / columns())]; }
  NeedleExample example(std::int64_t cell, const NeedleGrid::Failure& failure) const;
};

/// How much is read: `usual` and `thorough` 20 and 100 prompts in each of 5 × 5 cells, `quick` 5 in each of 3 × 3.
enum class NeedleGridMode { usual, quick, thorough };

/// Lengths around the one that the model was trained on, depths from the first word to the last.
NeedleGridQuestion needle_grid_question(const RunInfo& run, std::int64_t needles, NeedleGridMode mode = NeedleGridMode::usual);

/// The same numbers from the command line.
std::string command_of(const NeedleGridData& data, std::int64_t cell);
std::string failure_text(const NeedleGridData& data, const NeedleGrid::Failure& failure);

NeedleGridData build_needle_grid(const Snapshot& snapshot, const Findings& findings, const NeedleGridQuestion& question, std::int64_t mark);
void draw(const NeedleGridData& data, Canvas& canvas, Rect area, const Frame& frame);

std::unique_ptr<View> make_needle_grid();

}  // namespace statescope

// A lesson as its player says it, read from the first step to the last without a window.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/lesson/lesson.h"
#include "engine/device.h"

namespace statescope {

/// One model's place in what a step shows.
struct ReadPlace {
  std::filesystem::path checkpoint;
  Cursor cursor;
};
struct ReadPicture {
  LessonPicture picture;
  std::shared_ptr<const RunInfo> run;
  ReadPlace own;
  std::optional<ReadPlace> beside;
  std::optional<std::int64_t> play;  // plays from there to the cursor's token
};

struct ReadStep {
  std::string title, prose, reveal;  // prose and reveal: Markdown
  std::optional<std::size_t> right;  // of the question's choices
  std::string answer;                // of the run to the question; empty: there is none
  std::vector<std::string> broken;   // LessonPlayer::broken_claims
  ReadPicture picture, revealed;     // the same where there is no question
};

/// Hears which step is read, of how many; false: the work is to end.
using ReadingProgress = std::function<bool(std::size_t step, std::size_t steps)>;

/// Needs a QApplication. Throws Error where a step's run cannot be opened; Cancelled.
std::vector<ReadStep> read_lesson(const Lesson& lesson, const DeviceChoice& device, const ReadingProgress& progress);

}  // namespace statescope

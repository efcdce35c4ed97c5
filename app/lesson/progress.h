// How far a lesson has come, to go on another day.
#pragma once

#include <QSettings>
#include <QString>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/lesson/lesson.h"

namespace statescope {

struct LessonMarks {
  struct Step {
    bool done = false;  // the reader has gone on from it, or it was the last
    bool revealed = false;
    std::optional<std::size_t> predicted;
  };
  std::size_t step = 0;  // where the reader was last
  std::vector<Step> steps;
  std::map<std::string, std::string> notes;

  bool is_finished() const;
};

/// What the settings keep of each lesson. What cannot be read there is nothing.
class LessonProgress {
 public:
  /// Null: nothing is kept.
  explicit LessonProgress(QSettings* settings) : settings_(settings) {}

  void keep(const Lesson& lesson, const LessonMarks& marks);
  /// Nothing where the lesson has other steps by now.
  std::optional<LessonMarks> of(const Lesson& lesson) const;
  /// "done", "up to step 3 of 9"; empty: it was not begun.
  QString words(const std::filesystem::path& lesson) const;

 private:
  QSettings* settings_;
};

}  // namespace statescope

// A page of a lesson: its steps and questions, and the views of every run that it looks at.
#pragma once

#include "app/lesson/lesson.h"
#include "app/web/page.h"

namespace statescope {

/// Read by its player, so that the words are those of the window; each view of each run is recorded once. Needs a QApplication. Throws
/// Error; Cancelled.
Page page_of_lesson(const Lesson& lesson, Recorder& recorder);

}  // namespace statescope

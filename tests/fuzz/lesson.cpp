// Any bytes as a lesson: refused with one line, or steps that show something.
#include "app/lesson/lesson.h"

#include <cstdlib>
#include <stdexcept>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) try {
  const statescope::Lesson lesson = statescope::parse_lesson({reinterpret_cast<const char*>(data), size}, "lesson");
  for (const statescope::LessonStep& step : lesson.steps)
    if (step.picture.views.empty() || step.revealed.views.empty()) std::abort();
  return 0;
} catch (const std::runtime_error&) {
  return 0;
}

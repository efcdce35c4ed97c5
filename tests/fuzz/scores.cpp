// Any bytes as a file of scores, and as one of times: refused with one line, or numbers that can be drawn.
#include <cmath>
#include <cstdlib>
#include <stdexcept>

#include "app/bench/sse.h"
#include "app/eval/scores_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    for (const statescope::CellScore& score : statescope::parse_scores(text, "scores"))
      if (score.task && !(score.task->exact.mean >= 0 && score.task->exact.mean <= 1)) std::abort();
  } catch (const std::runtime_error&) {
  }
  try {
    for (const statescope::SseTiming& timing : statescope::parse_sse_timings(text, "times").timings)
      if (!(timing.seconds > 0) || !std::isfinite(timing.seconds)) std::abort();
  } catch (const std::runtime_error&) {
  }
  return 0;
}

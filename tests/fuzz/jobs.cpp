// A byte that says what it is, then any bytes as a job of a command or as what came of one: refused with one line, or a value that is
// packed to the same bytes again.
#include "app/jobs/jobs.h"
#include "tests/fuzz/wire_input.h"

namespace {

using namespace statescope;
using namespace statescope::remote;
using fuzz::attempt;

void attempt_as(std::uint8_t what, std::string_view bytes) {
  switch (what) {
    case 0:
      return attempt<JobAsked>(bytes);
    case 1:
      return attempt<JobDone<Intervened>>(bytes);
    case 2:
      return attempt<JobDone<ModelFound>>(bytes);
    case 3:
      return attempt<JobDone<NeedleFound>>(bytes);
    case 4:
      return attempt<JobDone<Inspected>>(bytes);
    case 5:
      return attempt<JobDone<FoundCheckpoints>>(bytes);
    default:
      return attempt<JobDone<std::vector<CellOutcome>>>(bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { return fuzz::attempt_input(data, size, attempt_as); }

// A byte that says what it is, then any bytes as a job of a command or as what came of one: refused with one line, or a value that is
// packed to the same bytes again, and whose report can be told.
#include <cstdint>
#include <cstdlib>

#include "app/jobs/jobs.h"
#include "engine/remote/wire.h"

namespace {

using namespace statescope;
using namespace statescope::remote;

template <class T>
T attempt(std::string_view bytes) {
  T value = unpack<T>(bytes);
  if (pack(value) != bytes) std::abort();
  return value;
}

void attempt(std::uint8_t what, std::string_view bytes) {
  if (what % 4 == 0) attempt<JobAsked>(bytes);
  if (what % 4 == 1) attempt<JobDone<Intervened>>(bytes);
  if (what % 4 == 2) attempt<JobDone<ModelFound>>(bytes);
  if (what % 4 != 3) return;
  const auto done = attempt<JobDone<NeedleFound>>(bytes);
  needle_text(done.found.report, 4, 3);
  needle_json(done.found.report);
  needle_html(done.found.report);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  try {
    attempt(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  } catch (const WireError& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}

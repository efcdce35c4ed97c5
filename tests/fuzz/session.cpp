// Any bytes as a session file: refused with an Error, or a record whose parts fit together.
#include <cstdlib>

#include "engine/error.h"
#include "engine/run/session_record.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) try {
  using namespace statescope;
  const SessionRecord record = parse_session({reinterpret_cast<const char*>(data), size}, "input.scope");
  if (record.prompt_ids.empty() || std::ssize(record.ids()) != record.tokens()) std::abort();
  if (to_json(parse_session(to_json(record, "again.scope"), "again.scope"), "again.scope") != to_json(record, "again.scope")) std::abort();
  return 0;
} catch (const statescope::Error&) {
  return 0;
}

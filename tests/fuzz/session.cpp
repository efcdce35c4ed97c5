// Any bytes as a session file, and as the content of one that has its digest: refused with an Error, or a record whose parts fit together.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/digest.h"
#include "engine/error.h"
#include "engine/session/session_record.h"

namespace {

using namespace statescope;

void attempt(std::string_view text) try {
  const SessionRecord record = parse_session(text, "input.scope");
  if (record.prompt_ids.empty() || std::ssize(record.ids()) != record.tokens()) std::abort();
  if (to_json(parse_session(to_json(record, "again.scope"), "again.scope"), "again.scope") != to_json(record, "again.scope")) std::abort();
} catch (const Error&) {
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  attempt(bytes);
  const auto session = nlohmann::json::parse(bytes, nullptr, /*allow_exceptions=*/false);
  if (!session.is_object()) return 0;
  Digest digest;
  digest.add(session.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  attempt(nlohmann::json{{"format", "statescope-session"}, {"version", 1}, {"digest", digest.text()}, {"session", session}}.dump());
  return 0;
}

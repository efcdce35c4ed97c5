// The file of SSE's times.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/bench/sse.h"
#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"
#include "engine/checkpoint/json_object.h"
#include "engine/error.h"

namespace statescope {
namespace {

using nlohmann::json;

constexpr std::int64_t kMost = 1'000'000'000;
constexpr std::string_view kFormat = "statescope-bench-sse";
constexpr std::array<std::string_view, 3> kFormNames{"sequential", "masking", "varlen"};

std::int64_t count(JsonObject& object, const char* key) { return object.integer(key, 1, kMost); }

double seconds(JsonObject& object, const char* key) {
  const json& value = object.at(key);
  if (!value.is_number() || !(value.get<double>() > 0 && std::isfinite(value.get<double>()))) object.wrong(key, "a time above 0");
  return value.get<double>();
}

SseTiming timing_in(const json& value, const std::string& place) {
  JsonObject object(value, place);
  SseTiming timing{object.text("form"),        count(object, "length"),  count(object, "partitions"),
                   seconds(object, "seconds"), seconds(object, "least"), seconds(object, "most")};
  if (std::ranges::find(kFormNames, timing.form) == kFormNames.end())
    object.refuse(fmt::format("there is no form {}; there are sequential, masking and varlen", in_quotes(timing.form)));
  if (timing.least > timing.seconds || timing.seconds > timing.most) object.refuse("\"least\", \"seconds\", \"most\" do not ascend");
  return timing;
}

}  // namespace

std::string to_json(const SseTimings& timings) {
  nlohmann::ordered_json out{{"format", kFormat},
                             {"version", 1},
                             {"device", timings.device},
                             {"heads", timings.heads},
                             {"head_dim", timings.head_dim},
                             {"chosen", timings.chosen},
                             {"timings", json::array()}};
  for (const SseTiming& timing : timings.timings) {
    out["timings"].push_back(nlohmann::ordered_json{{"form", timing.form},
                                                    {"length", timing.length},
                                                    {"partitions", timing.partitions},
                                                    {"seconds", timing.seconds},
                                                    {"least", timing.least},
                                                    {"most", timing.most}});
  }
  return out.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

SseTimings parse_sse_timings(std::string_view text, const std::string& name) {
  check_json_text(name, "the file", text);
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  JsonObject object(document, name);
  if (object.text("format") != kFormat || count(object, "version") != 1)
    fail(name, "is not a file of statescope bench sse that this version can read");
  SseTimings timings{object.text("device"), count(object, "heads"), count(object, "head_dim"), count(object, "chosen"), {}};
  const json& list = object.list("timings");
  if (list.empty()) object.refuse("\"timings\" is empty");
  for (std::size_t i = 0; i < list.size(); ++i) timings.timings.push_back(timing_in(list[i], fmt::format("{}: timing {}", name, i + 1)));
  return timings;
}

SseTimings load_sse_timings(const std::filesystem::path& path) {
  constexpr std::size_t most_bytes = 1 << 20;
  return parse_sse_timings(read_file(path, most_bytes), path.string());
}

}  // namespace statescope

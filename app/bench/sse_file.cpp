// The file of SSE's times.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/bench/sse.h"
#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"
#include "engine/error.h"

namespace statescope {
namespace {

using nlohmann::json;

constexpr std::int64_t kMost = 1'000'000'000;
constexpr std::string_view kFormat = "statescope-bench-sse";
constexpr std::array<std::string_view, 3> kForms{"sequential", "masking", "varlen"};

/// The keys of a JSON object, each checked; all errors name the file.
class Fields {
 public:
  Fields(const json& object, std::string place) : object_(object), place_(std::move(place)) {
    if (!object_.is_object()) throw Error(fmt::format("{}: is not an object", place_));
  }
  const json& at(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) throw Error(fmt::format("{}: has no \"{}\"", place_, key));
    return *found;
  }
  std::string text(const char* key) const {
    if (!at(key).is_string()) throw Error(fmt::format("{}: \"{}\" is not text", place_, key));
    return at(key).get<std::string>();
  }
  std::int64_t count(const char* key) const {
    if (!at(key).is_number_integer() || at(key) < 1 || at(key) > kMost)
      throw Error(fmt::format("{}: \"{}\" is not a whole number between 1 and {}", place_, key, kMost));
    return at(key).get<std::int64_t>();
  }
  double seconds(const char* key) const {
    const double value = at(key).is_number() ? at(key).get<double>() : 0;
    if (!(value > 0 && std::isfinite(value))) throw Error(fmt::format("{}: \"{}\" is not a time above 0", place_, key));
    return value;
  }

 private:
  const json& object_;
  std::string place_;
};

SseTiming timing_in(const json& value, const std::string& place) {
  const Fields fields(value, place);
  SseTiming timing{fields.text("form"),       fields.count("length"),  fields.count("partitions"),
                   fields.seconds("seconds"), fields.seconds("least"), fields.seconds("most")};
  if (std::ranges::find(kForms, timing.form) == kForms.end())
    throw Error(fmt::format("{}: there is no form {}; there are sequential, masking and varlen", place, in_quotes(timing.form)));
  if (timing.least > timing.seconds || timing.seconds > timing.most)
    throw Error(place + ": \"least\", \"seconds\", \"most\" do not ascend");
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
  const Fields fields(document, name);
  if (fields.text("format") != kFormat || fields.count("version") != 1)
    fail(name, "is not a file of statescope bench sse that this version can read");
  SseTimings timings{fields.text("device"), fields.count("heads"), fields.count("head_dim"), fields.count("chosen"), {}};
  const json& list = fields.at("timings");
  if (!list.is_array() || list.empty()) fail(name, "\"timings\" is not a list");
  for (std::size_t i = 0; i < list.size(); ++i) timings.timings.push_back(timing_in(list[i], fmt::format("{}: timing {}", name, i + 1)));
  return timings;
}

SseTimings load_sse_timings(const std::filesystem::path& path) {
  constexpr std::size_t most_bytes = 1 << 20;
  return parse_sse_timings(read_file(path, most_bytes), path.string());
}

}  // namespace statescope

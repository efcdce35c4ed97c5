#include "app/cli/run_outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/common/recording.h"
#include "engine/checkpoint/printable.h"
#include "views/parts.h"

namespace statescope {
namespace {

nlohmann::json as_json(const std::vector<Prediction>& tokens) {
  nlohmann::json list = nlohmann::json::array();
  for (const Prediction& token : tokens) list.push_back({{"id", token.id}, {"text", token.text}, {"probability", token.probability}});
  return list;
}

std::string run_json(const Outcome& outcome, const RunArguments& arguments) {
  nlohmann::json out{{"format", "statescope-run"},
                     {"version", 1},
                     {"checkpoint", outcome.checkpoint},
                     {"family", outcome.family},
                     {"device", outcome.device},
                     {"notes", outcome.notes},
                     {"prompt_tokens", outcome.prompt_length},
                     {"generated", as_json(outcome.generated)},
                     {"text", outcome.text},
                     {"seconds", {{"load", outcome.load_seconds}, {"read", outcome.read_seconds}, {"generate", outcome.generate_seconds}}}};
  if (!outcome.next.empty()) out["next"] = as_json(outcome.next);
  if (!outcome.expected.empty()) out.update({{"expected", outcome.expected}, {"correct", outcome.correct()}});
  if (!arguments.dump.empty()) out["dump"] = arguments.dump;
  if (!arguments.session.empty()) out["session"] = arguments.session;
  if (outcome.recording) out["recording"] = recording_json(*outcome.recording);
  if (outcome.difference) out["difference"] = to_json(*outcome.difference);
  if (outcome.not_finite) {
    out["not_finite"] = to_json(outcome.not_finite);
    out["notes"].push_back(outcome.not_finite.text());
  }
  return out.dump(2, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

void print_text(const Outcome& outcome) {
  if (!outcome.text.empty()) fmt::print("{}\n", printable_text(outcome.text));
  const auto percent = [](float share) { return std::isnan(share) ? fmt::format("{:>6}", "nan") : fmt::format("{:6.2f}", 100 * share); };
  for (const Prediction& p : outcome.next) fmt::print("{} %  {} ({})\n", percent(p.probability), visible_text(p.text), p.id);
  if (!outcome.expected.empty() && !outcome.generated.empty()) {
    fmt::print("expected: {}, {}\n", printable_text(outcome.expected), outcome.correct() ? "right" : "wrong");
  }
  const std::int64_t length = outcome.prompt_length + std::ssize(outcome.generated);
  const std::int64_t read = std::max<std::int64_t>(outcome.prompt_length - outcome.restored, 0);
  const std::int64_t generated = length - std::max(outcome.restored, outcome.prompt_length);
  const auto counted = [](std::int64_t tokens) { return tokens == 1 ? "1 token" : fmt::format("{} tokens", tokens); };
  const auto speed = [&](std::string_view verb, std::int64_t tokens, double seconds) {
    return fmt::format("{} {} in {:.3f} s ({:.0f}/s)", verb, counted(tokens), seconds,
                       static_cast<double>(tokens) / std::max(seconds, 1e-9));
  };
  std::vector<std::string> parts;
  if (outcome.restored > 0) parts.push_back(fmt::format("restored {} in {:.3f} s", counted(outcome.restored), outcome.load_seconds));
  const bool together = outcome.generate_seconds == 0 && generated > 0;
  if (together) parts.push_back(fmt::format("read {} and generated {} in {:.3f} s", read, counted(generated), outcome.read_seconds));
  if (!together && read > 0) parts.push_back(speed("read", read, outcome.read_seconds));
  if (!together && generated > 0) parts.push_back(speed("generated", generated, outcome.generate_seconds));
  fmt::print(stderr, "{}: {}\n", outcome.device, fmt::join(parts, ", "));
  if (outcome.recording) fmt::print(stderr, "{}\n", recording_text(*outcome.recording));
}

}  // namespace

void tell(const Outcome& outcome, const RunArguments& arguments, ReportFile& json_file) {
  if (outcome.not_finite) print_note(outcome.not_finite.text());
  if (!json_file.is_standard_output()) print_text(outcome);
  json_file.write(run_json(outcome, arguments));
}

}  // namespace statescope

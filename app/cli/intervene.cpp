#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/job_place.h"
#include "app/common/console.h"
#include "app/common/recording.h"
#include "engine/checkpoint/printable.h"

namespace statescope {

using nlohmann::json;

int intervene_command(const InterveneArguments& arguments) {
  ReportFile json_file(arguments.json, arguments.force);
  InterveneJob job{.prompt = {}, .interventions = {}, .others = {}, .generate = arguments.generate};
  for (const std::string& text : arguments.interventions) job.interventions.push_back(parse_intervention(text));
  JobPlace place(arguments.device, arguments.engine, arguments.memory);
  job.prompt = place.prompt(arguments.prompt, arguments.checkpoint);
  for (const std::string& file : arguments.others) job.others.push_back(place.prompt({.file = file}, arguments.checkpoint));
  const Intervened found = place.done(arguments.checkpoint, job, "intervene");
  print_notes(found.notes);
  print_notes(found.remarks);

  json out = to_json(found.report);
  out.update({{"format", "statescope-intervention"},
              {"version", 1},
              {"checkpoint", arguments.checkpoint},
              {"family", found.family},
              {"device", found.device},
              {"notes", found.notes},
              {"recording", recording_json(found.recording)}});
  json_file.write(out.dump(2, ' ', true, json::error_handler_t::replace) + "\n");
  if (json_file.is_standard_output()) return 0;
  fmt::print(stderr, "{}\n", recording_text(found.recording));
  const std::string again = found.again_from ? fmt::format("read again from token {}", *found.again_from) : "nothing read again";
  fmt::print("{}: {} tokens, {}\n", printable(arguments.checkpoint), found.tokens, again);
  print(found.report);
  return 0;
}

}  // namespace statescope

#include "app/cli/commands.h"
#include "app/cli/job_place.h"
#include "app/common/console.h"

namespace statescope {

int needle_command(const NeedleArguments& arguments) {
  ReportFile json_file(arguments.json, arguments.force), page(arguments.html, arguments.force);
  JobPlace place(arguments.device, arguments.engine);
  const NeedleJob job{.prompt = place.prompt(arguments.prompt, arguments.checkpoint),
                      .prompt_name = arguments.prompt.file.empty() ? arguments.prompt.ids : arguments.prompt.file,
                      .events = arguments.events};
  const auto [report, remark] = place.done(arguments.checkpoint, job, "needle");
  print_notes(report.notes);
  if (!remark.empty()) print_note(remark);
  print_report(needle_text(report, static_cast<std::size_t>(arguments.heads), static_cast<std::size_t>(arguments.events)),
               {&json_file, &page});
  json_file.write(needle_json(report));
  page.write(needle_html(report));
  return 0;
}

}  // namespace statescope

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/cli_commands.h"
#include "app/inspect/inspecting.h"
#include "app/interruption.h"
#include "engine/error.h"
#include "engine/run/not_finite.h"

namespace statescope {
namespace {

std::string text_of(const std::vector<Inspected>& all) {
  std::string text = all.size() == 2 ? comparison_text(all[0], all[1]) : "";
  for (std::size_t i = 0; (all.size() != 2 || text.empty()) && i < all.size(); ++i) text += inspection_text(all[i]);
  if (all.size() > 2) text += overview_text(all);
  return text + fmt::format("how exact: {}\n", accuracy_text());
}

bool is_not_finite(const Inspected& inspected) {
  return inspected.is_ill() && inspected.judgement.diagnoses.front().illness == Illness::not_finite;
}

std::string not_finite_text(const Inspected& inspected) {
  return fmt::format("{}: {} There is no verdict of what comes behind", inspected.checkpoint,
                     inspected.judgement.diagnoses.front().sentence);
}

}  // namespace

int inspect_command(const InspectArguments& arguments) {
  ReportFile json_file(arguments.json, arguments.force), page(arguments.html, arguments.force), table(arguments.csv, arguments.force);
  const FoundCheckpoints found = find_checkpoints(arguments.checkpoints);
  for (const std::string& why : found.skipped) print_failure(why + "; skipped");
  if (found.checkpoints.empty()) throw Error(arguments.checkpoints.front() + ": there is no checkpoint in this folder");
  std::vector<Inspected> all;
  const Interruption interruption;
  {
    ProgressBar bar("inspecting");
    const auto count = static_cast<double>(found.checkpoints.size());
    for (std::size_t i = 0; i < found.checkpoints.size() && !Interruption::asked(); ++i) {
      const auto tell = [&](double part) { bar.show((static_cast<double>(i) + part) / count, found.checkpoints[i].path); };
      all.push_back(inspect_checkpoint(arguments, found.checkpoints[i], tell));
    }
  }
  if (all.empty()) throw Error("interrupted; nothing was inspected");
  print_report(text_of(all), {&json_file, &page, &table});
  json_file.write(inspection_json(all));
  page.write(inspection_html(all));
  table.write(inspection_csv(all));
  for (const Inspected& one : all) {
    if (is_not_finite(one)) print_failure(not_finite_text(one));
  }
  if (all.size() < found.checkpoints.size())
    throw Error(fmt::format("interrupted; {} of {} checkpoints are in the report", all.size(), found.checkpoints.size()));
  constexpr int ill = 3;
  if (arguments.check && std::ranges::any_of(all, &Inspected::is_ill)) return ill;
  return std::ranges::any_of(all, is_not_finite) ? 1 : 0;
}

}  // namespace statescope

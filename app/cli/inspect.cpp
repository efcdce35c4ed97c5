#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cereal/types/string.hpp>
#include <cereal/types/utility.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "app/assets.h"
#include "app/cli/commands.h"
#include "app/cli/job_place.h"
#include "app/common/console.h"
#include "app/common/interruption.h"
#include "app/inspect/figures.h"
#include "app/inspect/inspecting.h"
#include "app/inspect/kept_results.h"
#include "app/inspect/watch.h"
#include "app/inspect/window_command.h"
#include "app/ranks/packed.h"
#include "app/ranks/ranks.h"
#include "engine/error.h"
#include "engine/remote/wire.h"

namespace statescope {
namespace {

/// Of several, more than two, without `whole` a line each.
std::string text_of(const std::vector<Inspected>& all, bool whole) {
  std::string text = all.size() == 2 ? comparison_text(all[0], all[1], whole) : "";
  if (all.size() > 2) text += overview_text(all);
  if (text.empty() || (whole && all.size() > 2))
    for (const Inspected& one : all) text += inspection_text(one, whole);
  return text +
         (whole ? fmt::format("how exact: {}\n", accuracy_text()) : "every figure: --all; as a page with the evidence: --html FILE\n");
}

bool is_not_finite(const Inspected& inspected) {
  return inspected.is_ill() && inspected.judgement.diagnoses.front().illness == Illness::not_finite;
}

std::string not_finite_text(const Inspected& inspected) {
  return fmt::format("{}: {} There is no verdict on anything after it", inspected.checkpoint,
                     inspected.judgement.diagnoses.front().sentence);
}

constexpr int kIll = 3;  // what --check ends with

/// Whether a report there would take the place of the checkpoint, or of one of its folder's files.
bool would_replace(const std::filesystem::path& report, const std::filesystem::path& checkpoint) {
  namespace fs = std::filesystem;
  std::error_code none;
  if (!fs::exists(report, none)) return false;
  return fs::equivalent(report, checkpoint, none) || fs::equivalent(fs::absolute(report).parent_path(), checkpoint, none);
}

/// Throws OptionsError where two reports would go to one place, or one over a checkpoint.
void check_places(const InspectArguments& arguments, const std::vector<FoundCheckpoint>& checkpoints) {
  std::vector<std::string> reports;
  for (const std::string* path : {&arguments.json, &arguments.html, &arguments.csv}) {
    if (path->empty()) continue;
    if (std::ranges::count(reports, *path) > 0) throw OptionsError(*path + ": two reports cannot go to one place");
    reports.push_back(*path);
    for (const FoundCheckpoint& one : checkpoints) {
      if (would_replace(*path, checkpoint_at(one.path))) throw OptionsError(*path + ": a report cannot take the place of the checkpoint");
    }
  }
}

/// What is said where, each time the same way.
void write_reports(const InspectArguments& arguments, const std::vector<Inspected>& all, bool force) {
  ReportFile(arguments.json, force).write(inspection_json(all));
  ReportFile(arguments.html, force).write(inspection_html(all));
  ReportFile(arguments.csv, force).write(inspection_csv(all));
}

struct AllInspected {
  std::vector<Inspected> all;
  std::size_t failed = 0;  // of the checkpoints that were given by name
};

/// What is to be said of a checkpoint that could not be inspected.
std::string why_not(const InspectArguments& arguments, const FoundCheckpoint& found, const std::string& why, std::size_t& failed) {
  const bool was_given = std::ranges::count(arguments.checkpoints, found.path) > 0;
  if (was_given) ++failed;  // what lies in a folder may be half-written
  return why + (was_given ? "" : "; skipped");
}

/// The engine's, called as they were.
FoundCheckpoints find_there(JobPlace& place, const std::vector<std::string>& given) {
  FoundCheckpoints all;
  for (const std::string& name : given) {
    try {
      FoundCheckpoints found = place.done(name, FindJob(), "looking for checkpoints");
      std::ranges::move(found.checkpoints, std::back_inserter(all.checkpoints));
      std::ranges::move(found.skipped, std::back_inserter(all.skipped));
    } catch (const Cancelled&) {
      throw;
    } catch (const Error&) {
      all.checkpoints.push_back({name});  // to inspect it says why
    }
  }
  return all;
}

/// Options of the window that name the same engine.
std::string words_of(const EngineArguments& engine) {
  std::string words = "--engine " + shell_word(engine.place);
  for (const auto& [option, file] : {std::pair("--engine-token-file", engine.token_file), std::pair("--engine-ca", engine.authorities)}) {
    if (!file.empty()) words += fmt::format(" {} {}", option, shell_word(std::filesystem::absolute(file).lexically_normal()));
  }
  return words;
}

Inspected inspect_there(JobPlace& place, const InspectArguments& arguments, const FoundCheckpoint& found,
                        const std::function<bool(double)>& tell) {
  const auto prompt = [&](const PromptArguments& of) { return place.prompt(of, found.path); };
  Inspected inspected =
      place.done(found.path, inspect_job(arguments, found, prompt), [&](double part, const std::string&) { return tell(part); });
  print_notes(inspected.notes);
  inspected.engine = words_of(arguments.engine);
  return inspected;
}

/// One after the other; `place`: the engine's, or null.
AllInspected inspect_each(const InspectArguments& arguments, JobPlace* place, const FoundCheckpoints& found,
                          std::vector<std::string>& failures) {
  AllInspected inspected;
  ProgressBar bar("inspecting");
  const auto count = static_cast<double>(found.checkpoints.size());
  for (std::size_t i = 0; i < found.checkpoints.size() && !Interruption::asked(); ++i) {
    const auto tell = [&](double part) {
      bar.show((static_cast<double>(i) + part) / count, found.checkpoints[i].path);
      return !Interruption::asked();
    };
    try {
      inspected.all.push_back(place ? inspect_there(*place, arguments, found.checkpoints[i], tell)
                                    : inspect_checkpoint(arguments, found.checkpoints[i], tell));
    } catch (const Error& error) {
      if (Interruption::asked()) break;
      if (found.checkpoints.size() == 1) throw;
      failures.push_back(why_not(arguments, found.checkpoints[i], error.what(), inspected.failed));
    }
  }
  return inspected;
}

/// A checkpoint each.
AllInspected inspect_on(Ranks& ranks, const InspectArguments& arguments, const FoundCheckpoints& found,
                        std::vector<std::string>& failures) {
  using Outcome = std::pair<std::string, std::string>;  // what was found; else why nothing was
  std::vector<std::string> jobs;
  for (const FoundCheckpoint& one : found.checkpoints) jobs.push_back(packed(std::pair(one.path, one.steps)));
  std::vector<double> parts(jobs.size());
  std::vector<std::optional<Outcome>> outcomes(jobs.size());
  {
    ProgressBar bar("inspecting");
    const auto progress = [&](std::size_t job, double part, const std::string* result) {
      if (result) outcomes[job] = unpacked<Outcome>(*result);
      parts[job] = result ? 1 : part;
      bar.show(std::accumulate(parts.begin(), parts.end(), 0.0) / static_cast<double>(parts.size()), found.checkpoints[job].path);
      return true;
    };
    try {
      ranks.run(jobs, progress);
    } catch (const Cancelled&) {
    }
  }
  AllInspected inspected;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!outcomes[i]) continue;
    const auto& [bytes, why] = *outcomes[i];
    if (!bytes.empty()) {
      inspected.all.push_back(remote::unpack<Inspected>(bytes));
      print_notes(inspected.all.back().notes);
    } else {
      if (jobs.size() == 1) throw Error(why);
      failures.push_back(why_not(arguments, found.checkpoints[i], why, inspected.failed));
    }
  }
  return inspected;
}

/// What another process does for it.
std::string inspect_for(const InspectArguments& arguments, const std::string& job, const std::function<void(double)>& tell) {
  const auto [path, steps] = unpacked<std::pair<std::string, std::int64_t>>(job);
  try {
    const Inspected inspected = inspect_checkpoint(arguments, {path, steps}, [&](double part) { return tell(part), true; });
    return packed(std::pair(remote::pack(inspected), std::string()));
  } catch (const Error& error) {
    return packed(std::pair(std::string(), std::string(error.what())));
  }
}

/// With processes that it is spread over, or none; or on an engine.
int inspect_once(const InspectArguments& arguments, Ranks* ranks) {
  ReportFile json_file(arguments.json, arguments.force), page(arguments.html, arguments.force), table(arguments.csv, arguments.force);
  std::optional<JobPlace> there;
  if (!arguments.engine.place.empty()) there.emplace(arguments.device, arguments.engine);
  const FoundCheckpoints found = there ? find_there(*there, arguments.checkpoints) : find_checkpoints(arguments.checkpoints);
  std::vector<std::string> failures = found.skipped;
  for (std::string& why : failures) why += "; skipped";
  if (found.checkpoints.empty()) {
    for (const std::string& why : failures) print_failure(why);
    throw Error(arguments.checkpoints.front() + ": there is no checkpoint in this folder");
  }
  std::optional<Interruption> interruption;
  if (!there) interruption.emplace();
  const auto [all, failed] =
      ranks ? inspect_on(*ranks, arguments, found, failures) : inspect_each(arguments, there ? &*there : nullptr, found, failures);
  for (const std::string& why : failures) print_failure(why);
  if (all.empty()) throw Error(Interruption::asked() ? "interrupted; nothing was inspected" : "no checkpoint could be inspected");
  print_report(text_of(all, arguments.whole), {&json_file, &page, &table});
  json_file.write(inspection_json(all));
  page.write(inspection_html(all));
  table.write(inspection_csv(all));
  for (const Inspected& one : all) {
    if (is_not_finite(one)) print_failure(not_finite_text(one));
  }
  if (Interruption::asked()) {
    print_failure(fmt::format("interrupted; {} of {} checkpoints are in the report", all.size(), found.checkpoints.size()));
    return Interruption::status();
  }
  if (arguments.check && std::ranges::any_of(all, &Inspected::is_ill)) return kIll;
  return failed > 0 || std::ranges::any_of(all, is_not_finite) ? 1 : 0;
}

/// "checkpoint-5000, step 5000: healthy; perplexity at the end 256: 5.8, 1024: 11.6"
std::string trend_line(const Inspected& inspected) {
  const InspectionOverview one(inspected);
  std::string ends;
  for (const auto& [tokens, perplexity] : one.ends) ends += fmt::format("{}{}: {:.3g}", ends.empty() ? "" : ", ", tokens, perplexity);
  return fmt::format("{}{}: {}{}{}", one.name, one.steps > 0 ? fmt::format(", step {}", one.steps) : "", one.verdict,
                     ends.empty() ? "" : "; perplexity at the end of so many tokens ", ends);
}

void run_when_ill(const std::string& command, const Inspected& inspected) {
  ::setenv("STATESCOPE_CHECKPOINT", inspected.checkpoint.c_str(), 1);
  ::setenv("STATESCOPE_VERDICT", verdict_in_short(inspected).c_str(), 1);
  if (const int status = std::system(command.c_str()); status != 0) print_failure(fmt::format("{}: ended with status {}", command, status));
}

/// Sleeps in short pieces; false: interrupted.
bool wait(double seconds) {
  constexpr std::chrono::milliseconds piece(50);
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!Interruption::asked() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(piece);
  return !Interruption::asked();
}

int watch_command(const InspectArguments& arguments) {
  for (const std::string* path : {&arguments.json, &arguments.html, &arguments.csv}) {
    if (*path == "-") throw OptionsError("with --watch reports go to files, not to standard output");
    ReportFile(*path, arguments.force);  // says now what is in the way
  }
  const Interruption interruption;
  const auto inspect = [&](const FoundCheckpoint& found) {
    ProgressBar bar(found.path);
    return inspect_checkpoint(arguments, found, [&](double part) {
      bar.show(part);
      return !Interruption::asked();
    });
  };
  Watch watch(inspect, kept_results(arguments));
  bool any_ill = false;
  do {
    const Watch::Look look = watch.look(arguments.checkpoints);
    if (Interruption::asked()) break;
    for (const std::string& why : look.skipped) print_failure(why + "; skipped until it changes");
    if (look.changed) {
      const std::vector<Inspected> all = watch.results();
      if (!all.empty()) write_reports(arguments, all, true);
      any_ill = std::ranges::any_of(all, &Inspected::is_ill);
    }
    for (const Inspected& one : look.known) fmt::print("{} (read before)\n", trend_line(one));
    std::fflush(stdout);
    for (const Inspected& one : look.fresh) {
      fmt::print("{}\n", trend_line(one));
      std::fflush(stdout);
      if (one.is_ill() && !arguments.when_ill.empty()) run_when_ill(arguments.when_ill, one);
    }
  } while (wait(arguments.every));
  return arguments.check && any_ill ? kIll : 0;
}

}  // namespace

int inspect_command(const InspectArguments& arguments) {
  const std::optional<RankPlace> place = rank_place();
  if (!arguments.engine.place.empty()) {
    if (place) throw OptionsError("--engine does not go with mpirun or srun; start one process");
    if (arguments.watch) throw OptionsError("--watch does not go with --engine: start the command on the engine's machine");
    return inspect_once(arguments, nullptr);
  }
  if (!place) {
    check_places(arguments, find_checkpoints(arguments.checkpoints).checkpoints);
    return arguments.watch ? watch_command(arguments) : inspect_once(arguments, nullptr);
  }
  InspectArguments own = arguments;
  own.device = device_of_rank(arguments.device, *place, visible_gpus());
  Ranks ranks(*place, [&own](const std::string& job, const auto& tell) { return inspect_for(own, job, tell); });
  if (!place->is_first()) return ranks.follow(), 0;
  if (arguments.watch) throw OptionsError("--watch is for one process: start it without mpirun or srun");
  std::vector<std::string> read = arguments.prompts;
  read.insert(read.end(), {arguments.prompt.ids, arguments.prompt.chat_file});
  refuse_standard_input(read);
  check_places(arguments, find_checkpoints(arguments.checkpoints).checkpoints);
  return inspect_once(arguments, &ranks);
}

}  // namespace statescope

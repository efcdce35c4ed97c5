#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <numeric>
#include <optional>

#include "app/assets.h"
#include "app/cli/commands.h"
#include "app/cli/job_place.h"
#include "app/common/console.h"
#include "app/common/interruption.h"
#include "app/eval/eval_job.h"
#include "app/eval/report.h"
#include "app/eval/scores_hdf5.h"
#include "app/ranks/packed.h"
#include "app/ranks/ranks.h"
#include "engine/error.h"
#include "engine/remote/wire.h"
#include "engine/run/not_finite.h"

namespace statescope {
namespace {

/// Over all cells of all checkpoints.
class Meter {
 public:
  explicit Meter(std::int64_t tokens) : all_(tokens) {}

  void show(std::int64_t tokens_of_cell) {
    of_cell_ = tokens_of_cell;
    bar_->show(std::min(static_cast<double>(planned_ + of_cell_) / static_cast<double>(all_), 1.0), fmt::format("{:.0f} tokens/s", rate()));
  }
  /// `planned`: what the cell counted for in the sum.
  void next_cell(std::int64_t planned) {
    planned_ += planned;
    read_ += of_cell_;
    of_cell_ = 0;
  }
  void finish() {
    bar_.reset();
    fmt::print(stderr, "{} tokens in {:.1f} s: {:.0f} tokens/s\n", read_, seconds(), rate());
  }

 private:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  double rate() const { return static_cast<double>(read_ + of_cell_) / seconds(); }

  std::optional<ProgressBar> bar_{std::in_place, "scoring"};
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::int64_t all_, planned_ = 0, read_ = 0, of_cell_ = 0;
};

std::vector<EvalCell> file_cells(const EvalArguments& arguments) {
  std::vector<EvalCell> cells;
  for (const std::string& file : arguments.prompts) {
    EvalCell& cell = cells.emplace_back(arguments.lists.base);
    cell.task.name = "file";
    cell.task.haystack = file;
  }
  return cells;
}

std::vector<EvalCell> wanted_cells(const EvalArguments& arguments, const std::filesystem::path& assets) {
  const EvalCell& base = arguments.lists.base;
  if (!arguments.grid.empty()) return read_cells(arguments.grid, base);
  if (!arguments.suite.empty()) return read_suite(assets / "tasks/scores.json", arguments.suite, base);
  if (!arguments.prompts.empty()) return file_cells(arguments);
  return cells_of(arguments.lists);
}

std::vector<PreparedCell> prepare_all(const EvalArguments& arguments) {
  const std::filesystem::path assets = assets_folder();
  std::vector<PreparedCell> prepared;
  for (const EvalCell& cell : wanted_cells(arguments, assets)) prepared.push_back(prepare(cell, assets));
  return prepared;
}

/// What is to be scored, and the model that was asked for last.
class Scoring {
 public:
  explicit Scoring(const EvalArguments& arguments)
      : names_(arguments.checkpoints),
        device_(arguments.device),
        memory_(static_cast<std::size_t>(arguments.memory) * 1'000'000),
        cells_(prepare_all(arguments)) {
    for (const std::string& name : names_) checkpoints_.push_back(open_checkpoint(checkpoint_at(name)));
  }

  const std::vector<std::string>& names() const { return names_; }
  const std::vector<PreparedCell>& cells() const { return cells_; }
  std::int64_t tokens() const {
    std::int64_t sum = 0;
    for (const PreparedCell& cell : cells_) sum += planned_tokens(cell) * std::ssize(checkpoints_);
    return sum;
  }

  CellScore score(std::size_t checkpoint, std::size_t cell, const std::function<bool(std::int64_t)>& tell) {
    load(checkpoint);
    CellScore score = score_cell(cells_[cell], *pool_, tokenizer_, tell);
    score.checkpoint = names_[checkpoint];
    score.notes = pool_->model().notes();
    return score;
  }

 private:
  void load(std::size_t checkpoint) {
    if (pool_ && loaded_ == checkpoint) return;
    pool_.reset();
    pool_.emplace(checkpoints_[checkpoint], device_, memory_);
    loaded_ = checkpoint;
    print_notes(pool_->model().notes());
    tokenizer_ = make_tokenizer(*checkpoints_[checkpoint], pool_->model().vocab());
  }

  std::vector<std::string> names_;
  DeviceChoice device_;
  std::size_t memory_;  // bytes
  std::vector<PreparedCell> cells_;
  std::vector<std::shared_ptr<const Checkpoint>> checkpoints_;
  std::optional<ScorerPool> pool_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::size_t loaded_ = 0;
};

struct AllScores {
  std::vector<CellScore> scores;
  std::vector<std::string> broken;  // checkpoints that compute no numbers: why they have no score

  /// No cell of it has a score.
  void add_broken(const std::string& name, std::span<const PreparedCell> cells, const std::string& why) {
    broken.push_back(why);
    for (const PreparedCell& cell : cells)
      scores.push_back({.checkpoint = name, .cell = cell.cell, .impossible = why, .task = {}, .text = {}});
  }
};

/// Throws NotFiniteError if no checkpoint has a score for that reason, OptionsError if no cell is possible.
void refuse_none(const AllScores& all, std::size_t checkpoints) {
  const auto has_score = [](const CellScore& score) { return score.impossible.empty(); };
  if (all.broken.empty() && std::ranges::none_of(all.scores, has_score)) throw OptionsError(all.scores.front().impossible);
  if (all.broken.size() == checkpoints) throw NotFiniteError(fmt::format("{}", fmt::join(all.broken, "; ")));
}

AllScores score_here(Scoring& scoring) {
  AllScores all;
  Meter meter(scoring.tokens());
  for (std::size_t i = 0; i < scoring.names().size(); ++i) {
    std::vector<CellScore> scores;
    try {
      for (std::size_t cell = 0; cell < scoring.cells().size(); ++cell) {
        scores.push_back(scoring.score(i, cell, [&](std::int64_t tokens) {
          meter.show(tokens);
          return !Interruption::asked();
        }));
        meter.next_cell(planned_tokens(scoring.cells()[cell]));
      }
    } catch (const NotFiniteError& why) {
      all.add_broken(scoring.names()[i], scoring.cells(), why.what());
      continue;
    }
    std::ranges::move(scores, std::back_inserter(all.scores));
  }
  refuse_none(all, scoring.names().size());
  meter.finish();
  return all;
}

/// All cells of a checkpoint at a time.
AllScores score_there(JobPlace& place, const EvalArguments& arguments) {
  const std::vector<PreparedCell> cells = prepare_all(arguments);
  const EvalJob job = eval_job(cells);
  const auto count = static_cast<double>(arguments.checkpoints.size());
  AllScores all;
  std::optional<ProgressBar> bar(std::in_place, "scoring");
  for (std::size_t i = 0; i < arguments.checkpoints.size(); ++i) {
    const std::string& name = arguments.checkpoints[i];
    std::vector<CellOutcome> outcomes = place.done(name, job, [&](double part, const std::string&) {
      bar->show((static_cast<double>(i) + part) / count, name);
      return !Interruption::asked();
    });
    if (!outcomes.empty()) print_notes(outcomes.front().score.notes);
    const auto broken = std::ranges::find_if(outcomes, [](const CellOutcome& outcome) { return outcome.not_finite.has_value(); });
    if (broken != outcomes.end()) {
      all.add_broken(name, cells, *broken->not_finite);
      continue;
    }
    if (outcomes.size() != cells.size()) throw Error(name + ": the engine has not scored what it was asked to");
    for (std::size_t cell = 0; cell < cells.size(); ++cell) {
      CellScore& score = all.scores.emplace_back(std::move(outcomes[cell].score));
      score.checkpoint = name;
      score.cell = cells[cell].cell;
    }
  }
  bar.reset();
  refuse_none(all, arguments.checkpoints.size());
  return all;
}

/// A cell of a checkpoint each.
AllScores score_on(Ranks& ranks, const Scoring& scoring) {
  const std::size_t cells = scoring.cells().size();
  std::vector<std::string> jobs;
  for (std::size_t job = 0; job < scoring.names().size() * cells; ++job) jobs.push_back(packed(std::uint64_t{job}));
  Meter meter(scoring.tokens());
  std::vector<std::int64_t> under_way(jobs.size());
  const auto progress = [&](std::size_t job, double tokens, const std::string* result) {
    if (!result) under_way[job] = static_cast<std::int64_t>(tokens);
    meter.show(std::accumulate(under_way.begin(), under_way.end(), std::int64_t{0}));
    return true;
  };
  const std::vector<std::string> results = ranks.run(jobs, progress);
  meter.next_cell(scoring.tokens());
  AllScores all;
  for (std::size_t i = 0; i < scoring.names().size(); ++i) {
    std::vector<CellScore> scores;
    std::optional<std::string> broken;
    for (std::size_t cell = 0; cell < cells && !broken; ++cell) {
      CellOutcome outcome = remote::unpack<CellOutcome>(results[i * cells + cell]);
      broken = outcome.not_finite;
      scores.push_back(std::move(outcome.score));
      scores.back().checkpoint = scoring.names()[i];
      scores.back().cell = scoring.cells()[cell].cell;
    }
    if (!scores.empty()) print_notes(scores.front().notes);
    if (broken)
      all.add_broken(scoring.names()[i], scoring.cells(), *broken);
    else
      std::ranges::move(scores, std::back_inserter(all.scores));
  }
  refuse_none(all, scoring.names().size());
  meter.finish();
  return all;
}

/// What another process does for it; `scoring` comes with the first job.
std::string score_for(std::optional<Scoring>& scoring, const EvalArguments& arguments, const std::string& job,
                      const std::function<void(double)>& tell) {
  if (!scoring) scoring.emplace(arguments);
  const auto number = static_cast<std::size_t>(unpacked<std::uint64_t>(job));
  const std::size_t cells = scoring->cells().size();
  CellOutcome outcome;
  try {
    outcome.score =
        scoring->score(number / cells, number % cells, [&](std::int64_t tokens) { return tell(static_cast<double>(tokens)), true; });
  } catch (const NotFiniteError& why) {
    outcome.not_finite = why.what();
  }
  return remote::pack(outcome);
}

/// With processes that it is spread over, or none; or on an engine.
int eval_once(const EvalArguments& arguments, Ranks* ranks) {
  std::optional<Interruption> interruption;  // before the first draft, whose own handler ends the program without a word
  if (arguments.engine.place.empty()) interruption.emplace();
  ReportFile json_file(arguments.json, arguments.force), csv_file(arguments.csv, arguments.force);
  if (arguments.hdf5 == "-") throw OptionsError("--hdf5 writes a file, not to standard output");
  { const ReportFile says_what_is_in_the_way(arguments.hdf5, arguments.force); }
  std::optional<JobPlace> there;
  if (!interruption) there.emplace(arguments.device, arguments.engine, arguments.memory);
  AllScores all;
  try {
    if (there) {
      all = score_there(*there, arguments);
    } else {
      Scoring scoring(arguments);
      all = ranks ? score_on(*ranks, scoring) : score_here(scoring);
    }
  } catch (const Error&) {
    if (Interruption::asked()) throw Error("interrupted; no scores were written");
    throw;
  }
  print_report(eval_table(all.scores), {&json_file, &csv_file});
  json_file.write(eval_json(all.scores));
  csv_file.write(eval_csv(all.scores));
  if (!arguments.hdf5.empty()) write_scores_hdf5(all.scores, arguments.hdf5, arguments.force);
  for (const std::string& why : all.broken) print_failure(why);
  return all.broken.empty() ? 0 : 1;
}

}  // namespace

int eval_command(const EvalArguments& arguments) {
  const std::optional<RankPlace> place = rank_place();
  if (place && !arguments.engine.place.empty()) throw OptionsError("--engine does not go with mpirun or srun; start one process");
  if (!place) return eval_once(arguments, nullptr);
  EvalArguments own = arguments;
  own.device = device_of_rank(arguments.device, *place, visible_gpus());
  std::optional<Scoring> scoring;
  Ranks ranks(*place, [&](const std::string& job, const auto& tell) { return score_for(scoring, own, job, tell); });
  if (!place->is_first()) return ranks.follow(), 0;
  refuse_standard_input(arguments.prompts);
  return eval_once(arguments, &ranks);
}

}  // namespace statescope

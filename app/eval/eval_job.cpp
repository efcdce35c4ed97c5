#include "app/eval/eval_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "app/assets.h"
#include "engine/error.h"
#include "engine/run/not_finite.h"

namespace statescope {
namespace {

/// Whether its text comes with the program.
bool is_own(const TaskOptions& task) {
  return task.name != "file" && (task.haystack == "prose" || (task.haystack == "filler" && task.name != "text"));
}

PreparedCell prepared(const AskedCell& asked) {
  constexpr std::int64_t most_samples = 10'000'000, longest = 100'000'000, longest_reply = 10'000;
  const EvalCell& cell = asked.cell;
  const bool fits = cell.samples >= 1 && cell.samples <= most_samples && cell.task.length >= 1 && cell.task.length <= longest &&
                    cell.reply.value_or(1) >= 1 && cell.reply.value_or(1) <= longest_reply;
  if (!fits) throw Error("there is no such evaluation");
  const bool has_text = cell.task.name == "text" && !is_own(cell.task);
  const bool has_file = cell.task.name == "file" && !asked.prompts.empty();
  if (!has_text && !has_file && !is_own(cell.task)) throw Error("no texts but those of the program are read here");
  if (has_text) return prepare_text(cell, asked.text);
  return has_file ? prepare_prompts(cell, asked.prompts) : prepare(cell, assets_folder());
}

}  // namespace

std::int64_t planned_tokens(const PreparedCell& cell) {
  constexpr std::size_t bytes_of_token = 4;
  std::size_t tokens = 1;
  for (const Prompt& prompt : std::span(cell.prompts).first(cell.prompts.empty() ? 0 : static_cast<std::size_t>(cell.samples())))
    tokens += prompt.ids.size() + prompt.text.size() / bytes_of_token;
  return cell.prompts.empty() ? cell.samples() * cell.cell.task.length : static_cast<std::int64_t>(tokens);
}

EvalJob eval_job(const std::vector<PreparedCell>& cells) {
  EvalJob job;
  for (const PreparedCell& prepared : cells) {
    const TaskOptions& task = prepared.cell.task;
    const bool is_text = task.name == "text" && !is_own(task);
    if (!is_text && task.name != "file" && !is_own(task))
      throw OptionsError(fmt::format("--haystack {} does not go with --engine: start the command on the engine's machine", task.haystack));
    job.cells.push_back({prepared.cell, is_text ? prepared.text : "", prepared.prompts});
  }
  return job;
}

std::vector<CellOutcome> do_job(const EvalJob& job, const JobSite& site) {
  std::vector<PreparedCell> cells;
  for (const AskedCell& asked : job.cells) cells.push_back(prepared(asked));
  double all = 0, done = 0;
  for (const PreparedCell& cell : cells) all += static_cast<double>(planned_tokens(cell));
  const auto checkpoint = open_checkpoint(site.path);
  ScorerPool pool(checkpoint, site.device, site.memory);
  const std::shared_ptr<const Tokenizer> tokenizer = make_tokenizer(*checkpoint, pool.model().vocab());
  std::vector<CellOutcome> outcomes;
  for (const PreparedCell& cell : cells) {
    CellOutcome& outcome = outcomes.emplace_back();
    try {
      outcome.score = score_cell(cell, pool, tokenizer, [&](std::int64_t tokens) {
        return site.goes_on(std::min((done + static_cast<double>(tokens)) / all, 1.0), cell.cell.task.name);
      });
    } catch (const NotFiniteError& why) {
      outcome.not_finite = why.what();
      break;
    }
    outcome.score.notes = pool.model().notes();
    done += static_cast<double>(planned_tokens(cell));
  }
  return outcomes;
}

}  // namespace statescope

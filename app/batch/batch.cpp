#include "app/batch/batch.h"

#include <fmt/format.h>

#include <QProcess>
#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <thread>

#include "app/figure/spec.h"
#include "engine/error.h"

namespace statescope {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_jobs = 100'000;

/// A list whose only member, where it is empty, is what the specs say.
std::vector<std::string> choices(const std::vector<std::string>& list) { return list.empty() ? std::vector<std::string>{""} : list; }

std::string stem(const std::string& file) { return fs::path(file).stem().string(); }

std::string found_checkpoint(const std::string& name, const fs::path& folder, bool elsewhere) {
  return elsewhere ? name : fs::absolute(figure_file(name, folder, "checkpoints")).string();
}

/// With files found from here, not from where the spec lies: the process that reads it knows no folder.
FigureSpec resolved(FigureSpec spec, const fs::path& folder, bool elsewhere) {
  for (FigurePanel& panel : spec.panels) {
    for (std::string& name : panel.checkpoints) name = found_checkpoint(name, folder, elsewhere);
    for (std::string& name : panel.data) name = fs::absolute(figure_file(name, folder, "scores")).string();
    if (!panel.prompt.empty()) panel.prompt = fs::absolute(figure_file(panel.prompt, folder, "prompts")).string();
  }
  return spec;
}

FigureSpec with(FigureSpec spec, const std::string& checkpoint, const std::string& prompt, const fs::path& folder, bool elsewhere) {
  for (FigurePanel& panel : spec.panels) {
    if (panel.view.empty()) continue;
    if (!checkpoint.empty()) panel.checkpoints.front() = found_checkpoint(checkpoint, folder, elsewhere);
    if (prompt.empty()) continue;
    panel.input.reset();
    panel.prompt = fs::absolute(figure_file(prompt, folder, "prompts")).string();
  }
  return spec;
}

/// Why it failed; nothing where the figure is there.
std::optional<std::string> run_job(const BatchJob& job, const std::string& program, const std::vector<std::string>& options, bool replace) {
  QStringList arguments{"figure", "--spec", "-", "--output", QString::fromStdString(job.output.string())};
  if (replace) arguments += "--force";
  for (const std::string& option : options) arguments += QString::fromStdString(option);
  QProcess process;
  process.setStandardOutputFile(QProcess::nullDevice());
  process.start(QString::fromStdString(program), arguments);
  process.write(job.spec.data(), static_cast<qint64>(job.spec.size()));
  process.closeWriteChannel();
  if (!process.waitForFinished(-1)) return process.errorString().toStdString();
  if (process.exitStatus() == QProcess::NormalExit && process.exitCode() == 0) return {};
  const QStringList said = QString::fromUtf8(process.readAllStandardError()).trimmed().split('\n');
  return said.last().isEmpty() ? fmt::format("ended with {}", process.exitCode()) : said.last().toStdString();
}

}  // namespace

std::vector<BatchJob> jobs_of(const Batch& batch, const fs::path& folder, bool elsewhere) {
  const std::vector<std::string> checkpoints = choices(batch.checkpoints), prompts = choices(batch.prompts);
  if (batch.figures.size() * checkpoints.size() * prompts.size() > most_jobs)
    throw Error(fmt::format("a batch has at most {} figures", most_jobs));
  std::vector<BatchJob> jobs;
  std::set<fs::path> outputs;
  for (const std::string& figure : batch.figures) {
    const fs::path file = figure_file(figure, folder, "figures");
    const FigureSpec spec = resolved(load_figure_spec(file), file.parent_path(), elsewhere);
    for (const std::string& checkpoint : checkpoints) {
      for (const std::string& prompt : prompts) {
        std::string name = stem(figure);
        if (!checkpoint.empty()) name += "-" + stem(checkpoint);
        if (!prompt.empty()) name += "-" + stem(prompt);
        const fs::path output = folder / batch.output / (name + "." + batch.format);
        if (!outputs.insert(output).second) throw Error(output.string() + " would be written twice: two files of a list have one name");
        jobs.push_back({to_json(with(spec, checkpoint, prompt, folder, elsewhere)), output});
      }
    }
  }
  return jobs;
}

BatchOutcome make_figure(const BatchJob& job, const std::string& program, const std::vector<std::string>& options, bool replace) {
  if (!replace && fs::exists(job.output)) return {.was_there = true};
  const std::optional<std::string> failed = run_job(job, program, options, replace);
  if (failed && !replace && fs::exists(job.output)) return {.was_there = true};  // another batch has made it meanwhile
  return {.failed = failed.value_or("")};
}

BatchResult sum_of(const std::vector<BatchJob>& jobs, const std::vector<std::optional<BatchOutcome>>& outcomes) {
  BatchResult result;
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    const std::optional<BatchOutcome>& outcome = outcomes[job];
    if (!outcome)
      result.cancelled = true;
    else if (outcome->was_there)
      ++result.there;
    else if (outcome->failed.empty())
      ++result.made;
    else
      result.failed.push_back(jobs[job].output.string() + ": " + outcome->failed);
  }
  return result;
}

BatchResult run_batch(const std::vector<BatchJob>& jobs, const std::string& program, const std::vector<std::string>& options, int processes,
                      bool replace, const std::function<bool(std::size_t done)>& progress) {
  std::vector<std::optional<BatchOutcome>> outcomes(jobs.size());
  std::atomic<std::size_t> next = 0, done = 0;
  std::atomic<bool> going = true;
  const auto work = [&] {
    for (std::size_t job = next++; job < jobs.size() && going; job = next++) {
      outcomes[job] = make_figure(jobs[job], program, options, replace);
      if (!progress(++done)) going = false;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < processes; ++i) threads.emplace_back(work);
  }
  return sum_of(jobs, outcomes);
}

}  // namespace statescope

#include "app/pages/training_watch.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <tbb/task_arena.h>
#include <unistd.h>

#include <QCoreApplication>
#include <algorithm>
#include <chrono>

#include "app/inspect/figures.h"
#include "app/inspect/window_command.h"
#include "engine/error.h"

namespace statescope {
namespace {

constexpr int niceness = 10;         // stepping through the run stays smooth
constexpr double first_every = 0.5;  // seconds between the first two looks
constexpr double least_part = 0.01;  // of progress that is told

/// The watch was stopped while a checkpoint was read; no Error, so that the checkpoint does not count as one that cannot be read.
struct Stopped {};

std::string told_of(const Inspected& inspected) {
  if (!inspected.judgement.cannot_say.empty()) return "Cannot say: " + inspected.judgement.cannot_say + ".";
  std::string told;
  for (const Diagnosis& found : inspected.judgement.diagnoses)
    told += fmt::format("{}{}: {}", told.empty() ? "" : "\n", row_of(found.illness).name, found.sentence);
  return told.empty() ? fmt::format("None of {} illnesses was found.", illnesses().size()) : told;
}

}  // namespace

const std::array<TrendRow, trends>& trend_rows() {
  static constexpr std::array<TrendRow, trends> rows{{
      {QT_TRANSLATE_NOOP("statescope::TrainingPage", "Perplexity"),
       QT_TRANSLATE_NOOP("statescope::TrainingPage", "exp of the mean −ln p of the next token in the last eighth of the longest prompts"),
       "{:.3g}"},
      {QT_TRANSLATE_NOOP("statescope::TrainingPage", "Relative rank"),
       QT_TRANSLATE_NOOP("statescope::TrainingPage",
                         "effective rank of the states over the largest possible, of the layer where it is lowest"),
       "{:.2f}"},
      {QT_TRANSLATE_NOOP("statescope::TrainingPage", "Load entropy"),
       QT_TRANSLATE_NOOP("statescope::TrainingPage",
                         "1: all partitions are chosen equally often, 0: one alone is; of the layer where it is lowest"),
       "{:.2f}"},
      {QT_TRANSLATE_NOOP("statescope::TrainingPage", "Norm growth"),
       QT_TRANSLATE_NOOP("statescope::TrainingPage",
                         "the state's norm at the end of a prompt over that in its middle, of the layer where it is highest"),
       "{:.2f}"},
  }};
  return rows;
}

TrainingStep training_step(const Inspected& inspected) {
  const InspectionOverview one(inspected);
  TrainingStep step{.path = inspected.checkpoint,
                    .name = one.name,
                    .series = one.series,
                    .steps = one.steps,
                    .verdict = one.verdict,
                    .told = told_of(inspected),
                    .ill = inspected.is_ill()};
  if (step.ill) step.layer = seen_at(inspected, inspected.judgement.diagnoses.front()).place.layer;
  const auto longest = std::ranges::max_element(one.ends, {}, &InspectionOverview::End::tokens);
  step.values = {longest == one.ends.end() ? NAN : longest->perplexity, one.rank, one.spread, one.growth};
  return step;
}

TrainingWatch::TrainingWatch(Inspect inspect, std::optional<KeptResults> kept, double every, QObject* parent)
    : QObject(parent), inspect_(std::move(inspect)), kept_(std::move(kept)), every_(every) {}

TrainingWatch::~TrainingWatch() {
  if (shared_) shared_->stop = true;
}

/// On the interface thread, as long as this lives.
void TrainingWatch::post(std::function<void()> work) { QMetaObject::invokeMethod(this, std::move(work), Qt::QueuedConnection); }

void TrainingWatch::start(const std::filesystem::path& folder) {
  folder_ = std::filesystem::absolute(folder).lexically_normal();
  watching_ = true;
  if (running_ && folder_ != read_folder_) shared_->stop = true;  // end() begins with the new one
  if (!running_) begin();
  Q_EMIT state_changed();
}

void TrainingWatch::begin() {
  if (!shared_ || read_folder_ != folder_) {
    steps_.clear();
    Q_EMIT steps_changed();
    shared_ = std::make_shared<Shared>();
    const auto inspect = [this, shared = shared_.get()](const FoundCheckpoint& found) {
      publish(*shared);
      double told = -1;
      const QString name = QString::fromStdString(std::filesystem::path(found.path).filename().string());
      const auto tell = [&](double part) {
        if (part >= told + least_part || told < 0) post([this, name, part] { Q_EMIT progressed(name, part); });
        if (part >= told + least_part) told = part;
        return !shared->stop;
      };
      tell(0);
      try {
        return inspect_(found, tell);
      } catch (const Error&) {
        if (shared->stop) throw Stopped();
        throw;
      }
    };
    shared_->watch = std::make_unique<Watch>(inspect, kept_);
    read_folder_ = folder_;
  }
  shared_->stop = false;
  running_ = true;
  thread_ = std::jthread([this, shared = shared_, folder = folder_] { run(shared, folder); });
}

void TrainingWatch::stop() {
  if (!watching_) return;
  watching_ = false;
  shared_->stop = true;
  Q_EMIT state_changed();
}

/// The thread has ended.
void TrainingWatch::end() {
  thread_.join();
  running_ = false;
  if (watching_) begin();
}

void TrainingWatch::publish(const Shared& shared) {
  std::vector<TrainingStep> steps;
  for (const Inspected& inspected : shared.watch->results()) steps.push_back(training_step(inspected));
  post([this, steps = std::move(steps), from = &shared] {
    if (from != shared_.get()) return;
    steps_ = steps;
    Q_EMIT steps_changed();
  });
}

void TrainingWatch::look(Shared& shared, const std::filesystem::path& folder) {
  std::string why;
  try {
    const Watch::Look look = shared.watch->look({folder.string()});
    for (const std::string& skipped_one : look.skipped)
      post([this, words = QString::fromStdString(skipped_one)] { Q_EMIT skipped(words); });
    if (look.changed) publish(shared);
  } catch (const std::filesystem::filesystem_error& error) {
    why = error.path1().string() + ": " + error.code().message();
  } catch (const std::exception& error) {
    why = folder.string() + ": " + error.what();
  }
  if (!why.empty()) post([this, words = QString::fromStdString(why)] { Q_EMIT skipped(words); });
}

void TrainingWatch::run(const std::shared_ptr<Shared>& shared, const std::filesystem::path& folder) {
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), niceness);
  constexpr std::chrono::milliseconds piece(50);
  tbb::task_arena alone(1);  // the other cores are for the run
  try {
    for (double every = first_every; !shared->stop; every = every_) {
      alone.execute([&] { look(*shared, folder); });
      if (!shared->stop) post([this] { Q_EMIT rested(); });
      const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(every);
      while (!shared->stop && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(piece);
    }
  } catch (const Stopped&) {
    // What was read before it stands.
  }
  post([this] { end(); });
}

}  // namespace statescope

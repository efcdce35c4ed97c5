#include "app/eval/needle_grid.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <tbb/task_arena.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "app/eval/own_task.h"
#include "app/eval/score.h"
#include "engine/error.h"

namespace statescope {
namespace {

constexpr auto kTellEvery = std::chrono::milliseconds(100);
constexpr std::size_t kKept = 32;  // grids

TaskOptions task_of(std::int64_t needles, std::int64_t length, int depth, const std::string& haystack) {
  TaskOptions task;
  task.needles = needles;
  task.length = length;
  task.depth_percent = depth;
  task.haystack = haystack;
  return task;
}

/// A model that reads bytes was trained on prose, one that reads words on the words of the templates.
std::string haystack_for(const Tokenizer& tokenizer) {
  try {
    return tokenizer.encode("a b").ids.size() == 3 ? "prose" : "filler";
  } catch (const Error&) {
    return "filler";
  }
}

const std::filesystem::path& path_of(const Model& model) { return model.checkpoint().path; }

/// A checkpoint with what reads its prompts.
struct Reader {
  Scorer scorer;
  std::unique_ptr<const Tokenizer> tokenizer;

  Reader(const Model& model, const DeviceChoice& device)
      : scorer(model.beside(device_of(model, device))), tokenizer(make_tokenizer(model.checkpoint(), model.vocab())) {}

 private:
  static std::shared_ptr<Backend> device_of(const Model& model, const DeviceChoice& device) {
    return model.backend().has_own_memory() ? open_cuda_device(device) : std::shared_ptr<Backend>(make_cpu_backend(0, device.precision));
  }
};

/// A grid as far as it is known.
struct Work {
  std::filesystem::path checkpoint;
  NeedleGridQuestion question;
  std::vector<PreparedCell> cells;  // [depths, lengths]; none before the first prompt
  NeedleGrid grid;
  std::int64_t next = 0;  // prompt · cells + cell
  std::string refused;

  std::int64_t count() const { return std::ssize(question.lengths) * std::ssize(question.depths); }
  bool is_done() const { return !refused.empty() || next == count() * question.samples; }

  Finding finding() const {
    if (!refused.empty()) return {nullptr, refused, 1};
    const double progress = static_cast<double>(next) / static_cast<double>(count() * question.samples);
    return {std::make_shared<const NeedleGrid>(grid), {}, progress};
  }
};

void prepare_cells(Work& work, const Reader& reader, const std::filesystem::path& assets) {
  work.grid.haystack = haystack_for(*reader.tokenizer);
  for (const int depth : work.question.depths) {
    for (const std::int64_t length : work.question.lengths) {
      const EvalCell cell{task_of(work.question.needles, length, depth, work.grid.haystack), work.question.samples};
      work.cells.push_back(prepare(cell, assets));
      work.grid.cells.push_back({.failures = {}, .impossible = work.cells.back().impossible});
      if (work.cells.back().task) work.grid.unit = work.cells.back().task->unit();
    }
  }
}

/// Reads the next prompt, of the cell whose turn it is.
void read_next(Work& work, Reader& reader, const std::stop_token& stop) {
  const auto place = static_cast<std::size_t>(work.next % work.count());
  const std::int64_t index = work.next / work.count();
  NeedleGrid::Cell& cell = work.grid.cells[place];
  if (cell.impossible.empty()) {
    const ExampleTokens tokens = tokens_of(work.cells[place].task->example(index), *reader.tokenizer);
    const std::vector<TargetScore> scores = reader.scorer.score(tokens.sequence, stop);
    const auto wrong = std::ranges::find(scores, false, &TargetScore::right);
    ++cell.read;
    cell.right += wrong == scores.end();
    if (wrong != scores.end()) cell.failures.push_back({index, wrong - scores.begin()});
  }
  ++work.next;
}

}  // namespace

PromptInput prompt_of(const NeedleExample& example, const std::filesystem::path& assets) {
  const auto task = make_task(task_of(example.needles, example.length, example.depth, example.haystack), assets);
  return prompt_of(task->example(example.index));
}

class NeedleGridReader::Worker {
 public:
  Worker(std::filesystem::path assets, DeviceChoice device, int niceness)
      : assets_(std::move(assets)), device_(std::move(device)), niceness_(niceness), thread_([this] { run(); }) {}

  ~Worker() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      stop_.request_stop();
    }
    wake_.notify_one();
    thread_.join();
  }

  void ask(int asker, std::shared_ptr<const Model> model, std::vector<NeedleGridQuestion> questions, Tell tell) {
    const std::lock_guard lock(mutex_);
    askers_.erase(asker);
    if (!questions.empty()) askers_[asker] = {std::move(model), std::move(questions), std::move(tell)};
    if (current_ && !is_wanted(*current_)) stop_.request_stop();
    wake_.notify_one();
  }

 private:
  struct Asker {
    std::shared_ptr<const Model> model;
    std::vector<NeedleGridQuestion> questions;  // not answered yet
    Tell tell;
  };
  struct Job {
    std::shared_ptr<const Model> model;
    NeedleGridQuestion question;
  };

  void run() {
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), niceness_);
    tbb::task_arena alone(1);  // the other cores are for the run
    while (const std::optional<Job> job = next()) alone.execute([&] { serve(*job); });
  }

  std::optional<Job> next() {
    std::unique_lock lock(mutex_);
    current_.reset();
    wake_.wait(lock, [&] { return stopping_ || !askers_.empty(); });
    if (stopping_) return {};
    const Asker& asker = askers_.begin()->second;
    stop_ = std::stop_source();
    current_ = Job{asker.model, asker.questions.front()};
    return current_;
  }

  bool is_wanted(const Job& job) const {
    return std::ranges::any_of(askers_, [&](const auto& each) { return asks(each.second, job); });
  }

  static bool asks(const Asker& asker, const Job& job) {
    return path_of(*asker.model) == path_of(*job.model) && std::ranges::count(asker.questions, job.question) > 0;
  }

  /// Until it is done or nobody waits for it any more.
  void serve(const Job& job) {
    Work& work = work_of(job);
    std::optional<Reader> reader;
    auto told = std::chrono::steady_clock::now();
    while (!work.is_done() && !stop_.stop_requested()) {
      try {
        if (!reader) reader.emplace(*job.model, device_);
        if (work.cells.empty()) prepare_cells(work, *reader, assets_);
        read_next(work, *reader, stop_.get_token());
      } catch (const std::bad_alloc&) {
        work.refused = "out of memory";
      } catch (const std::exception& error) {
        if (stop_.stop_requested()) return;
        work.refused = error.what();
      }
      const auto now = std::chrono::steady_clock::now();
      if (now - told < kTellEvery && !work.is_done()) continue;
      told = now;
      tell(job, work);
    }
    if (work.is_done()) tell(job, work);
  }

  /// Those asked for last are kept.
  Work& work_of(const Job& job) {
    const auto known = std::ranges::find_if(
        kept_, [&](const Work& work) { return work.checkpoint == path_of(*job.model) && work.question == job.question; });
    if (known != kept_.end()) {
      kept_.splice(kept_.end(), kept_, known);
    } else {
      kept_.push_back({.checkpoint = path_of(*job.model), .question = job.question, .cells = {}, .grid = {}, .refused = {}});
      if (kept_.size() > kKept) kept_.pop_front();
    }
    return kept_.back();
  }

  void tell(const Job& job, const Work& work) {
    const std::lock_guard lock(mutex_);
    for (auto asker = askers_.begin(); asker != askers_.end();) {
      auto& [model, questions, hear] = asker->second;
      if (asks(asker->second, job)) {
        hear(job.question, work.finding());
        if (work.is_done()) std::erase(questions, job.question);
      }
      asker = questions.empty() ? askers_.erase(asker) : std::next(asker);
    }
  }

  const std::filesystem::path assets_;
  const DeviceChoice device_;
  const int niceness_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<int, Asker> askers_;  // under the mutex, as all until the next blank line
  std::optional<Job> current_;
  std::stop_source stop_;  // of the job being served
  bool stopping_ = false;

  std::list<Work> kept_;  // of the reader's thread alone

  std::thread thread_;  // last: starts when all else stands
};

NeedleGridReader::NeedleGridReader(std::filesystem::path assets, DeviceChoice device, int niceness)
    : worker_(std::make_unique<Worker>(std::move(assets), std::move(device), niceness)) {}
NeedleGridReader::~NeedleGridReader() = default;

void NeedleGridReader::ask(int asker, std::shared_ptr<const Model> model, std::vector<NeedleGridQuestion> questions, Tell tell) {
  worker_->ask(asker, std::move(model), std::move(questions), std::move(tell));
}

}  // namespace statescope

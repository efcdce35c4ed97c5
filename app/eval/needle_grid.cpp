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

#include "app/common/own_task.h"
#include "app/eval/replies.h"
#include "app/eval/text_task.h"
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
std::string haystack_for(const Tokenizer& tokenizer) { return tokenizer.info().kind == "bytes" ? "prose" : "filler"; }

const std::filesystem::path& path_of(const Model& model) { return model.checkpoint().path; }

/// How a model is given needles: words of the templates, bytes of prose, or real text, in its chat form if it has one.
struct Form {
  std::shared_ptr<const Tokenizer> tokenizer;
  bool real_text = false;
  ChatForm chat;  // of real text

  Form(const std::filesystem::path& checkpoint, std::shared_ptr<const Tokenizer> tokenizer_)
      : tokenizer(std::move(tokenizer_)), real_text(tokenizer && reads_real_text(*tokenizer)) {
    if (real_text) chat = chat_form(checkpoint);
  }
  std::unique_ptr<const Task> task(const TaskOptions& options, const std::filesystem::path& assets) const {
    return real_text ? make_text_task(options, tokenizer, assets, chat) : make_task(options, assets);
  }
  AskedPrompt asked(const Example& example) const { return asked_of(example, *tokenizer, encoding_of(chat)); }
};

/// A checkpoint with what reads its prompts.
struct Reader {
  Scorer scorer;
  Form form;
  ReplyScorer by_reply;

  Reader(const Model& model, const std::shared_ptr<const Tokenizer>& tokenizer, const DeviceChoice& device)
      : scorer(model.beside(device_of(model, device))), form(path_of(model), tokenizer), by_reply(model.checkpoint(), tokenizer, {}) {}

 private:
  static std::shared_ptr<Backend> device_of(const Model& model, const DeviceChoice& device) {
    return model.backend().has_own_memory() ? open_cuda_device(device) : std::shared_ptr<Backend>(make_cpu_backend(0, device.precision));
  }
};

struct GridCell {
  std::unique_ptr<const Task> task;
  std::string impossible;  // why there are no such prompts
};

/// A grid as far as it is known.
struct Work {
  std::filesystem::path checkpoint;
  NeedleGridQuestion question;
  std::vector<GridCell> cells;  // [depths, lengths]; none before the first prompt
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

GridCell make_cell(const TaskOptions& options, const Form& form, const std::filesystem::path& assets) {
  GridCell cell;
  try {
    cell.task = form.task(options, assets);
    cell.task->example(0);
  } catch (const OptionsError& why) {
    cell.impossible = why.what();
  }
  return cell;
}

void prepare_cells(Work& work, const Form& form, const std::filesystem::path& assets) {
  work.grid.haystack = haystack_for(*form.tokenizer);
  work.grid.by_reply = form.real_text;
  for (const int depth : work.question.depths) {
    for (const std::int64_t length : work.question.lengths) {
      const GridCell& cell =
          work.cells.emplace_back(make_cell(task_of(work.question.needles, length, depth, work.grid.haystack), form, assets));
      work.grid.cells.push_back({.failures = {}, .impossible = cell.impossible});
      if (cell.task) work.grid.unit = cell.task->unit();
    }
  }
}

/// Where in the answer the example fails.
std::optional<std::int64_t> failed_place(const Example& example, Reader& reader, const std::stop_token& stop) {
  if (reader.form.real_text) {
    const ReplyHits found = reader.by_reply.score(reader.scorer.model_ptr(), reader.form.asked(example), stop).found;
    return found.hits < found.answers ? std::optional<std::int64_t>(0) : std::nullopt;
  }
  const std::vector<TargetScore> scores = reader.scorer.score(tokens_of(example, *reader.form.tokenizer).sequence, stop);
  const auto wrong = std::ranges::find(scores, false, &TargetScore::right);
  return wrong == scores.end() ? std::nullopt : std::optional<std::int64_t>(wrong - scores.begin());
}

/// Reads the next prompt, of the cell whose turn it is.
void read_next(Work& work, Reader& reader, const std::stop_token& stop) {
  const auto place = static_cast<std::size_t>(work.next % work.count());
  const std::int64_t index = work.next / work.count();
  NeedleGrid::Cell& cell = work.grid.cells[place];
  if (cell.impossible.empty()) {
    const std::optional<std::int64_t> failed = failed_place(work.cells[place].task->example(index), reader, stop);
    ++cell.read;
    cell.right += failed ? 0 : 1;
    if (failed) cell.failures.push_back({index, *failed});
  }
  ++work.next;
}

}  // namespace

PromptInput prompt_of(const NeedleExample& example, const std::filesystem::path& checkpoint,
                      const std::shared_ptr<const Tokenizer>& tokenizer, const std::filesystem::path& assets) {
  const Form form(checkpoint, tokenizer);
  const std::string haystack = !example.haystack.empty() ? example.haystack : tokenizer ? haystack_for(*tokenizer) : "filler";
  const auto task = form.task(task_of(example.needles, example.length, example.depth, haystack), assets);
  const Example drawn = task->example(example.index);
  if (!form.real_text) return prompt_of(drawn);
  PromptInput prompt = text_prompt_of(drawn, static_cast<bool>(form.chat));
  prompt.generate = most_tokens(form.asked(drawn), *tokenizer);
  return prompt;
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

  void ask(int asker, Subject subject, std::vector<NeedleGridQuestion> questions, Tell tell) {
    const std::lock_guard lock(mutex_);
    askers_.erase(asker);
    if (!questions.empty()) askers_[asker] = {std::move(subject), std::move(questions), std::move(tell)};
    if (current_ && !is_wanted(*current_)) stop_.request_stop();
    wake_.notify_one();
  }

 private:
  struct Asker {
    Subject subject;
    std::vector<NeedleGridQuestion> questions;  // not answered yet
    Tell tell;
  };
  struct Job {
    Subject subject;
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
    current_ = Job{asker.subject, asker.questions.front()};
    return current_;
  }

  bool is_wanted(const Job& job) const {
    return std::ranges::any_of(askers_, [&](const auto& each) { return asks(each.second, job); });
  }

  static bool asks(const Asker& asker, const Job& job) {
    return path_of(*asker.subject.model) == path_of(*job.subject.model) && std::ranges::count(asker.questions, job.question) > 0;
  }

  /// Until it is done or nobody waits for it any more.
  void serve(const Job& job) {
    Work& work = work_of(job);
    std::optional<Reader> reader;
    auto told = std::chrono::steady_clock::now();
    while (!work.is_done() && !stop_.stop_requested()) {
      try {
        if (!reader) reader.emplace(*job.subject.model, job.subject.tokenizer, device_);
        if (work.cells.empty()) prepare_cells(work, reader->form, assets_);
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
        kept_, [&](const Work& work) { return work.checkpoint == path_of(*job.subject.model) && work.question == job.question; });
    if (known != kept_.end()) {
      kept_.splice(kept_.end(), kept_, known);
    } else {
      kept_.push_back({.checkpoint = path_of(*job.subject.model), .question = job.question, .cells = {}, .grid = {}, .refused = {}});
      if (kept_.size() > kKept) kept_.pop_front();
    }
    return kept_.back();
  }

  void tell(const Job& job, const Work& work) {
    const std::lock_guard lock(mutex_);
    for (auto asker = askers_.begin(); asker != askers_.end();) {
      auto& [subject, questions, hear] = asker->second;
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

void NeedleGridReader::ask(int asker, Subject subject, std::vector<NeedleGridQuestion> questions, Tell tell) {
  worker_->ask(asker, std::move(subject), std::move(questions), std::move(tell));
}

}  // namespace statescope

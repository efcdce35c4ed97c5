#include "engine/run/session.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <variant>

#include "engine/checkpoint/digest.h"
#include "engine/error.h"
#include "engine/run/analyst.h"
#include "engine/run/fair_mutex.h"
#include "engine/run/reading_tree.h"
#include "engine/run/sampling.h"
#include "engine/run/session_file.h"
#include "kernels/device.h"

namespace statescope {
namespace {

struct Opening {
  std::filesystem::path checkpoint;  // empty: the open model reads another prompt
  PromptInput prompt;
};
struct Reopening {
  std::filesystem::path session;
};
struct Generating {
  std::int64_t tokens;  // of the whole run
};
struct Adding {
  PromptInput prompt;
};
struct Intervening {
  std::vector<Intervention> interventions;
};
struct GoingTo {
  std::int64_t branch;
};
enum class Step { undo, redo };
using Task = std::variant<Opening, Reopening, Generating, Adding, Intervening, GoingTo, Step>;

struct Request {
  Task task;
  Session::OpenCallbacks callbacks;
};

struct Saving {
  std::filesystem::path path;
  std::function<void()> saved;
  std::function<void(std::string)> failed;
};

struct Showing {
  std::shared_ptr<const RunInfo> run;  // null: of the branch that is shown
  std::int64_t layer, token;
  std::function<void(std::shared_ptr<const Snapshot>)> done;
};

/// What the exception being handled says of the device; one that says nothing of it is thrown on.
std::string device_failure() {
  try {
    throw;
  } catch (const DeviceError& error) {
    return error.what();
  } catch (const std::bad_alloc&) {
    return "the device is out of memory";
  }
}

}  // namespace

class Session::Worker {
 public:
  Worker(std::function<void(std::function<void()>)> post, OpenDevice open_device, DeviceChoice name, std::size_t memory)
      : post_(std::move(post)),
        open_device_(std::move(open_device)),
        device_name_(std::move(name)),
        budgets_{.memory_budget = memory, .host_memory_budget = memory},
        thread_([this] { work(); }) {}

  ~Worker() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      cancelled_ = true;
    }
    wake_.notify_one();
    thread_.join();
    *alive_ = false;  // closures still on their way to the interface thread do nothing
  }

  void request(Task task, OpenCallbacks callbacks) {
    const bool waits = std::holds_alternative<GoingTo>(task) || std::holds_alternative<Step>(task);
    const std::lock_guard lock(mutex_);
    if (!waits) give_up();
    requests_.push_back({std::move(task), std::move(callbacks)});
    wake_.notify_one();
  }

  void show(Showing showing) {
    const std::lock_guard lock(mutex_);
    (showing.run ? beside_ : showing_) = std::move(showing);
    wake_.notify_one();
  }

  void save(Saving saving) {
    const std::lock_guard lock(mutex_);
    saving_ = std::move(saving);
    wake_.notify_one();
  }

  void cancel() {
    const std::lock_guard lock(mutex_);
    give_up();
  }

  std::shared_ptr<const Model> model() const {
    const std::lock_guard lock(mutex_);
    return model_;
  }

  void ask(int asker, std::shared_ptr<const RunInfo> run, std::vector<Question> questions, std::function<void(Question, Finding)> tell,
           bool beside) {
    Analyst& analyst = beside ? analyst_beside_ : analyst_;
    analyst.ask(asker, std::move(run), std::move(questions),
                [this, tell = std::move(tell)](const Question& question, Finding finding) { answer(tell, question, std::move(finding)); });
  }

 private:
  struct Loaded {
    std::shared_ptr<Model> model;
    std::shared_ptr<const Tokenizer> tokenizer;
  };

  /// Calls `callback` on the interface thread, unless the session has ended by then.
  template <class Callback, class... Values>
  void answer(const Callback& callback, Values... values) {
    if (!callback) return;
    post_([alive = alive_, callback, values...] {
      if (*alive) callback(values...);
    });
  }

  /// What waits, and what is under way. Under the mutex.
  void give_up() {
    for (const Request& request : requests_) answer(request.callbacks.failed, std::string("cancelled"));
    requests_.clear();
    cancelled_ = true;
  }

  void work() {
    while (true) {
      std::optional<Request> request;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stopping_ || !requests_.empty() || ((showing_ || beside_ || saving_) && tree_); });
        if (stopping_) break;
        if (!requests_.empty()) {
          request = std::move(requests_.front());
          requests_.pop_front();
          cancelled_ = false;
        }
      }
      request ? serve(*request) : serve_reader();
    }
    close_session();
  }

  void serve(const Request& request) {
    callbacks_ = request.callbacks;
    const bool is_opening = std::holds_alternative<Opening>(request.task) || std::holds_alternative<Reopening>(request.task);
    replacing_ = is_opening;
    const auto perform = [&] { std::visit([this](const auto& task) { this->perform(task); }, request.task); };
    finish([&] {
      if (open_device_) open_device();
      try {
        perform();
      } catch (...) {
        if (!device_ && !on_device_) throw;
        lose_device();
        if (!is_opening) read_again();
        perform();
      }
    });
    replacing_ = false;
  }

  /// Where the device fails, the run shown is read again on the CPU; the interface asks anew when it stands.
  void serve_reader() {
    try {
      attend();
    } catch (...) {
      lose_device();
      {
        const std::lock_guard lock(mutex_);
        cancelled_ = !requests_.empty();
      }
      finish([&] { read_again(); });
    }
  }

  void finish(const std::function<void()>& work) {
    try {
      work();
      if (const std::string remark = tree_->current()->run().remark(); !remark.empty()) answer(callbacks_.device_failed, remark);
      answer(callbacks_.done);
    } catch (const std::bad_alloc&) {
      answer(callbacks_.failed, std::string("out of memory"));
    } catch (const std::exception& error) {
      answer(callbacks_.failed, std::string(error.what()));
    }
  }

  void open_device() {
    try {
      device_ = std::exchange(open_device_, {})();
    } catch (...) {
      lose_device();
    }
  }

  /// In the handler of an exception: one that says nothing of the device is thrown on.
  void lose_device() {
    why_cpu_ = device_failure();
    device_.reset();
  }

  /// The run shown went with its device.
  bool is_lost() const { return on_device_ && !device_; }

  Loaded load(const std::shared_ptr<const Checkpoint>& checkpoint) const {
    const auto model = Model::load(checkpoint, device_ ? device_ : std::shared_ptr<Backend>(make_cpu_backend()));
    return {model, make_tokenizer(*checkpoint, model->vocab())};
  }

  /// An empty path: the open model, on the CPU where the device has failed.
  Loaded load(const std::filesystem::path& path) {
    if (path.empty() && !tree_) throw Error("no checkpoint is open");
    if (path.empty() && !is_lost()) return {tree_->root()->model(), tree_->root()->tokenizer()};
    answer(callbacks_.progress, 0.0, std::string("opening"));
    return load(open_checkpoint(path.empty() ? tree_->root()->model()->checkpoint().path : path));
  }

  /// Tells how far it is, as often as the interface can draw; says whether to go on.
  Run::Progress telling(std::string what, std::int64_t tokens) {
    return [this, what = std::move(what), tokens, told = Clock::time_point()](std::int64_t read) mutable {
      if (const auto now = Clock::now(); now - told >= kOften || read == tokens) {
        told = now;
        answer(callbacks_.progress, static_cast<double>(read) / static_cast<double>(std::max<std::int64_t>(tokens, 1)), what);
      }
      return !cancelled_;
    };
  }

  /// Between two passes, whoever looks at the run shown has a turn.
  Run::Progress in_turns(std::unique_lock<FairMutex>& lock, Run::Progress tell) {
    return [this, &lock, tell = std::move(tell)](std::int64_t tokens) {
      lock.unlock();
      if (tree_ && !is_lost()) attend();
      lock.lock();
      return tell(tokens);
    };
  }

  /// The same, of a prompt: in parts of it.
  Progress reading(std::unique_lock<FairMutex>& lock) {
    constexpr double parts = 1 << 20;
    return [tell = in_turns(lock, telling("reading", static_cast<std::int64_t>(parts)))](double fraction) {
      return tell(static_cast<std::int64_t>(fraction * parts));
    };
  }

  void perform(const Opening& opening) {
    const Loaded loaded = load(opening.checkpoint);
    std::shared_ptr<ReadingTree> tree;
    {
      // The run that is shown stays, and can be looked at, until the new one has read its prompt.
      std::unique_lock lock(run_mutex_);
      tree = std::make_shared<ReadingTree>(
          std::make_shared<Reading>(loaded.model, loaded.tokenizer, opening.prompt, reading(lock), budgets_), opening.prompt);
    }
    close_session();
    sampling_ = {};
    show(std::move(tree));
    generate(tree_->current()->info()->prompt_length + tree_->current()->to_generate());
  }

  void perform(const Reopening& reopening) {
    if (file_ && file_->path() == reopening.session) close_session();
    answer(callbacks_.progress, 0.0, std::string("opening"));
    std::optional<SessionFile> file = SessionFile::open(reopening.session);
    const Loaded loaded = load(file->open_checkpoint());
    const SessionRecord record = file->record();
    std::shared_ptr<ReadingTree> tree;
    {
      std::unique_lock lock(run_mutex_);
      Branches branches = file->restore_branches(loaded.model, budgets_, in_turns(lock, telling("restoring", record.tokens())));
      Run& run = *branches[0].run;
      const std::span<const std::int32_t> prompt = record.prompt_ids;
      if (run.tokens() < std::ssize(prompt)) {
        const auto tell = in_turns(lock, telling("reading", std::ssize(prompt)));
        run.read(prompt.subspan(static_cast<std::size_t>(run.tokens())), std::ssize(prompt), [&](std::int64_t tokens) {
          write(file, [&] { file->follow(branches); });
          return tell(tokens);
        });
      }
      if (run.tokens() < std::ssize(prompt)) throw Error("cancelled");
      tree = std::make_shared<ReadingTree>(std::move(branches), loaded.tokenizer, record.prompt);
    }
    close_session();
    if (file) file_.emplace(std::move(*file));
    sampling_ = record.sampling;
    show(std::move(tree));
    if (const std::string words = other_device(record.device); !words.empty()) answer(callbacks_.other_device, words);
    if (record.current == 0) generate(record.prompt_length() + record.prompt.generate.value_or(0));
  }

  /// Empty where the run shown is on the device that a session was saved on.
  std::string other_device(const DeviceChoice& then) const {
    const auto words = [](const DeviceChoice& device) {
      if (device.name == "cpu") return "the CPU";
      return device.precision == Precision::bfloat16 ? "a CUDA device in bfloat16" : "a CUDA device";
    };
    const DeviceChoice now = on_device_ ? device_name_ : DeviceChoice{};
    const bool same = (now.name == "cpu") == (then.name == "cpu") && now.precision == then.precision;
    return same ? "" : fmt::format("Saved on {}, read on {}: numbers agree with those of then within rounding.", words(then), words(now));
  }

  void perform(const Generating& generating) {
    check_open();
    generate(generating.tokens);
  }

  void perform(const Adding& adding) {
    check_open();
    const std::shared_ptr<Reading> root = tree_->root();
    {
      std::unique_lock lock(run_mutex_);
      tree_->add(Reading(root->model(), root->tokenizer(), adding.prompt, reading(lock), root->run().beside()).run_ptr());
    }
    tell_branches();
    keep_session();
  }

  void perform(const Intervening& intervening) {
    check_open();
    try {
      const Run::Progress tell = telling("reading on", tree_->current()->run().tokens());
      std::unique_lock lock(run_mutex_);
      tree_->intervene(intervening.interventions, in_turns(lock, [&](std::int64_t tokens) {
                         lock.unlock();
                         follow_session();
                         lock.lock();
                         return tell(tokens);
                       }));
    } catch (const Error&) {
      keep_session();  // which may have the beginning of the branch
      throw;
    }
    show_current();
  }

  void perform(const GoingTo& going) {
    check_open();
    move([&] { tree_->go_to(going.branch); });
  }

  void perform(Step step) {
    check_open();
    move([&] { step == Step::undo ? tree_->undo() : tree_->redo(); });
  }

  template <class To>
  void move(To to) {
    const std::int64_t before = tree_->branches().current();
    {
      const std::lock_guard lock(run_mutex_);
      to();
    }
    if (tree_->branches().current() != before) show_current();
  }

  void check_open() const {
    if (!tree_) throw Error("no checkpoint is open");
  }

  /// What is shown, on the CPU, with its branches and as many tokens.
  void read_again() {
    check_open();
    const Branches& lost = tree_->branches();
    const std::vector<std::int32_t>& ids = lost[0].run->ids();
    const Loaded loaded = load(std::filesystem::path());
    const Run::Progress progress = telling("reading", std::ssize(ids));
    auto run = std::make_shared<Run>(loaded.model, budgets_);
    const std::int64_t prompt = lost[0].run->prompt_length();
    run->read(std::span(ids).first(static_cast<std::size_t>(prompt)), prompt, progress);
    while (run->tokens() < std::ssize(ids) && !cancelled_)
      run->read(std::span(ids).subspan(static_cast<std::size_t>(run->tokens()), 1), prompt, progress);
    if (run->tokens() < std::ssize(ids)) throw Error("cancelled");
    Branches branches(std::move(run));
    branches.restore(lost.records(), progress);
    branches.go_to(lost.current());
    if (file_) answer(callbacks_.not_saved, file_->path().string() + ": is not kept up to date after a device has failed; save it anew");
    file_.reset();
    show(std::make_shared<ReadingTree>(std::move(branches), loaded.tokenizer, tree_->prompt()));
  }

  void show(std::shared_ptr<ReadingTree> tree) {
    {
      const std::lock_guard lock(run_mutex_);
      tree_ = std::move(tree);
    }
    std::shared_ptr<const Model> model = tree_->root()->model();
    {
      const std::lock_guard lock(mutex_);
      model_.swap(model);  // the one before ends when nobody waits for the mutex
    }
    replacing_ = false;
    on_device_ = device_ != nullptr;
    set_beside(nullptr);
    show_current();
  }

  void show_current() {
    analyst_.set_reading(tree_->current());
    tell_branches();
    answer(callbacks_.run, tree_->current()->info());
    if (!why_cpu_.empty()) answer(callbacks_.device_failed, std::exchange(why_cpu_, {}) + "; the CPU reads from here on");
    keep_session();
  }

  void tell_branches() {
    if (replacing_) return;
    auto tree = std::make_shared<BranchTree>(tree_->told());
    if (file_) tree->session = file_->path();
    answer(callbacks_.branches, std::shared_ptr<const BranchTree>(std::move(tree)));
  }

  /// Until the run shown has so many tokens; what the cursor asks for meanwhile is answered between two of them.
  void generate(std::int64_t tokens) {
    const std::shared_ptr<Reading> reading = tree_->current();
    Run& run = reading->run();
    const std::int64_t first = run.tokens();
    Sampler sampler(sampling_);
    sampler.skip(first - run.prompt_length());
    auto told = Clock::now();
    while (run.tokens() < tokens && !cancelled_) {
      {
        const std::lock_guard lock(run_mutex_);
        reading->append(sampler.next(run.logits(run.tokens() - 1)));
      }
      if (const auto now = Clock::now(); now - told >= kOften) {
        told = now;
        answer(callbacks_.progress, static_cast<double>(run.tokens() - first) / static_cast<double>(tokens - first),
               std::string("generating"));
        answer(callbacks_.run, reading->info());
      }
      follow_session();
      attend();
    }
    if (run.tokens() > first) answer(callbacks_.run, reading->info());
    if (run.tokens() < tokens) throw Error("cancelled");
  }

  /// What the reader wants of the run as it is.
  void attend() {
    std::optional<Showing> showing, beside;
    std::optional<Saving> saving;
    {
      const std::lock_guard lock(mutex_);
      showing.swap(showing_);
      beside.swap(beside_);
      saving.swap(saving_);
    }
    if (showing) show_one(*showing, *tree_->current());
    if (beside) show_beside(*beside);
    if (saving) save_one(*saving);
  }

  /// A failure is told where the failures of the opening were told; that of a device is thrown.
  void show_one(const Showing& showing, Reading& reading) {
    try {
      std::unique_lock lock(run_mutex_);
      auto snapshot = reading.snapshot(showing.layer, showing.token);
      lock.unlock();
      if (snapshot) answer(showing.done, std::move(snapshot));
    } catch (const std::exception& error) {
      const bool of_device = dynamic_cast<const DeviceError*>(&error) || dynamic_cast<const std::bad_alloc*>(&error);
      if (on_device_ && of_device) throw;
      answer(callbacks_.failed, fmt::format("layer {} at token {} cannot be shown: {}", showing.layer, showing.token, error.what()));
    }
  }

  void show_beside(const Showing& showing) {
    const std::shared_ptr<Reading> reading = tree_->of(showing.run);
    if (!reading) return;
    set_beside(reading);
    show_one(showing, *reading);
  }

  void set_beside(const std::shared_ptr<Reading>& reading) {
    if (reading == reading_beside_) return;
    reading_beside_ = reading;
    analyst_beside_.set_reading(reading);
  }

  void save_one(const Saving& saving) {
    try {
      if (file_ && file_->path() == saving.path) {
        const std::lock_guard lock(run_mutex_);
        file_->save(tree_->branches());
      } else {
        file_.emplace(begin_file(saving.path));
      }
      tell_branches();
      answer(saving.saved);
    } catch (const std::exception& error) {
      answer(saving.failed, std::string(error.what()));
    }
  }

  /// With all that there is.
  SessionFile begin_file(const std::filesystem::path& path) {
    const Run& root = tree_->root()->run();
    const auto prompt_end = root.ids().begin() + root.prompt_length();
    SessionRecord record;
    record.checkpoint = std::filesystem::absolute(root.model().checkpoint().path);
    record.checkpoint_digest = content_digest(root.model().checkpoint());
    if (on_device_) record.device = device_name_;
    record.prompt = tree_->prompt();
    record.prompt.generate = std::max(tree_->root()->to_generate(), root.tokens() - root.prompt_length());
    record.prompt_ids.assign(root.ids().begin(), prompt_end);
    record.sampling = sampling_;
    record.options = root.options();
    SessionFile file = SessionFile::create(path, std::move(record));
    try {
      const std::lock_guard lock(run_mutex_);
      file.save(tree_->branches());
    } catch (...) {
      file.remove();
      throw;
    }
    return file;
  }

  void keep_session() {
    with_session([&] { file_->save(tree_->branches()); });
  }
  void follow_session() {
    with_session([&] { file_->follow(tree_->branches()); });
  }
  template <class Work>
  void with_session(Work work) {
    if (!file_) return;
    {
      const std::lock_guard lock(run_mutex_);
      write(file_, work);
    }
    if (!file_) tell_branches();
  }
  /// A file that cannot be written is left as it was saved last, and let go.
  template <class Work>
  void write(std::optional<SessionFile>& file, Work work) {
    if (!file) return;
    try {
      return work();
    } catch (const std::exception& error) {
      answer(callbacks_.not_saved, std::string(error.what()));
    }
    file.reset();
  }
  void close_session() {
    keep_session();
    file_.reset();
  }

  using Clock = std::chrono::steady_clock;
  static constexpr auto kOften = std::chrono::milliseconds(50);

  std::function<void(std::function<void()>)> post_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // read and written on the interface thread alone

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Request> requests_;        // waiting, under the mutex
  std::shared_ptr<const Model> model_;  // the tree's
  std::optional<Showing> showing_, beside_;
  std::optional<Saving> saving_;
  bool stopping_ = false;
  std::atomic<bool> cancelled_ = false;

  // Of the worker thread alone.
  OpenDevice open_device_;           // empty: it is open, or there is none
  std::shared_ptr<Backend> device_;  // null: the CPU
  DeviceChoice device_name_;
  const RunOptions budgets_;
  OpenCallbacks callbacks_;            // of the request served last: whoever made it listens
  std::shared_ptr<ReadingTree> tree_;  // changed, and its runs asked, under run_mutex_
  std::shared_ptr<Reading> reading_beside_;
  std::optional<SessionFile> file_;  // that keeps it
  SamplingOptions sampling_;         // of what is generated
  bool on_device_ = false;           // where the tree is
  bool replacing_ = false;           // another tree is on its way: its listener is not told of this one
  std::string why_cpu_;              // to be told when the run stands

  FairMutex run_mutex_;  // of the runs, their model and their device
  Analyst analyst_{run_mutex_}, analyst_beside_{run_mutex_};

  std::thread thread_;  // last: starts when all else stands
};

Session::Session(std::function<void(std::function<void()>)> post, OpenDevice open_device, DeviceChoice name, std::size_t memory)
    : worker_(std::make_unique<Worker>(std::move(post), std::move(open_device), std::move(name), memory)) {}
Session::~Session() = default;

void Session::open(std::filesystem::path checkpoint, PromptInput prompt, OpenCallbacks callbacks) {
  worker_->request(Opening{std::move(checkpoint), std::move(prompt)}, std::move(callbacks));
}
void Session::read(PromptInput prompt, OpenCallbacks callbacks) { worker_->request(Opening{{}, std::move(prompt)}, std::move(callbacks)); }
void Session::generate(std::int64_t tokens, OpenCallbacks callbacks) { worker_->request(Generating{tokens}, std::move(callbacks)); }
std::shared_ptr<const Model> Session::model() const { return worker_->model(); }
void Session::cancel() { worker_->cancel(); }
void Session::intervene(std::vector<Intervention> interventions, OpenCallbacks callbacks) {
  worker_->request(Intervening{std::move(interventions)}, std::move(callbacks));
}
void Session::add_run(PromptInput prompt, OpenCallbacks callbacks) { worker_->request(Adding{std::move(prompt)}, std::move(callbacks)); }
void Session::undo(OpenCallbacks callbacks) { worker_->request(Step::undo, std::move(callbacks)); }
void Session::redo(OpenCallbacks callbacks) { worker_->request(Step::redo, std::move(callbacks)); }
void Session::go_to_branch(std::int64_t branch, OpenCallbacks callbacks) { worker_->request(GoingTo{branch}, std::move(callbacks)); }
void Session::save(std::filesystem::path path, std::function<void()> saved, std::function<void(std::string)> failed) {
  worker_->save({std::move(path), std::move(saved), std::move(failed)});
}
void Session::open_session(std::filesystem::path path, OpenCallbacks callbacks) {
  worker_->request(Reopening{std::move(path)}, std::move(callbacks));
}
void Session::show(std::int64_t layer, std::int64_t token, std::function<void(std::shared_ptr<const Snapshot>)> done) {
  worker_->show({nullptr, layer, token, std::move(done)});
}
void Session::show_beside(std::shared_ptr<const RunInfo> run, std::int64_t layer, std::int64_t token,
                          std::function<void(std::shared_ptr<const Snapshot>)> done) {
  worker_->show({std::move(run), layer, token, std::move(done)});
}
void Session::ask(int asker, std::shared_ptr<const RunInfo> run, std::vector<Question> questions,
                  std::function<void(Question, Finding)> tell) {
  worker_->ask(asker, std::move(run), std::move(questions), std::move(tell), false);
}
void Session::ask_beside(int asker, std::shared_ptr<const RunInfo> run, std::vector<Question> questions,
                         std::function<void(Question, Finding)> tell) {
  worker_->ask(asker, std::move(run), std::move(questions), std::move(tell), true);
}

}  // namespace statescope

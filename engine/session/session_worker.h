// The thread that owns a session's model, device and runs: what waits for it, and what it does.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <variant>

#include "engine/answers/analyst.h"
#include "engine/run/fair_mutex.h"
#include "engine/run/sampling.h"
#include "engine/session/reading_tree.h"
#include "engine/session/session.h"
#include "engine/session/session_file.h"

namespace statescope {

class Session::Worker {
 public:
  // What may be asked of it: tasks, one after the other; the newest look at the run, and the newest saving, between two passes of them.
  struct Opening {
    std::filesystem::path checkpoint;  // empty: the open model reads another prompt
    PromptInput prompt;
  };
  struct Reopening {
    std::filesystem::path session;
    std::vector<std::filesystem::path> checkpoint_places;
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
    std::int64_t layer, head, token;
    std::function<void(std::shared_ptr<const Snapshot>)> done;
  };

  Worker(std::function<void(std::function<void()>)> post, OpenDevice open_device, DeviceChoice name, std::size_t memory);
  ~Worker();

  // For the interface thread: none of them waits for the work.
  void request(Task task, OpenCallbacks callbacks);
  void show(Showing showing);
  void save(Saving saving);
  void stand(RunPlace place);
  void cancel();
  std::shared_ptr<const Model> model() const;
  std::shared_ptr<const Tokenizer> tokenizer() const;
  void ask(int asker, std::shared_ptr<const RunInfo> run, std::vector<Question> questions, std::function<void(Question, Finding)> tell,
           bool beside);

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
  void give_up();

  void work();
  void serve(const Request& request);
  /// Where the device fails, the run shown is read again on the CPU; the interface asks anew when it stands.
  void serve_reader();
  void finish(const std::function<void()>& work);

  void open_device();
  /// In the handler of an exception: one that says nothing of the device is thrown on.
  void lose_device();
  /// The run shown went with its device.
  bool is_lost() const { return on_device_ && !device_; }

  Loaded load(const std::shared_ptr<const Checkpoint>& checkpoint) const;

  /// An empty path: the open model, on the CPU where the device has failed.
  Loaded load(const std::filesystem::path& path);

  /// Tells how far it is, as often as the interface can draw; says whether to go on.
  Run::Progress telling(std::string what, std::int64_t tokens);

  /// Between two passes, whoever looks at the run shown has a turn.
  Run::Progress in_turns(std::unique_lock<FairMutex>& lock, Run::Progress tell);

  /// The same, of a prompt: in parts of it.
  Progress reading(std::unique_lock<FairMutex>& lock);

  void perform(const Opening& opening);
  void perform(const Reopening& reopening);
  void perform(const Generating& generating);
  void perform(const Adding& adding);
  void perform(const Intervening& intervening);
  void perform(const GoingTo& going);
  void perform(Step step);
  template <class To>
  void move(To to);

  void check_open() const;
  /// Empty where the run shown is on the device that a session was saved on.
  DeviceChoice device_of_tree() const;
  std::string other_device(const DeviceChoice& then) const;

  /// What is shown, on the CPU, with its branches and as many tokens.
  void read_again();

  void show(std::shared_ptr<ReadingTree> tree);
  void show_current();
  void tell_branches();
  void tell_not_finite();
  /// What was asked for, or, where the model reads no text, ids instead of one.
  static PromptInput readable(const PromptInput& prompt, const Loaded& loaded);
  /// Between two parts of an opening.
  void check_cancelled() const;

  /// What is left of the prompt of the run shown, which can be looked at meanwhile.
  void read_on();
  /// Gives the interface time to ask for its first picture, which would have to wait for a pass else.
  void wait_for_look();

  /// Until the run shown has so many tokens; what the cursor asks for meanwhile is answered between two of them.
  void generate(std::int64_t tokens);

  /// What the reader wants of the run as it is.
  void attend();

  /// A failure is told where the failures of the opening were told; that of a device is thrown.
  void show_one(const Showing& showing, Reading& reading);
  void show_beside(const Showing& showing);
  void set_beside(const std::shared_ptr<Reading>& reading);

  void save_one(const Saving& saving);
  std::optional<RunPlace> place() const;

  /// With all that there is.
  SessionFile begin_file(const std::filesystem::path& path);

  void keep_session();
  void follow_session();
  template <class Work>
  void with_session(Work work);
  /// A file that cannot be written is left as it was saved last, and let go.
  template <class Work>
  void write(std::optional<SessionFile>& file, Work work);
  void close_session();

  using Clock = std::chrono::steady_clock;
  static constexpr auto kOften = std::chrono::milliseconds(50);
  static constexpr auto kLook = std::chrono::seconds(1);

  std::function<void(std::function<void()>)> post_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // read and written on the interface thread alone

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Request> requests_;        // waiting, under the mutex
  std::shared_ptr<const Model> model_;  // the tree's
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::optional<Showing> showing_, beside_;
  std::optional<Saving> saving_;
  std::optional<RunPlace> place_;  // of the run shown
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

}  // namespace statescope

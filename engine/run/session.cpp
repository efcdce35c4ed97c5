#include "engine/run/session.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "engine/error.h"
#include "engine/run/reading.h"

namespace statescope {
namespace {

struct Opening {
  std::filesystem::path checkpoint;  // empty: the open model reads another prompt
  PromptInput prompt;
  Session::OpenCallbacks callbacks;
};

struct Showing {
  std::int64_t layer, token;
  std::function<void(std::shared_ptr<const Snapshot>)> done;
};

}  // namespace

class Session::Worker {
 public:
  explicit Worker(std::function<void(std::function<void()>)> post) : post_(std::move(post)), thread_([this] { work(); }) {}

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

  void open(Opening opening) {
    const std::lock_guard lock(mutex_);
    if (opening_) answer(opening_->callbacks.failed, std::string("cancelled"));
    opening_ = std::move(opening);
    cancelled_ = true;  // of the one under way
    wake_.notify_one();
  }

  void show(Showing showing) {
    const std::lock_guard lock(mutex_);
    showing_ = std::move(showing);
    wake_.notify_one();
  }

  void cancel() {
    const std::lock_guard lock(mutex_);
    if (opening_) answer(opening_->callbacks.failed, std::string("cancelled"));
    opening_.reset();
    cancelled_ = true;
  }

 private:
  /// Calls `callback` on the interface thread, unless the session has ended by then.
  template <class Callback, class... Values>
  void answer(const Callback& callback, Values... values) {
    if (!callback) return;
    post_([alive = alive_, callback, values...] {
      if (*alive) callback(values...);
    });
  }

  void work() {
    while (true) {
      std::optional<Opening> opening;
      std::optional<Showing> showing;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stopping_ || opening_ || (showing_ && reading_); });
        if (stopping_) return;
        opening.swap(opening_);
        if (opening) {
          cancelled_ = false;
        } else {
          showing.swap(showing_);
        }
      }
      if (opening) serve(*opening);
      if (showing) serve(*showing);
    }
  }

  void serve(const Opening& opening) {
    try {
      std::shared_ptr<Model> model = reading_ ? reading_->model() : nullptr;
      std::shared_ptr<const Tokenizer> tokenizer = reading_ ? reading_->tokenizer() : nullptr;
      if (!opening.checkpoint.empty()) {
        answer(opening.callbacks.progress, 0.0, std::string("opening"));
        const auto checkpoint = open_checkpoint(opening.checkpoint);
        model = Model::load(checkpoint, std::shared_ptr<Backend>(make_cpu_backend()));
        tokenizer = make_tokenizer(*checkpoint, model->vocab());
      }
      if (!model) throw Error("no checkpoint is open");
      // The run that is shown stays until the new one has read its prompt.
      reading_ = std::make_unique<Reading>(model, tokenizer, opening.prompt, [&](double fraction) {
        answer(opening.callbacks.progress, fraction, std::string("reading"));
        return !cancelled_;
      });
      answer(opening.callbacks.run, reading_->info());
      failed_ = opening.callbacks.failed;
      generate(opening);
      answer(opening.callbacks.done);
    } catch (const std::exception& error) {
      answer(opening.callbacks.failed, std::string(error.what()));
    }
  }

  /// Greedy continuation; what the cursor asks for meanwhile is answered between two tokens. The interface hears of it as often as it can
  /// draw.
  void generate(const Opening& opening) {
    constexpr auto often = std::chrono::milliseconds(50);
    const std::int64_t count = reading_->to_generate();
    auto told = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < count; ++i) {
      if (cancelled_) throw Error("cancelled");
      reading_->generate_one();
      const auto now = std::chrono::steady_clock::now();
      if (now - told >= often || i + 1 == count) {
        told = now;
        answer(opening.callbacks.progress, static_cast<double>(i + 1) / static_cast<double>(count), std::string("generating"));
        answer(opening.callbacks.run, reading_->info());
      }
      std::optional<Showing> showing;
      {
        const std::lock_guard lock(mutex_);
        showing.swap(showing_);
      }
      if (showing) serve(*showing);
    }
  }

  /// A failure here is told where the failures of the opening were told.
  void serve(const Showing& showing) {
    try {
      if (auto snapshot = reading_->snapshot(showing.layer, showing.token)) answer(showing.done, std::move(snapshot));
    } catch (const std::exception& error) {
      answer(failed_, fmt::format("layer {} at token {} cannot be shown: {}", showing.layer, showing.token, error.what()));
    }
  }

  std::function<void(std::function<void()>)> post_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // read and written on the interface thread alone

  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<Opening> opening_;  // waiting, under the mutex
  std::optional<Showing> showing_;
  bool stopping_ = false;
  std::atomic<bool> cancelled_ = false;

  // Of the worker thread alone.
  std::unique_ptr<Reading> reading_;
  std::function<void(std::string)> failed_;  // of the opening that made it

  std::thread thread_;  // last: starts when all else stands
};

Session::Session(std::function<void(std::function<void()>)> post) : worker_(std::make_unique<Worker>(std::move(post))) {}
Session::~Session() = default;

void Session::open(std::filesystem::path checkpoint, PromptInput prompt, OpenCallbacks callbacks) {
  worker_->open({std::move(checkpoint), std::move(prompt), std::move(callbacks)});
}
void Session::read(PromptInput prompt, OpenCallbacks callbacks) { worker_->open({{}, std::move(prompt), std::move(callbacks)}); }
void Session::cancel() { worker_->cancel(); }
void Session::show(std::int64_t layer, std::int64_t token, std::function<void(std::shared_ptr<const Snapshot>)> done) {
  worker_->show({layer, token, std::move(done)});
}

}  // namespace statescope

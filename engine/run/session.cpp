#include "engine/run/session.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "engine/error.h"
#include "engine/run/analyst.h"
#include "engine/run/fair_mutex.h"
#include "engine/run/reading.h"
#include "kernels/device.h"

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
  Worker(std::function<void(std::function<void()>)> post, std::shared_ptr<Backend> device)
      : post_(std::move(post)), device_(std::move(device)), thread_([this] { work(); }) {}

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

  void ask(int asker, std::shared_ptr<const RunInfo> run, std::vector<Question> questions, std::function<void(Question, Finding)> tell) {
    analyst_.ask(asker, std::move(run), std::move(questions),
                 [this, tell = std::move(tell)](const Question& question, Finding finding) { answer(tell, question, std::move(finding)); });
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

  void serve(const Opening& opening, const std::string& why_cpu = {}) {
    try {
      read(opening, why_cpu);
    } catch (const std::bad_alloc&) {
      answer(opening.callbacks.failed, std::string("out of memory"));
    } catch (const std::exception& error) {
      answer(opening.callbacks.failed, std::string(error.what()));
    }
  }

  /// On the device; where that fails, on the CPU, where everything is then done.
  void read(const Opening& opening, std::string why_cpu) {
    if (device_) {
      try {
        return read_on(device_, opening, "");
      } catch (...) {
        why_cpu = device_failure();
        device_.reset();
      }
    }
    read_on(nullptr, opening, why_cpu);
  }

  /// `device` null: the CPU.
  void read_on(const std::shared_ptr<Backend>& device, const Opening& opening, const std::string& why_cpu) {
    std::shared_ptr<Model> model = reading_ ? reading_->model() : nullptr;
    std::shared_ptr<const Tokenizer> tokenizer = reading_ ? reading_->tokenizer() : nullptr;
    std::filesystem::path path = opening.checkpoint;
    if (path.empty() && model && on_device_ && !device) path = model->checkpoint().path;
    if (!path.empty()) {
      answer(opening.callbacks.progress, 0.0, std::string("opening"));
      const auto checkpoint = open_checkpoint(path);
      model = Model::load(checkpoint, device ? device : std::shared_ptr<Backend>(make_cpu_backend()));
      tokenizer = make_tokenizer(*checkpoint, model->vocab());
    }
    if (!model) throw Error("no checkpoint is open");
    {
      // The run that is shown stays until the new one has read its prompt.
      const std::lock_guard lock(run_mutex_);
      reading_ = std::make_shared<Reading>(model, tokenizer, opening.prompt, [&](double fraction) {
        answer(opening.callbacks.progress, fraction, std::string("reading"));
        return !cancelled_;
      });
    }
    analyst_.set_reading(reading_);
    on_device_ = device != nullptr;
    answer(opening.callbacks.run, reading_->info());
    if (!why_cpu.empty()) answer(opening.callbacks.device_failed, why_cpu + "; the CPU reads from here on");
    shown_ = opening;
    generate(opening);
    if (const std::string remark = reading_->run().remark(); !remark.empty()) answer(opening.callbacks.device_failed, remark);
    answer(opening.callbacks.done);
  }

  /// Greedy continuation; what the cursor asks for meanwhile is answered between two tokens. The interface hears of it as often as it can
  /// draw.
  void generate(const Opening& opening) {
    constexpr auto often = std::chrono::milliseconds(50);
    const std::int64_t count = reading_->to_generate();
    auto told = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < count; ++i) {
      if (cancelled_) throw Error("cancelled");
      {
        const std::lock_guard lock(run_mutex_);
        reading_->generate_one();
      }
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
      if (showing) show_one(*showing);
    }
  }

  /// Where the device fails, the run shown is read again on the CPU; the interface asks anew when it stands.
  void serve(const Showing& showing) {
    try {
      show_one(showing);
    } catch (...) {
      const std::string why_cpu = device_failure();
      device_.reset();
      Opening again = shown_;
      again.prompt.generate = std::ssize(reading_->info()->tokens) - reading_->info()->prompt_length;
      {
        const std::lock_guard lock(mutex_);
        cancelled_ = opening_.has_value();
      }
      serve(again, why_cpu);
    }
  }

  /// A failure is told where the failures of the opening were told; that of a device is thrown.
  void show_one(const Showing& showing) {
    try {
      std::unique_lock lock(run_mutex_);
      auto snapshot = reading_->snapshot(showing.layer, showing.token);
      lock.unlock();
      if (snapshot) answer(showing.done, std::move(snapshot));
    } catch (const std::exception& error) {
      const bool of_device = dynamic_cast<const DeviceError*>(&error) || dynamic_cast<const std::bad_alloc*>(&error);
      if (on_device_ && of_device) throw;
      answer(shown_.callbacks.failed, fmt::format("layer {} at token {} cannot be shown: {}", showing.layer, showing.token, error.what()));
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
  std::shared_ptr<Backend> device_;   // null: the CPU
  std::shared_ptr<Reading> reading_;  // changed and asked under run_mutex_
  Opening shown_;                     // that made it
  bool on_device_ = false;            // where it is

  FairMutex run_mutex_;  // of the run, its model and its device
  Analyst analyst_{run_mutex_};

  std::thread thread_;  // last: starts when all else stands
};

Session::Session(std::function<void(std::function<void()>)> post, std::shared_ptr<Backend> device)
    : worker_(std::make_unique<Worker>(std::move(post), std::move(device))) {}
Session::~Session() = default;

void Session::open(std::filesystem::path checkpoint, PromptInput prompt, OpenCallbacks callbacks) {
  worker_->open({std::move(checkpoint), std::move(prompt), std::move(callbacks)});
}
void Session::read(PromptInput prompt, OpenCallbacks callbacks) { worker_->open({{}, std::move(prompt), std::move(callbacks)}); }
void Session::cancel() { worker_->cancel(); }
void Session::show(std::int64_t layer, std::int64_t token, std::function<void(std::shared_ptr<const Snapshot>)> done) {
  worker_->show({layer, token, std::move(done)});
}
void Session::ask(int asker, std::shared_ptr<const RunInfo> run, std::vector<Question> questions,
                  std::function<void(Question, Finding)> tell) {
  worker_->ask(asker, std::move(run), std::move(questions), std::move(tell));
}

}  // namespace statescope

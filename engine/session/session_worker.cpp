#include "engine/session/session_worker.h"

#include <fmt/format.h>

#include <utility>

#include "kernels/device.h"

namespace statescope {
namespace {

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

Session::Worker::Worker(std::function<void(std::function<void()>)> post, OpenDevice open_device, DeviceChoice name, std::size_t memory)
    : post_(std::move(post)),
      open_device_(std::move(open_device)),
      device_name_(std::move(name)),
      budgets_{.memory_budget = memory, .host_memory_budget = memory},
      thread_([this] { work(); }) {}

Session::Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    cancelled_ = true;
  }
  wake_.notify_one();
  thread_.join();
  *alive_ = false;  // closures still on their way to the interface thread do nothing
}

void Session::Worker::request(Task task, OpenCallbacks callbacks) {
  const bool waits = std::holds_alternative<GoingTo>(task) || std::holds_alternative<Step>(task);
  const std::lock_guard lock(mutex_);
  if (!waits) give_up();
  requests_.push_back({std::move(task), std::move(callbacks)});
  wake_.notify_one();
}

void Session::Worker::show(Showing showing) {
  const std::lock_guard lock(mutex_);
  (showing.run ? beside_ : showing_) = std::move(showing);
  wake_.notify_one();
}

void Session::Worker::save(Saving saving) {
  const std::lock_guard lock(mutex_);
  saving_ = std::move(saving);
  wake_.notify_one();
}

void Session::Worker::stand(RunPlace place) {
  const std::lock_guard lock(mutex_);
  place_ = std::move(place);
}

std::optional<RunPlace> Session::Worker::place() const {
  const std::lock_guard lock(mutex_);
  return place_;
}

void Session::Worker::cancel() {
  const std::lock_guard lock(mutex_);
  give_up();
}

std::shared_ptr<const Model> Session::Worker::model() const {
  const std::lock_guard lock(mutex_);
  return model_;
}
std::shared_ptr<const Tokenizer> Session::Worker::tokenizer() const {
  const std::lock_guard lock(mutex_);
  return tokenizer_;
}

void Session::Worker::ask(int asker, std::shared_ptr<const RunInfo> run, std::vector<Question> questions,
                          std::function<void(Question, Finding)> tell, bool beside) {
  Analyst& analyst = beside ? analyst_beside_ : analyst_;
  analyst.ask(asker, std::move(run), std::move(questions),
              [this, tell = std::move(tell)](const Question& question, Finding finding) { answer(tell, question, std::move(finding)); });
}

void Session::Worker::give_up() {
  for (const Request& request : requests_) answer(request.callbacks.failed, Failure(Cancelled()));
  requests_.clear();
  cancelled_ = true;
}

void Session::Worker::work() {
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

void Session::Worker::serve(const Request& request) {
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

void Session::Worker::serve_reader() {
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

void Session::Worker::finish(const std::function<void()>& work) {
  try {
    work();
    if (const std::string remark = tree_->current()->run().remark(); !remark.empty()) answer(callbacks_.device_failed, remark);
    answer(callbacks_.done);
  } catch (const std::bad_alloc&) {
    answer(callbacks_.failed, Failure(Error("out of memory")));
  } catch (const std::exception& error) {
    answer(callbacks_.failed, Failure(error));
  }
}

void Session::Worker::open_device() {
  try {
    device_ = std::exchange(open_device_, {})();
  } catch (...) {
    lose_device();
  }
}

void Session::Worker::lose_device() {
  why_cpu_ = device_failure();
  device_.reset();
}

Run::Progress Session::Worker::telling(std::string what, std::int64_t tokens) {
  return [this, what = std::move(what), tokens, told = Clock::time_point()](std::int64_t read) mutable {
    if (const auto now = Clock::now(); now - told >= kOften || read == tokens) {
      told = now;
      answer(callbacks_.progress, static_cast<double>(read) / static_cast<double>(std::max<std::int64_t>(tokens, 1)), what);
    }
    return !cancelled_;
  };
}

Run::Progress Session::Worker::in_turns(std::unique_lock<FairMutex>& lock, Run::Progress tell) {
  return [this, &lock, tell = std::move(tell)](std::int64_t tokens) {
    lock.unlock();
    if (tree_ && !is_lost()) attend();
    lock.lock();
    return tell(tokens);
  };
}

Progress Session::Worker::reading(std::unique_lock<FairMutex>& lock) {
  constexpr double parts = 1 << 20;
  return [tell = in_turns(lock, telling("reading", static_cast<std::int64_t>(parts)))](double fraction) {
    return tell(static_cast<std::int64_t>(fraction * parts));
  };
}

void Session::Worker::attend() {
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

void Session::Worker::show_one(const Showing& showing, Reading& reading) {
  try {
    std::unique_lock lock(run_mutex_);
    auto snapshot = reading.snapshot(showing.layer, showing.head, showing.token);
    lock.unlock();
    if (snapshot) answer(showing.done, std::move(snapshot));
  } catch (const std::exception& error) {
    const bool of_device = dynamic_cast<const DeviceError*>(&error) || dynamic_cast<const std::bad_alloc*>(&error);
    if (on_device_ && of_device) throw;
    const Error why(fmt::format("layer {} at token {} cannot be shown: {}", showing.layer, showing.token, error.what()));
    answer(callbacks_.failed, Failure(why));
  }
}

void Session::Worker::show_beside(const Showing& showing) {
  const std::shared_ptr<Reading> reading = tree_->of(showing.run);
  if (!reading) return;
  set_beside(reading);
  show_one(showing, *reading);
}

void Session::Worker::set_beside(const std::shared_ptr<Reading>& reading) {
  if (reading == reading_beside_) return;
  reading_beside_ = reading;
  analyst_beside_.set_reading(reading);
}

}  // namespace statescope

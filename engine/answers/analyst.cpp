#include "engine/answers/analyst.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "engine/answers/answers.h"

namespace statescope {
namespace {

constexpr auto kTellEvery = std::chrono::milliseconds(100);

}  // namespace

class Analyst::Worker {
 public:
  Worker(FairMutex& run_mutex, std::size_t budget) : run_mutex_(run_mutex), budget_(budget), thread_([this] { work(); }) {}

  ~Worker() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      askers_.clear();
    }
    wake_.notify_one();
    thread_.join();
  }

  void set_reading(std::shared_ptr<Reading> reading) {
    const std::lock_guard lock(mutex_);
    reading_ = std::move(reading);
    askers_.clear();
    wake_.notify_one();
  }

  void ask(int asker, std::shared_ptr<const RunInfo> run, std::vector<Question> questions, Tell tell) {
    const std::lock_guard lock(mutex_);
    askers_[asker] = {std::move(run), {questions.begin(), questions.end()}, std::move(tell)};
    wake_.notify_one();
  }

 private:
  struct Asker {
    std::shared_ptr<const RunInfo> run;
    std::deque<Question> questions;  // not answered yet
    Tell tell;
  };
  struct Job {
    int asker = 0;
    Question question;
    std::shared_ptr<const RunInfo> run;
    std::shared_ptr<Reading> reading;
  };
  struct Kept {
    Question question;
    Finding finding;
    std::size_t bytes = 0;
  };

  void work() {
    while (const std::optional<Job> job = next()) serve(*job);
  }

  static bool looks_ahead(int asker) { return asker < 0; }
  static bool waits(const std::pair<const int, Asker>& asker) { return !asker.second.questions.empty(); }
  /// Somebody who does not only look ahead.
  bool anyone_waits() const { return std::any_of(askers_.lower_bound(0), askers_.end(), waits); }

  /// The first question of each asker in turn, of those who look ahead once nobody else waits. None: the end.
  std::optional<Job> next() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return stopping_ || (reading_ && std::any_of(askers_.begin(), askers_.end(), waits)); });
    if (stopping_) return {};
    const bool ahead = !anyone_waits();
    const auto first = ahead ? askers_.begin() : askers_.lower_bound(0);
    auto chosen = std::find_if(ahead || last_ >= 0 ? askers_.upper_bound(last_) : first, askers_.end(), waits);
    if (chosen == askers_.end()) chosen = std::find_if(first, askers_.end(), waits);
    last_ = chosen->first;
    return Job{chosen->first, chosen->second.questions.front(), chosen->second.run, reading_};
  }

  /// Whether its asker still waits for it.
  bool wanted(const Job& job) const {
    const auto asker = askers_.find(job.asker);
    return asker != askers_.end() && asker->second.run == job.run && std::ranges::count(asker->second.questions, job.question) > 0;
  }

  void serve(const Job& job) {
    prepare(job);
    if (!evidence_ || evidence_->run() != job.run) return drop(job);
    const auto known = std::ranges::find(kept_, job.question, &Kept::question);
    const bool is_known = known != kept_.end();
    if (is_known && looks_ahead(job.asker)) return finish(job, known->finding);
    if (is_known) {
      std::rotate(known, known + 1, kept_.end());
    } else {
      const std::optional<Finding> finding = found_out(job);
      if (!finding) return;
      Kept answer{job.question, *finding, bytes_of(job.question, *finding)};
      if (looks_ahead(job.asker)) return keep_for_later(job, std::move(answer));
      keep(std::move(answer));
    }
    finish(job, kept_.back().finding);
  }

  /// Before all that was asked for, so that it goes first; where there is no room left, nothing more is looked for.
  void keep_for_later(const Job& job, Kept answer) {
    if (kept_bytes_ + answer.bytes > budget_) return drop(job);
    kept_bytes_ += answer.bytes;
    const Finding finding = answer.finding;
    kept_.push_front(std::move(answer));
    finish(job, finding);
  }

  /// The newest always; of the others those last asked for.
  void keep(Kept answer) {
    kept_bytes_ += answer.bytes;
    kept_.push_back(std::move(answer));
    for (; kept_bytes_ > budget_ && kept_.size() > 1; kept_.pop_front()) kept_bytes_ -= kept_.front().bytes;
  }

  /// A longer run, or another one, is another run's evidence.
  void prepare(const Job& job) {
    if (evidence_ && evidence_->run() == job.run) return;
    evidence_.reset();
    kept_.clear();
    kept_bytes_ = 0;
    evidence_.emplace(job.reading, run_mutex_);
  }

  /// Nothing where it was cancelled.
  std::optional<Finding> found_out(const Job& job) {
    auto told = std::chrono::steady_clock::now();
    bool given_up = false;
    evidence_->set_progress([&](double fraction) {
      const std::lock_guard lock(mutex_);
      given_up = !wanted(job) || (looks_ahead(job.asker) && anyone_waits());
      if (given_up) return false;
      const auto now = std::chrono::steady_clock::now();
      if (now - told >= kTellEvery) {
        told = now;
        askers_.at(job.asker).tell(job.question, {nullptr, {}, fraction});
      }
      return true;
    });
    try {
      return Finding{find_out(job.question, *evidence_), {}, 1};
    } catch (const std::bad_alloc&) {
      return Finding{nullptr, "out of memory", 1};
    } catch (const std::exception& error) {
      if (given_up) return {};
      return Finding{nullptr, error.what(), 1};
    }
  }

  void drop(const Job& job) {
    const std::lock_guard lock(mutex_);
    const auto asker = askers_.find(job.asker);
    if (asker != askers_.end() && asker->second.run == job.run) askers_.erase(asker);
  }

  void finish(const Job& job, const Finding& finding) {
    const std::lock_guard lock(mutex_);
    if (!wanted(job)) return;
    Asker& asker = askers_.at(job.asker);
    std::erase(asker.questions, job.question);
    asker.tell(job.question, finding);
  }

  FairMutex& run_mutex_;
  const std::size_t budget_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::shared_ptr<Reading> reading_;  // under the mutex, as all until the next blank line
  std::map<int, Asker> askers_;
  bool stopping_ = false;

  // Of the analyst's thread alone.
  std::optional<Evidence> evidence_;
  std::deque<Kept> kept_;  // the last asked for at the end
  std::size_t kept_bytes_ = 0;
  int last_ = 0;

  std::thread thread_;  // last: starts when all else stands
};

Analyst::Analyst(FairMutex& run_mutex, std::size_t budget) : worker_(std::make_unique<Worker>(run_mutex, budget)) {}
Analyst::~Analyst() = default;

void Analyst::set_reading(std::shared_ptr<Reading> reading) { worker_->set_reading(std::move(reading)); }
void Analyst::ask(int asker, std::shared_ptr<const RunInfo> run, std::vector<Question> questions, Tell tell) {
  worker_->ask(asker, std::move(run), std::move(questions), std::move(tell));
}

}  // namespace statescope

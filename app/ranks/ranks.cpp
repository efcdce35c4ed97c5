#include "app/ranks/ranks.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <system_error>
#include <utility>

#include "app/common/console.h"
#include "app/common/interruption.h"
#include "datasets/task.h"
#include "engine/error.h"
#include "kernels/cpu/beside.h"

namespace statescope {
namespace {

using Kind = RankMessage::Kind;

constexpr std::chrono::seconds kOften(1), kLong(10);  // a rank says so often that it is there; it is lost when it has not for so long
constexpr int kMostLost = 2;                          // ranks that one job may cost

/// Never unloaded, as what it loads itself.
std::unique_ptr<RankLink> make_link() {
  const std::filesystem::path file = beside_program("libstatescope-mpi.so");
  std::error_code none;
  if (!std::filesystem::exists(file, none))
    throw Error("several processes: this program was built without its module for Open MPI; start it without mpirun or srun");
  void* const module = ::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);  // Open MPI loads parts of itself, which look for it there
  void* const symbol = module == nullptr ? nullptr : ::dlsym(module, "statescope_make_rank_link");
  if (symbol == nullptr) throw Error(fmt::format("several processes: the module for Open MPI cannot be loaded: {}", ::dlerror()));
  return std::unique_ptr<RankLink>(reinterpret_cast<RankLink* (*)()>(symbol)());
}

}  // namespace

/// What has been done of the jobs, and by whom.
class Ranks::Jobs {
 public:
  Jobs(const std::vector<std::string>& jobs, int ranks) : jobs_(jobs), results_(jobs.size()), lost_(jobs.size()), ranks_(ranks) {
    for (std::size_t job = 0; job < jobs.size(); ++job) waiting_.insert(job);
  }

  bool are_done() const {
    return waiting_.empty() && std::ranges::none_of(ranks_, [](const Rank& rank) { return rank.job.has_value(); });
  }
  const std::string* result(std::size_t job) const { return &*results_[job]; }
  std::vector<std::string> results() const {
    if (failed_) throw Error(why_);
    std::vector<std::string> all;
    for (const std::optional<std::string>& result : results_) all.push_back(*result);
    return all;
  }

  /// send(rank, job) to every rank that is free.
  template <class Send>
  void hand_out(const Send& send) {
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
      Rank& one = ranks_[static_cast<std::size_t>(rank)];
      if (one.is_lost || one.job || waiting_.empty()) continue;
      one.job = *waiting_.begin();
      waiting_.erase(waiting_.begin());
      send(rank, RankMessage{Kind::job, *one.job, jobs_[*one.job]});
    }
  }

  /// Returns the job that the message is about.
  std::optional<std::size_t> take(RankMessage message) {
    Rank& rank = ranks_[static_cast<std::size_t>(message.from)];
    rank.heard = Clock::now();
    const std::optional<std::size_t> job = rank.job;
    if (message.kind == Kind::lost) return lose(message.from, message.bytes), std::nullopt;
    if (rank.is_silent) rank.is_lost = rank.is_silent = false;  // it was only slow; its job has gone to another
    if (message.kind == Kind::alive || job != message.job) return {};
    if (message.kind == Kind::progress) return job;
    rank.job.reset();
    if (message.kind == Kind::result)
      results_[*job] = std::move(message.bytes);
    else
      fail(*job, message.bytes);
    return job;
  }

  /// Those that have not been heard of; the first is this process itself.
  void look_for_lost() {
    for (int rank = 1; rank < static_cast<int>(ranks_.size()); ++rank) {
      const Rank& one = ranks_[static_cast<std::size_t>(rank)];
      if (one.is_lost || Clock::now() - one.heard <= kLong) continue;
      lose(rank, fmt::format("not heard of for {} s", kLong.count()));
      ranks_[static_cast<std::size_t>(rank)].is_silent = true;
    }
    if (!waiting_.empty() && std::ranges::all_of(ranks_, &Rank::is_lost))
      throw Error(fmt::format("no process of the job is left to compute; the last one: {}", last_));
  }
  /// Nobody may be there to hear.
  bool is_silent(int rank) const { return ranks_[static_cast<std::size_t>(rank)].is_silent; }

 private:
  struct Rank {
    std::optional<std::size_t> job;
    Clock::time_point heard = Clock::now();
    bool is_lost = false, is_silent = false;
  };

  void lose(int number, const std::string& why) {
    Rank& rank = ranks_[static_cast<std::size_t>(number)];
    rank.is_lost = true;
    last_ = why;
    print_note(fmt::format("rank {} of the job is lost: {}{}", number, why, rank.job ? "; another takes what it was at" : ""));
    if (!rank.job) return;
    const std::size_t job = *rank.job;
    rank.job.reset();
    if (++lost_[job] < kMostLost)
      waiting_.insert(job);
    else
      fail(job, fmt::format("{} processes of the job were lost at the same piece of work; the last one: {}", kMostLost, why));
  }

  /// Those before it are still waited for: the first of all that fail is told, whoever was faster.
  void fail(std::size_t job, const std::string& why) {
    if (failed_ && *failed_ < job) return;
    failed_ = job;
    why_ = why;
    waiting_.erase(waiting_.lower_bound(job), waiting_.end());
  }

  const std::vector<std::string>& jobs_;
  std::vector<std::optional<std::string>> results_;
  std::vector<int> lost_;  // ranks that a job has cost
  std::vector<Rank> ranks_;
  std::set<std::size_t> waiting_;
  std::optional<std::size_t> failed_;
  std::string why_, last_;
};

Ranks::Ranks(const RankPlace& place, const RankWork& work) : place_(place) {
  worker_.emplace(work);
  try {
    link_ = make_link();
    if (link_->size() != place.size)
      throw Error(
          fmt::format("several processes: Open MPI knows {} where the launcher started {}; start them with its mpirun, or srun --mpi=pmix",
                      link_->size(), place.size));
  } catch (const Error&) {
    if (place.is_first()) throw;  // one of them says it
    link_.reset();
  }
}

Ranks::~Ranks() {
  if (!link_) return;
  if (place_.is_first() && !Interruption::asked()) end_others(nullptr);
  worker_.reset();
  // Open MPI would wait for those who are not there; of an interrupted job the launcher ends all processes.
  if (!any_silent_ && !Interruption::asked()) link_->finish();
}

void Ranks::send(int to, const RankMessage& message) {
  if (to == place_.rank)
    worker_->give(message);
  else
    link_->send(to, message);
}

void Ranks::say_alive(const Jobs& jobs) {
  if (const Clock::time_point now = Clock::now(); now - told_ > kOften) {
    told_ = now;
    for (int rank = 1; rank < place_.size; ++rank) {
      if (!jobs.is_silent(rank)) send(rank, {Kind::alive});
    }
  }
}

void Ranks::end_others(const Jobs* jobs) {
  if (std::exchange(have_ended_, true)) return;
  for (int rank = 1; rank < place_.size; ++rank) any_silent_ = any_silent_ || (jobs && jobs->is_silent(rank));
  for (int rank = 1; rank < place_.size; ++rank) {
    if (!jobs || !jobs->is_silent(rank)) send(rank, {.kind = Kind::end, .bytes = any_silent_ ? "without some" : ""});
  }
}

std::vector<RankMessage> Ranks::receive() {
  std::vector<RankMessage> all;
  if (std::optional<RankMessage> own = worker_->receive()) {
    own->from = place_.rank;
    all.push_back(std::move(*own));
  }
  while (std::optional<RankMessage> message = link_->receive()) all.push_back(std::move(*message));
  return all;
}

std::vector<std::string> Ranks::run(const std::vector<std::string>& all, const Progress& progress) {
  Jobs jobs(all, place_.size);
  while (!jobs.are_done()) {
    say_alive(jobs);
    jobs.hand_out([&](int rank, const RankMessage& job) { send(rank, job); });
    for (RankMessage& message : receive()) {
      if (Interruption::asked()) break;  // which the others may have heard before
      const Kind kind = message.kind;
      double done = 0;
      if (kind == Kind::progress && message.bytes.size() == sizeof(done)) std::memcpy(&done, message.bytes.data(), sizeof(done));
      const std::optional<std::size_t> job = jobs.take(std::move(message));
      if (!job || (kind != Kind::progress && kind != Kind::result)) continue;
      if (!progress(*job, done, kind == Kind::result ? jobs.result(*job) : nullptr)) throw Cancelled();
    }
    if (Interruption::asked()) throw Cancelled();
    jobs.look_for_lost();
  }
  end_others(&jobs);
  return jobs.results();
}

void Ranks::follow() {
  if (!link_) return;
  std::optional<Clock::time_point> heard;  // of the first, once it has begun
  while (true) {
    const Clock::time_point now = Clock::now();
    if (now - told_ > kOften) {
      link_->send(0, {Kind::alive});
      told_ = now;
    }
    for (const RankMessage& message : receive()) {
      if (message.from == place_.rank) {
        link_->send(0, message);
        continue;
      }
      heard = now;
      if (message.kind == Kind::job) worker_->give(message);
      if (message.kind == Kind::end) return void(any_silent_ = !message.bytes.empty());
    }
    if (heard && now - *heard > kLong) {
      any_silent_ = true;
      throw Error(fmt::format("the first process of the job is not heard of for {} s", kLong.count()));
    }
  }
}

void refuse_standard_input(const std::vector<std::string>& files) {
  if (std::ranges::count(files, "-") > 0) throw OptionsError("several processes cannot all read standard input; give a file");
}

}  // namespace statescope

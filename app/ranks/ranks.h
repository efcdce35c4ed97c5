// One command on several processes: jobs go to them as they come free, and what came of them is in the order of the jobs, whoever did
// which.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/ranks/place.h"
#include "app/ranks/worker.h"

namespace statescope {

class Ranks {
 public:
  /// Before this process has threads. `work` is done in a process beside this one. Throws Error, at the first rank alone, where the module
  /// for Open MPI is missing; the others then have no link.
  Ranks(const RankPlace& place, const RankWork& work);
  /// Tells the others that there is nothing left to do.
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  /// Of the first rank: what came of each job. A rank whose computing process ends, or that is not heard of for long, costs its job, which
  /// another takes; a job that has ended two is given up. `progress` hears how much of a job is done, then, once, what came of it;
  /// returning false ends the work. Throws Error as the first of the jobs that failed did, Cancelled.
  using Progress = std::function<bool(std::size_t job, double done, const std::string* result)>;
  std::vector<std::string> run(const std::vector<std::string>& jobs, const Progress& progress);

  /// Of the others: works until the first says that all is done.
  void follow();

 private:
  using Clock = std::chrono::steady_clock;
  class Jobs;

  void send(int to, const RankMessage& message);
  void say_alive(const Jobs& jobs);
  void end_others(const Jobs* jobs);
  std::vector<RankMessage> receive();

  RankPlace place_;
  std::optional<RankWorker> worker_;
  std::unique_ptr<RankLink> link_;
  Clock::time_point told_;   // that it is alive
  bool have_ended_ = false;  // the others
  bool any_silent_ = false;
};

/// Throws OptionsError where a file is "-".
void refuse_standard_input(const std::vector<std::string>& files);

}  // namespace statescope

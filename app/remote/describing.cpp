#include "app/remote/describing.h"

#include <utility>

#include "app/runs/post.h"
#include "engine/error.h"
#include "engine/remote/wire.h"

namespace statescope {

Describing::Describing() : thread_([this](const std::stop_token& stop) { work(stop); }) {}

Describing::~Describing() = default;

void Describing::add(Job job) {
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
  wake_.notify_one();
}

void Describing::work(const std::stop_token& stop) {
  while (true) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      if (!wake_.wait(lock, stop, [this] { return !jobs_.empty(); })) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    Told told;
    try {
      told = job.find_out([&stop] { return !stop.stop_requested(); });
    } catch (const std::exception& error) {
      told = remote::Failed{remote::pack(Failure(error))};
    }
    post([tell = std::move(job.tell), told = std::move(told)]() mutable { tell(std::move(told)); });
  }
}

}  // namespace statescope

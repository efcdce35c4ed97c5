// Stands in for oneTBB's under the thread sanitizer, with threads of its own: those of a library that is not instrumented wait for each
// other unseen, and everything that passes between them would count as a race.
#pragma once

#include <tbb/global_control.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace tbb {

struct simple_partitioner {};

template <class Index, class Fn>
void parallel_for(Index first, Index last, const Fn& fn, simple_partitioner) {
  std::atomic<Index> next = first;
  std::atomic_flag failed;
  std::exception_ptr error;
  const auto work = [&] {
    try {
      for (Index i; (i = next++) < last;) fn(i);
    } catch (...) {
      if (!failed.test_and_set()) error = std::current_exception();
    }
  };
  {
    const auto threads = static_cast<Index>(global_control::active_value(global_control::max_allowed_parallelism));
    std::vector<std::jthread> others;
    for (Index i = 1; i < std::min<Index>(last - first, threads); ++i) others.emplace_back(work);
    work();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace tbb

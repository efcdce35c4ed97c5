// Independent pieces of work over the cores.
#pragma once

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>

#include <cstdint>

namespace statescope {

/// While it lives, no more than `count` threads work at the same time in this program.
class ThreadLimit {
 public:
  explicit ThreadLimit(int count) : control_(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(count)) {}

 private:
  tbb::global_control control_;
};

/// How many threads may work at the same time now.
inline int thread_count() { return static_cast<int>(tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism)); }

/// Whether the calling thread is inside a piece of work: its scratch memory is in use, so it must not start another piece meanwhile.
inline thread_local bool inside_parallel_for = false;

/// fn(i) for i in [0, n), each once, in any order and on any thread; pieces are handed out one at a time. In the calling thread alone if
/// there is one piece, if `worthwhile` is false, or inside another parallel_for. If fn throws, the first exception reaches the caller.
/// Never waits for a thread that has not begun: on a busy machine the caller does the work itself.
template <class Fn>
void parallel_for(std::int64_t n, const Fn& fn, bool worthwhile = true) {
  if (n <= 1 || !worthwhile || inside_parallel_for || thread_count() == 1) {
    for (std::int64_t i = 0; i < n; ++i) fn(i);
    return;
  }
  struct Inside {
    Inside() { inside_parallel_for = true; }
    ~Inside() { inside_parallel_for = false; }
  };
  const auto piece = [&](std::int64_t i) {
    const Inside inside;
    fn(i);
  };
  tbb::parallel_for(std::int64_t{0}, n, piece, tbb::simple_partitioner());
}

}  // namespace statescope

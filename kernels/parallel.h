// Independent pieces of work over the cores.
#pragma once

#include <omp.h>

#include <cstdint>
#include <exception>

namespace statescope {

/// fn(i) for i in [0, n), each once, in any order and on any thread; pieces are handed out one at a time. In the calling thread alone if
/// there is one piece, if `worthwhile` is false, or inside another parallel_for. If fn throws, the first exception reaches the caller.
template <class Fn>
void parallel_for(std::int64_t n, const Fn& fn, bool worthwhile = true) {
  if (n <= 1 || !worthwhile || omp_in_parallel() || omp_get_max_threads() == 1) {
    for (std::int64_t i = 0; i < n; ++i) fn(i);
    return;
  }
  std::exception_ptr failure;
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t i = 0; i < n; ++i) {
    try {
      fn(i);
    } catch (...) {  // must not leave the parallel region
#pragma omp critical(statescope_parallel_for)
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace statescope

#include "app/common/process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#include "engine/checkpoint/file.h"

namespace statescope {
namespace {

constexpr rlim_t kLeastStack = rlim_t{1} << 20;  // bytes

/// What is read from the first and written to the others fails, as from and to a closed one.
void open_missing_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    const int mode = descriptor == STDOUT_FILENO ? O_RDONLY : O_WRONLY;  // nobody misses what goes to standard error
    if (::open("/dev/null", mode) < 0) std::_Exit(1);
  }
}

/// As where memory ends while Qt draws, or in a destructor.
[[noreturn]] void give_up() {
  const char* why = "statescope: a fault of this program ended it\n";
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    why = "statescope: out of memory\n";
  } catch (...) {
  }
  std::fputs(why, stderr);
  remove_unfinished();
  std::_Exit(1);
}

}  // namespace

void end_for_lack_of_threads() {
  std::fputs("statescope: no thread can be started: memory or the number of processes may be limited (ulimit -v, -u)\n", stderr);
  remove_unfinished();
  std::_Exit(1);
}

bool prepare_process() {
  open_missing_descriptors();
  std::signal(SIGXFSZ, SIG_IGN);
  std::set_terminate(give_up);
  rlimit stack{};
  if (::getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur != RLIM_INFINITY && stack.rlim_cur < kLeastStack) {
    std::fprintf(stderr, "statescope: a stack of %lld kB is too small; 1024 kB are needed: ulimit -s 8192\n",
                 static_cast<long long>(stack.rlim_cur / 1024));
    return false;
  }
  return true;
}

}  // namespace statescope

#include "app/ranks/worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <new>
#include <stdexcept>

#include "app/ranks/place.h"
#include "engine/checkpoint/file.h"
#include "kernels/device.h"

namespace statescope {
namespace {

using Kind = RankMessage::Kind;

constexpr int kMoment = 2;                          // ms
constexpr std::chrono::milliseconds kBetween(100);  // two tellings of progress

/// In front of the bytes.
struct Head {
  Kind kind;
  std::uint64_t job, size;
};

bool write_all(int socket, const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::send(socket, at, size, MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

bool read_all(int socket, void* data, std::size_t size) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t read = ::recv(socket, at, size, 0);
    if (read < 0 && errno == EINTR) continue;
    if (read <= 0) return false;
    at += read;
    size -= static_cast<std::size_t>(read);
  }
  return true;
}

bool write_message(int socket, const RankMessage& message) {
  const Head head{message.kind, message.job, message.bytes.size()};
  return write_all(socket, &head, sizeof(head)) && write_all(socket, message.bytes.data(), message.bytes.size());
}

std::optional<RankMessage> read_message(int socket) {
  Head head{};
  if (!read_all(socket, &head, sizeof(head))) return {};
  RankMessage message{head.kind, head.job, std::string(static_cast<std::size_t>(head.size), '\0')};
  if (!read_all(socket, message.bytes.data(), message.bytes.size())) return {};
  return message;
}

/// Until the rank ends.
[[noreturn]] void serve(int socket, pid_t rank, const RankWork& work) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != rank) ::_exit(1);
  forget_rank_place();
  // One of the job writes: what this one has to say goes through the socket.
  const int nowhere = ::open("/dev/null", O_RDWR);
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, descriptor);
  while (const std::optional<RankMessage> job = read_message(socket)) {
    const auto say = [&](Kind kind, std::string bytes) { write_message(socket, {kind, job->job, std::move(bytes)}); };
    std::chrono::steady_clock::time_point told;
    double done = 0;
    const auto say_done = [&] { say(Kind::progress, std::string(reinterpret_cast<const char*>(&done), sizeof(done))); };
    const auto tell = [&](double now_done) {
      done = now_done;
      const auto now = std::chrono::steady_clock::now();
      if (now - told <= kBetween) return;
      told = now;
      say_done();
    };
    try {
      std::string result = work(job->bytes, tell);
      say_done();
      say(Kind::result, std::move(result));
    } catch (const DeviceError& error) {
      say(Kind::lost, error.what());
      ::_exit(1);
    } catch (const std::bad_alloc&) {
      say(Kind::lost, "out of memory");
      ::_exit(1);
    } catch (const std::exception& error) {
      say(Kind::failed, error.what());
    }
  }
  ::_exit(0);
}

/// How the process ended.
std::string end_of(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFSIGNALED(status)) return fmt::format("ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("ended with status {}", WEXITSTATUS(status));
}

}  // namespace

RankWorker::RankWorker(const RankWork& work) {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) fail_errno("a process of the job", "cannot be started", errno);
  const pid_t rank = ::getpid();
  process_ = ::fork();
  if (process_ == 0) {
    ::close(sockets[0]);
    serve(sockets[1], rank, work);
  }
  ::close(sockets[1]);
  socket_ = sockets[0];
  if (process_ < 0) fail_errno("a process of the job", "cannot be started", errno);
}

RankWorker::~RankWorker() {
  ::close(socket_);
  if (process_ <= 0 || lost_) return;
  ::kill(process_, SIGKILL);
  end_of(process_);
}

void RankWorker::give(const RankMessage& job) { write_message(socket_, job); }

std::optional<RankMessage> RankWorker::receive() {
  pollfd wait{socket_, POLLIN, 0};
  if (::poll(lost_ ? nullptr : &wait, lost_ ? 0 : 1, kMoment) <= 0) return {};
  std::optional<RankMessage> message = read_message(socket_);
  if (message && message->kind != Kind::lost) return message;
  lost_ = true;
  const std::string end = end_of(process_);
  return RankMessage{.kind = Kind::lost, .bytes = message ? message->bytes : end};
}

}  // namespace statescope

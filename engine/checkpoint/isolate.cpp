#include "engine/checkpoint/isolate.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>

#include "engine/checkpoint/file.h"
#include "engine/error.h"

namespace statescope {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

constexpr std::size_t memory_allowance = std::size_t{1} << 30;  // beyond what the process has; shared memory is not counted
constexpr rlim_t seconds_at_least = 4;
constexpr rlim_t bytes_per_second = 20'000'000;  // a tenth of what decompression gives on a slow machine
#ifdef __SANITIZE_ADDRESS__
constexpr rlim_t wall_per_cpu = 3;  // its allocator's locks may be held at a fork: the child then waits for ever
#else
constexpr rlim_t wall_per_cpu = 20;  // a slow disk is no fault of the file
#endif
constexpr int attempts = 4;  // of a child that only waits: a lock of another thread of ours, or the disk

void limit(int resource, rlim_t value) {
  const rlimit both{value, value};
  ::setrlimit(resource, &both);
}

/// Bytes of private writable memory, as RLIMIT_DATA counts them.
rlim_t private_memory() {
  unsigned long pages = 0;
  if (std::FILE* statm = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(statm, "%*u %*u %*u %*u %*u %lu", &pages) != 1) pages = 0;
    std::fclose(statm);
  }
  return static_cast<rlim_t>(pages) * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

void confine(std::size_t file_bytes) {
  const rlim_t seconds = seconds_at_least + file_bytes / bytes_per_second;
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, seconds);
  limit(RLIMIT_DATA, private_memory() + memory_allowance + 2 * file_bytes);
  for (const int signal : {SIGALRM, SIGXCPU, SIGSEGV, SIGBUS, SIGABRT, SIGFPE}) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::alarm(static_cast<unsigned>(seconds * wall_per_cpu));
  if (const int silence = ::open("/dev/null", O_WRONLY); silence >= 0) ::dup2(silence, STDERR_FILENO);
}

json answer_of(SharedMemory& memory, const std::function<json(SharedMemory&)>& work) {
  try {
    return {{"result", work(memory)}};
  } catch (const std::bad_alloc&) {
    return {{"error", "it needs more memory than there is, or than a sound file would"}};
  } catch (const Error& error) {
    return {{"complete error", error.what()}};
  } catch (const std::exception& error) {
    return {{"error", error.what()}};
  }
}

/// The answer is the last part of the memory, behind it its length.
void hand_over(SharedMemory& memory, const json& answer) {
  const std::vector<std::uint8_t> bytes = json::to_cbor(answer);
  const std::uint64_t length = bytes.size();
  memory.append(bytes.size() + sizeof length, [&](std::byte* to) {
    std::memcpy(to, bytes.data(), bytes.size());
    std::memcpy(to + bytes.size(), &length, sizeof length);
  });
}

json answer_in(const fs::path& path, std::span<const std::byte> memory) {
  std::uint64_t length = 0;
  if (memory.size() < sizeof length) fail(path, "is damaged: it cannot be read to its end");
  std::memcpy(&length, memory.data() + memory.size() - sizeof length, sizeof length);
  if (length > memory.size() - sizeof length) fail(path, "is damaged: it cannot be read to its end");
  const auto* end = reinterpret_cast<const std::uint8_t*>(memory.data() + memory.size() - sizeof length);
  json answer = json::from_cbor(end - length, end, /*strict=*/true, /*allow_exceptions=*/false);
  if (!answer.is_object()) fail(path, "is damaged: it cannot be read to its end");
  return answer;
}

/// Whether it has ended by itself, not after waiting too long for something else than the processor.
bool wait_for(const fs::path& path, pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) fail_errno(path, "cannot be read in a process of its own", errno);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return false;
  if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL))
    fail(path, "is damaged: reading it comes to no end");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail(path, "is damaged: the HDF5 library fails on it");
  return true;
}

/// Whether a child has done the work.
bool work_in_child(const fs::path& path, std::size_t file_bytes, SharedMemory& memory, const std::function<json(SharedMemory&)>& work) {
  const pid_t child = ::fork();
  if (child < 0) fail_errno(path, "cannot be read in a process of its own", errno);
  if (child == 0) {
    confine(file_bytes);
    try {
      hand_over(memory, answer_of(memory, work));
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  return wait_for(path, child);
}

}  // namespace

SharedMemory::SharedMemory(const fs::path& path) : path_(path), descriptor_(::memfd_create("statescope", MFD_CLOEXEC)) {
  if (descriptor_ < 0) fail_errno(path_, "no memory to read it into", errno);
}

SharedMemory::~SharedMemory() { ::close(descriptor_); }

std::size_t SharedMemory::append(std::size_t size, const std::function<void(std::byte*)>& fill) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t offset = (size_ + page - 1) / page * page;
  if (::ftruncate(descriptor_, static_cast<off_t>(offset + size)) != 0) fail_errno(path_, "no memory to read it into", errno);
  void* region = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, static_cast<off_t>(offset));
  if (region == MAP_FAILED) fail_errno(path_, "no memory to read it into", errno);
  size_ = offset + size;
  fill(static_cast<std::byte*>(region));
  ::munmap(region, size);
  return offset;
}

std::shared_ptr<const MappedFile> SharedMemory::map() const { return std::make_shared<const MappedFile>(path_, descriptor_); }

IsolatedResult run_isolated(const fs::path& path, std::size_t file_bytes, const std::function<json(SharedMemory&)>& work) {
  std::optional<SharedMemory> memory;
  bool done = false;
  for (int i = 0; i < attempts && !done; ++i) done = work_in_child(path, file_bytes, memory.emplace(path), work);
  if (!done) fail(path, "is damaged: reading it comes to no end");
  IsolatedResult result{.catalogue = {}, .memory = memory->map()};
  json answer = answer_in(path, result.memory->bytes());
  if (answer.contains("complete error") && answer["complete error"].is_string()) throw Error(answer["complete error"].get<std::string>());
  if (!answer.contains("result")) fail(path, fmt::format("is damaged: {}", answer.value("error", "it cannot be read to its end")));
  result.catalogue = std::move(answer["result"]);
  return result;
}

}  // namespace statescope

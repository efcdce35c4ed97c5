#include "engine/checkpoint/isolate.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>

#include "engine/checkpoint/file.h"
#include "engine/error.h"
#include "kernels/cpu/beside.h"

namespace statescope {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

constexpr std::size_t kMemoryAllowance = std::size_t{1} << 30;  // beyond what the program begins with; shared memory is not counted
constexpr rlim_t kLeastSeconds = 4;
constexpr rlim_t kBytesPerSecond = 20'000'000;  // a tenth of what decompression gives on a slow machine
constexpr rlim_t kWallPerCpu = 20;              // a slow disk is no fault of the file
constexpr int kDidNotStart = 127;               // as the loader of libraries says it

/// Bytes of private writable memory, as RLIMIT_DATA counts them.
rlim_t private_memory() {
  unsigned long pages = 0;
  if (std::FILE* statm = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(statm, "%*u %*u %*u %*u %*u %lu", &pages) != 1) pages = 0;
    std::fclose(statm);
  }
  return static_cast<rlim_t>(pages) * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

json answer_of(SharedMemory& memory, const std::function<json(SharedMemory&)>& work) {
  try {
    return {{"result", work(memory)}};
  } catch (const std::bad_alloc&) {
    if (rlimit space{}; ::getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
      return {{"scarce", "it needs more memory than the limit allows (ulimit -v)"}};
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

/// What posix_spawn is told: the memory as a descriptor of the program, no other file of ours, no word on our standard error, no signal
/// held back.
class SpawnOptions {
 public:
  explicit SpawnOptions(int memory) {
    ::posix_spawn_file_actions_init(&files_);
    ::posix_spawn_file_actions_adddup2(&files_, memory, kMemoryDescriptor);
    ::posix_spawn_file_actions_addopen(&files_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_addclosefrom_np(&files_, kMemoryDescriptor + 1);
    ::posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnOptions() {
    ::posix_spawn_file_actions_destroy(&files_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnOptions(const SpawnOptions&) = delete;
  SpawnOptions& operator=(const SpawnOptions&) = delete;

  /// Throws Error.
  pid_t start(const fs::path& path, const std::vector<std::string>& command) const {
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    pid_t child = 0;
    const int error = ::posix_spawn(&child, words[0], &files_, &attributes_, words.data(), environ);
    if (error != 0) fail_errno(path, "cannot be read in a process of its own", error);
    return child;
  }

 private:
  posix_spawn_file_actions_t files_{};
  posix_spawnattr_t attributes_{};
};

/// Ends the program where it has not ended by itself after so many seconds, and says so. Where the system has no such watch, it waits.
bool end_after(pid_t child, rlim_t seconds) {
  const Descriptor watch(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  if (watch.get() < 0) return false;
  pollfd ended{watch.get(), POLLIN, 0};
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    const int found = left > 0 ? ::poll(&ended, 1, static_cast<int>(left)) : 0;
    if (found > 0) return false;
    if (found < 0 && errno == EINTR) continue;
    ::kill(child, SIGKILL);
    return true;
  }
}

/// `ended`: by us, because it took too long.
void wait_for(const fs::path& path, pid_t child, bool ended) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) fail_errno(path, "cannot be read in a process of its own", errno);
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (signal == SIGXCPU || ended) fail(path, "is damaged: reading it does not end");
  if (signal == SIGXFSZ) fail(path, "cannot be read: its content is larger than the limit on the size of files (ulimit -f)");
  if (signal == SIGKILL) fail(path, "cannot be read: the system ended the program that reads it, as where memory is short");
  if (WIFEXITED(status) && WEXITSTATUS(status) == kDidNotStart)
    fail(path, "cannot be read: the program that reads it does not start; memory or open files may be limited (ulimit -a)");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail(path, "is damaged: the HDF5 library fails on it");
}

void limit(pid_t child, __rlimit_resource resource, rlim_t value) {
  const rlimit both{value, value};
  ::prlimit(child, resource, &both, nullptr);
}

}  // namespace

SharedMemory::SharedMemory(const fs::path& path) : SharedMemory(path, ::memfd_create("statescope", MFD_CLOEXEC)) {}

SharedMemory::SharedMemory(const fs::path& path, int descriptor) : path_(path), file_(descriptor) {
  if (file_.get() < 0) fail_errno(path_, "no memory to read it into", errno);
}

std::size_t SharedMemory::append(std::size_t size, const std::function<void(std::byte*)>& fill) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t offset = (size_ + page - 1) / page * page;
  if (::ftruncate(file_.get(), static_cast<off_t>(offset + size)) != 0) fail_errno(path_, "no memory to read it into", errno);
  void* region = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), static_cast<off_t>(offset));
  if (region == MAP_FAILED) fail_errno(path_, "no memory to read it into", errno);
  size_ = offset + size;
  fill(static_cast<std::byte*>(region));
  ::munmap(region, size);
  return offset;
}

std::shared_ptr<const MappedFile> SharedMemory::map() const { return std::make_shared<const MappedFile>(path_, file_.get()); }

fs::path reader_program() {
  const fs::path reader = beside_program("statescope-reader");
  if (!fs::exists(reader)) throw Error(reader.string() + ": is missing; HDF5 files are read by that program, which comes with this one");
  return reader;
}

IsolatedResult run_isolated(const fs::path& path, std::size_t file_bytes, const std::vector<std::string>& command) {
  const SharedMemory memory(path);
  const rlim_t seconds = kLeastSeconds + file_bytes / kBytesPerSecond;
  const pid_t child = SpawnOptions(memory.descriptor()).start(path, command);
  limit(child, RLIMIT_CORE, 0);
  limit(child, RLIMIT_CPU, seconds);
  const bool ended = end_after(child, seconds * kWallPerCpu);
  wait_for(path, child, ended);
  if (fs::file_size(fmt::format("/proc/self/fd/{}", memory.descriptor())) == 0) fail(path, "is damaged: it cannot be read to its end");
  IsolatedResult result{.catalogue = {}, .memory = memory.map()};
  json answer = answer_in(path, result.memory->bytes());
  if (answer.contains("complete error") && answer["complete error"].is_string()) throw Error(answer["complete error"].get<std::string>());
  if (answer.contains("scarce")) fail(path, "cannot be read: " + answer.value("scarce", ""));
  if (!answer.contains("result")) fail(path, fmt::format("is damaged: {}", answer.value("error", "it cannot be read to its end")));
  result.catalogue = std::move(answer["result"]);
  return result;
}

int answer_in_isolation(const fs::path& path, std::size_t file_bytes, const std::function<json(SharedMemory&)>& work) {
  limit(0, RLIMIT_DATA, private_memory() + kMemoryAllowance + 2 * file_bytes);
  SharedMemory memory(path, kMemoryDescriptor);
  hand_over(memory, answer_of(memory, work));
  return 0;
}

}  // namespace statescope

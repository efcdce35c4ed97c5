#include "engine/checkpoint/mapped_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>

#include "engine/checkpoint/file.h"

namespace statescope {
namespace fs = std::filesystem;

/// What the handler of SIGBUS knows of a mapping. These are used again, never freed: it may stand at any of them.
struct MappedRange {
  std::atomic<std::byte*> begin = nullptr;  // null: of no mapping
  std::atomic<std::size_t> size = 0;
  std::atomic<bool> is_cut = false;
  MappedRange* next = nullptr;
};

namespace {

std::atomic<MappedRange*> ranges = nullptr;
std::mutex ranges_mutex;  // not for the handler
std::size_t page_size = 0;
struct sigaction handler_before {};

/// Pages that the file no longer has become zeros; the thread that reads them goes on.
void give_zeros(int, siginfo_t* info, void*) {
  const int error = errno;
  const auto* const at = static_cast<std::byte*>(info->si_addr);
  for (MappedRange* range = ranges; range; range = range->next) {
    std::byte* const begin = range->begin;
    const std::size_t size = range->size;
    if (!begin || at < begin || at >= begin + size) continue;
    const std::size_t first = static_cast<std::size_t>(at - begin) / page_size * page_size;
    range->is_cut = true;
    if (::mmap(begin + first, size - first, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) break;
    errno = error;
    return;
  }
  ::sigaction(SIGBUS, &handler_before, nullptr);  // no page of ours: it comes again, to whom it came before
}

void install_handler() {
  page_size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  struct sigaction ours {};
  ours.sa_sigaction = give_zeros;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  ::sigaction(SIGBUS, &ours, &handler_before);
}

MappedRange* guard(std::byte* begin, std::size_t size) {
  static std::once_flag once;
  std::call_once(once, install_handler);
  const std::lock_guard lock(ranges_mutex);
  MappedRange* range = ranges;
  while (range && range->begin) range = range->next;
  const bool is_new = !range;
  if (is_new) range = new MappedRange;
  range->is_cut = false;
  range->size = size;
  range->begin = begin;
  if (is_new) {
    range->next = ranges;
    ranges = range;
  }
  return range;
}

std::chrono::nanoseconds last_written(const fs::path& path, int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail_errno(path, "cannot be examined", errno);
  return std::chrono::seconds(status.st_mtim.tv_sec) + std::chrono::nanoseconds(status.st_mtim.tv_nsec);
}

}  // namespace

MappedFile::MappedFile(const fs::path& path) : MappedFile(path, open_to_read(path)) {}

MappedFile::MappedFile(const fs::path& path, int descriptor) : MappedFile(path, Descriptor(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0))) {}

MappedFile::MappedFile(const fs::path& path, Descriptor file) : path_(path), file_(std::move(file)) {
  if (file_.get() < 0) fail_errno(path, "cannot be opened", errno);
  const std::size_t size = size_of_regular_file(path, file_.get());
  if (size == 0) fail(path, "is empty");
  written_ = last_written(path, file_.get());
  void* pages = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file_.get(), 0);
  if (pages == MAP_FAILED) fail_errno(path, "cannot be mapped into memory", errno);
  bytes_ = {static_cast<const std::byte*>(pages), size};
  range_ = guard(static_cast<std::byte*>(pages), size);
}

MappedFile::~MappedFile() {
  range_->begin = nullptr;
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::require_whole() const {
  if (size_of_regular_file(path_, file_.get()) < bytes_.size()) fail(path_, kBecameShorter);
  if (range_->is_cut) fail(path_, "a part of it could not be read");
  if (last_written(path_, file_.get()) != written_) fail(path_, "the file was written to while it was read");
}

}  // namespace statescope

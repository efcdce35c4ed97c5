#include "engine/checkpoint/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <mutex>
#include <system_error>
#include <utility>

#include "engine/checkpoint/printable.h"
#include "engine/error.h"

namespace statescope {
namespace fs = std::filesystem;
namespace {

/// How many bytes the UTF-8 character at the text's beginning has; 0: it is none, or one that drives a terminal.
std::size_t shown_character(std::string_view text) {
  const auto byte = [&](std::size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U; };
  if (byte(0) < 0x80) return byte(0) >= 0x20 && byte(0) != 0x7f ? 1 : 0;
  const std::size_t size = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  std::uint32_t code = byte(0) & (0xffU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3fU);
  }
  constexpr std::array<std::uint32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
  const bool is_character =
      byte(0) >= 0xc2 && byte(0) < 0xf5 && code >= least[size] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  const bool turns_line = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);  // to be read from the other side
  const bool is_control = code < 0xa0 || turns_line || code == 0x2028 || code == 0x2029;
  return is_character && !is_control ? size : 0;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const bool is_kept = text.front() == '\n' || text.front() == '\t';
    const std::size_t size = is_kept ? 1 : shown_character(text);
    shown += size > 0 ? std::string(text.substr(0, size)) : fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return shown;
}

std::string one_line(std::string_view text, std::size_t limit) {
  std::string_view kept = text.substr(0, limit);
  if (text.size() > limit) {
    while (!kept.empty() && (static_cast<unsigned char>(kept.back()) & 0x80)) kept.remove_suffix(1);  // no half of a UTF-8 character
  }
  std::string line(kept);
  std::ranges::replace_if(
      line, [](char c) { return c == '\n' || c == '\t' || c == '\r'; }, ' ');
  return printable(line) + (text.size() > limit ? "..." : "");
}

void fail(const fs::path& path, std::string_view what) { throw Error(one_line(path.string(), 4096) + ": " + one_line(what, 600)); }

void fail_errno(const fs::path& path, std::string_view what, int error) {
  fail(path, fmt::format("{}: {}", what, std::generic_category().message(error)));
}

std::string in_quotes(std::string_view name) { return "'" + one_line(name, 100) + "'"; }

Descriptor open_to_read(const fs::path& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));  // O_NONBLOCK: a pipe would wait
  if (file.get() < 0) fail_errno(path, "cannot be opened", errno);
  return file;
}

std::size_t size_of_regular_file(const fs::path& path, int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail_errno(path, "cannot be examined", errno);
  if (S_ISDIR(status.st_mode)) fail(path, "is a folder, a file was expected");
  if (!S_ISREG(status.st_mode)) fail(path, "is not a regular file");
  return static_cast<std::size_t>(status.st_size);
}

void check_is_no_pointer(const fs::path& path, std::string_view bytes) {
  if (bytes.starts_with("version https://git-lfs.github.com/spec/"))
    fail(path, "is a Git LFS pointer, not the file itself; fetch that with: git lfs pull");
}

std::string read_file(const fs::path& path, std::size_t limit) {
  const Descriptor file = open_to_read(path);
  const std::size_t size = size_of_regular_file(path, file.get());
  if (size > limit) fail(path, fmt::format("has {} bytes; at most {} are read", size, limit));
  std::string text(size, '\0');
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::read(file.get(), text.data() + done, std::min<std::size_t>(text.size() - done, 1 << 30));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_errno(path, "cannot be read", errno);
    if (count == 0) fail(path, kBecameShorter);
    done += static_cast<std::size_t>(count);
  }
  check_is_no_pointer(path, text);
  return text;
}

OutputFile::OutputFile(const fs::path& path) : OutputFile(path, path) {}

OutputFile::OutputFile(const Draft& draft) : OutputFile(draft.path(), draft.target()) {}

OutputFile::OutputFile(const fs::path& path, fs::path called)
    : path_(std::move(called)), descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) fail_errno(path_, "cannot be written", errno);
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), std::min<std::size_t>(bytes.size(), 1 << 30));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_errno(path_, "cannot be written", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void OutputFile::finish() {
  if (::fsync(descriptor_) != 0) fail_errno(path_, "cannot be written", errno);
  if (::close(std::exchange(descriptor_, -1)) != 0) fail_errno(path_, "cannot be written", errno);
}

void flush_to_disk(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail_errno(path, "cannot be written", errno);
  if (::fsync(file.get()) != 0 && errno != EINVAL) fail_errno(path, "cannot be written", errno);  // EINVAL: a file system without it
}

namespace {

/// Drafts that a signal that ends the program removes; those that are folders stay.
constexpr std::size_t kDrafts = 8;
struct Pending {
  std::atomic<pid_t> owner = 0;  // 0: free; a forked process removes nothing of its parent's
  char path[4096] = {};
};
Pending pending[kDrafts];

void remove_drafts(int signal) {
  remove_unfinished();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

void remove_unfinished() {
  for (const Pending& draft : pending) {
    if (draft.owner == ::getpid()) ::unlink(draft.path);
  }
}

void remove_drafts_on_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    if (::sigaction(signal, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;
    now.sa_handler = remove_drafts;
    ::sigaction(signal, &now, nullptr);
  }
}

namespace {

Pending* keep_pending(const fs::path& path) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  remove_drafts_on_signals();
  const std::string name = fs::absolute(path).string();
  for (Pending& draft : pending) {
    if (draft.owner != 0 || name.size() >= sizeof(draft.path)) continue;
    std::copy_n(name.c_str(), name.size() + 1, draft.path);
    draft.owner = ::getpid();
    return &draft;
  }
  return nullptr;
}

}  // namespace

namespace {

/// ".NAME.PROCESS-NUMBER.part"
std::string draft_name(const std::string& target, pid_t process, unsigned number) {
  return fmt::format(".{}.{}-{}.part", target, process, number);
}

/// The process whose draft of that target has this name; 0: none.
pid_t process_of_draft(std::string_view name, const std::string& target) {
  const std::string before = "." + target + ".";
  pid_t process = 0;
  unsigned number = 0;
  if (!name.starts_with(before)) return 0;
  const char* const last = name.data() + name.size();
  const auto [dash, no_process] = std::from_chars(name.data() + before.size(), last, process);
  if (no_process != std::errc() || dash == last) return 0;
  const auto [end, no_number] = std::from_chars(dash + 1, last, number);
  return no_number == std::errc() && process > 0 && name == draft_name(target, process, number) ? process : 0;
}

/// What runs of this target left that were killed.
void sweep_drafts(const fs::path& target) {
  std::error_code ignored;
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  std::vector<fs::path> left;
  for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end; entry.increment(ignored)) {
    const pid_t process = process_of_draft(entry->path().filename().string(), target.filename().string());
    if (process > 0 && ::kill(process, 0) != 0 && errno == ESRCH) left.push_back(entry->path());
  }
  for (const fs::path& draft : left) fs::remove_all(draft, ignored);
}

}  // namespace

Draft::Draft(fs::path target, bool overwrite) : target_(std::move(target)), overwrite_(overwrite) {
  static std::atomic<unsigned> number{0};
  std::error_code ignored;
  if (target_ == "-") fail(target_, "this cannot be written to standard output; name a file, or ./- for one of that name");
  sweep_drafts(target_);
  if (!overwrite_ && fs::exists(fs::symlink_status(target_, ignored))) fail(target_, "exists already; choose another name or --force");
  if (fs::exists(target_, ignored) && !fs::is_regular_file(target_, ignored) && !fs::is_directory(target_, ignored))
    fail(target_, "is a device or a pipe; a file does not take its place");
  path_ = target_.parent_path() / draft_name(target_.filename().string(), ::getpid(), number++);
  if (fs::exists(fs::symlink_status(path_, ignored))) fail(path_, "is in the way of writing; remove it");
  if (Pending* const kept = keep_pending(path_)) release_ = [kept] { kept->owner = 0; };
}

Draft::~Draft() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  if (release_) release_();
}

void Draft::publish() {
  const auto rename = [&](unsigned flags) { return ::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target_.c_str(), flags) == 0; };
  // A folder that is replaced changes places with the draft, whose destructor then removes it.
  const bool over_folder = overwrite_ && fs::is_directory(fs::symlink_status(target_));
  if (over_folder && !fs::is_directory(path_)) fail(target_, "is a folder; a file does not take its place");
  bool done = rename(over_folder ? RENAME_EXCHANGE : overwrite_ ? 0 : RENAME_NOREPLACE);
  if (!done && errno == EINVAL && !fs::exists(fs::symlink_status(target_))) done = rename(0);  // a file system without these flags
  if (!done) fail_errno(target_, "cannot be put in place", errno);
  flush_to_disk(target_.has_parent_path() ? target_.parent_path() : fs::path("."));
}

}  // namespace statescope

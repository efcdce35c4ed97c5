#include "app/common/console.h"

#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <system_error>

#include "engine/checkpoint/printable.h"
#include "engine/error.h"

namespace statescope {
namespace {

constexpr std::size_t kMessage = 2000;  // bytes

/// Whether somebody sees standard error as it comes: a terminal, or that of mpirun, which passes on what its processes write.
bool is_seen() {
  if (::isatty(STDERR_FILENO) != 0) return true;
  if (std::getenv("OMPI_COMM_WORLD_RANK") == nullptr) return false;
  std::error_code none;
  const std::string file = std::filesystem::read_symlink(fmt::format("/proc/{}/fd/2", ::getppid()), none).string();
  return file.starts_with("/dev/pts/") || file.starts_with("/dev/tty");
}

}  // namespace

void print_note(const std::string& note) { fmt::print(stderr, "note: {}\n", one_line(note, kMessage)); }

void print_failure(const std::string& why) { fmt::print(stderr, "statescope: {}\n", one_line(why, kMessage)); }

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) print_note(note);
}

void fail_standard_output() { fail_errno("standard output", "cannot be written", errno); }

void finish_standard_output() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.flush()) return;
  if (errno != 0) fail_standard_output();
  throw Error("standard output: cannot be written");
}

ReportFile::ReportFile(const std::string& path, bool force) {
  if (path.empty()) return;
  is_standard_output_ = path == "-";
  if (is_standard_output_) return;
  if (std::error_code error; std::filesystem::is_directory(path, error))
    throw Error(path + ": is a folder; a file does not take its place");
  draft_.emplace(path, force);
  const std::filesystem::path folder = draft_->path().parent_path();
  if (::access(folder.empty() ? "." : folder.c_str(), W_OK) != 0) fail_errno(path, "cannot be written", errno);
}

void ReportFile::write(const std::string& text) {
  prepare(text);
  publish();
}

void ReportFile::prepare(const std::string& text) {
  if (is_standard_output_) text_ = text;
  if (!draft_) return;
  OutputFile file(*draft_);
  file.write(text);
  file.finish();
}

void ReportFile::publish() {
  if (is_standard_output_) fmt::print("{}", text_);
  if (draft_) draft_->publish();
}

void print_report(const std::string& text, std::initializer_list<const ReportFile*> files) {
  if (std::ranges::none_of(files, &ReportFile::is_standard_output)) fmt::print("{}", printable(text));
}

ProgressBar::ProgressBar(std::string what) : what_(printable(what)), terminal_(is_seen()) {}

ProgressBar::~ProgressBar() {
  if (shown_ >= 0) std::fputs("\r\033[K", stderr);
}

void ProgressBar::show(double fraction, const std::string& note) {
  const int percent = static_cast<int>(fraction * 100);
  if (!terminal_ || percent == shown_) return;
  shown_ = percent;
  const int filled = percent * 40 / 100;
  std::fputs(fmt::format("\r{} [{}{}] {:3}%{}{}\033[K", what_, std::string(static_cast<std::size_t>(filled), '#'),
                         std::string(static_cast<std::size_t>(40 - filled), ' '), percent, note.empty() ? "" : "  ", printable(note))
                 .c_str(),
             stderr);
  std::fflush(stderr);
}

}  // namespace statescope

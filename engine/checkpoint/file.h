// Files as this program reads and writes them: small ones whole, or written beside their target and renamed. Large ones are mapped
// (mapped_file.h).
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "engine/checkpoint/descriptor.h"

namespace statescope {

/// Throws Error "path: what" as one line, whatever a hostile file put into `what`.
[[noreturn]] void fail(const std::filesystem::path& path, std::string_view what);
/// The same for a failed system call: "path: what: No space left on device".
[[noreturn]] void fail_errno(const std::filesystem::path& path, std::string_view what, int error);
/// Text from outside for a message: control characters, which would break the line and drive a terminal, are spaces; beyond `limit` bytes
/// an ellipsis.
std::string one_line(std::string_view text, std::size_t limit);
/// 'name', short and printable.
std::string in_quotes(std::string_view name);

/// Opens it to read, also what is no regular file, without waiting. Throws Error.
Descriptor open_to_read(const std::filesystem::path& path);
/// Throws Error for what is no regular file.
std::size_t size_of_regular_file(const std::filesystem::path& path, int descriptor);
/// What is wrong with a file that ends before what its size was when it was opened.
inline constexpr std::string_view kBecameShorter = "the file became shorter while it was read";

/// Refuses what Git LFS leaves in a file's place where the file itself was not fetched.
void check_is_no_pointer(const std::filesystem::path& path, std::string_view bytes);

/// A small file (config.json, tokenizer.json) whole; refuses more than `limit` bytes, and Git LFS pointers.
std::string read_file(const std::filesystem::path& path, std::size_t limit);

/// A file written front to back; every failure is an Error that names the file.
class Draft;

class OutputFile {
 public:
  explicit OutputFile(const std::filesystem::path& path);  // must not exist yet
  /// Of a draft: errors name what it is to become.
  explicit OutputFile(const Draft& draft);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  /// Flushes to the disk and closes.
  void finish();

 private:
  OutputFile(const std::filesystem::path& path, std::filesystem::path called);

  std::filesystem::path path_;  // as errors have it
  int descriptor_ = -1;
};

/// A name beside `target` under which it is written; what is left there is removed at the end, so a failure leaves nothing behind.
class Draft {
 public:
  Draft(std::filesystem::path target, bool overwrite);
  ~Draft();
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& target() const { return target_; }
  /// Puts the draft in the target's place, in one step.
  void publish();

 private:
  std::filesystem::path target_, path_;
  bool overwrite_;
  std::function<void()> release_;  // a signal that ends the program would remove it until then
};

/// Takes away what has not been put in place. A signal's handler may do so too.
void remove_unfinished();

/// From now on a signal that ends the program removes drafts first, where nobody else has a use for it. The first draft does so too.
void remove_drafts_on_signals();

/// Flushes a finished file, or a folder's list of files, to the disk.
void flush_to_disk(const std::filesystem::path& path);

}  // namespace statescope

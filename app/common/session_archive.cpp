#include "app/common/session_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <set>

#include "engine/checkpoint/digest.h"
#include "engine/checkpoint/file.h"
#include "engine/error.h"
#include "engine/session/session_record.h"

namespace statescope {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t most_of_record = 256'000'000;    // bytes
constexpr std::uint64_t always_allowed = 4'000'000'000;  // unpacked; beyond that as many times the archive:
constexpr std::uint64_t most_growth = 20;
constexpr std::size_t most_name = 200;

fs::path recording_of(const fs::path& session) { return session.string() + ".recording"; }

/// Goes at the end of its life, unless it has come to its place.
class Unfinished {
 public:
  explicit Unfinished(const fs::path& target) : target_(target), path_(fmt::format("{}.part-{}", target.string(), ::getpid())) {
    if (fs::exists(target_)) fail(target_, "exists already; choose another name");
  }
  ~Unfinished() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  const fs::path& path() const { return path_; }
  void finish() {
    if (fs::exists(target_)) fail(target_, "exists already; choose another name");
    std::error_code error;
    fs::rename(path_, target_, error);
    if (error) fail(target_, "cannot be written: " + error.message());
    path_.clear();
  }

 private:
  fs::path target_, path_;
};

struct Close {
  void operator()(archive* a) const { archive_free(a); }  // of either kind
  void operator()(archive_entry* entry) const { archive_entry_free(entry); }
};

class Writer {
 public:
  explicit Writer(const fs::path& path) : path_(path), archive_(archive_write_new()) {
    archive_write_set_format_zip(archive_.get());
    check(archive_write_open_filename(archive_.get(), path.c_str()));
  }
  void add(const std::string& name, const std::string& text) {
    begin(name, text.size());
    write(text.data(), text.size());
  }
  /// The first `size` bytes of `file`.
  void add_file(const std::string& name, const fs::path& file, std::uint64_t size) {
    begin(name, size);
    std::ifstream in(file, std::ios::binary);
    std::array<char, 65536> block{};
    for (std::uint64_t left = size; left > 0;) {
      const auto want = static_cast<std::streamsize>(std::min<std::uint64_t>(left, block.size()));
      if (!in.read(block.data(), want)) fail(file, "cannot be read");
      write(block.data(), static_cast<std::size_t>(want));
      left -= static_cast<std::uint64_t>(want);
    }
  }
  void finish() { check(archive_write_close(archive_.get())); }

 private:
  void check(la_ssize_t result) const {
    if (result < 0) fail(path_, fmt::format("cannot be written: {}", archive_error_string(archive_.get())));
  }
  void begin(const std::string& name, std::uint64_t size) {
    const std::unique_ptr<archive_entry, Close> entry(archive_entry_new());
    archive_entry_set_pathname(entry.get(), name.c_str());
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(size));
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0644);
    check(archive_write_header(archive_.get(), entry.get()));
  }
  void write(const char* bytes, std::size_t size) { check(archive_write_data(archive_.get(), bytes, size)); }

  fs::path path_;
  std::unique_ptr<archive, Close> archive_;
};

/// A file's name and nothing more: it leads nowhere else.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.size() <= most_name && name.front() != '.' && name.find_first_of("/\\") == name.npos &&
         std::ranges::none_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

/// What unpacks into `folder`, with a limit on all of it.
class Reader {
 public:
  explicit Reader(const fs::path& path) : path_(path), archive_(archive_read_new()) {
    std::error_code error;
    const std::uint64_t size = fs::file_size(path, error);
    if (error) fail(path, "cannot be read: " + error.message());
    room_ = std::max(always_allowed, size * most_growth);
    archive_read_support_format_zip(archive_.get());
    if (archive_read_open_filename(archive_.get(), path.c_str(), 65536) != ARCHIVE_OK) refuse();
  }
  /// Empty: it was the last.
  std::string next() {
    archive_entry* entry = nullptr;
    const int result = archive_read_next_header(archive_.get(), &entry);
    if (result == ARCHIVE_EOF) return {};
    if (result != ARCHIVE_OK) refuse();
    const char* name = archive_entry_pathname(entry);
    if (!name || archive_entry_filetype(entry) != AE_IFREG || !is_plain_name(name))
      fail(path_, "is no session to share: it holds more than files");
    return name;
  }
  void write(const fs::path& to) {
    const int file = ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (file < 0) fail(to, "cannot be written");
    const std::unique_ptr<const int, void (*)(const int*)> closing(&file, [](const int* descriptor) { ::close(*descriptor); });
    std::array<char, 65536> block{};
    while (true) {
      const la_ssize_t count = archive_read_data(archive_.get(), block.data(), block.size());
      if (count < 0) refuse();
      if (count == 0) return;
      if (static_cast<std::uint64_t>(count) > room_) fail(path_, "would be absurdly large when unpacked");
      room_ -= static_cast<std::uint64_t>(count);
      for (la_ssize_t done = 0; done < count;) {
        const ssize_t written = ::write(file, block.data() + done, static_cast<std::size_t>(count - done));
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail(to, "cannot be written");
        done += written;
      }
    }
  }

 private:
  [[noreturn]] void refuse() const { fail(path_, "is damaged, or no session to share"); }

  fs::path path_;
  std::unique_ptr<archive, Close> archive_;
  std::uint64_t room_ = 0;
};

SessionRecord record_at(const fs::path& session) { return parse_session(read_file(session, most_of_record), session); }

/// What a session's checkpoint needs to go along; 0: it stays away.
std::uint64_t size_to_pack(const fs::path& session, const SessionRecord& record, const fs::path& checkpoint, std::uint64_t most) {
  std::error_code error;
  if (!fs::is_regular_file(checkpoint, error)) return 0;
  const std::uint64_t size = fs::file_size(checkpoint);
  if (size > most || !is_plain_name(checkpoint.filename().string())) return 0;
  if (content_digest(*open_checkpoint(checkpoint)) != record.checkpoint_digest)
    fail(session, fmt::format("its checkpoint, {}, has changed since", checkpoint.string()));
  return size;
}

}  // namespace

PackedSession pack_session(const fs::path& session, const fs::path& checkpoint, const fs::path& archive, std::uint64_t most) {
  SessionRecord record = record_at(session);
  const fs::path recording = recording_of(session);
  std::error_code error;
  const std::uint64_t recorded = fs::file_size(recording, error);  // what was written since is not the record's, and does no harm
  if (error) fail(recording, "cannot be read: " + error.message());
  const std::uint64_t size = size_to_pack(session, record, checkpoint, most);
  record.checkpoint = checkpoint.filename();  // where it lay is nobody's business
  const std::string name = session.filename().string();
  Unfinished draft(archive);
  Writer writer(draft.path());
  writer.add(name, to_json(record, session));
  writer.add_file(recording_of(name).string(), recording, recorded);
  if (size > 0) writer.add_file(checkpoint.filename().string(), checkpoint, size);
  writer.finish();
  draft.finish();
  return {.bytes = fs::file_size(archive), .has_checkpoint = size > 0};
}

fs::path checkpoint_of(const fs::path& session) { return record_at(session).checkpoint; }

fs::path unpack_session(const fs::path& archive, const fs::path& folder) {
  Reader reader(archive);
  Unfinished draft(folder);
  std::error_code error;
  if (!fs::create_directory(draft.path(), error)) fail(folder, "cannot be made: " + error.message());
  std::set<std::string> names;
  for (std::string name = reader.next(); !name.empty(); name = reader.next()) {
    if (names.size() == 3 || !names.insert(name).second) fail(archive, "is no session to share: it holds too many files");
    reader.write(draft.path() / name);
  }
  const auto session = std::ranges::find_if(names, [](const std::string& name) { return name.ends_with(".scope"); });
  if (session == names.end() || !names.contains(recording_of(*session).string()))
    fail(archive, "is no session to share: a session and its recording are not in it");
  const SessionRecord record = record_at(draft.path() / *session);
  for (const std::string& name : names)
    if (name != *session && name != recording_of(*session) && name != record.checkpoint)
      fail(archive, "is no session to share: " + name + " is not the session's");
  draft.finish();
  return folder / *session;
}

}  // namespace statescope

#include "engine/session/session_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/checkpoint/digest.h"
#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"
#include "engine/checkpoint/mapped_file.h"
#include "engine/error.h"
#include "engine/session/saving_due.h"

namespace statescope {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kPiece = 256;  // tokens that are written at once

fs::path recording_path(fs::path session) { return session += ".recording"; }

bool is_there(const fs::path& path) {
  std::error_code none;
  return fs::exists(fs::symlink_status(path, none));
}

/// Numbers that a token has in the recording.
std::int64_t row_size(const Model& model) { return model.streams() * model.hidden(); }

/// [to − from, streams, D]
std::vector<float> rows_of(const Run& run, std::int64_t from, std::int64_t to) {
  const std::int64_t D = run.model().hidden(), row = row_size(run.model());
  std::vector<float> rows(static_cast<std::size_t>((to - from) * row));
  for (std::int64_t layer = 0; layer < run.model().streams(); ++layer) {
    const std::vector<float> inputs = run.residual(layer, from, to);
    for (std::int64_t t = 0; t < to - from; ++t) std::copy_n(inputs.begin() + t * D, D, rows.begin() + t * row + layer * D);
  }
  return rows;
}

}  // namespace

std::int64_t tokens_within_a_second(const std::shared_ptr<Model>& model, std::span<const std::int32_t> ids, const RunOptions& options) {
  constexpr std::chrono::milliseconds enough{500};  // twice as many take a second
  Run run(model, options);
  const auto pass = [&](std::int64_t tokens) {
    const auto begin = std::chrono::steady_clock::now();
    run.read(ids.subspan(static_cast<std::size_t>(run.tokens()), static_cast<std::size_t>(tokens)), std::ssize(ids));
    return std::chrono::steady_clock::now() - begin;
  };
  pass(1);  // the first has weights to fetch
  std::int64_t tokens = 1;
  while (tokens < run.tokens_at_once() && run.tokens() + tokens <= std::ssize(ids)) {
    if (pass(tokens) > enough) return tokens;
    tokens *= 2;
  }
  return run.tokens() + tokens > std::ssize(ids) ? run.tokens_at_once() : std::min(tokens, run.tokens_at_once());
}

/// The file beside the session; one process at a time has it.
class SessionFile::Recording {
 public:
  explicit Recording(const fs::path& path, int flags = 0)
      : path_(path), descriptor_(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | flags, 0666)) {
    if (descriptor_ < 0) fail_errno(path_, "cannot be opened", errno);
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      ::close(descriptor_);
      fail(path_, "another program has this session open");
    }
  }
  ~Recording() { ::close(descriptor_); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  const fs::path& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  std::uint64_t size() const {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) fail_errno(path_, "cannot be examined", errno);
    return static_cast<std::uint64_t>(status.st_size);
  }
  void write(std::uint64_t at, std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(at));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail_errno(path_, "cannot be written", errno);
      bytes = bytes.subspan(static_cast<std::size_t>(count));
      at += static_cast<std::uint64_t>(count);
    }
  }
  /// Throws Error where what lies at its path is no longer this file: what is written would be lost.
  void require_in_place() const {
    struct stat ours {
    }, there{};
    if (::fstat(descriptor_, &ours) != 0) fail_errno(path_, "cannot be examined", errno);
    if (::stat(path_.c_str(), &there) != 0) fail(path_, "was removed while it was written; the session is lost");
    if (ours.st_dev != there.st_dev || ours.st_ino != there.st_ino) fail(path_, "was replaced while it was written; the session is lost");
  }
  void flush() const {
    if (::fsync(descriptor_) != 0) fail_errno(path_, "cannot be written", errno);
  }

 private:
  fs::path path_;
  int descriptor_;
};

SessionFile::SessionFile(fs::path path, SessionRecord record, std::chrono::milliseconds interval)
    : path_(std::move(path)),
      record_(std::move(record)),
      interval_(interval),
      saved_at_(std::chrono::steady_clock::now()),
      followed_at_(saved_at_) {}
SessionFile::SessionFile(SessionFile&&) noexcept = default;
SessionFile::~SessionFile() = default;

SessionFile SessionFile::create(const fs::path& path, SessionRecord record, std::chrono::milliseconds interval) {
  if (path == "-") fail(path, "a session cannot be kept on standard output; name a file");
  if (is_there(path)) fail(path, "exists already; choose another name, or give no checkpoint to continue it");
  SessionFile file(path, std::move(record), interval);
  file.recording_ = std::make_unique<Recording>(recording_path(path), O_CREAT);
  // An empty one is what a crash has left that came before the session.
  if (file.recording_->size() != 0) fail(file.recording_->path(), "is in the way of a new session; move it or choose another name");
  file.publish(file.record_, /*replace=*/false);
  return file;
}

SessionFile SessionFile::open(const fs::path& path, std::chrono::milliseconds interval) {
  const std::string text = read_file(path, max_text_bytes);
  SessionFile file(path, parse_session(text, path), interval);
  if (!is_there(recording_path(path))) fail(path, "its recording, " + in_quotes(recording_path(path).string()) + ", is missing");
  file.recording_ = std::make_unique<Recording>(recording_path(path));
  return file;
}

std::shared_ptr<const Checkpoint> SessionFile::open_checkpoint(std::span<const fs::path> places) {
  const fs::path known = record_.checkpoint;
  std::vector<fs::path> files = {known, path_.parent_path() / known.filename()};
  for (const fs::path& place : places) {
    files.push_back(place / known.filename());
    if (fs::is_regular_file(place) || fs::exists(place / "config.json")) files.push_back(place);
  }
  bool any = false;
  for (const fs::path& file : files) {
    if (!is_there(file)) continue;
    any = true;
    std::shared_ptr<const Checkpoint> checkpoint = statescope::open_checkpoint(file);
    if (content_digest(*checkpoint) != record_.checkpoint_digest) continue;
    record_.checkpoint = file;
    return checkpoint;
  }
  if (any)
    fail(path_, "its checkpoint, " + in_quotes(known.string()) + ", has changed since; put the old one back, there or beside the session");
  fail(path_, "its checkpoint, " + in_quotes(known.string()) + ", is missing; put it beside the session");
}

std::unique_ptr<Run> SessionFile::restore(std::shared_ptr<Model> model, const RunOptions& budgets, const Run::Progress& progress) const {
  RunOptions options = record_.options;
  options.memory_budget = budgets.memory_budget;
  options.host_memory_budget = budgets.host_memory_budget;
  auto run = std::make_unique<Run>(std::move(model), options);
  if (record_.pieces.empty()) return run;
  const fs::path& path = recording_->path();
  const std::int64_t D = run->model().hidden(), row = row_size(run->model());
  const MappedFile file(path, recording_->descriptor());
  std::span<const std::byte> left = file.bytes();
  for (const SessionRecord::Piece& piece : record_.pieces) {
    const std::size_t bytes = static_cast<std::size_t>(piece.tokens) * static_cast<std::size_t>(row) * sizeof(float);
    if (bytes > left.size()) fail(path, "is cut short: the session has more tokens");
    Digest digest;
    digest.add(left.first(bytes));
    if (digest.text() != piece.digest) fail(path, "is damaged: its content is not what the session's digest says");
    left = left.subspan(bytes);
  }

  const std::vector<std::int32_t> ids = record_.ids();
  for (const Passes& pass : record_.passes) {
    for (std::int64_t i = 0; i < pass.times; ++i) {
      const std::int64_t first = run->tokens();
      const auto rows = [&](std::int64_t layer, float* to) {
        for (std::int64_t t = 0; t < pass.tokens; ++t) {
          const auto at = static_cast<std::size_t>((first + t) * row + layer * D) * sizeof(float);
          std::memcpy(to + t * D, file.bytes().data() + at, static_cast<std::size_t>(D) * sizeof(float));
        }
      };
      run->take(std::span(ids).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(pass.tokens)), record_.prompt_length(),
                rows);
      if (progress && !progress(run->tokens())) throw Cancelled();
    }
  }
  file.require_whole();
  return run;
}

Branches SessionFile::restore_branches(std::shared_ptr<Model> model, const RunOptions& budgets, const Run::Progress& progress) const {
  Branches tree(restore(std::move(model), budgets, progress));
  tree.restore(record_.branches, progress);
  tree.go_to(record_.current);
  return tree;
}

bool SessionFile::is_due() {
  const auto now = std::chrono::steady_clock::now();
  const auto pass = now - std::exchange(followed_at_, now), since = now - saved_at_;
  return saving_is_due(since, pass, saving_, interval_, kSlack);
}

void SessionFile::follow(const Run& run) {
  if (is_due()) save(run);
}

void SessionFile::follow(const Branches& tree) {
  if (is_due()) save(tree);
}

void SessionFile::save(const Run& run) { save(run, record_); }

void SessionFile::save(const Run& run, SessionRecord next) {
  saved_at_ = std::chrono::steady_clock::now();
  next.passes = run.passes();
  if (const std::int64_t prompt = next.prompt_length(); run.tokens() > prompt)
    next.generated.assign(run.ids().begin() + prompt, run.ids().end());
  for (std::int64_t from = record_.tokens(), to; from < run.tokens(); from = to) {
    to = std::min(from + kPiece, run.tokens());
    const std::vector<float> rows = rows_of(run, from, to);
    const auto bytes = std::as_bytes(std::span(rows));
    recording_->write(static_cast<std::uint64_t>(from * row_size(run.model())) * sizeof(float), bytes);
    Digest digest;
    digest.add(bytes);
    next.pieces.push_back({to - from, digest.text()});
  }
  recording_->flush();
  recording_->require_in_place();
  publish(next, /*replace=*/true);
  recording_->require_in_place();
  record_ = std::move(next);
  followed_at_ = std::chrono::steady_clock::now();
  saving_ = followed_at_ - saved_at_;
}

void SessionFile::save(const Branches& tree) {
  SessionRecord next = record_;
  next.branches = tree.records();
  next.current = tree.is_leaving() ? std::ssize(next.branches) : tree.current();
  save(*tree[0].run, std::move(next));
}

void SessionFile::remove() {
  std::error_code none;
  fs::remove(path_, none);
  fs::remove(recording_->path(), none);
}

void SessionFile::publish(const SessionRecord& record, bool replace) const {
  Draft draft(path_, replace);
  OutputFile file(draft);
  file.write(to_json(record, path_));
  file.finish();
  draft.publish();
}

}  // namespace statescope

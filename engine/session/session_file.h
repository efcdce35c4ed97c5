// A run on the disk: what it is in a small file, replaced as a whole every few seconds, and its recording in a file beside it that only
// grows. Whatever ends the program, the disk or the machine, the session is what was saved last.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <span>

#include "engine/run/branches.h"
#include "engine/session/session_record.h"

namespace statescope {

/// How many tokens of one pass take less than a second on this device, at most as many as a run takes at once; 1 where a single one takes
/// longer. Reads `ids` from the beginning, one, two, four at once …, to find out.
std::int64_t tokens_within_a_second(const std::shared_ptr<Model>& model, std::span<const std::int32_t> ids, const RunOptions& options);

/// FILE is the record (session_record.h); FILE.recording holds the block inputs, float32 [tokens, layers + 1, D]. Bytes are added to the
/// recording and flushed to the disk before the record that counts them takes the place of the old one.
class SessionFile {
 public:
  /// At most between two savings. Where a pass and the writing would make what a crash takes longer than five seconds, sooner.
  static constexpr std::chrono::milliseconds kInterval{4000}, kSlack{1000};

  /// Begins a session of a run that has read nothing. Throws Error, also where there is such a file already.
  static SessionFile create(const std::filesystem::path& path, SessionRecord record, std::chrono::milliseconds interval = kInterval);
  /// Goes on with a session; its files stay as they are until it is saved. Throws Error.
  static SessionFile open(const std::filesystem::path& path, std::chrono::milliseconds interval = kInterval);

  SessionFile(SessionFile&&) noexcept;
  ~SessionFile();

  const std::filesystem::path& path() const { return path_; }
  /// As it was saved last; another one after each saving.
  const SessionRecord& record() const { return record_; }
  /// Tokens wanted after the prompt, from now on.
  void want(std::int64_t generate) { record_.prompt.generate = generate; }
  /// Where the reader stands, from now on.
  void stand(std::optional<RunPlace> place) { record_.place = std::move(place); }

  /// The checkpoint that the session was begun with: where it was then, or a file of its name and content beside the session or in one of
  /// `places`, which the session is kept with from then on. Throws Error where it is missing or has changed.
  std::shared_ptr<const Checkpoint> open_checkpoint(std::span<const std::filesystem::path> places = {});
  /// The run as it was saved, within the memory of `budgets`: on the device of then states, routing and logits are the same to the bit.
  /// Throws Error; Cancelled if `progress` returns false.
  std::unique_ptr<Run> restore(std::shared_ptr<Model> model, const RunOptions& budgets = {}, const Run::Progress& progress = {}) const;

  /// The same with its branches, the current one as it was; they are read anew (Branches::restore).
  Branches restore_branches(std::shared_ptr<Model> model, const RunOptions& budgets = {}, const Run::Progress& progress = {}) const;

  /// To be called after each pass: saves the run where the last time was long enough ago, or would be once another pass has been read and
  /// saved. Throws Error; what was saved before stays.
  void follow(const Run& run);
  void follow(const Branches& tree);
  /// Saves all that has been read. Throws Error; what was saved before stays.
  void save(const Run& run);
  /// Saves the tree too, whose first run is the session's, and a branch that is being read: opened again, it is read to its end.
  void save(const Branches& tree);
  /// Takes both files away.
  void remove();

 private:
  class Recording;
  SessionFile(std::filesystem::path path, SessionRecord record, std::chrono::milliseconds interval);
  bool is_due();
  void save(const Run& run, SessionRecord next);
  void publish(const SessionRecord& record, bool replace) const;

  std::filesystem::path path_;
  SessionRecord record_;
  std::chrono::milliseconds interval_;
  std::chrono::steady_clock::time_point saved_at_, followed_at_;  // began to be; the last pass ended
  std::chrono::steady_clock::duration saving_{};                  // took the last one
  std::unique_ptr<Recording> recording_;
};

}  // namespace statescope

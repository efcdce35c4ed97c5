// What the window talks to: one worker thread that owns the model, the device and the run.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/findings.h"
#include "engine/snapshot.h"
#include "kernels/backend.h"

namespace statescope {

/// Bytes [begin, end) of a prompt's text that mean something to the reader.
struct TextSpan {
  SpanKind kind = SpanKind::needle;
  std::size_t begin = 0, end = 0;
};

/// What to read: a text, or, where `ids` is not empty, token ids as they are.
struct PromptInput {
  std::string text;
  std::vector<TextSpan> spans;
  std::vector<std::int32_t> ids;
  std::string expected;                  // what a right answer says; empty: unknown
  std::optional<std::int64_t> generate;  // tokens to generate (greedily) after the prompt; unset: as many as `expected` has
};

/// All calls return at once. Answers come on the interface thread, through `post`; none comes after the destructor has begun. A request
/// replaces the waiting one of its kind, so scrubbing never queues.
class Session {
 public:
  /// `post` runs a closure on the interface thread, later. Models run on `device`, on the CPU where that is null or has failed: whatever
  /// was under way when it failed is then done again there.
  explicit Session(std::function<void(std::function<void()>)> post, std::shared_ptr<Backend> device = nullptr);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  struct OpenCallbacks {
    std::function<void(double fraction, std::string what)> progress;
    /// Called as soon as the prompt has been read, and again whenever generation has added tokens.
    std::function<void(std::shared_ptr<const RunInfo>)> run;
    std::function<void(std::string message)> failed;
    /// Called once all has been read and generated; never after `failed`.
    std::function<void()> done;
    /// Called after `run`, in a line, where the run came to the CPU because the device failed, or is recorded elsewhere because it was
    /// full.
    std::function<void(std::string message)> device_failed;
  };
  /// Opens a checkpoint and runs the prompt. An opening under way is cancelled; the run shown so far stays until the new one stands.
  void open(std::filesystem::path checkpoint, PromptInput prompt, OpenCallbacks callbacks);
  /// Runs another prompt on the open model.
  void read(PromptInput prompt, OpenCallbacks callbacks);
  /// Cancels an opening, a reading or a generation (what has been generated stays); `failed("cancelled")` follows.
  void cancel();

  /// The layer after the token. Only the newest request is answered.
  void show(std::int64_t layer, std::int64_t token, std::function<void(std::shared_ptr<const Snapshot>)> done);

  /// Works out what else is asked of the run, the first question first, beside all of the above. `tell` hears of each now and then how far
  /// it is, then its answer or why there is none. What an asker (a number of the caller's) asks replaces what it asked before; nothing is
  /// said where `run` is not the one shown any more.
  void ask(int asker, std::shared_ptr<const RunInfo> run, std::vector<Question> questions, std::function<void(Question, Finding)> tell);

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace statescope

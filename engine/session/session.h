// What the window talks to: one worker thread that owns the model, the device and the run.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/device.h"
#include "engine/error.h"
#include "engine/findings/findings.h"
#include "engine/run/prompt_input.h"
#include "engine/snapshot.h"
#include "kernels/backend.h"

namespace statescope {

struct Intervention;
class Model;
class Tokenizer;

/// Where in a run the reader stands.
struct RunPlace {
  std::int64_t layer = 0, head = 0, token = 0;
  std::string views;  // what the window shows there, as the window writes it
};

/// A run's branches, as the interface sees them.
struct BranchTree {
  PromptInput prompt;                                // of all of them
  std::filesystem::path checkpoint;                  // that they are runs of
  std::filesystem::path session;                     // the file that they are saved in; empty: none
  std::vector<std::shared_ptr<const RunInfo>> runs;  // by number (BranchInfo); 0 is the model's own, others without a parent are not shown
  std::int64_t current = 0;                          // the one that is shown
  std::int64_t redo = -1;                            // the one that redo goes to; −1: none
};

/// All calls return at once. Answers come on the interface thread, through `post`; none comes after the destructor has begun. A request
/// replaces the waiting one of its kind, so scrubbing never queues.
class Session {
 public:
  /// What models run on; null: the CPU. Throws DeviceError or std::bad_alloc.
  using OpenDevice = std::function<std::shared_ptr<Backend>()>;

  /// `post` runs a closure on the interface thread, later. Models run on the device that `open_device` opens when the first of them is
  /// asked for, off the interface thread; on the CPU where there is none or it has failed: whatever was under way when it failed is then
  /// done again there. `name`: what session files call the device. `memory`: bytes of it, and of the host's memory beside it, that a
  /// recording may take; 0: a quarter of what is free.
  explicit Session(std::function<void(std::function<void()>)> post, OpenDevice open_device = {}, DeviceChoice name = {},
                   std::size_t memory = 0);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  struct OpenCallbacks {
    std::function<void(double fraction, std::string what)> progress;
    /// Called when the prompt has been read (of a checkpoint that is opened: its first tokens, engine/unread.h), and for each longer run.
    std::function<void(std::shared_ptr<const RunInfo>)> run;
    std::function<void(const Failure& failure)> failed;
    /// Called once all has been read and generated; never after `failed`.
    std::function<void()> done;
    /// Called after `run`, in a line, where the run came to the CPU because the device failed, or is recorded elsewhere because it was
    /// full.
    std::function<void(std::string message)> device_failed;
    /// Called before `run` where there are other branches than before, where another one is shown, and after a saving.
    std::function<void(std::shared_ptr<const BranchTree>)> branches = {};
    /// Called, in a line, where the session's file cannot be kept up to date any more; what was saved before stays.
    std::function<void(std::string message)> not_saved = {};
    /// Called after `run`, in a line, where a session was saved on another device than the one that reads now.
    std::function<void(std::string message)> other_device = {};
    /// Called after `run`, in a line, where what the model computes is not finite.
    std::function<void(std::string message)> not_finite = {};
    /// Called before `run` of a session that says where the reader stood.
    std::function<void(RunPlace)> place = {};
    /// Whether `run` of a prompt that is still being read is shown: the reading then waits a moment for the first `show`.
    bool looks = true;
  };
  /// Opens a checkpoint and runs the prompt; where that is a text and the model reads none, some token ids. An opening under way is
  /// cancelled; the run shown so far stays until the new one has read its first tokens.
  void open(std::filesystem::path checkpoint, PromptInput prompt, OpenCallbacks callbacks);
  /// Runs another prompt on the open model; the run shown so far stays until it has been read.
  void read(PromptInput prompt, OpenCallbacks callbacks);
  /// Goes on with the run shown until it has so many tokens, first with what is left of its prompt.
  void generate(std::int64_t tokens, OpenCallbacks callbacks);
  /// Cancels an opening, a reading, a generation (what is shown of them stays) or an intervention; `failed` hears of it.
  void cancel();

  /// Leaves the branch that is shown for one where these hold too (Branches::intervene), which is shown when it stands.
  void intervene(std::vector<Intervention> interventions, OpenCallbacks callbacks);
  /// Reads another prompt on the model of the run shown, for states to be imported from it (ImportState): `branches`, then `done` follow.
  void add_run(PromptInput prompt, OpenCallbacks callbacks);
  /// These wait for what is under way. Where there is nothing to undo or redo, all stays as it is.
  void undo(OpenCallbacks callbacks);
  void redo(OpenCallbacks callbacks);
  void go_to_branch(std::int64_t branch, OpenCallbacks callbacks);

  /// Saves the run shown and all its branches to a session file, which is kept up to date from then on. `failed` hears why not.
  void save(std::filesystem::path path, std::function<void()> saved, std::function<void(std::string message)> failed);
  /// Where the reader stands from now on: saved with the rest.
  void stand(RunPlace place);
  /// Opens what was saved, and reads and generates what is left of it. `places`: folders where its checkpoint may be, too, if it is not
  /// where it was.
  void open_session(std::filesystem::path path, OpenCallbacks callbacks, std::vector<std::filesystem::path> places = {});

  /// That the run shown is of; null before there is one. To be read beside, never with (Model::beside). Of any thread.
  std::shared_ptr<const Model> model() const;
  /// Likewise what its text is read with.
  std::shared_ptr<const Tokenizer> tokenizer() const;

  /// A head of the layer after the token. Only the newest request is answered.
  void show(std::int64_t layer, std::int64_t head, std::int64_t token, std::function<void(std::shared_ptr<const Snapshot>)> done);

  /// The same of another branch, beside the one that is shown. Nothing is answered where `run` is not a branch's.
  void show_beside(std::shared_ptr<const RunInfo> run, std::int64_t layer, std::int64_t head, std::int64_t token,
                   std::function<void(std::shared_ptr<const Snapshot>)> done);

  /// Works out what else is asked of the run, the first question first, beside all of the above. `tell` hears of each now and then how far
  /// it is, then its answer or why there is none. What an asker (a number of the caller's) asks replaces what it asked before; nothing is
  /// said where `run` is not the one shown any more.
  void ask(int asker, std::shared_ptr<const RunInfo> run, std::vector<Question> questions, std::function<void(Question, Finding)> tell);
  /// The same of the run that show_beside showed last.
  void ask_beside(int asker, std::shared_ptr<const RunInfo> run, std::vector<Question> questions,
                  std::function<void(Question, Finding)> tell);

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace statescope

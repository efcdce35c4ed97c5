// Where runs come from: the session, or a test's hand-made snapshots. The contract is that of engine/session/session.h.
#pragma once

#include <QString>
#include <functional>
#include <memory>

#include "engine/chat/template_folder.h"
#include "engine/device.h"
#include "engine/run/intervention.h"
#include "engine/session/session.h"

namespace statescope {

/// What is known of the model of the run shown, beside its RunInfo.
struct ModelFacts {
  QString no_text;                                   // why it reads token ids alone; empty: it reads texts
  std::int64_t vocab = 0;                            // its token ids
  std::shared_ptr<const Tokenizer> tokenizer;        // null: there is none to be asked
  std::shared_ptr<const chat::TemplateFolder> chat;  // null: it has no chat template
  bool is_elsewhere = false;                         // tokenizer and template are with an engine on another machine
};

class RunSource {
 public:
  virtual ~RunSource() = default;
  virtual void open(std::filesystem::path checkpoint, PromptInput prompt, Session::OpenCallbacks callbacks) = 0;
  virtual void read(PromptInput prompt, Session::OpenCallbacks callbacks) = 0;
  virtual void generate(std::int64_t tokens, Session::OpenCallbacks callbacks) = 0;
  virtual void cancel() = 0;
  virtual void intervene(std::vector<Intervention> interventions, Session::OpenCallbacks callbacks) = 0;
  virtual void add_run(PromptInput prompt, Session::OpenCallbacks callbacks) = 0;
  virtual void undo(Session::OpenCallbacks callbacks) = 0;
  virtual void redo(Session::OpenCallbacks callbacks) = 0;
  virtual void go_to_branch(std::int64_t branch, Session::OpenCallbacks callbacks) = 0;
  virtual void save(std::filesystem::path path, std::function<void()> saved, std::function<void(std::string)> failed) = 0;
  virtual void stand_at(RunPlace /*place*/) {}
  /// `located`: where its checkpoint is now, if somebody knows; else empty.
  virtual void open_session(std::filesystem::path path, std::filesystem::path located, Session::OpenCallbacks callbacks) = 0;
  virtual void show(std::int64_t layer, std::int64_t head, std::int64_t token,
                    std::function<void(std::shared_ptr<const Snapshot>)> done) = 0;
  virtual void ask(int asker, std::shared_ptr<const RunInfo> run, std::vector<Question> questions,
                   std::function<void(Question, Finding)> tell) = 0;
  virtual ModelFacts facts() const { return {}; }
  /// Of another branch of what this one shows: `run`, which it stands for whatever it is asked to read. This one outlives it.
  virtual std::unique_ptr<RunSource> beside(std::shared_ptr<const RunInfo> /*run*/) { return nullptr; }
};

/// The session on the device that `open_device` opens (empty: the CPU), answering on the thread of the running QApplication. `name`: how
/// the device was asked for; what is asked about the checkpoint itself (NeedleGridQuestion) is worked out beside the run, on that device
/// too. `memory`: as for Session.
std::unique_ptr<RunSource> make_session_source(Session::OpenDevice open_device, DeviceChoice name = {}, std::size_t memory = 0);

}  // namespace statescope

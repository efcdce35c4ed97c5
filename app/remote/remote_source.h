// The session of an engine on another machine, as a source of runs.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "app/common/checkpoint_facts.h"
#include "app/remote/engine_place.h"
#include "app/runs/run_source.h"
#include "engine/remote/messages.h"

namespace statescope {

/// What became of the connection to an engine.
enum class LinkNews {
  lost,    // what is asked waits
  ended,   // the same, of an engine that is not there any more, as it seems
  back,    // all goes on
  anew,    // the engine knows nothing of the session any more
  refused  // nothing more is answered
};
/// Hears of it in a line.
using LinkHearing = std::function<void(LinkNews news, const std::string& words)>;

/// Answers on the thread of the running QApplication. Where the connection is lost, what is asked waits, and the source takes up its
/// session again as soon as it can.
class EngineSource : public RunSource {
 public:
  /// What a checkpoint's files say, and what the engine's runs are read on, as --device says it.
  using Described = std::function<void(const CheckpointFacts& facts, const std::string& device)>;
  virtual void describe(const std::string& checkpoint, bool digest, Described told, std::function<void(const Failure&)> failed) = 0;
  /// A prompt that a checkpoint's own files make.
  virtual void make_prompt(remote::MakePrompt asked, std::function<void(const PromptInput&)> told,
                           std::function<void(const Failure&)> failed) = 0;
  /// What a command has a checkpoint's model do, packed (app/jobs/jobs.h); what came of it, likewise.
  virtual void work(remote::Work asked, std::function<void(double fraction, const std::string& what)> progress,
                    std::function<void(const std::string&)> told, std::function<void(const Failure&)> failed) = 0;
  /// The text of these tokens together, of the model of the run that is shown.
  virtual void decode(std::vector<std::int32_t> ids, std::function<void(const std::string&)> told,
                      std::function<void(const Failure&)> failed) = 0;
};
/// `link`: hears what else whoever waits for a run would be told (OpenCallbacks::device_failed).
std::unique_ptr<EngineSource> make_remote_source(EnginePlace place, LinkHearing link = {});

}  // namespace statescope

// Runs of an engine on another machine, for commands: what they ask waits for its answer.
#pragma once

#include <QElapsedTimer>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/common/interruption.h"
#include "app/common/read_run.h"
#include "app/remote/reached_engine.h"

namespace statescope {

/// Each run has a session of its own. Only so many stand at a time: one that is asked again later is read again.
class EngineRuns final : public RunReader {
 public:
  /// `kept`: what is needed to reach it as long as this lives.
  explicit EngineRuns(EnginePlace place, std::unique_ptr<ReachedEngine> kept = nullptr)
      : kept_(std::move(kept)), place_(std::move(place)) {}

  const EnginePlace& place() const { return place_; }
  CheckpointFacts facts(const std::string& checkpoint, bool digest) override;
  PromptInput prompt(const PromptArguments& arguments, const std::string& checkpoint) override;
  std::unique_ptr<ReadRun> read(const std::string& checkpoint, const PromptInput& prompt, const std::vector<std::string>& interventions,
                                const Progress& progress) override;
  std::string device() const override { return device_; }
  /// What a checkpoint's model is to do, packed (app/jobs/jobs.h); what came of it, likewise. `tell` hears how far it is; returning false
  /// ends the work: it throws Cancelled. Throws Error.
  std::string work(const std::string& checkpoint, const std::string& job,
                   const std::function<bool(double fraction, const std::string& what)>& tell);

 private:
  class RunThere;

  std::unique_ptr<EngineSource> make_source();
  /// `ask` asks a source, any of them, and hears the answer or why there is none.
  template <class Answer>
  Answer asked(
      const std::function<void(EngineSource&, std::function<void(Answer)> told, std::function<void(const Failure&)> failed)>& ask,
      const std::function<bool()>& goes_on = [] { return !Interruption::asked(); });
  /// Until `is_done`. Throws Cancelled where `goes_on` returns false; Error where the engine does not come back.
  void wait(const std::function<bool()>& is_done, const std::function<bool()>& goes_on);
  void hear_away(LinkNews news, const std::string& words);
  void stand(RunThere& run);
  void forget(const RunThere& run) { std::erase(standing_, &run); }

  const std::unique_ptr<ReachedEngine> kept_;
  const EnginePlace place_;
  std::string device_ = "cpu";
  std::map<std::string, CheckpointFacts> facts_;
  std::vector<RunThere*> standing_;  // the one asked longest ago first
  std::optional<LinkNews> away_;     // lost or ended; none: it answers
  QElapsedTimer away_since_;
  std::string gone_;  // why it never will
};

}  // namespace statescope

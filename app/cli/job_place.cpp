#include "app/cli/job_place.h"

#include "app/assets.h"
#include "app/common/console.h"
#include "app/common/recording.h"
#include "engine/remote/wire.h"

namespace statescope {

JobPlace::JobPlace(DeviceChoice device, const EngineArguments& engine, std::int64_t memory) : device_(std::move(device)), memory_(memory) {
  if (engine.place.empty()) return;
  application_.emplace();
  interruption_.emplace();
  engine_ = reach_engine(engine, device_, memory_);
}

PromptInput JobPlace::prompt(const PromptArguments& arguments, const std::string& checkpoint) {
  return engine_ ? engine_->prompt(arguments, checkpoint) : load_prompt(arguments, "", checkpoint_at(checkpoint).string());
}

template <class J>
typename J::Found JobPlace::done(const std::string& checkpoint, const J& job, const JobSite::Tell& tell) {
  if (!engine_) {
    const std::size_t memory = recording_budgets(memory_).memory_budget;
    return do_job(job, {.checkpoint = checkpoint, .path = checkpoint_at(checkpoint), .device = device_, .memory = memory, .tell = tell});
  }
  auto done = remote::unpack<JobDone<typename J::Found>>(engine_->work(checkpoint, remote::pack(JobAsked{checkpoint, job}), tell));
  if (!done.note.empty()) print_note(done.note);
  return std::move(done.found);
}

template <class J>
typename J::Found JobPlace::done(const std::string& checkpoint, const J& job, const std::string& what) {
  ProgressBar bar(what);
  return done(checkpoint, job, [&](double part, const std::string& step) {
    bar.show(part, step);
    return !Interruption::asked();
  });
}

template Intervened JobPlace::done(const std::string&, const InterveneJob&, const std::string&);
template NeedleFound JobPlace::done(const std::string&, const NeedleJob&, const std::string&);
template ModelFound JobPlace::done(const std::string&, const ModelJob&, const std::string&);
template Inspected JobPlace::done(const std::string&, const InspectJob&, const JobSite::Tell&);
template EvalJob::Found JobPlace::done(const std::string&, const EvalJob&, const JobSite::Tell&);
template FoundCheckpoints JobPlace::done(const std::string&, const FindJob&, const std::string&);

}  // namespace statescope

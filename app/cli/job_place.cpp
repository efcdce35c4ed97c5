#include "app/cli/job_place.h"

#include "app/common/console.h"
#include "app/common/recording.h"
#include "engine/remote/wire.h"

namespace statescope {

JobPlace::JobPlace(std::string checkpoint, DeviceChoice device, const EngineArguments& engine, std::int64_t memory)
    : checkpoint_(std::move(checkpoint)), device_(std::move(device)), memory_(memory) {
  if (engine.place.empty()) return;
  application_.emplace();
  interruption_.emplace();
  engine_ = reach_engine(engine, device_, memory_);
}

PromptInput JobPlace::prompt(const PromptArguments& arguments) {
  return engine_ ? engine_->prompt(arguments, checkpoint_) : load_prompt(arguments, "", checkpoint_);
}

template <class J>
typename J::Found JobPlace::done(const J& job, const std::string& what) {
  ProgressBar bar(what);
  const auto tell = [&](double part, const std::string& step) {
    bar.show(part, step);
    return !Interruption::asked();
  };
  if (!engine_) {
    return do_job(job, {.checkpoint = checkpoint_,
                        .path = checkpoint_,
                        .device = device_,
                        .memory = recording_budgets(memory_).memory_budget,
                        .tell = tell});
  }
  auto done = remote::unpack<JobDone<typename J::Found>>(engine_->work(checkpoint_, remote::pack(JobAsked{checkpoint_, job}), tell));
  if (!done.note.empty()) print_note(done.note);
  return std::move(done.found);
}

template Intervened JobPlace::done(const InterveneJob&, const std::string&);
template NeedleFound JobPlace::done(const NeedleJob&, const std::string&);
template ModelFound JobPlace::done(const ModelJob&, const std::string&);

}  // namespace statescope

#include "app/figure/run_here.h"

#include <condition_variable>
#include <mutex>

#include "app/assets.h"
#include "app/eval/needle_grid.h"
#include "engine/answers/answers.h"
#include "engine/error.h"

namespace statescope {

RunHere::RunHere(std::shared_ptr<Reading> reading, PromptInput prompt, const std::vector<std::string>& interventions,
                 RunReader::Progress progress, DeviceChoice device)
    : progress_(std::move(progress)), device_(std::move(device)), tree_(std::move(reading), std::move(prompt)) {
  if (!interventions.empty()) {
    std::vector<Intervention> parsed;
    for (const std::string& text : interventions) parsed.push_back(parse_intervention(text));
    const auto tokens = static_cast<double>(info().tokens.size());
    tree_.intervene(std::move(parsed), [&](std::int64_t read) { return progress_(static_cast<double>(read) / tokens); });
  }
  evidence_ = std::make_unique<Evidence>(tree_.current(), alone_);
  evidence_->set_progress(progress_);
}

std::shared_ptr<const void> RunHere::find_out(const Question& question) {
  if (const auto* grid = std::get_if<NeedleGridQuestion>(&question)) return grid_of(*grid);
  return statescope::find_out(question, *evidence_);
}

NotFinite RunHere::not_finite() { return statescope::not_finite(tree_.current()->run()); }

/// Waits for it: it is read beside the run.
std::shared_ptr<const NeedleGrid> RunHere::grid_of(const NeedleGridQuestion& question) const {
  std::mutex mutex;
  std::condition_variable told;
  Finding finding;
  NeedleGridReader reader(assets_folder(), device_);
  const std::shared_ptr<Reading>& root = tree_.root();
  reader.ask(0, {root->model(), root->tokenizer()}, {question}, [&](const NeedleGridQuestion&, Finding part) {
    const std::lock_guard lock(mutex);
    finding = std::move(part);
    told.notify_one();
  });
  for (double progress = 0; progress < 1;) {
    std::unique_lock lock(mutex);
    told.wait(lock, [&] { return finding.progress > progress; });
    progress = finding.progress;
    lock.unlock();
    if (!progress_(progress)) throw Cancelled();
  }
  if (!finding.refused.empty()) throw Error(finding.refused);
  return std::static_pointer_cast<const NeedleGrid>(finding.answer);
}

}  // namespace statescope

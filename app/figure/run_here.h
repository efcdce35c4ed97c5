// A run that this program reads itself.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/common/read_run.h"
#include "engine/analysis/evidence.h"
#include "engine/device.h"
#include "engine/session/reading_tree.h"

namespace statescope {

class RunHere final : public ReadRun {
 public:
  /// `progress`: of the interventions, and of whatever is asked for and takes long. `device`: what grids of needles are read on.
  RunHere(std::shared_ptr<Reading> reading, PromptInput prompt, const std::vector<std::string>& interventions, RunReader::Progress progress,
          DeviceChoice device);

  const RunInfo& info() const override { return *tree_.current()->info(); }
  std::shared_ptr<const Snapshot> snapshot(std::int64_t layer, std::int64_t head, std::int64_t token) override {
    return tree_.current()->snapshot(layer, head, token);
  }
  std::shared_ptr<const void> find_out(const Question& question) override;
  NotFinite not_finite() override;
  std::string decode(const std::vector<std::int32_t>& ids) override { return tree_.root()->tokenizer()->decode(ids); }

 private:
  std::shared_ptr<const NeedleGrid> grid_of(const NeedleGridQuestion& question) const;

  const RunReader::Progress progress_;
  const DeviceChoice device_;
  ReadingTree tree_;
  FairMutex alone_;
  std::unique_ptr<Evidence> evidence_;
};

}  // namespace statescope

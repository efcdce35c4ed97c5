// The needle grid of the window: the prompts of `statescope eval --task niah` read one after the other, beside the run.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/device.h"
#include "engine/findings.h"
#include "engine/model/model.h"
#include "engine/run/session.h"

namespace statescope {

/// The prompt without its answer, which is expected. Throws std::runtime_error.
PromptInput prompt_of(const NeedleExample& example, const std::filesystem::path& assets);

/// One thread that reads beside the run (Model::beside). What has been read of a checkpoint is kept: who asks again goes on from there.
class NeedleGridReader {
 public:
  /// Called on the reader's thread: now and then with the part that is known, at last with all of it, or with why there is none.
  using Tell = std::function<void(const NeedleGridQuestion&, Finding)>;

  /// Models on a CUDA device are read on `device`, which it is, others on one core. `niceness` of the thread: above 0 where somebody steps
  /// through the run meanwhile.
  NeedleGridReader(std::filesystem::path assets, DeviceChoice device, int niceness = 0);
  /// Does not wait for a prompt to be read to its end.
  ~NeedleGridReader();

  /// What an asker (a number of the caller's) asks replaces what it asked before; nothing ends its work (`model` may then be null). Returns
  /// at once.
  void ask(int asker, std::shared_ptr<const Model> model, std::vector<NeedleGridQuestion> questions, Tell tell);

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace statescope

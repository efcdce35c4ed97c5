// The needle grid of the window: the prompts of `statescope eval --task niah` read one after the other, beside the run.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/device.h"
#include "engine/findings.h"
#include "engine/run/session.h"

namespace statescope {

/// The prompt without its answer, which is expected. Throws std::runtime_error.
PromptInput prompt_of(const NeedleExample& example, const std::filesystem::path& assets);

/// One thread of low priority with a model of its own, so that stepping through the run stays smooth. What has been read of a checkpoint is
/// kept: who asks again goes on from there.
class NeedleGridReader {
 public:
  /// Called on the reader's thread: now and then with the part that is known, at last with all of it, or with why there is none.
  using Tell = std::function<void(const NeedleGridQuestion&, Finding)>;

  /// On a CUDA device where `device` names one that can be used, else on one core.
  NeedleGridReader(std::filesystem::path assets, DeviceChoice device);
  /// Does not wait for a prompt to be read to its end.
  ~NeedleGridReader();

  /// What an asker (a number of the caller's) asks replaces what it asked before; nothing ends its work. Returns at once.
  void ask(int asker, std::filesystem::path checkpoint, std::vector<NeedleGridQuestion> questions, Tell tell);

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace statescope

// The needle grid of the window: the prompts of `statescope eval --task niah` read one after the other, beside the run, and scored
// likewise.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/device.h"
#include "engine/findings/findings.h"
#include "engine/model/model.h"
#include "engine/session/session.h"
#include "engine/tokenizer/tokenizer.h"

namespace statescope {

/// The prompt as the checkpoint's model with this tokenizer (null: one of words) reads it, without its answer, which is expected; where
/// replies are scored, with as many tokens to generate as one may have. Throws std::runtime_error.
PromptInput prompt_of(const NeedleExample& example, const std::filesystem::path& checkpoint,
                      const std::shared_ptr<const Tokenizer>& tokenizer, const std::filesystem::path& assets);

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

  /// A model, and the tokenizer that it reads by.
  struct Subject {
    std::shared_ptr<const Model> model;
    std::shared_ptr<const Tokenizer> tokenizer;
  };
  /// What an asker (a number of the caller's) asks replaces what it asked before; nothing ends its work (the subject may then be empty).
  /// Returns at once.
  void ask(int asker, Subject subject, std::vector<NeedleGridQuestion> questions, Tell tell);

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace statescope

// A mixer that says what it computes as a program, and nothing of how: passes and the device see to that.
#pragma once

#include <list>
#include <memory>
#include <mutex>

#include "engine/mixers/mixer.h"
#include "engine/mixers/parts.h"
#include "kernels/passes/passes.h"

namespace statescope {

class DescribedMixer : public Mixer {
 public:
  /// The layer's program from x, the normalised input, to p.result; channels are shown by name, `p.reads` and `p.readouts` are said.
  virtual void describe(Program& p) const = 0;

  std::optional<Program> program() const final;
  bool folds_norm() const final;
  void forward(Context& ctx, ConstTensor x, MixerState& state, Tensor y) const final;

 private:
  /// What two passes have in common that run the same compiled program.
  struct Use {
    program::Purpose purpose;
    Rules rules;
    bool operator==(const Use&) const = default;
  };
  std::shared_ptr<const Program> compiled(const Use& use) const;
  const Program& described() const;

  mutable std::once_flag once_;
  mutable Program described_{0};
  mutable bool folds_norm_ = false;
  mutable std::mutex mutex_;
  mutable std::list<std::pair<Use, std::shared_ptr<const Program>>> compiled_;  // the latest first
};

namespace program {

/// Makes of the program what an intervention wants.
void apply_rules(Program& program, const Rules& rules);

}  // namespace program
}  // namespace statescope

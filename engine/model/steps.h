// Steps of one token that a device does again and again as a whole (kernels/backend.h: Repeated).
#pragma once

#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/mixers/mixer.h"
#include "engine/model/observer.h"
#include "kernels/backend.h"

namespace statescope {

/// Keeps what a step shows of itself, in the same memory each time, for an observer to see once the step has been done.
class Tape final : public Observer {
 public:
  explicit Tape(Backend& backend) : backend_(&backend) {}

  /// What follows is a step for `observer`.
  void begin(const Observer& observer);
  void residual(std::int64_t layer, ConstTensor x) override { keep(layer, {}, x); }
  void companion(ConstTensor x) override { keep(kCompanion, {}, x); }
  void channel(std::int64_t layer, std::string_view name, ConstTensor values) override { keep(layer, name, values); }
  bool wants(std::string_view name) const override;

  /// Whether the observer wants what that of the step wanted.
  bool suits(const Observer& observer) const;
  void play(Observer& observer) const;

 private:
  static constexpr std::int64_t kCompanion = -1;  // in the place of a layer
  struct Shown {
    std::int64_t layer;
    std::string name;  // empty: the residual stream, or the companion
    Buffer memory;
    Tensor values;
  };
  void keep(std::int64_t layer, std::string_view name, ConstTensor values);

  Backend* backend_;
  const Observer* observer_ = nullptr;
  mutable std::map<std::string, bool, std::less<>> wanted_;  // what was asked for, and whether it was wanted
  std::vector<Shown> shown_;
  std::size_t count_ = 0;  // of the step
};

/// The last few steps that differ in their memory or their rules. Not for use by two threads at once.
class Steps {
 public:
  explicit Steps(Backend& backend) : backend_(backend) {}

  /// All that makes two steps the same work.
  struct Key {
    std::int64_t first = 0;           // of the blocks
    std::vector<const void*> memory;  // that is read or written, apart from weights and scratch
    std::vector<Rules> rules;
    bool observed = false;
    bool operator==(const Key&) const = default;
  };
  /// Does `work` for an observer or for none, or what it was the last time for the same key. False where this backend repeats nothing; then
  /// nothing is done.
  bool run(Key key, Observer* observer, const std::function<void(Observer*)>& work);

 private:
  struct Step {
    Key key;
    Tape tape;
    std::unique_ptr<Repeated> repeated;
  };
  Step* step_of(Key key, const Observer* observer);

  Backend& backend_;
  std::list<Step> steps_;  // the latest first
};

}  // namespace statescope

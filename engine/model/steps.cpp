#include "engine/model/steps.h"

#include <algorithm>

namespace statescope {

void Tape::begin(const Observer& observer) {
  observer_ = &observer;
  wanted_.clear();
  count_ = 0;
}

bool Tape::wants(std::string_view name) const {
  const bool wanted = observer_->wants(name);
  wanted_.emplace(name, wanted);
  return wanted;
}

bool Tape::suits(const Observer& observer) const {
  return std::ranges::all_of(wanted_, [&](const auto& asked) { return observer.wants(asked.first) == asked.second; });
}

void Tape::keep(std::int64_t layer, std::string_view name, ConstTensor values) {
  const bool known = count_ < shown_.size() && shown_[count_].layer == layer && shown_[count_].name == name &&
                     shown_[count_].values.shape == values.shape && shown_[count_].values.dtype == values.dtype;
  if (!known) {
    shown_.resize(count_);
    Buffer memory = backend_->allocate(static_cast<std::size_t>(values.shape.size()) * size_of(values.dtype));
    const Tensor kept(memory.get(), values.dtype, values.shape);
    shown_.push_back({layer, std::string(name), std::move(memory), kept});
  }
  backend_->copy(shown_[count_++].values, values);
}

void Tape::play(Observer& observer) const {
  for (std::size_t i = 0; i < count_; ++i) {
    const Shown& shown = shown_[i];
    if (!shown.name.empty()) {
      observer.channel(shown.layer, shown.name, shown.values);
    } else {
      shown.layer == kCompanion ? observer.companion(shown.values) : observer.residual(shown.layer, shown.values);
    }
  }
}

/// Null where this backend repeats nothing.
Steps::Step* Steps::step_of(Key key, const Observer* observer) {
  constexpr std::size_t most = 8;  // a run and branches of it that are read by turns
  const auto known = std::ranges::find(steps_, key, &Step::key);
  if (known != steps_.end() && (!observer || known->tape.suits(*observer))) {
    steps_.splice(steps_.begin(), steps_, known);
    return &steps_.front();
  }
  if (known != steps_.end()) steps_.erase(known);
  std::unique_ptr<Repeated> repeated = backend_.repeated();
  if (!repeated) return nullptr;
  steps_.push_front({std::move(key), Tape(backend_), std::move(repeated)});
  if (steps_.size() > most) steps_.pop_back();
  return &steps_.front();
}

bool Steps::run(Key key, Observer* observer, const std::function<void(Observer*)>& work) {
  Step* const step = step_of(std::move(key), observer);
  if (step == nullptr) return false;
  step->repeated->run([&] {
    if (observer) step->tape.begin(*observer);
    work(observer ? &step->tape : nullptr);
  });
  if (observer) step->tape.play(*observer);
  return true;
}

}  // namespace statescope

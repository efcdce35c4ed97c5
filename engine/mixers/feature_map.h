// The feature maps of linear attention (spec §3.2), Performer's among them (spec §17.16).
#pragma once

#include "engine/mixers/parts.h"

namespace statescope {

/// φ, per head: K channels in, `features()` out.
class FeatureMap {
 public:
  FeatureMap() = default;
  /// `kind` as config files name it. Loads `name`.layer… where the kind has weights of its own.
  FeatureMap(const MixerBuild& build, std::string_view kind, std::string_view name, std::int64_t K);

  std::int64_t features() const { return features_; }
  /// x [T, H, K] → [T, H, F]
  Value operator()(Program& p, Value x) const;

 private:
  void load_hedgehog(const WeightScope& weights, std::string_view name, std::int64_t K);
  void load_dpfp(const WeightScope& weights, std::int64_t K);
  void load_performer(const MixerBuild& build, std::int64_t K);

  std::string kind_;
  std::int64_t features_ = 0;
  Linear first_, second_;
};

}  // namespace statescope

// How exact a shown number is; for the states themselves engine/snapshot.h says it. Every observable's result carries it, as `accuracy`.
#pragma once

#include <string>
#include <string_view>

namespace statescope {

struct Accuracy {
  enum class Kind {
    recomputed,   // worked out in double precision from numbers of the run: right to their rounding
    approximate,  // no further off than `bound`
  };
  Kind kind = Kind::recomputed;
  double bound = 0;     // of an approximate number
  std::string_view of;  // what the bound is a part of: "the value"; empty: none, the bound is absolute

  /// "recomputed in double precision", "within 0.0001 of the value"
  std::string text() const;
};

inline constexpr Accuracy kRecomputed{Accuracy::Kind::recomputed, 0, {}};
/// |found − true| ≤ bound · |of|
constexpr Accuracy accurate_to(double bound, std::string_view of = {}) { return {Accuracy::Kind::approximate, bound, of}; }

}  // namespace statescope

// How exact a shown number is. States, every observable and every panel say it with this.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace statescope {

struct Accuracy {
  enum class Kind {
    exact,        // kept from the run itself
    recomputed,   // worked out again from numbers of the run: right to rounding
    approximate,  // no further off than `bound`
  };
  Kind kind = Kind::exact;
  std::string_view how;  // of a recomputed number: "in double precision"
  double bound = 0;      // of an approximate one
  std::string_view of;   // what the bound is a part of: "the value"; empty: none, the bound is absolute
  bool operator==(const Accuracy&) const = default;

  /// In a word: "exact", "recomputed", "approximate".
  std::string_view name() const { return kind == Kind::exact ? "exact" : kind == Kind::recomputed ? "recomputed" : "approximate"; }
  /// "exact: kept from the run", "recomputed in double precision", "within 0.0001 of the value"
  std::string text() const {
    if (kind == Kind::exact) return "exact: kept from the run";
    if (kind == Kind::recomputed) return fmt::format("recomputed {}", how);
    return of.empty() ? fmt::format("within {}", bound) : fmt::format("within {} of {}", bound, of);
  }
};

inline constexpr Accuracy kExact{};
/// A state between keyframes.
inline constexpr Accuracy kReplayed{Accuracy::Kind::recomputed, "from the keyframe before it, float32", 0, {}};
/// An observable without error of its own.
inline constexpr Accuracy kRecomputed{Accuracy::Kind::recomputed, "in double precision", 0, {}};
/// |found − true| ≤ bound · |of|
constexpr Accuracy accurate_to(double bound, std::string_view of = {}) { return {Accuracy::Kind::approximate, {}, bound, of}; }

}  // namespace statescope

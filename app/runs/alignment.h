// How the tokens of two models that read the same prompt stand to each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/snapshot.h"

namespace statescope {

struct Alignment {
  std::string refused;              // in a line, why no token of one stands for one of the other; else empty
  std::int64_t same_until = 0;      // tokens [0, same_until) are the same in both
  std::vector<std::int64_t> other;  // [T] of each own token: the other's token with its last character
  std::vector<std::int64_t> own;    // [T'] the other way round

  bool is_identical() const { return refused.empty() && same_until == std::ssize(own) && same_until == std::ssize(other); }
};

/// The prompt's tokens by the characters they end with, white space aside; what each model has generated, by its number. Where one has
/// generated less, its last token stands for the rest.
Alignment align(const RunInfo& own, const RunInfo& other);
/// Token by token, whatever they say: of two branches of a run. Where one is shorter, its last token stands for the rest.
Alignment align_by_place(const RunInfo& own, const RunInfo& other);

}  // namespace statescope

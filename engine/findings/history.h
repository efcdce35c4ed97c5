#pragma once

#include <cstdint>
#include <vector>

#include "engine/accuracy.h"

namespace statescope {

/// Who wrote a cell, a row or all of a slot's state of a head after a token, or what the token reads there: signed parts that add up to
/// what is there (spec §12.8).
struct History {
  static constexpr Accuracy accuracy = kRecomputed;
  std::vector<std::int32_t> token;  // [n] that came to the slot, ascending; again where an intervention followed it
  std::vector<float> coefficient;   // [n] c of the token's value vector v in the row; of all rows √Σc²; of a read A_{t,s}
  std::vector<float> written;       // [n] the coefficient it was written with, before later decay and erasure; of all rows and of a
                                    // read likewise √Σ(β k)²
  std::vector<float> contribution;  // [n] to a cell c v[column]; to a norm ‖Z‖ ⟨c ⊗ v, Z⟩ / ‖Z‖, Z the row, all rows or what is read
  double sum = 0;                   // Σ contribution
  double shown = 0;                 // the state's own number, a cell or a norm: the sum but for rounding
  std::vector<std::int32_t> step;  // [n] which of its token's writes, from 0; −1: an intervention; empty: every token writes once
};

struct HistoryQuestion {
  std::int64_t layer = 0, slot = 0, head = 0;
  std::int64_t row = 0;      // −1: all rows, the slot's state as one
  std::int64_t column = -1;  // −1: the whole row
  std::int64_t token = 0;
  bool read = false;  // what the token reads of the slot, with its query; row and column say nothing then
  using Answer = History;
  bool operator==(const HistoryQuestion&) const = default;
};

}  // namespace statescope

// What the tests of the memories share: packed segments, and how two results are compared.
#pragma once

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "kernels/ops/memory.h"
#include "tests/catch.h"
#include "tests/kernels/random_tensors.h"

namespace statescope::testing {

/// Segments that own their numbers.
struct Packed {
  std::vector<std::int32_t> cu_seqlens{0};
  std::vector<std::int32_t> slot;
  std::int64_t slots;

  Packed(const std::vector<std::int32_t>& lengths, std::vector<std::int32_t> slot_, std::int64_t slots_)
      : slot(std::move(slot_)), slots(slots_) {
    for (std::int32_t length : lengths) cu_seqlens.push_back(cu_seqlens.back() + length);
  }
  /// One sequence, one slot.
  explicit Packed(std::int64_t rows) : Packed({static_cast<std::int32_t>(rows)}, {}, 1) {}

  std::int64_t rows() const { return cu_seqlens.back(); }
  Segments view() const { return {cu_seqlens, slot}; }
  bool owns(std::int64_t wanted) const {
    for (std::int64_t s = 0; s < view().count(); ++s) {
      if (view().slot_of(s) == wanted) return true;
    }
    return false;
  }
};

/// What a memory leaves behind.
template <class Number>
struct Result {
  std::vector<Number> o, state;
};

inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

/// Outputs, and the states of all slots, within `tolerance` of the truth.
template <class A, class B>
void check_close(const Result<A>& found, const Result<B>& truth, double tolerance = 1e-5) {
  CHECK(relative_error(found.o, truth.o) <= tolerance);
  CHECK(relative_error(found.state, truth.state) <= tolerance);
}

/// A problem has `segments`, `initial` [slots, H, K, V] and `op(final_state, o)`; `apply(op, chunk_size)`, where 0 takes the step form; and
/// `part(op, begin, count)`, the same operation on some of its rows.

/// Everything that is to be written is NaN before; slots of no segment must be so afterwards, and count as carried over.
template <class Problem>
Result<float> run(const Problem& p, std::int64_t chunk_size) {
  Numbers o = poisoned({p.segments.rows(), p.initial.shape[1], p.initial.shape[3]}), final_state = poisoned(p.initial.shape);
  p.apply(p.op(final_state, o), chunk_size);
  for (std::int64_t slot = 0; slot < p.segments.slots; ++slot) {
    if (p.segments.owns(slot)) continue;
    const std::span<float> untouched(final_state.row(slot), static_cast<std::size_t>(final_state.shape.row_size()));
    CHECK(std::all_of(untouched.begin(), untouched.end(), [](float x) { return std::isnan(x); }));
    std::copy_n(p.initial.row(slot), untouched.size(), untouched.begin());
  }
  return {o.values, final_state.values};
}

/// In place, on a copy of the initial state.
template <class Problem>
Result<float> run_in_place(const Problem& p, std::int64_t chunk_size) {
  Numbers o = poisoned({p.segments.rows(), p.initial.shape[1], p.initial.shape[3]}), state = p.initial;
  auto op = p.op(state, o);
  op.initial_state = state.view();
  p.apply(op, chunk_size);
  return {o.values, state.values};
}

/// One sequence in successive calls, which hand on the state.
template <class Problem>
Result<float> run_in_parts(const Problem& p, const std::vector<std::int64_t>& lengths, std::int64_t chunk_size) {
  Numbers o = poisoned({p.segments.rows(), p.initial.shape[1], p.initial.shape[3]}), state = p.initial;
  std::int64_t begin = 0;
  for (const std::int64_t length : lengths) {
    const Packed segments(length);
    auto op = p.part(p.op(state, o), begin, length);
    op.initial_state = state.view();
    op.segments = segments.view();
    p.apply(op, chunk_size);
    begin += length;
  }
  return {o.values, state.values};
}

/// The message of the std::invalid_argument that fn throws; empty if it does not.
template <class Fn>
std::string complaint_of(const Fn& fn) {
  try {
    fn();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return {};
}

}  // namespace statescope::testing

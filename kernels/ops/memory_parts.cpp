#include "kernels/ops/memory_parts.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace statescope {

namespace {

std::string describe(DType dtype, const Shape& shape) { return std::string(name_of(dtype)) + " " + shape.to_string(); }

}  // namespace

void OperandCheck::fail(const char* operand, const std::string& complaint) const {
  throw std::invalid_argument(std::string(operation_) + ": " + operand + ": " + complaint);
}

void OperandCheck::tensor(const char* operand, ConstTensor found, const Shape& expected, DType dtype) const {
  if (found.dtype != dtype || found.shape != expected) {
    fail(operand, "found " + describe(found.dtype, found.shape) + ", expected " + describe(dtype, expected));
  }
  if (!found && expected.size() > 0) fail(operand, "absent, expected " + describe(dtype, expected));
}

void OperandCheck::heads(const char* operand, ConstTensor found, const Shape& expected) const {
  Shape grouped = expected;
  if (found.shape.rank() == expected.rank() && found.shape[1] > 0 && expected[1] % found.shape[1] == 0) grouped[1] = found.shape[1];
  tensor(operand, found, grouped);
}

void OperandCheck::offsets(const char* operand, std::span<const std::int32_t> cu_seqlens, std::int64_t rows) const {
  if (cu_seqlens.empty()) {
    require(rows == 0, operand, "absent, expected the offsets of " + std::to_string(rows) + " rows");
    return;
  }
  require(cu_seqlens.front() == 0, operand, "begins at " + std::to_string(cu_seqlens.front()) + ", expected 0");
  require(std::is_sorted(cu_seqlens.begin(), cu_seqlens.end()), operand, "descends, expected offsets that ascend");
  require(cu_seqlens.back() == rows, operand,
          "ends at row " + std::to_string(cu_seqlens.back()) + ", expected the number of rows, " + std::to_string(rows));
}

void OperandCheck::segments(const Segments& segments, std::int64_t rows, std::int64_t slots) const {
  offsets("cu_seqlens", segments.cu_seqlens, rows);
  const std::int64_t count = segments.count();
  if (segments.slot.empty()) {
    require(count <= slots, "cu_seqlens", std::to_string(count) + " segments, expected at most one per slot, " + std::to_string(slots));
    return;
  }
  require(static_cast<std::int64_t>(segments.slot.size()) == count, "slot",
          "found " + std::to_string(segments.slot.size()) + " slots, expected one per segment, " + std::to_string(count));
  thread_local std::vector<char> taken;
  taken.assign(static_cast<std::size_t>(slots), 0);
  for (const std::int32_t slot : segments.slot) {
    require(slot >= 0 && slot < slots, "slot", "found slot " + std::to_string(slot) + ", expected less than " + std::to_string(slots));
    require(!std::exchange(taken[static_cast<std::size_t>(slot)], 1), "slot", "slot " + std::to_string(slot) + " belongs to two segments");
  }
}

void OperandCheck::single_rows(const Segments& segments) const {
  for (std::size_t s = 1; s < segments.cu_seqlens.size(); ++s) {
    const std::int32_t length = segments.cu_seqlens[s] - segments.cu_seqlens[s - 1];
    require(length <= 1, "cu_seqlens", "segment " + std::to_string(s - 1) + " has " + std::to_string(length) + " rows, a step takes one");
  }
}

void OperandCheck::chunk_size(std::int64_t rows) const {
  require(rows >= 1, "chunk_size", "found " + std::to_string(rows) + ", expected at least 1");
}

float* Scratch::take(std::int64_t count) {
  if (count > capacity_) {
    memory_.reset(static_cast<float*>(::operator new(static_cast<std::size_t>(count) * sizeof(float), alignment)));
    capacity_ = count;
  }
  return memory_.get();
}

void carry_state(float* state, const float* initial, const Shape& shape) {
  if (state != initial) std::copy_n(initial, shape[2] * shape[3], state);
}

void mask_row(float* x, const DecayRow& decay, std::int64_t i, std::int64_t n, float factor) {
  const float* gamma = decay.gamma();
  for (std::int64_t j = 0; j <= i; ++j) x[j] *= factor * gamma[j];
  std::fill(x + i + 1, x + n, 0.0F);
}

DecayedRows decayed_rows(std::int64_t n, std::int64_t width) {
  thread_local Scratch rows, factors;
  float* factor = factors.take(2 * width);
  std::fill_n(factor, width, 1.0F);
  return {width, rows.take(n * width), factor, factor + width};
}

void scale_row(float* x, float factor, std::int64_t n) {
  for (std::int64_t c = 0; c < n; ++c) x[c] *= factor;
}

}  // namespace statescope

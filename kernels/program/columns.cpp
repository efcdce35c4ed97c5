#include "kernels/program/columns.h"

namespace statescope::program {
namespace {

/// The first `count` ranges have one length and lie `stride` numbers apart.
struct EvenRanges {
  std::size_t count = 1;
  std::int64_t stride = 0;
};
EvenRanges even_ranges(std::span<const std::pair<std::int64_t, std::int64_t>> ranges) {
  EvenRanges even;
  if (ranges.size() > 1) even.stride = ranges[1].first - ranges[0].first;
  const auto goes_on = [&](std::size_t i) {
    return ranges[i].second == ranges[0].second && ranges[i].first == ranges[i - 1].first + even.stride;
  };
  while (even.stride >= 0 && even.count < ranges.size() && goes_on(even.count)) ++even.count;
  return even;
}

}  // namespace

void copy_ranges(Backend& backend, Tensor y, ConstTensor x, std::span<const std::pair<std::int64_t, std::int64_t>> ranges) {
  std::int64_t at = 0;
  while (!ranges.empty()) {
    const auto [begin, count] = ranges.front();
    const EvenRanges even = even_ranges(ranges);
    const std::int64_t numbers = static_cast<std::int64_t>(even.count) * count;
    // Of one token, or where a row has nothing else, such ranges are rows themselves.
    const bool all = numbers == y.row_size() && y.contiguous() && x.stride == static_cast<std::int64_t>(even.count) * even.stride;
    const bool are_rows = x.rows() == 1 || all;
    const std::size_t taken = are_rows ? even.count : 1;
    const Shape rows{are_rows ? x.rows() * static_cast<std::int64_t>(taken) : x.rows(), count};
    const Tensor to = y.columns(at, {count});
    const ConstTensor from = x.columns(begin, {count});
    backend.copy(Tensor(to.data, to.dtype, rows, are_rows ? count : to.stride),
                 ConstTensor(from.data, from.dtype, rows, are_rows ? even.stride : from.stride));
    at += static_cast<std::int64_t>(taken) * count;
    ranges = ranges.subspan(taken);
  }
}

}  // namespace statescope::program

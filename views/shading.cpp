#include "views/shading.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "views/parts.h"

namespace statescope {
namespace {

constexpr std::int64_t kMostNumbers = 4096;  // kept of thousands
constexpr double kLeftOut = 0.01;            // at an end that most numbers are within
constexpr float kLeastRatio = 1e-6f;         // low ÷ high of a logarithmic range, at least

/// The number below which that share of them lies.
float quantile(const std::vector<float>& ascending, double share) {
  return ascending[static_cast<std::size_t>(std::lround(share * static_cast<double>(ascending.size() - 1)))];
}

/// Counts the finite numbers and keeps some of them, ascending.
void take_numbers(Shading& shading, std::span<const float> numbers) {
  shading.least = INFINITY, shading.most = -INFINITY;
  for (const float x : numbers) {
    if (!std::isfinite(x)) continue;
    ++shading.count;
    shading.least = std::min(shading.least, x);
    shading.most = std::max(shading.most, x);
  }
  if (shading.count == 0) return void(shading.least = shading.most = 0);
  const auto step = std::max<std::size_t>(1, (numbers.size() + kMostNumbers - 3) / (kMostNumbers - 2));
  for (std::size_t i = 0; i < numbers.size(); i += step) {
    if (std::isfinite(numbers[i])) shading.numbers.push_back(numbers[i]);
  }
  shading.numbers.push_back(shading.least);
  shading.numbers.push_back(shading.most);
  std::ranges::sort(shading.numbers);
}

ColorRange symmetric(float end) { return {-end, end}; }

ColorRange wanted_range(const Shading& shading, const ColorRange& own, const RangeChoice& wanted) {
  using Fit = RangeChoice::Fit;
  if (wanted.fit == Fit::own || shading.count == 0) return own;
  if (wanted.fit == Fit::fixed) {
    if (shading.is_signed) return symmetric(std::max(std::abs(wanted.low), std::abs(wanted.high)));
    return {std::min(wanted.low, wanted.high), std::max(wanted.low, wanted.high)};
  }
  const double out = wanted.fit == Fit::most ? kLeftOut : 0;
  if (!shading.is_signed) return {quantile(shading.numbers, out), quantile(shading.numbers, 1 - out)};
  std::vector<float> sizes;
  for (const float x : shading.numbers) sizes.push_back(std::abs(x));
  std::ranges::sort(sizes);
  return symmetric(quantile(sizes, 1 - out));
}

}  // namespace

Shading shade(std::span<const float> numbers, const ColorRange& own, bool is_signed, const RangeChoice& wanted) {
  Shading shading;
  shading.is_signed = is_signed;
  take_numbers(shading, numbers);
  ColorRange& range = shading.range = wanted_range(shading, own, wanted);
  if (!(range.high > range.low)) range = own;
  if ((wanted.logarithmic || own.logarithmic) && !is_signed && range.high > 0) {
    range.logarithmic = true;
    range.low = std::max(range.low, kLeastRatio * range.high);
  }
  for (const float x : numbers) {
    shading.below += x < range.low && std::isfinite(x);
    shading.above += x > range.high && std::isfinite(x);
  }
  return shading;
}

Coloring colored(std::span<const float> numbers, const ColorRange& own, std::vector<ScaleMark> marks, const RangeChoice& wanted) {
  Coloring coloring{shade(numbers, own, false, wanted), std::move(marks)};
  if (!is_own(wanted)) coloring.marks = range_marks(coloring.shading);
  return coloring;
}

std::optional<Shading> shading_of(const std::optional<Coloring>& coloring) {
  return coloring ? std::optional(coloring->shading) : std::nullopt;
}

std::vector<ScaleMark> range_marks(const Shading& shading) {
  const ColorRange& range = shading.range;
  const float middle = range.logarithmic ? std::sqrt(range.low * range.high) : (range.low + range.high) / 2;
  return {{range.high, (shading.above > 0 ? "≥ " : "") + number(range.high, 3)},
          {middle, number(middle, 3)},
          {range.low, (shading.below > 0 ? "≤ " : "") + number(range.low, 3)}};
}

}  // namespace statescope

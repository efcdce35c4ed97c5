#include "views/shading.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

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

/// Some of the finite numbers, ascending, both ends among them.
std::vector<float> some_of(std::span<const float> numbers, const FiniteNumbers& finite) {
  std::vector<float> some{finite.least, finite.most};
  const auto step = std::max<std::size_t>(1, (numbers.size() + kMostNumbers - 3) / (kMostNumbers - 2));
  for (std::size_t i = 0; i < numbers.size(); i += step) {
    if (std::isfinite(numbers[i])) some.push_back(numbers[i]);
  }
  std::ranges::sort(some);
  return some;
}

/// How many numbers lie beyond the range; none is looked at where the ends are within it.
void count_beyond(Shading& shading, std::span<const float> numbers) {
  constexpr float largest = std::numeric_limits<float>::max();
  const float low = shading.range.low, high = shading.range.high;
  if (shading.least < low) shading.below = std::ranges::count_if(numbers, [low](float x) { return x < low && x >= -largest; });
  if (shading.most > high) shading.above = std::ranges::count_if(numbers, [high](float x) { return x > high && x <= largest; });
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

Shading shade(std::span<const float> numbers, const FiniteNumbers& finite, const ColorRange& own, bool is_signed,
              const RangeChoice& wanted) {
  Shading shading;
  shading.is_signed = is_signed;
  shading.count = finite.count;
  shading.least = finite.least;
  shading.most = finite.most;
  if (finite.count > 0) shading.numbers = some_of(numbers, finite);
  ColorRange& range = shading.range = wanted_range(shading, own, wanted);
  if (!(range.high > range.low)) range = own;
  if ((wanted.logarithmic || own.logarithmic) && !is_signed && range.high > 0) {
    range.logarithmic = true;
    range.low = std::max(range.low, kLeastRatio * range.high);
  }
  count_beyond(shading, numbers);
  return shading;
}

}  // namespace

Shading shade(std::span<const float> numbers, const ColorRange& own, bool is_signed, const RangeChoice& wanted) {
  return shade(numbers, finite_numbers(numbers), own, is_signed, wanted);
}

Shading shade(const Pyramid& cells, const ColorRange& own, bool is_signed, const RangeChoice& wanted) {
  return shade(cells.values(), cells.finite(), own, is_signed, wanted);
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

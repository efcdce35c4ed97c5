#include "views/hits.h"

#include <algorithm>
#include <ranges>

namespace statescope {
namespace {

/// Which of `count` equal parts of [begin, begin + length) holds `at`.
std::int64_t part_of(float at, float begin, float length, std::int64_t count) {
  const auto part = static_cast<std::int64_t>((at - begin) / length * static_cast<float>(count));
  return std::clamp<std::int64_t>(part, 0, count - 1);
}

}  // namespace

Rect intersection(Rect a, Rect b) {
  const float x = std::max(a.x, b.x), y = std::max(a.y, b.y);
  return {x, y, std::max(0.0f, std::min(a.right(), b.right()) - x), std::max(0.0f, std::min(a.bottom(), b.bottom()) - y)};
}

void HitRegions::add(Rect rect, Rect clip, const HitGrid& grid) { regions_.push_back({rect, intersection(rect, clip), grid}); }

std::optional<Hit> HitRegions::at(Point p) const {
  for (const Region& region : std::views::reverse(regions_)) {
    if (!region.visible.contains(p)) continue;
    const HitGrid& grid = region.grid;
    const std::int64_t row = part_of(p.y, region.rect.y, region.rect.h, grid.rows);
    const std::int64_t column = part_of(p.x, region.rect.x, region.rect.w, grid.columns);
    Hit hit = grid.first;
    if (grid.rows > 1) hit.at[grid.down] += row;
    if (grid.columns > 1) hit.at[grid.across] += column;
    return hit;
  }
  return std::nullopt;
}

}  // namespace statescope

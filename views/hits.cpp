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

Rect seen(const Plot& plot, Rect place) { return plot.shows_part() ? intersection(place, plot) : place; }

void HitRegions::add(Rect rect, Rect clip, const HitGrid& grid) { regions_.push_back({rect, intersection(rect, clip), grid}); }

std::optional<Hit> HitRegions::at(Point p) const {
  for (const Region& region : std::views::reverse(regions_))
    if (region.visible.contains(p)) return region.at(p);
  return std::nullopt;
}

Hit HitRegions::Region::at(Point p) const {
  const std::int64_t row = part_of(p.y, rect.y, rect.h, grid.rows), column = part_of(p.x, rect.x, rect.w, grid.columns);
  Hit hit = grid.first;
  if (grid.rows > 1) hit.at[grid.down] += row;
  if (grid.columns > 1) hit.at[grid.across] += column;
  return hit;
}

std::optional<HitRegions::InSight> HitRegions::in_sight(const ZoomPlot& plot) const {
  constexpr float edge = 0.5f;  // a place of which less is in sight does not count
  for (const Region& region : regions_) {
    if (region.grid.rows * region.grid.columns == 1) continue;
    const Rect& seen = region.visible;
    if (seen.w < 2 * edge || seen.h < 2 * edge || seen.x != plot.rect.x || seen.y != plot.rect.y) continue;
    if (seen.right() > plot.rect.right() + edge || seen.bottom() > plot.rect.bottom() + edge) continue;
    return InSight{region.grid, region.at({seen.x + edge, seen.y + edge}), region.at({seen.right() - edge, seen.bottom() - edge})};
  }
  return {};
}

std::optional<std::pair<Hit, Hit>> HitRegions::things_in_sight(const ZoomPlot& plot) const {
  std::optional<std::pair<Hit, Hit>> range;
  for (const Region& region : regions_) {
    const Rect seen = intersection(region.visible, plot.rect);
    const Hit& hit = region.grid.first;
    const auto is_half = [](float part, float all, float room) { return part > 0 && 2 * part >= std::min(all, room); };
    const bool is_seen = is_half(seen.w, region.rect.w, plot.rect.w) && is_half(seen.h, region.rect.h, plot.rect.h);
    if (!is_seen || (range && range->first.sheet != hit.sheet)) continue;
    range = range ? std::pair(std::min(range->first, hit), std::max(range->second, hit)) : std::pair(hit, hit);
  }
  return range;
}

const HitRegions::ZoomPlot* HitRegions::plot_at(Point p) const {
  const auto found = std::ranges::find_if(plots_, [p](const ZoomPlot& plot) { return plot.rect.contains(p); });
  return found == plots_.end() ? nullptr : &*found;
}

}  // namespace statescope

// How a view's panel enlarges what it shows: the data in its plots, so that everything around them stays, or else all of the drawing.
#include <QWheelEvent>
#include <algorithm>
#include <utility>

#include "app/panels/view_panel.h"

namespace statescope {
namespace {

constexpr float most_zoom = 16, most_data_zoom = 256;
constexpr double nearly_all = 0.999;

QRectF kept_inside(QRectF part) {
  part.moveLeft(std::clamp(part.x(), 0.0, 1 - part.width()));
  part.moveTop(std::clamp(part.y(), 0.0, 1 - part.height()));
  return part;
}

}  // namespace

/// What a key is about: the plot with the most axes, the largest of those.
const HitRegions::ZoomPlot* ViewPanel::main_plot() const {
  const std::vector<HitRegions::ZoomPlot>& plots = surface_->hits().plots();
  const auto size = [](const HitRegions::ZoomPlot& plot) { return std::pair(plot.across && plot.down, plot.rect.w * plot.rect.h); };
  const auto largest = std::ranges::max_element(plots, {}, size);
  return largest == plots.end() ? nullptr : &*largest;
}

bool ViewPanel::shows_part() const { return part_ != QRectF(0, 0, 1, 1); }

float ViewPanel::zoom() const { return std::max(zoom_, static_cast<float>(1 / std::min(part_.width(), part_.height()))); }

void ViewPanel::zoom(float factor) {
  const HitRegions::ZoomPlot* plot = main_plot();
  plot ? zoom_data(factor, *plot, {0.5, 0.5}) : zoom_at(factor, QRectF(surface_->widget()->rect()).center());
}

void ViewPanel::fit() {
  zoom_ = 1;
  offset_ = {};
  part_is_new_ = std::exchange(part_, QRectF(0, 0, 1, 1)) != part_;
  surface_->widget()->update();
}

void ViewPanel::zoom_at(float factor, QPointF at) {
  const HitRegions::ZoomPlot* under = surface_->hits().plot_at({static_cast<float>(at.x()), static_cast<float>(at.y())});
  if (under) {
    const Rect& rect = under->rect;
    return zoom_data(factor, *under, {(at.x() - rect.x) / rect.w, (at.y() - rect.y) / rect.h});
  }
  if (const HitRegions::ZoomPlot* plot = main_plot()) return zoom_data(factor, *plot, {0.5, 0.5});
  const float zoomed = std::clamp(zoom_ * factor, 1.0f, most_zoom);
  offset_ = (offset_ + at) * (zoomed / zoom_) - at;
  zoom_ = zoomed;
  keep_inside();
}

/// What lies at `share` of the plot stays there.
void ViewPanel::zoom_data(float factor, const HitRegions::ZoomPlot& plot, QPointF share) {
  const auto length = [factor](double now) {
    const double then = std::clamp(now / factor, 1.0 / most_data_zoom, 1.0);
    return then > nearly_all ? 1.0 : then;
  };
  const QSizeF size(plot.across ? length(part_.width()) : part_.width(), plot.down ? length(part_.height()) : part_.height());
  const QPointF corner(part_.x() + share.x() * (part_.width() - size.width()), part_.y() + share.y() * (part_.height() - size.height()));
  part_ = kept_inside({corner, size});
  part_is_new_ = true;
  surface_->widget()->update();
}

void ViewPanel::pan(QPointF parts) {
  if (shows_part()) {
    part_ = kept_inside(part_.translated(parts.x() * part_.width(), parts.y() * part_.height()));
    part_is_new_ = true;
    return surface_->widget()->update();
  }
  const QSizeF size = surface_->widget()->size();
  move_drawing({-parts.x() * size.width(), -parts.y() * size.height()});
}

void ViewPanel::move_drawing(QPointF by) {
  if (const HitRegions::ZoomPlot* plot = main_plot(); plot && shows_part()) return pan({-by.x() / plot->rect.w, -by.y() / plot->rect.h});
  offset_ -= by;
  keep_inside();
}

void ViewPanel::keep_inside() {
  const QSizeF room = QSizeF(surface_->widget()->size()) * (zoom_ - 1);
  offset_ = {std::clamp(offset_.x(), 0.0, room.width()), std::clamp(offset_.y(), 0.0, room.height())};
  surface_->widget()->update();
}

/// The left button, too, moves an enlarged map; along a lane it goes on choosing.
void ViewPanel::drag(QPointF to, Qt::MouseButtons buttons) {
  const HitRegions::ZoomPlot* plot = surface_->hits().plot_at({static_cast<float>(drag_.x()), static_cast<float>(drag_.y())});
  const bool moves = !(buttons & Qt::LeftButton) || (shows_part() && plot && plot->across && plot->down);
  if (moves)
    move_drawing(to - std::exchange(drag_, to));
  else
    choose(to, true);
}

void ViewPanel::turn_wheel(const QWheelEvent& wheel) {
  QPointF by = QPointF(wheel.angleDelta()) / 2;
  if (wheel.modifiers() & Qt::ControlModifier) return zoom_at(by.y() > 0 ? 1.25f : 0.8f, wheel.position());
  if (zoom() <= 1) {
    Q_EMIT spoke(tr("Ctrl and the wheel enlarge what is under the pointer; the wheel alone then moves it, and 0 shows all of it."));
    return;
  }
  const bool sideways = wheel.modifiers() & Qt::ShiftModifier || (shows_part() && part_.height() == 1);
  if (sideways && by.x() == 0) by = {by.y(), 0};
  move_drawing(by);
}

QString ViewPanel::in_sight() const {
  const HitRegions::ZoomPlot* plot = main_plot();
  if (!plot || !shows_part()) return {};
  std::optional<std::pair<Hit, Hit>> ends;
  if (const std::optional<HitRegions::InSight> seen = surface_->hits().in_sight(*plot); seen)
    ends = std::pair(seen->first, seen->last);
  else
    ends = surface_->hits().things_in_sight(*plot);
  return ends ? QString::fromStdString(range_of(view_->sheets(), ends->first, ends->second)) : QString();
}

/// It has been drawn.
void ViewPanel::look_again(bool part_is_new) {
  keep_cursor_in_sight();
  if (part_is_new) tell_in_sight();
}

void ViewPanel::tell_in_sight() {
  const QString part = in_sight();
  Q_EMIT spoke(part.isEmpty() ? tr("All of it is in sight.") : tr("In sight: %1. 0 shows all of it.").arg(part));
  describe();
}

/// Steps lead out of what is in sight: it follows.
void ViewPanel::keep_cursor_in_sight() {
  const HitRegions::ZoomPlot* plot = main_plot();
  const std::optional<HitRegions::InSight> seen = plot && shows_part() ? surface_->hits().in_sight(*plot) : std::nullopt;
  const std::vector<Sheet> sheets = seen ? view_->sheets() : std::vector<Sheet>();
  if (!seen || seen->grid.first.sheet >= std::ssize(sheets)) return;
  const std::vector<Axis>& axes = sheets[static_cast<std::size_t>(seen->grid.first.sheet)].axes;
  const auto here = [&](std::size_t axis, std::int64_t count) { return count > 1 && axis < axes.size() ? axes[axis].here : -1; };
  const std::array<std::int64_t, 2> now = {here(seen->grid.across, seen->grid.columns), here(seen->grid.down, seen->grid.rows)};
  const std::array<std::int64_t, 2> before = std::exchange(followed_, now);
  const auto way_to = [&](std::size_t i, std::size_t axis, std::int64_t count) {
    if (now[i] < 0 || now[i] == before[i] || (now[i] >= seen->first.at[axis] && now[i] <= seen->last.at[axis])) return 0.0;
    return (static_cast<double>(now[i]) - static_cast<double>(seen->first.at[axis] + seen->last.at[axis]) / 2) / static_cast<double>(count);
  };
  const QPointF by(plot->across ? way_to(0, seen->grid.across, seen->grid.columns) : 0,
                   plot->down ? way_to(1, seen->grid.down, seen->grid.rows) : 0);
  if (by.isNull()) return;
  part_ = kept_inside(part_.translated(by));
  surface_->widget()->update();
  describe();
}

}  // namespace statescope

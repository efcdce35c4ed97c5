#include "app/pages/training_plots.h"

#include <fmt/format.h>

#include <QCoreApplication>
#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "app/canvas/paper_canvas.h"
#include "app/common/page.h"
#include "views/plot.h"

namespace statescope {
namespace {

constexpr float title_height = 20, ticks_height = 18, gap = 14, panel_height = 96, legend_height = 20;  // at 1×
constexpr float point_radius = 3, mark_radius = 6.5f, reach = 12;
constexpr Color ill_color{0xd5, 0x5e, 0x00};

QString words(const char* text) { return QCoreApplication::translate("statescope::TrainingPage", text); }

std::string step_words(const TrainingStep& step) { return step.steps > 0 ? std::to_string(step.steps) : step.name; }

}  // namespace

TrainingPlots::TrainingPlots(QWidget* parent) : QWidget(parent) {
  setObjectName("training-plots");
  setAccessibleName(tr("Course of the training"));
  setMouseTracking(true);
}

void TrainingPlots::set_frame(const Frame& frame) {
  frame_ = frame;
  setMinimumHeight(static_cast<int>((2 * panel_height + gap + legend_height) * frame.scale));
  update();
}

void TrainingPlots::show_steps(const std::vector<TrainingStep>& steps) {
  steps_ = steps;
  series_.clear();
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    auto found = std::ranges::find(series_, steps_[i].series, &Series::name);
    if (found == series_.end()) found = series_.insert(series_.end(), Series{steps_[i].series, {}});
    found->steps.push_back(i);
  }
  const bool known = std::ranges::all_of(steps_, [](const TrainingStep& step) { return step.steps > 0; });
  along_.assign(steps_.size(), 0);
  double last = 0;
  for (const Series& series : series_) {
    for (std::size_t i = 0; i < series.steps.size(); ++i) {
      const std::size_t step = series.steps[i];
      along_[step] = known ? static_cast<double>(steps_[step].steps) : static_cast<double>(i + 1);
      last = std::max(last, along_[step]);
    }
  }
  for (double& place : along_) place /= last;
  if (marked_ >= static_cast<int>(steps_.size())) marked_ = -1;
  setAccessibleDescription(described(steps_));
  update();
}

void TrainingPlots::mark(int step) {
  marked_ = step;
  update();
}

QString TrainingPlots::described(const std::vector<TrainingStep>& steps) {
  if (steps.empty()) return tr("No checkpoint has been read yet.");
  const auto ill = std::ranges::count_if(steps, &TrainingStep::ill);
  QString text = tr("%1 checkpoints, %2 of them ill.").arg(steps.size()).arg(ill);
  for (std::size_t t = 0; t < trends; ++t) {
    const auto has = [t](const TrainingStep& step) { return std::isfinite(step.values[t]); };
    const auto first = std::ranges::find_if(steps, has);
    const auto last = std::ranges::find_if(steps.rbegin(), steps.rend(), has);
    if (first == steps.end()) continue;
    const TrendRow& row = trend_rows()[t];
    text += " " + tr("%1: from %2 to %3.")
                      .arg(words(row.name), QString::fromStdString(number_cell(first->values[t], row.format)),
                           QString::fromStdString(number_cell(last->values[t], row.format)));
  }
  return text;
}

Rect TrainingPlots::panel(std::size_t trend) const {
  const float s = frame_.scale, w = (static_cast<float>(width()) - gap * s) / 2;
  const float h = (static_cast<float>(height()) - (gap + legend_height) * s) / 2;
  return {static_cast<float>(trend % 2) * (w + gap * s), legend_height * s + static_cast<float>(trend / 2) * (h + gap * s), w, h};
}

Rect TrainingPlots::plot(std::size_t trend) const {
  const Rect all = panel(trend);
  const float s = frame_.scale, left = value_axis_width(frame_), right = 10 * s;
  return {all.x + left, all.y + title_height * s, all.w - left - right, all.h - (title_height + ticks_height) * s};
}

namespace {

ValueAxis axis_of(const std::vector<TrainingStep>& steps, std::size_t trend) {
  std::vector<float> values;
  for (const TrainingStep& step : steps) values.push_back(static_cast<float>(step.values[trend]));
  return axis_over(values);
}

}  // namespace

Point TrainingPlots::place(std::size_t trend, std::size_t step) const {
  const Rect area = plot(trend);
  return {area.x + static_cast<float>(along_[step]) * area.w, height_of(area, axis_of(steps_, trend), steps_[step].values[trend])};
}

int TrainingPlots::step_at(QPointF at) const {
  int nearest = -1;
  float least = reach * frame_.scale;
  for (std::size_t t = 0; t < trends; ++t) {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (!std::isfinite(steps_[i].values[t])) continue;
      const Point point = place(t, i);
      const float distance = std::hypot(point.x - static_cast<float>(at.x()), point.y - static_cast<float>(at.y()));
      if (distance < least) least = distance, nearest = static_cast<int>(i);
    }
  }
  return nearest;
}

/// Ill: a triangle; where nothing can be said: a ring.
void TrainingPlots::draw_point(Canvas& canvas, Point at, const TrainingStep& step, Color color, bool marked) const {
  const float r = point_radius * frame_.scale;
  if (marked) {
    const float m = mark_radius * frame_.scale;
    canvas.stroke_rect({at.x - m, at.y - m, 2 * m, 2 * m}, frame_.theme.accent, 1.5f * frame_.scale, m);
  }
  if (step.ill) {
    const Point corners[] = {{at.x, at.y - 1.6f * r}, {at.x + 1.5f * r, at.y + 1.2f * r}, {at.x - 1.5f * r, at.y + 1.2f * r}};
    canvas.path(corners, ill_color, 1, true);
  } else if (step.verdict == "healthy") {
    canvas.fill_rect({at.x - r, at.y - r, 2 * r, 2 * r}, color, r);
  } else {
    canvas.stroke_rect({at.x - r, at.y - r, 2 * r, 2 * r}, color, 1.2f * frame_.scale, r);
  }
}

void TrainingPlots::draw_panel(Canvas& canvas, std::size_t trend) const {
  const Rect all = panel(trend), area = plot(trend);
  const float s = frame_.scale;
  const TextStyle title{.size = 12 * s, .color = frame_.theme.ink, .bold = true}, ticks{.size = 11 * s, .color = frame_.theme.faint};
  canvas.text({all.x, all.y + title_height * s / 2}, words(trend_rows()[trend].name).toStdString(), title);
  if (std::ranges::none_of(steps_, [&](const TrainingStep& step) { return std::isfinite(step.values[trend]); })) {
    canvas.text({area.x, area.y + area.h / 2}, tr("This model has none.").toStdString(), ticks);
    return;
  }
  draw_value_axis(canvas, area, axis_of(steps_, trend), "", frame_);
  for (std::size_t n = 0; n < series_.size(); ++n) {
    const Color color = identity_color(static_cast<std::int64_t>(n), frame_.theme);
    std::vector<Point> points;
    const auto draw = [&] {
      if (points.size() > 1) canvas.path(points, color, 1.5f * s);
      points.clear();
    };
    for (const std::size_t step : series_[n].steps) {
      if (std::isfinite(steps_[step].values[trend]))
        points.push_back(place(trend, step));
      else
        draw();
    }
    draw();
    for (const std::size_t step : series_[n].steps) {
      if (std::isfinite(steps_[step].values[trend]))
        draw_point(canvas, place(trend, step), steps_[step], color, static_cast<int>(step) == marked_);
    }
  }
  const auto last = static_cast<std::size_t>(std::ranges::max_element(along_) - along_.begin());
  canvas.text({area.x, area.bottom() + ticks_height * s / 2}, "0", ticks);
  TextStyle at_end = ticks;
  at_end.align = Align::right;
  canvas.text({area.right() + 8 * s, area.bottom() + ticks_height * s / 2},
              tr("step %1").arg(step_words(steps_[last]).c_str()).toStdString(), at_end);
}

void TrainingPlots::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  PaperCanvas canvas(painter, {static_cast<float>(width()), static_cast<float>(height())});
  if (steps_.empty()) return;
  if (series_.size() > 1) {
    std::vector<LegendEntry> entries;
    for (std::size_t n = 0; n < series_.size(); ++n)
      entries.push_back({identity_color(static_cast<std::int64_t>(n), frame_.theme), series_[n].name});
    draw_legend(canvas, {0, 0, static_cast<float>(width()), legend_height * frame_.scale}, entries, frame_);
  }
  for (std::size_t t = 0; t < trends; ++t) draw_panel(canvas, t);
}

void TrainingPlots::mousePressEvent(QMouseEvent* event) {
  if (const int step = step_at(event->position()); step >= 0 && event->button() == Qt::LeftButton) Q_EMIT chosen(step);
}

void TrainingPlots::mouseMoveEvent(QMouseEvent* event) {
  setCursor(step_at(event->position()) >= 0 ? Qt::PointingHandCursor : Qt::ArrowCursor);
}

bool TrainingPlots::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const int at = step_at(help->pos());
  if (at < 0) {
    QToolTip::hideText();
    return true;
  }
  const TrainingStep& step = steps_[static_cast<std::size_t>(at)];
  QStringList lines{QString::fromStdString(fmt::format("{}: {}", step.name, step.verdict))};
  for (std::size_t t = 0; t < trends; ++t)
    lines += words(trend_rows()[t].name) + " " + QString::fromStdString(number_cell(step.values[t], trend_rows()[t].format));
  QToolTip::showText(help->globalPos(), lines.join('\n'), this);
  return true;
}

}  // namespace statescope

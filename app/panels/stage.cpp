#include "app/panels/stage.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace statescope {
namespace {

constexpr float least_width = 340, least_height = 220;                // of a view, at 1×
constexpr float least_width_of_all = 280, least_height_of_all = 250;  // likewise where every view is shown
constexpr float share_unit = 10000;  // sizes are handed to Qt as whole numbers, which it spreads over the room there is

QList<int> sizes_of(const std::vector<float>& shares) {
  QList<int> sizes;
  for (const float share : shares) sizes.push_back(static_cast<int>(std::lround(share * share_unit)));
  return sizes;
}

/// How many of the least length fit.
std::size_t room_for(int length, float least) { return static_cast<std::size_t>(std::max(1.0f, static_cast<float>(length) / least)); }

/// Of the narrowest and the lowest view, in parts of the least size, with `upper` views in the upper row.
float fit_with(std::size_t upper, const QSizeF& room, std::size_t views, float scale) {
  const std::size_t lower = views > upper ? views - upper : 0;
  const double columns = static_cast<double>(std::max(std::min(upper, views), lower)), rows = lower > 0 ? 2 : 1;
  return static_cast<float>(
      std::min(room.width() / columns / (least_width_of_all * scale), room.height() / rows / (least_height_of_all * scale)));
}

/// Those below `least`, a part of all, get that, as far as there is so much; the others share the rest.
void raise_to(float least, std::vector<float>& shares) {
  float sum = 0;
  for (const float share : shares) sum += share;
  for (float& share : shares) share /= sum;
  least = std::min(least, 1 / static_cast<float>(shares.size()));
  float missing = 0, spare = 0;
  for (const float share : shares) {
    missing += std::max(0.0f, least - share);
    spare += std::max(0.0f, share - least);
  }
  for (float& share : shares) share = share > least ? share - (share - least) / spare * missing : least;
}

bool fits_better_above_other(const QSizeF& room, std::size_t views, float scale) {
  return views == 2 && fit_with(1, room, views, scale) > fit_with(2, room, views, scale);
}

}  // namespace

Stage::Stage(Navigator& navigator, QList<QAction*> view_actions, bool opengl, QWidget* parent)
    : QSplitter(Qt::Vertical, parent),
      navigator_(navigator),
      view_actions_(std::move(view_actions)),
      opengl_(opengl),
      upper_(new QSplitter(Qt::Horizontal, this)),
      lower_(new QSplitter(Qt::Horizontal, this)) {
  for (QSplitter* splitter : {static_cast<QSplitter*>(this), upper_, lower_}) {
    splitter->setChildrenCollapsible(false);
    connect(splitter, &QSplitter::splitterMoved, this, [this] {
      take_sizes();
      Q_EMIT rearranged();
    });
  }
  arrange(arrangement_of({}));
  focused_ = panels_.back();
}

Stage::Place Stage::place_of(std::size_t index) const {
  if (index < upper_views()) return {upper_, static_cast<int>(index)};
  return {lower_, static_cast<int>(index - upper_views())};
}

ViewPanel* Stage::make_panel(const ViewRow& row) {
  auto* panel = new ViewPanel(navigator_, row, opengl_, true, lower_);
  connect(panel, &ViewPanel::focused, this, [this, panel] {
    focused_ = panel;
    Q_EMIT focus_moved();
  });
  connect(panel, &ViewPanel::changed, this, [this, panel] { Q_EMIT panel_changed(panel); });
  connect(panel, &ViewPanel::look_changed, this, [this, panel] { Q_EMIT look_changed(panel); });
  panel->add_actions(view_actions_);
  connect(panel, &ViewPanel::example_chosen, this, &Stage::example_chosen);
  connect(panel, &ViewPanel::spoke, this, &Stage::spoke);
  connect(panel, &ViewPanel::torn_off, this, [this, panel](QPoint at) { Q_EMIT torn_off(panel, at); });
  connect(panel, &ViewPanel::menu_wanted, this,
          [this, panel](const std::optional<Hit>& hit, QPoint at) { Q_EMIT menu_wanted(panel, hit, at); });
  panel->set_frame(frame_);
  panel->set_title_shown(titles_shown_);
  return panel;
}

/// The key that closes a view may still be on its way through it, so it goes a little later.
void Stage::drop_panels(std::size_t keep) {
  while (panels_.size() > keep) {
    ViewPanel* panel = panels_.back();
    panels_.pop_back();
    panel->setParent(parentWidget());  // no longer one of a row's
    panel->hide();
    panel->deleteLater();
  }
}

void Stage::arrange(const Arrangement& arrangement) {
  for (std::size_t i = 0; i < arrangement.views.size(); ++i) {
    const ViewRow& row = *find_view(arrangement.views[i]);
    if (i == panels_.size())
      panels_.push_back(make_panel(row));
    else if (&panels_[i]->row() != &row)
      panels_[i]->set_view(row);
    panels_[i]->set_mode(i < arrangement.modes.size() ? arrangement.modes[i] : 0);
  }
  widths_ = arrangement.widths;
  upper_share_ = arrangement.upper;
  const bool focus_goes = focused_ && std::ranges::find(panels_, focused_) - panels_.begin() >= std::ssize(arrangement.views);
  if (focus_goes) focus(*panels_.front());
  drop_panels(arrangement.views.size());
  if (!focused_) focused_ = panels_.front();
  lay_out();
}

Arrangement Stage::arrangement() const {
  Arrangement result{{}, widths_, upper_share_, {}};
  for (const ViewPanel* panel : panels_) {
    result.views.emplace_back(panel->row().id);
    result.modes.push_back(panel->view().mode());
  }
  return result;
}

void Stage::add_view(const ViewRow& row) {
  if (is_full()) return;
  panels_.push_back(make_panel(row));
  widths_.push_back(1);
  lay_out();
  focus(*panels_.back());
  Q_EMIT rearranged();
}

void Stage::add_view() {
  const auto stands = [this](const ViewRow& row) {
    return row.id == strip_view || std::ranges::any_of(panels_, [&](const ViewPanel* panel) { return &panel->row() == &row; });
  };
  const std::span<const ViewRow> rows = view_catalogue();
  const auto fresh = std::ranges::find_if_not(rows, stands);
  add_view(fresh != rows.end() ? *fresh : focused_->row());
}

void Stage::close_view() {
  if (panels_.size() == 1) return;
  const auto place = std::ranges::find(panels_, focused_) - panels_.begin();
  std::rotate(panels_.begin() + place, panels_.begin() + place + 1, panels_.end());
  widths_.erase(widths_.begin() + place);
  focus(*panels_[std::min(static_cast<std::size_t>(place), panels_.size() - 2)]);
  drop_panels(panels_.size() - 1);
  lay_out();
  Q_EMIT rearranged();
}

void Stage::make_large() {
  const auto place = std::ranges::find(panels_, focused_);
  if (place == panels_.begin()) return;
  std::iter_swap(place, panels_.begin());
  lay_out();
  Q_EMIT rearranged();
}

void Stage::focus_next(int direction) {
  const auto count = std::ssize(panels_);
  const auto place = std::ranges::find(panels_, focused_) - panels_.begin();
  focus(*panels_[static_cast<std::size_t>((place + direction + count) % count)]);
}

/// One that was folded away comes up.
void Stage::focus(ViewPanel& panel) {
  focused_ = &panel;
  fold();
  panel.surface().setFocus(Qt::ShortcutFocusReason);
  Q_EMIT focus_moved();
}

void Stage::bring_up(std::size_t index) {
  if (focused_ == panels_[index]) return;
  focused_ = panels_[index];
  fold();
}

void Stage::begin_with_first() {
  if (focused_->surface().hasFocus()) return focus(*panels_.front());
  bring_up(0);
  Q_EMIT focus_moved();
}

void Stage::widen(float factor) {
  const auto place = static_cast<std::size_t>(std::ranges::find(panels_, focused_) - panels_.begin());
  widths_[place] = std::clamp(widths_[place] * factor, 0.2f, 5.0f);
  fold();
  Q_EMIT rearranged();
}

void Stage::heighten(float factor) {
  const bool in_upper = std::ranges::find(panels_, focused_) - panels_.begin() < static_cast<std::ptrdiff_t>(upper_views());
  const float odds = upper_share_ / (1 - upper_share_) * (in_upper ? factor : 1 / factor);
  upper_share_ = std::clamp(odds / (1 + odds), 0.1f, 0.9f);
  fold();
  Q_EMIT rearranged();
}

void Stage::set_frame(const Frame& frame) {
  frame_ = frame;
  for (QSplitter* splitter : {static_cast<QSplitter*>(this), upper_, lower_}) splitter->setHandleWidth(static_cast<int>(8 * frame.scale));
  for (ViewPanel* panel : panels_) panel->set_frame(frame);
  fold();
}

void Stage::set_all_shown(bool all) {
  if (std::exchange(all_shown_, all) != all) fold();
}

float Stage::fit_of(const QSizeF& room, std::size_t views, float scale) {
  return fit_with(fits_better_above_other(room, views, scale) ? 1 : 2, room, views, scale);
}

void Stage::set_titles_shown(bool shown) {
  titles_shown_ = shown;
  for (ViewPanel* panel : panels_) panel->set_title_shown(shown);
}

/// The sizes that the reader has drawn; what is hidden keeps its own.
void Stage::take_sizes() {
  if (upper_->isVisible() && lower_->isVisible()) {
    const float upper = static_cast<float>(sizes()[0]), lower = static_cast<float>(sizes()[1]);
    upper_share_ = upper / (upper + lower);
  }
  for (QSplitter* row : {upper_, lower_}) {
    float shares = 0, pixels = 0;
    const auto each_shown = [&](const auto& act) {
      for (std::size_t i = 0; i < panels_.size(); ++i)
        if (place_of(i).row == row && panels_[i]->isVisible()) act(widths_[i], static_cast<float>(row->sizes()[place_of(i).column]));
    };
    each_shown([&](float share, float size) { shares += share, pixels += size; });
    each_shown([&](float& share, float size) { share = shares * size / pixels; });
  }
}

/// A widget that moves to another row loses the focus.
void Stage::lay_out() {
  ViewPanel* const focused = focused_;
  const bool had_focus = focused && focused->surface().hasFocus();
  for (std::size_t i = 0; i < panels_.size(); ++i) {
    const auto [row, column] = place_of(i);
    if (row->widget(column) != panels_[i]) row->insertWidget(column, panels_[i]);
  }
  focused_ = focused;
  fold();
  if (had_focus) focused->surface().setFocus();
}

/// Of each row as many views as there is room for, the focused one among them; of the rows, if only one has room, the focused view's.
void Stage::fold() {
  const bool above_other = all_shown_ && fits_better_above_other(size(), panels_.size(), frame_.scale);
  if (std::exchange(one_above_other_, above_other) != above_other) return lay_out();
  const std::size_t columns = all_shown_ ? most_views : room_for(width(), least_width * frame_.scale);
  const std::size_t rows = all_shown_ ? 2 : room_for(height(), least_height * frame_.scale);
  const std::size_t place = static_cast<std::size_t>(std::ranges::find(panels_, focused_) - panels_.begin());
  for (QSplitter* row : {upper_, lower_}) {
    const bool has_focus = place_of(place).row == row;
    row->setVisible(row->count() > 0 && (rows > 1 || has_focus));
    std::size_t others = columns - (has_focus ? 1 : 0);
    std::vector<float> widths;
    for (std::size_t i = 0; i < panels_.size(); ++i) {
      if (place_of(i).row != row) continue;
      panels_[i]->setVisible(panels_[i] == focused_ || (others > 0 && others-- > 0));
      widths.push_back(widths_[i]);
    }
    if (all_shown_ && !widths.empty()) raise_to(least_width_of_all * frame_.scale / static_cast<float>(width()), widths);
    row->setSizes(sizes_of(widths));
  }
  std::vector<float> heights{upper_share_, 1 - upper_share_};
  if (all_shown_) raise_to(least_height_of_all * frame_.scale / static_cast<float>(height()), heights);
  setSizes(sizes_of(heights));
}

void Stage::resizeEvent(QResizeEvent* event) {
  QSplitter::resizeEvent(event);
  fold();
}

}  // namespace statescope

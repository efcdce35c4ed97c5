#include "app/figure/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "app/figure/colors.h"
#include "app/figure/print.h"
#include "app/figure/room.h"
#include "app/figure/studies.h"
#include "app/figure/view_picture.h"
#include "engine/error.h"
#include "views/parts.h"
#include "views/plot.h"
#include "views/words.h"

namespace statescope {
namespace {

constexpr double kUnitsPerMm = 96 / 25.4;                                      // of a canvas whose type is not shrunk
constexpr double kUsualTypePt = kSmallType * 72.0 / 96;                        // of the smallest type there
constexpr float kGap = 10, kTitleHeight = 1.7f * kBodyType;                    // units
constexpr double kLowestMm = 20, kWidestMm = 600;                              // of a figure's sides
constexpr float kBarWidth = 12, kBarGap = 4;                                   // of the bar that stands for all panels
constexpr float kLeast = 40;                                                   // of a panel's sides
constexpr std::array kHeights{1.0, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0};  // that are tried, times the usual one

/// The value at a share of its height.
float scale_value(const ColorScale& scale, float share) {
  return scale.logarithmic ? scale.low * std::pow(scale.high / scale.low, share) : std::lerp(scale.low, scale.high, share);
}

/// "cosine", "loss (nat)"; empty: the panel has no bar of colours.
std::string bar_label(const PanelPicture& panel) {
  for (const Array& array : panel.arrays()) {
    if (array.as_colors) return array.unit.empty() ? array.name : fmt::format("{} ({})", array.name, array.unit);
  }
  return {};
}

/// The range of all panels that have one; signed ones stay symmetric.
void share_range(const std::vector<std::unique_ptr<PanelPicture>>& panels) {
  std::optional<ColorRange> all;
  for (const auto& panel : panels) {
    const std::optional<Shading> shading = panel->shading();
    if (!shading) continue;
    const ColorRange& range = shading->range;
    if (!all) all = range;
    all->low = std::min(all->low, range.low);
    all->high = std::max(all->high, range.high);
    all->logarithmic = all->logarithmic && range.logarithmic;
  }
  if (!all) throw Error("no panel has colours whose range could be shared");
  const auto has_it = [&](const auto& panel) { return !panel->shading() || panel->shading()->range == *all; };
  if (std::ranges::all_of(panels, has_it)) return;
  for (const auto& panel : panels) {
    if (panel->shading()) panel->set_range({RangeChoice::Fit::fixed, all->low, all->high, all->logarithmic});
  }
}

class ViewOnLoan : public PanelPicture {
 public:
  explicit ViewOnLoan(const View& view) : view_(view) {}
  void draw(Canvas& canvas, Rect area, const Frame& frame) const override { view_.draw(canvas, area, frame); }
  std::vector<Array> arrays() const override { return view_.arrays(); }
  std::string caption() const override { return view_.sentence(); }

 private:
  const View& view_;
};

}  // namespace

Figure::Figure(FigureSpec spec, std::vector<std::unique_ptr<PanelPicture>> panels, Kind kind)
    : spec_(std::move(spec)), panels_(std::move(panels)), kind_(kind), titles_(figure_titles(spec_)) {
  const InEnglish paper;
  titles_.panels.resize(panels_.size());
  for (const auto& panel : panels_) bar_labels_.push_back(spec_.color_bars ? bar_label(*panel) : "");
  if (kind_ == Kind::printed || spec_.shared_range) bar_ = bar_of_all();
  if (bar_) bar_width_ = bar_width();
  layout_ = layout_of(spec_.width_mm, spec_.height_mm);
  if (kind_ == Kind::moving || has_room(layout_)) return;
  const bool may_grow = !spec_.height_mm && !spec_.aspect;
  for (const double factor : may_grow ? std::span<const double>(kHeights) : std::span<const double>()) {
    const Layout higher =
        spec_.max_height_mm ? layout_of(spec_.width_mm, {}, factor) : layout_of(spec_.width_mm, factor * layout_.height_mm);
    if (!has_room(higher)) continue;
    layout_ = higher;
    return;
  }
  const Layout would_do = size_that_does();
  const std::string collision = first_collision(layout_);
  const std::string where =
      fmt::format("{:.0f} × {:.0f} mm have no room for all that {}, with type of {:g} pt{}", layout_.width_mm, layout_.height_mm,
                  panels_.size() == 1 ? "is shown" : "the panels show", spec_.type_pt, collision.empty() ? "" : " (" + collision + ")");
  if (spec_.max_height_mm) throw Error(where + "; a greater width, or another \"max_height\", may have it");
  if (would_do.width_mm == 0) throw Error(where + "; make a figure of fewer panels");
  throw Error(fmt::format("{}; {:.0f} × {:.0f} mm have it (size {:.0f}x{:.0f}mm)", where, would_do.width_mm, would_do.height_mm,
                          would_do.width_mm, would_do.height_mm));
}

double Figure::units_per_mm() const { return kUnitsPerMm * kUsualTypePt / spec_.type_pt; }

Size Figure::size_of(const Layout& layout) const {
  return {static_cast<float>(layout.width_mm * units_per_mm()), static_cast<float>(layout.height_mm * units_per_mm())};
}

Size Figure::size() const { return size_of(layout_); }

float Figure::panel_width(double width_mm) const {
  const auto columns = static_cast<float>(spec_.grid_columns());
  return (static_cast<float>(width_mm * units_per_mm()) - bar_width_ - kGap * (columns - 1)) / columns;
}

std::size_t Figure::pages(const Layout& layout) const {
  return (static_cast<std::size_t>(spec_.grid_rows()) + layout.rows - 1) / layout.rows;
}

std::size_t Figure::pages() const { return pages(layout_); }

Figure::Layout Figure::layout_of(double width_mm, std::optional<double> height_mm, double higher) const {
  RoomCanvas measure({}, spec_.family);
  const PrintCanvas paper(measure);
  const Frame shown = frame();
  const auto height_of = [&](const std::string& text, float width, bool bold) {
    const TextStyle style = label(shown, kBodyType, shown.theme.ink, Align::left, bold);
    return kTitleHeight * static_cast<float>(wrapped(paper, text, style, std::max(width, kLeast)).size());
  };
  Layout layout{.width_mm = width_mm};
  const float w = panel_width(width_mm), letter = has_letters() ? 2 * kBodyType : 0;
  for (const std::string& text : titles_.columns) layout.over_columns = std::max(layout.over_columns, height_of(text, w - 8, true));
  for (const std::string& text : titles_.rows)
    layout.over_rows = std::max(layout.over_rows, height_of(text, static_cast<float>(width_mm * units_per_mm()) - 16, true));
  const auto is_named = [](const std::string& text) { return !text.empty(); };
  const bool has_line = has_letters() || (!bar_ && std::ranges::any_of(bar_labels_, is_named));
  layout.over_panels = has_line ? kTitleHeight : 0;
  for (const std::string& text : titles_.panels) layout.over_panels = std::max(layout.over_panels, height_of(text, w - 16 - letter, false));
  const double aspect = spec_.aspect.value_or(usual_aspect(spec_.panels.empty() ? "" : spec_.panels.front().view));
  layout.rows = static_cast<std::size_t>(spec_.grid_rows());
  const auto needed = [&](std::size_t rows) {
    const auto n = static_cast<double>(rows);
    return (n * (higher * w / aspect + layout.over_panels + layout.over_rows) + kGap * (n - 1) + layout.over_columns) / units_per_mm();
  };
  if (spec_.max_height_mm && !height_mm)
    while (layout.rows > 1 && needed(layout.rows) > *spec_.max_height_mm) --layout.rows;
  layout.height_mm = height_mm.value_or(needed(layout.rows));
  if (spec_.max_height_mm && !height_mm) layout.height_mm = std::min(layout.height_mm, *spec_.max_height_mm);
  return layout;
}

std::string Figure::first_collision(const Layout& layout) const {
  for (std::size_t page = 0; page < pages(layout); ++page) {
    RoomCanvas room(size_of(layout), spec_.family);
    draw(room, layout, page);
    if (std::string collision = room.collision(); !collision.empty()) return collision;
  }
  return {};
}

bool Figure::has_room(const Layout& layout) const {
  for (std::size_t page = 0; page < pages(layout); ++page) {
    RoomCanvas room(size_of(layout), spec_.family);
    draw(room, layout, page);
    if (!room.has_room()) return false;
  }
  return true;
}

Figure::Layout Figure::size_that_does() const {
  constexpr double step = 1.08;
  // A size is asked for by its numbers with the type of no preset.
  const double as_without_preset = spec_.type_pt / FigureSpec{}.type_pt;
  const auto would_do = [&](const Layout& layout) {
    return has_room(layout) &&
           (as_without_preset == 1 || has_room(layout_of(as_without_preset * layout.width_mm, as_without_preset * layout.height_mm)));
  };
  for (double factor = step; factor * spec_.width_mm <= kWidestMm && factor * layout_.height_mm <= kWidestMm; factor *= step) {
    for (const double higher : {1.0, 1.3, 1.7}) {
      Layout found = layout_of(std::ceil(factor * spec_.width_mm), std::ceil(higher * factor * layout_.height_mm));
      if (!would_do(found)) continue;
      for (Layout lower = found; lower.height_mm >= kLowestMm && would_do(lower);
           lower = layout_of(found.width_mm, std::floor(found.height_mm / step)))
        found = lower;
      return found;
    }
  }
  return {};
}

bool Figure::has_letters() const { return spec_.letters.value_or(panels_.size() > 1); }

Frame Figure::frame() const {
  return {light_theme(),
          1,
          {.captions = spec_.captions,
           .marks = spec_.annotations,
           .color_bars = spec_.color_bars,
           .hints = false,
           .cursor = kind_ == Kind::moving,
           .ticks = static_cast<float>(spec_.ticks)}};
}

void Figure::draw(Canvas& canvas, std::size_t page) const { draw(canvas, layout_, page); }

void Figure::draw(Canvas& paper, const Layout& layout, std::size_t page) const {
  const InEnglish english;
  PrintCanvas canvas(paper);
  const Frame shown = frame();
  const Size all = size_of(layout);
  if (!spec_.transparent) canvas.fill_rect({0, 0, all.w, all.h}, shown.theme.panel, 0);
  const auto columns = static_cast<std::size_t>(spec_.grid_columns()), rows = layout.rows, first = page * rows;
  const float w = panel_width(layout.width_mm), h = panel_place(0, layout).h;
  if (w < kLeast || h - layout.over_panels < kLeast) return canvas.left_out();
  const auto draw_heading = [&](const std::string& text, Rect place, Align align) {
    const TextStyle style = label(shown, kBodyType, shown.theme.ink, align, true);
    const float x = align == Align::center ? place.x + place.w / 2 : place.x + 8;
    float y = place.y + 0.55f * kTitleHeight;
    for (const std::string& line : wrapped(canvas, text, style, place.w - 8)) {
      fitted_text(canvas, {x, y}, line, style, place.w);
      y += kTitleHeight;
    }
  };
  for (std::size_t i = 0; i < titles_.columns.size(); ++i)
    draw_heading(titles_.columns[i], {static_cast<float>(i) * (w + kGap), 0, w, layout.over_columns}, Align::center);
  for (std::size_t row = first; row < std::min(first + rows, static_cast<std::size_t>(spec_.grid_rows())); ++row) {
    const float top = layout.over_columns + static_cast<float>(row - first) * (layout.over_rows + h + kGap);
    if (row < titles_.rows.size()) draw_heading(titles_.rows[row], {0, top, all.w, layout.over_rows}, Align::left);
    for (std::size_t i = row * columns; i < std::min((row + 1) * columns, panels_.size()); ++i)
      draw_panel(i, canvas, panel_place(i, layout), layout);
  }
  if (bar_) draw_bar_of_all(canvas, layout, page);
}

Rect Figure::panel_place(std::size_t index, const Layout& layout) const {
  const auto columns = static_cast<std::size_t>(spec_.grid_columns());
  const auto rows = static_cast<float>(layout.rows), row = static_cast<float>(index / columns % layout.rows);
  const float w = panel_width(layout.width_mm);
  const float h = (size_of(layout).h - layout.over_columns - kGap * (rows - 1)) / rows - layout.over_rows;
  return {static_cast<float>(index % columns) * (w + kGap), layout.over_columns + row * (layout.over_rows + h + kGap) + layout.over_rows, w,
          h};
}

void Figure::draw_panel(std::size_t index, Canvas& canvas, Rect area, const Layout& layout) const {
  Frame shown = frame();
  if (bar_) shown.shown.color_bars = shown.shown.bar_room = false;
  const TextStyle letter = label(shown, kBodyType, shown.theme.ink, Align::left, true), plain = label(shown, kBodyType, shown.theme.ink);
  const Rect body{area.x, area.y + layout.over_panels, area.w, area.h - layout.over_panels};
  float x = area.x + 8, y = area.y + 0.55f * kTitleHeight;
  if (has_letters()) {
    canvas.text({x, y}, panel_letter(index), letter);
    x += canvas.text_width(panel_letter(index), letter) + 6;
  }
  for (const std::string& line : wrapped(canvas, titles_.panels[index], plain, area.right() - 8 - x)) {
    fitted_text(canvas, {x, y}, line, plain, area.right() - 8 - x);
    y += kTitleHeight;
  }
  draw_bar_label(index, canvas, body, layout);
  panels_[index]->draw(canvas, body, shown);
}

std::optional<DrawnBar> Figure::bar_of(std::size_t panel, const Layout* layout, Rect body) const {
  constexpr Size usual{420, 300};
  RoomCanvas room(layout ? size_of(*layout) : usual, spec_.family);
  PrintCanvas paper(room);
  Frame own = frame();
  own.shown.bar_room = layout == nullptr;
  panels_[panel]->draw(paper, layout ? body : Rect{0, 0, usual.w, usual.h}, own);
  return room.bar();
}

std::optional<DrawnBar> Figure::bar_of_all() const {
  std::optional<DrawnBar> all;
  std::string label;
  std::size_t count = 0;
  for (std::size_t i = 0; i < panels_.size(); ++i) {
    const std::optional<DrawnBar> own = bar_labels_[i].empty() ? std::nullopt : bar_of(i);
    if (!own) continue;
    if (++count == 1) {
      all = own;
      label = bar_labels_[i];
      continue;
    }
    if (own->scale != all->scale || bar_labels_[i] != label || own->marks.size() != all->marks.size()) return {};
    for (std::size_t m = 0; m < own->marks.size(); ++m)  // "≥ 0.9" of any holds for all
      if (own->marks[m].text.size() > all->marks[m].text.size()) all->marks[m].text = own->marks[m].text;
  }
  return count > 1 ? all : std::nullopt;
}

std::vector<std::string> Figure::bar_name() const {
  constexpr float widest = 90;
  const auto named = std::ranges::find_if(bar_labels_, [](const std::string& text) { return !text.empty(); });
  RoomCanvas measure({}, spec_.family);
  const PrintCanvas paper(measure);
  return wrapped(paper, *named, label(frame(), kSmallType, {}), widest);
}

float Figure::bar_width() const {
  RoomCanvas measure({}, spec_.family);
  const PrintCanvas paper(measure);
  float width = 0;
  for (const DrawnBar::Mark& mark : bar_->marks) width = std::max(width, paper.text_width(mark.text, value(frame(), kSmallType, {})));
  width += kBarWidth + kBarGap;
  for (const std::string& line : bar_name()) width = std::max(width, paper.text_width(line, label(frame(), kSmallType, {})));
  return kGap + width + 8;
}

/// From the top of the uppermost panel's picture to the foot of the lowest one's.
void Figure::draw_bar_of_all(Canvas& canvas, const Layout& layout, std::size_t page) const {
  const auto columns = static_cast<std::size_t>(spec_.grid_columns());
  std::optional<Rect> place;
  for (std::size_t i = page * layout.rows * columns; i < std::min(panels_.size(), (page + 1) * layout.rows * columns); ++i) {
    Rect body = panel_place(i, layout);
    body = {body.x, body.y + layout.over_panels, body.w, body.h - layout.over_panels};
    const std::optional<DrawnBar> own = bar_labels_[i].empty() ? std::nullopt : bar_of(i, &layout, body);
    if (!own) continue;
    const float top = place ? std::min(place->y, own->rect.y) : own->rect.y;
    const float bottom = place ? std::max(place->bottom(), own->rect.bottom()) : own->rect.bottom();
    place = {0, top, kBarWidth, bottom - top};
  }
  if (!place) return canvas.left_out();
  const Frame shown = frame();
  const float x = size_of(layout).w - bar_width_ + kGap;
  const std::vector<std::string> name = bar_name();
  const float line = 1.3f * kSmallType, names = line * static_cast<float>(name.size()), top = std::max(place->y, names + 0.5f * kSmallType);
  float y = top - names;
  for (const std::string& text : name) {
    canvas.text({x, y}, text, label(shown, kSmallType, shown.theme.faint));
    y += line;
  }
  std::vector<ScaleMark> marks;
  for (const DrawnBar::Mark& mark : bar_->marks) marks.push_back({scale_value(bar_->scale, mark.share), mark.text});
  draw_color_bar(canvas, {x, top, kBarWidth, place->bottom() - top}, bar_->scale, marks, shown);
}

/// Above the bar where it has room there, else in the last line of titles.
void Figure::draw_bar_label(std::size_t index, Canvas& canvas, Rect body, const Layout& layout) const {
  const std::string& text = bar_labels_[index];
  if (text.empty() || bar_) return;
  RoomCanvas room(size_of(layout), spec_.family);
  PrintCanvas paper(room);
  const Frame shown = frame();
  panels_[index]->draw(paper, body, shown);
  const std::optional<DrawnBar> bar = room.bar();
  if (!bar) return;
  const TextStyle style = label(shown, kSmallType, shown.theme.faint);
  const float width = canvas.text_width(text, style), x = std::min(bar->rect.x, body.right() - 8 - width);
  const float above = bar->rect.y - 0.8f * kSmallType, half = 0.5f * kSmallType;
  const bool is_free = std::ranges::none_of(room.texts(), [&](const TextCanvas::Placed& other) {
    const Rect& box = other.rect;
    return box.x < x + width + 4 && x - 4 < box.right() && box.y < above + half && above - half < box.bottom();
  });
  const bool fits = above > body.y && is_free;
  fitted_text(canvas, {x, fits ? above : body.y - 0.45f * kTitleHeight}, text, style, body.right() - x);
}

std::string Figure::subject() const {
  std::vector<std::string> words;
  for (const FigurePanel& panel : spec_.panels) {
    const auto row = std::ranges::find(view_catalogue(), panel.view, &ViewRow::id);
    const std::string word = row == view_catalogue().end() ? panel.chart : std::string(row->title);
    if (!word.empty() && std::ranges::find(words, word) == words.end()) words.push_back(word);
  }
  return words.empty() ? "Statescope" : joined(words, ", ");
}

std::string Figure::caption() const {
  const InEnglish paper;
  std::string text;
  for (std::size_t i = 0; i < panels_.size(); ++i) {
    if (panels_.size() > 1) text += fmt::format("({}) ", panel_letter(i));
    if (i < spec_.panels.size() && spec_.panels[i].title) text += fmt::format("{}. ", *spec_.panels[i].title);
    text += panels_[i]->caption() + "\n";
  }
  return text;
}

std::string Figure::warning() const {
  if (figure_signs(spec_.colors)) return {};
  bool diverging = false;
  for (std::size_t page = 0; page < pages() && !diverging; ++page) {
    RoomCanvas colors(size(), spec_.family);
    draw(colors, page);
    diverging = colors.diverging();
  }
  if (!diverging) return {};
  return Figures::tr("signed numbers have diverging colours: printed in grey, a negative number looks like the positive one of its size");
}

Figure build_figure(const FigureSpec& spec, FigureRuns& runs) {
  std::vector<std::unique_ptr<PanelPicture>> panels;
  for (std::size_t i = 0; i < spec.panels.size(); ++i) {
    const FigurePanel& panel = spec.panels[i];
    runs.begin(i, spec.panels.size());
    try {
      panels.push_back(panel.view.empty() ? make_study(panel, runs) : make_view_picture(panel, runs));
    } catch (const Cancelled&) {
      throw;
    } catch (const Error& error) {
      if (spec.panels.size() == 1) throw;
      throw Error(fmt::format("panel {}: {}", panel_letter(i), error.what()));
    }
  }
  if (spec.shared_range) share_range(panels);
  return Figure(spec, std::move(panels));
}

FigureSpec settled(const FigureSpec& spec, FigureRuns& runs) {
  FigureSpec exact = spec;
  for (FigurePanel& panel : exact.panels) panel = settled(panel, runs);
  return exact;
}

std::unique_ptr<PanelPicture> picture_of(const View& view) { return std::make_unique<ViewOnLoan>(view); }

std::string panel_letter(std::size_t index) {
  const std::string last(1, static_cast<char>('a' + index % 26));
  return index < 26 ? last : panel_letter(index / 26 - 1) + last;
}

}  // namespace statescope

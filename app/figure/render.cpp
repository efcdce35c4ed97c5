#include "app/figure/render.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/canvas/text_canvas.h"
#include "app/figure/studies.h"
#include "app/figure/view_picture.h"
#include "engine/error.h"
#include "views/parts.h"
#include "views/words.h"

namespace statescope {
namespace {

constexpr double kUnitsPerMm = 96 / 25.4;                    // of a canvas whose type is not shrunk
constexpr double kUsualTypePt = kBodyType * 72.0 / 96;       // of kBodyType there
constexpr float kGap = 10, kTitleHeight = 1.7f * kBodyType;  // units
constexpr float kLeastWidth = 150, kLeastHeight = 90;        // of a panel

/// Which colours are drawn with, and where the bar of them stands.
class ColorsUsed : public TextCanvas {
 public:
  using TextCanvas::TextCanvas;
  void heatmap(Rect rect, const Heatmap& cells) override {
    diverging_ = diverging_ || cells.scale.map == ColorMap::diverging;
    if (cells.columns == 1 && rect.h > 3 * rect.w) bar_ = rect;
  }
  bool diverging() const { return diverging_; }
  std::optional<Rect> bar() const { return bar_; }

 private:
  bool diverging_ = false;
  std::optional<Rect> bar_;
};

/// "cosine", "loss (nat)"; empty: the panel has no bar of colours.
std::string bar_label(const PanelPicture& panel) {
  for (const Array& array : panel.arrays()) {
    if (array.as_colors) return array.unit.empty() ? array.name : fmt::format("{} ({})", array.name, array.unit);
  }
  return {};
}

/// What all have in common is not said.
template <class Get>
bool differ(const std::vector<FigurePanel>& panels, const Get& get) {
  return std::ranges::any_of(panels, [&](const FigurePanel& panel) { return get(panel) != get(panels.front()); });
}

std::string stem(const std::string& checkpoint) { return std::filesystem::path(checkpoint).stem().string(); }

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

Figure with_shared_range(Figure figure) {
  if (figure.spec().shared_range) share_range(figure.panels());
  return figure;
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

Figure::Figure(FigureSpec spec, std::vector<std::unique_ptr<PanelPicture>> panels) : spec_(std::move(spec)), panels_(std::move(panels)) {
  const InEnglish paper;
  bool titled = has_letters();
  for (std::size_t i = 0; i < panels_.size(); ++i) {
    bar_labels_.push_back(spec_.color_bars ? bar_label(*panels_[i]) : "");
    titled = titled || !bar_labels_.back().empty() || !title(i).empty();
  }
  title_height_ = titled ? kTitleHeight : 0;
  const auto columns = static_cast<float>(spec_.grid_columns()), rows = static_cast<float>(spec_.grid_rows());
  const float w = (size().w - kGap * (columns - 1)) / columns, h = (size().h - kGap * (rows - 1)) / rows - title_height_;
  if (w >= kLeastWidth && h >= kLeastHeight) return;
  throw Error(fmt::format("{:.0f} × {:.0f} mm have no room for {} panels in {} columns with type of {:g} pt: each needs {:.0f} × {:.0f} mm",
                          spec_.width_mm, height_mm(), panels_.size(), spec_.grid_columns(), spec_.type_pt, kLeastWidth / units_per_mm(),
                          (kLeastHeight + title_height_) / units_per_mm()));
}

double Figure::units_per_mm() const { return kUnitsPerMm * kUsualTypePt / spec_.type_pt; }

double Figure::height_mm() const {
  if (spec_.height_mm) return *spec_.height_mm;
  const double gap = kGap / units_per_mm(), title = title_height_ / units_per_mm();
  const auto columns = static_cast<double>(spec_.grid_columns()), rows = static_cast<double>(spec_.grid_rows());
  const double width = (spec_.width_mm - gap * (columns - 1)) / columns;
  const double aspect = spec_.aspect.value_or(usual_aspect(spec_.panels.empty() ? "" : spec_.panels.front().view));
  return rows * (width / aspect + title) + gap * (rows - 1);
}

Size Figure::size() const {
  return {static_cast<float>(spec_.width_mm * units_per_mm()), static_cast<float>(height_mm() * units_per_mm())};
}

bool Figure::has_letters() const { return spec_.letters.value_or(panels_.size() > 1); }

std::string Figure::title(std::size_t index) const {
  if (!spec_.titles || index >= spec_.panels.size()) return {};
  const std::vector<FigurePanel>& panels = spec_.panels;
  const FigurePanel& panel = panels[index];
  if (panel.title) return *panel.title;
  std::vector<std::string> words;
  if (differ(panels, [](const FigurePanel& p) { return p.view; }) && !panel.view.empty())
    words.push_back(std::string(std::ranges::find(view_catalogue(), panel.view, &ViewRow::id)->title));
  if (differ(panels, [](const FigurePanel& p) { return p.checkpoints; }) && !panel.checkpoints.empty())
    words.push_back(stem(panel.checkpoints.front()));
  if (differ(panels, [](const FigurePanel& p) { return p.mode; })) words.push_back(panel.mode);
  if (differ(panels, [](const FigurePanel& p) { return p.layer; }) && panel.layer) words.push_back(fmt::format("layer {}", *panel.layer));
  if (differ(panels, [](const FigurePanel& p) { return p.head; })) words.push_back(fmt::format("head {}", panel.head));
  if (differ(panels, [](const FigurePanel& p) { return p.slot; })) words.push_back(fmt::format("slot {}", panel.slot));
  if (differ(panels, [](const FigurePanel& p) { return p.token; }) && panel.token) words.push_back(fmt::format("token {}", *panel.token));
  return joined(words, ", ");
}

void Figure::draw(Canvas& canvas) const {
  const InEnglish paper;
  const Frame frame{
      light_theme(),
      1,
      {.captions = spec_.captions, .marks = spec_.annotations, .color_bars = spec_.color_bars, .ticks = static_cast<float>(spec_.ticks)}};
  canvas.fill_rect({0, 0, size().w, size().h}, frame.theme.panel);
  const std::int64_t columns = spec_.grid_columns(), rows = spec_.grid_rows();
  const float w = (size().w - kGap * static_cast<float>(columns - 1)) / static_cast<float>(columns);
  const float h = (size().h - kGap * static_cast<float>(rows - 1)) / static_cast<float>(rows);
  for (std::size_t i = 0; i < panels_.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i);
    draw_panel(i, canvas, {static_cast<float>(place % columns) * (w + kGap), static_cast<float>(place / columns) * (h + kGap), w, h},
               frame);
  }
}

void Figure::draw_panel(std::size_t index, Canvas& canvas, Rect area, const Frame& frame) const {
  const float y = area.y + 0.55f * title_height_;
  const TextStyle letter = label(frame, kBodyType, frame.theme.ink, Align::left, true), plain = label(frame, kBodyType, frame.theme.ink);
  const Rect body{area.x, area.y + title_height_, area.w, area.h - title_height_};
  float x = area.x + 8;
  if (has_letters()) {
    canvas.text({x, y}, panel_letter(index), letter);
    x += canvas.text_width(panel_letter(index), letter) + 6;
  }
  fitted_text(canvas, {x, y}, title(index), plain, draw_bar_label(index, canvas, body, frame) - 6 - x);
  panels_[index]->draw(canvas, body, frame);
}

/// Above the bar, or in the line of titles where that is too low. Returns where the title has to end.
float Figure::draw_bar_label(std::size_t index, Canvas& canvas, Rect body, const Frame& frame) const {
  const std::string& text = bar_labels_[index];
  ColorsUsed colors(size());
  if (!text.empty()) panels_[index]->draw(colors, body, frame);
  const float right = body.right() - 8;
  if (!colors.bar()) return right;
  const TextStyle style = label(frame, kSmallType, frame.theme.faint);
  const float width = std::min(0.5f * body.w, canvas.text_width(text, style) + 1);
  const float x = std::min(colors.bar()->x, right - width), above = colors.bar()->y - 0.8f * kSmallType,
              line = body.y - 0.45f * title_height_;
  fitted_text(canvas, {x, std::max(line, above)}, text, style, width);
  return above > body.y ? right : x;
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
  ColorsUsed colors(size());
  draw(colors);
  if (!colors.diverging()) return {};
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
  return with_shared_range(Figure(spec, std::move(panels)));
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

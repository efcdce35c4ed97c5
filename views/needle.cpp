#include "views/needle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "views/arrays.h"
#include "views/colormaps.h"
#include "views/matrix.h"
#include "views/parts.h"
#include "views/words.h"

namespace statescope {
namespace {

// Hit ids: places on the token axis below, then falls, causes and layers.
constexpr std::int64_t kFallIds = std::int64_t{1} << 40, kCauseIds = std::int64_t{1} << 41, kLayerIds = std::int64_t{1} << 42;

/// As it reads; tokens that are whole words without spaces get one between them.
std::string needle_text(const RunInfo& run, std::int64_t begin, std::int64_t end) {
  std::string text;
  std::vector<std::string> words;
  for (std::int64_t t = begin; t < end; ++t) text += words.emplace_back(run.tokens[static_cast<std::size_t>(t)].text);
  if (text.find(' ') == text.npos) text = joined(words, " ");
  return text.substr(std::min(text.size(), text.find_first_not_of(' ')));
}

bool is_asked(const NeedleQuestion& question, const RunInfo& run) {
  return question.end > question.begin && question.question >= question.end && question.question < std::ssize(run.tokens);
}

/// The series of a place changes with visits alone: each token has the value of the visit before it.
std::vector<float> by_token(const NeedleStory::Curve& curve, const std::vector<std::int32_t>& tokens) {
  std::vector<float> kept;
  std::size_t next = 0;
  for (const std::int32_t token : tokens) {
    while (next < curve.token.size() && curve.token[next] <= token) ++next;
    kept.push_back(next == 0 ? 1 : curve.kept[next - 1]);
  }
  return kept;
}

std::string place_name(const LayerInfo& layer, std::int64_t slot, std::int64_t head) {
  return layer.slots() > 1 ? Views::tr("{}, head {}", slot_title(slot_identity(layer, slot), slot_name(layer, slot)), head)
                           : Views::tr("head {}", head);
}

NeedleParts parts_of(const NeedleStory::LayerFate& fate, std::string name) {
  return {.name = std::move(name),
          .clear = fate.clear,
          .decayed = fate.decayed,
          .erased = fate.erased,
          .overwritten = fate.overwritten,
          .misrouted = fate.misrouted,
          .read_share = fate.read_share,
          .read_where = {}};
}

void add_curves(NeedleData& data, const NeedleStory& story, const RunInfo& run, const Cursor& cursor) {
  if (data.mode == NeedleMode::layers) {
    for (std::size_t l = 0; l < story.layers.size(); ++l) {
      if (!story.layers[l].has_memory) continue;
      const auto layer = static_cast<std::int64_t>(l);
      data.curves.push_back({Views::tr("layer {}", l), Views::tr("layer {}", l), layer + 1, layer == data.layer, story.layers[l].kept});
    }
  } else {
    const NeedleStory::LayerFate& fate = story.layers[static_cast<std::size_t>(data.layer)];
    const LayerInfo& layer = run.model.layers[static_cast<std::size_t>(data.layer)];
    for (std::size_t i = 0; i < fate.curves.size(); ++i) {
      const NeedleStory::Curve& curve = fate.curves[i];
      const bool one_slot = layer.slots() == 1;
      const std::int64_t identity = one_slot ? curve.head + 1 : slot_identity(layer, curve.slot);
      const std::string name = place_name(layer, curve.slot, curve.head);
      data.curves.push_back({name, one_slot ? name : slot_title(identity, slot_name(layer, curve.slot)), identity,
                             curve.slot == cursor.slot && curve.head == cursor.head, by_token(curve, data.tokens.tokens)});
    }
    data.hidden_curves = fate.places - std::ssize(fate.curves);
  }
  for (const NeedleCurve& curve : data.curves) {
    const auto known = std::ranges::find(data.colors, curve.identity, &NeedleColor::identity);
    if (known == data.colors.end()) data.colors.push_back({curve.identity, curve.group});
  }
  std::ranges::stable_partition(data.curves, [](const NeedleCurve& curve) { return !curve.chosen; });
  std::ranges::sort(data.colors, {}, &NeedleColor::identity);
  if (!data.curves.empty() && data.curves.back().chosen)
    std::ranges::stable_partition(data.colors,
                                  [chosen = data.curves.back().identity](const NeedleColor& color) { return color.identity == chosen; });
}

/// What is clear is the needle's own gold; what is lost are shades of ink with a letter, for colours tell layers apart.
Color part_color(std::size_t part, const Theme& theme) {
  static constexpr std::array<float, 5> shades = {0, 0.8f, 0.55f, 0.32f, 0.14f};
  return part == 0 ? theme.needle : over(faded(theme.ink, shades[part]), theme.panel);
}
constexpr std::array<const char*, 5> kPartNames = {QT_TRANSLATE_NOOP("Views", "clear"), QT_TRANSLATE_NOOP("Views", "decay"),
                                                   QT_TRANSLATE_NOOP("Views", "erasure"), QT_TRANSLATE_NOOP("Views", "overwriting"),
                                                   QT_TRANSLATE_NOOP("Views", "misrouting")};
constexpr std::array<const char*, 5> kShortNames = {QT_TRANSLATE_NOOP("Views", "Clear"), QT_TRANSLATE_NOOP("Views", "Decay"),
                                                    QT_TRANSLATE_NOOP("Views", "Erase"), QT_TRANSLATE_NOOP("Views", "Over"),
                                                    QT_TRANSLATE_NOOP("Views", "Miss")};
constexpr std::array<std::string_view, 5> kPartLetters = {"C", "D", "E", "O", "M"};
/// With its letter, which other languages' short names need not begin with.
std::string legend_text(std::size_t part, bool wide) {
  const std::string name = Views::tr(wide ? kPartNames[part] : kShortNames[part]);
  return !wide && name.starts_with(kPartLetters[part]) ? name : fmt::format("{} {}", kPartLetters[part], name);
}
std::array<double, 5> values_of(const NeedleParts& parts) {
  return {parts.clear, parts.decayed, parts.erased, parts.overwritten, parts.misrouted};
}
std::size_t part_named(std::string_view name) { return static_cast<std::size_t>(std::ranges::find(kPartNames, name) - kPartNames.begin()); }

/// "decay took 0.31, misrouting 0.2": without those below 0.005
std::string losses(const NeedleData& data) {
  const std::array<double, 5> all = values_of(data.parts.front());
  std::array<std::size_t, 4> order = {1, 2, 3, 4};
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t i) { return all[i]; });
  std::string text;
  for (const std::size_t i : order) {
    if (all[i] < 0.005) continue;
    const std::string part = Views::tr(kPartNames[i]);
    text += text.empty() ? Views::tr("{} took {:.2f}", part, all[i]) : fmt::format(", {} {:.2f}", part, all[i]);
  }
  return text;
}

std::string summary(const NeedleData& data) {
  const std::string lost = losses(data);
  const double clear = data.parts.front().clear;
  return lost.empty() ? Views::tr("At the question {:.2f} of what the needle wrote lies clear", clear)
                      : Views::tr("At the question {:.2f} of what the needle wrote lies clear: {}", clear, lost);
}

/// One drawing: where things stand.
struct Picture {
  const NeedleData& data;
  Canvas& canvas;
  const Frame& frame;
  float s;
  Rect title, plot, parts, causes;  // w or h 0: left out
  bool token_axis = false;

  Picture(const NeedleData& data_, Canvas& canvas_, Rect area, const Frame& frame_);
  TextStyle small(Color color, Align align = Align::left, bool bold = false) const { return label(frame, kSmallType, color, align, bold); }
  TextStyle figures(Color color, Align align = Align::right, bool bold = false) const {
    return value(frame, kSmallType, color, align, bold);
  }
  float row() const { return 21 * s; }
};

Picture::Picture(const NeedleData& data_, Canvas& canvas_, Rect area, const Frame& frame_)
    : data(data_), canvas(canvas_), frame(frame_), s(frame_.scale) {
  const Rect inner = inset(area, 8 * s);
  const float name = 30 * s, gap = 18 * s;  // name: of the value axis, and the legend
  title = {inner.x, inner.y, inner.w, std::min(caption_height(frame), inner.h)};
  Rect body{inner.x, title.bottom() + 2 * s, inner.w, inner.bottom() - title.bottom() - 2 * s};
  Rect lists{};
  if (body.w >= 720 * s && body.h >= 140 * s) {
    lists = {body.x + 0.56f * body.w + gap, body.y, 0.44f * body.w - gap, body.h};
    body.w *= 0.56f;
  } else if (body.w >= 420 * s && body.h >= 290 * s) {
    const float rows = static_cast<float>(std::clamp<std::int64_t>(std::ssize(data.parts), 4, 7)) + 1.5f;
    const float height = std::min(0.46f * body.h, rows * row());
    lists = {body.x, body.bottom() - height, body.w, height};
    body.h -= height + 6 * s;
  }
  const float left = body.x + value_axis_width(frame);
  token_axis = body.h - name > token_axis_height(frame) + 30 * s;
  plot = {left, body.y + name, body.right() - left, body.h - name - (token_axis ? token_axis_height(frame) : 0)};
  if (plot.w < 60 * s || plot.h < 20 * s) plot = {};
  if (lists.h <= 0) return;
  if (!frame.shown.captions) {
    parts = lists;
    return;
  }
  if (lists.w >= 820 * s || lists.w == body.w) {
    parts = {lists.x, lists.y, 0.48f * lists.w - gap / 2, lists.h};
    causes = {parts.right() + gap, lists.y, lists.right() - parts.right() - gap, lists.h};
  } else {
    const float most = (static_cast<float>(data.parts.size()) + 1.2f) * row();
    parts = {lists.x, lists.y, lists.w, std::min(most, 0.5f * lists.h)};
    causes = {lists.x, parts.bottom() + 8 * s, lists.w, lists.bottom() - parts.bottom() - 8 * s};
  }
}

void draw_title(const Picture& picture) {
  const NeedleData& data = picture.data;
  const TextStyle bold = label(picture.frame, kBodyType, picture.frame.theme.ink, Align::left, true);
  const std::string full =
      Views::tr("{}; the needle is up to {:.2f} of what is read of a memory", summary(data), data.parts.front().read_share);
  const std::string long_enough = summary(data);
  const std::string brief = Views::tr("{:.2f} clear; {}", data.parts.front().clear, losses(data));
  const std::string_view shorter = fitting(picture.canvas, long_enough, brief, bold, picture.title.w);
  fitted_text(picture.canvas, {picture.title.x, picture.title.y + picture.title.h / 2},
              fitting(picture.canvas, full, shorter, bold, picture.title.w), bold, picture.title.w);
}

/// A mark above the mean's curve, with how far it fell and at which token where there is room.
void draw_falls(const Picture& picture, const ValueAxis& axis) {
  const NeedleData& data = picture.data;
  const Rect& plot = picture.plot;
  const float s = picture.s, half = 0.5f * kSmallType * s;
  const TextStyle style = picture.small(picture.frame.theme.ink, Align::left, true);
  float free = plot.x;
  for (std::size_t i = 0; i < data.falls.size(); ++i) {
    const std::int64_t place = data.tokens.place_of(data.falls[i].token);
    if (place < 0) continue;
    const float x = std::clamp(data.tokens.x_of(plot, place), plot.x + 5 * s, plot.right() - 5 * s);
    const float tip = std::max(height_of(plot, axis, data.mean[static_cast<std::size_t>(place)]) - 3 * s, plot.y + 11 * s);
    const std::array<Point, 3> mark = {{{x - 5 * s, tip - 9 * s}, {x + 5 * s, tip - 9 * s}, {x, tip}}};
    picture.canvas.path(mark, picture.frame.theme.ink, s, true);
    picture.canvas.hit({x - 8 * s, tip - 13 * s, 16 * s, 20 * s}, {kFallIds + static_cast<std::int64_t>(i)});
    const std::string words = fmt::format("−{:.2f} {}", data.falls[i].by, visible_token(*data.tokens.run, data.falls[i].token));
    const float width = picture.canvas.text_width(words, style);
    const float left = x + 8 * s + width <= plot.right() ? x + 8 * s : x - 8 * s - width, y = tip - 5 * s;
    if (left < free || y < plot.y + half) continue;
    picture.canvas.fill_rect({left - s, y - half, width + 2 * s, 2 * half}, faded(picture.frame.theme.panel, 0.75f));
    picture.canvas.text({left, y}, words, style);
    free = left + width + 8 * s;
  }
}

void draw_curves(const Picture& picture) {
  const NeedleData& data = picture.data;
  const Rect& plot = picture.plot;
  if (plot.w <= 0) return;
  const Theme& theme = picture.frame.theme;
  float most = 1;
  for (const NeedleCurve& curve : data.curves) most = std::max(most, std::ranges::max(curve.kept));
  const ValueAxis axis{0, most > 1.001f ? round_range(most) : 1.0};
  std::string name = Views::tr("left of what it wrote, ‖C‖ ÷ ‖C written‖, after each token");
  if (data.hidden_curves > 0)
    name += "; " + Views::tr("the {} places of {} that it wrote most to", data.curves.size(), std::ssize(data.curves) + data.hidden_curves);
  draw_value_axis(picture.canvas, plot, axis, name, picture.frame);
  const bool mean = data.mode == NeedleMode::places || data.curves.size() > 1;
  std::vector<LegendEntry> legend;
  if (mean) legend.push_back({theme.ink, Views::tr("mean of the layers")});
  for (const NeedleColor& color : data.colors) legend.push_back({identity_color(color.identity, theme), color.name});
  draw_legend(picture.canvas, {plot.x, plot.y - 30 * picture.s, plot.w, kSmallType * picture.s}, legend, picture.frame);
  for (const NeedleCurve& curve : data.curves) {
    draw_curve(picture.canvas, plot, axis, curve.kept, faded(identity_color(curve.identity, theme), curve.chosen ? 1 : 0.75f),
               (curve.chosen ? 3 : 1.5f) * picture.s);
  }
  if (mean) draw_curve(picture.canvas, plot, axis, data.mean, theme.ink, 2 * picture.s);
  picture.canvas.hit(plot, {0, 1, data.tokens.count()});
  if (picture.token_axis)
    draw_token_axis(picture.canvas, plot, data.tokens, picture.frame);
  else
    draw_cursor_line(picture.canvas, plot, data.tokens, picture.frame);
  draw_falls(picture, axis);
}

/// Which rows of a list fit, and its last line that says how many do not.
std::vector<std::int64_t> shown_rows(const Picture& picture, Rect list, std::int64_t count, const std::vector<bool>& important) {
  const auto fit = [&](float height) { return static_cast<std::int64_t>(height / picture.row()); };
  if (fit(list.h) >= count) return choose_shown(count, count, important);
  const std::vector<std::int64_t> rows = choose_shown(count, fit(list.h - picture.row()), important);
  if (list.h >= picture.row())
    fitted_text(picture.canvas, {list.x, list.bottom() - picture.row() / 2}, Views::tr("{} of {} shown", rows.size(), count),
                picture.small(picture.frame.theme.faint), list.w);
  return rows;
}

void draw_stack(const Picture& picture, const NeedleParts& parts, Rect bar) {
  const std::array<double, 5> values = values_of(parts);
  float x = bar.x;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float width = bar.w * static_cast<float>(std::clamp(values[i], 0.0, 1.0));
    if (width <= 0) continue;
    const Color color = part_color(i, picture.frame.theme);
    picture.canvas.fill_rect({x, bar.y, width, bar.h}, color);
    const std::string full = fmt::format("{} {:.2f}", kPartLetters[i], values[i]);
    const TextStyle style = picture.figures(readable_on(color), Align::center);
    const std::string_view shown = fitting(picture.canvas, full, kPartLetters[i], style, width - 4 * picture.s);
    if (picture.canvas.text_width(shown, style) <= width - 2 * picture.s)
      picture.canvas.text({x + width / 2, bar.y + bar.h / 2}, shown, style);
    x += width;
  }
  picture.canvas.stroke_rect(bar, parts.chosen ? picture.frame.theme.ink : picture.frame.theme.line, (parts.chosen ? 2 : 1) * picture.s);
}

void draw_parts(const Picture& picture) {
  const NeedleData& data = picture.data;
  if (picture.parts.h < 2 * picture.row()) return;
  const Theme& theme = picture.frame.theme;
  const float s = picture.s, row = picture.row();
  const bool wide = picture.parts.w >= 400 * s;
  std::vector<LegendEntry> legend;
  for (std::size_t i = 0; i < kPartNames.size(); ++i) legend.push_back({part_color(i, theme), legend_text(i, wide)});
  draw_legend(picture.canvas, {picture.parts.x, picture.parts.y, picture.parts.w, row}, legend, picture.frame);
  const Rect list{picture.parts.x, picture.parts.y + row, picture.parts.w, picture.parts.h - row};
  std::vector<bool> important;
  float name_width = 0;
  for (const NeedleParts& parts : data.parts) {
    important.push_back(parts.chosen || parts.layer < 0);
    name_width = std::max(name_width, picture.canvas.text_width(parts.name, picture.small(theme.ink, Align::left, true)) + 8 * s);
  }
  const std::string read = Views::tr("read {:.2f}", -0.88);
  const float read_width = picture.canvas.text_width(read, picture.figures(theme.ink)) + 8 * s;
  float y = list.y;
  for (const std::int64_t i : shown_rows(picture, list, std::ssize(data.parts), important)) {
    const NeedleParts& parts = data.parts[static_cast<std::size_t>(i)];
    fitted_text(picture.canvas, {list.x, y + row / 2}, parts.name,
                picture.small(parts.chosen ? theme.accent : theme.ink, Align::left, parts.chosen || parts.layer < 0), name_width);
    const Rect bar{list.x + name_width, y + 2 * s, list.w - name_width - read_width, row - 4 * s};
    if (bar.w > 20 * s) {
      draw_stack(picture, parts, bar);
      fitted_text(picture.canvas, {list.right(), y + row / 2}, Views::tr("read {:.2f}", parts.read_share), picture.figures(theme.ink),
                  read_width);
    }
    picture.canvas.hit({list.x, y, list.w, row}, {kLayerIds + i});
    y += row;
  }
}

void draw_causes(const Picture& picture) {
  const NeedleData& data = picture.data;
  if (picture.causes.h < 2 * picture.row() || data.causes.empty()) return;
  const Theme& theme = picture.frame.theme;
  const float s = picture.s, row = picture.row();
  fitted_text(picture.canvas, {picture.causes.x, picture.causes.y + row / 2},
              Views::tr("what took it, of all that it wrote; and the token that took most"), picture.small(theme.faint), picture.causes.w);
  const Rect list{picture.causes.x, picture.causes.y + row, picture.causes.w, picture.causes.h - row};
  const double most = std::max(1e-9, data.causes.front().lost);
  float y = list.y;
  for (const std::int64_t i : shown_rows(picture, list, std::ssize(data.causes), std::vector<bool>(data.causes.size(), true))) {
    const NeedleCause& cause = data.causes[static_cast<std::size_t>(i)];
    const Color color = part_color(part_named(cause.what), theme);
    const Rect bar{list.x, y + 2 * s, list.w * static_cast<float>(std::clamp(cause.lost / most, 0.0, 1.0)), row - 4 * s};
    picture.canvas.fill_rect(bar, faded(color, 0.3f));
    picture.canvas.fill_rect({bar.x, bar.y, 3 * s, bar.h}, color);
    const TextStyle figure = picture.figures(theme.ink, Align::left, true);
    const std::string lost = fmt::format("{:.3f}", cause.lost);
    picture.canvas.text({list.x + 7 * s, y + row / 2}, lost, figure);
    const float x = list.x + 15 * s + picture.canvas.text_width(lost, figure);
    const std::string what = Views::tr(cause.what.c_str());
    const std::string full = Views::tr("{} in {}, most at {} {}", what, cause.where, *cause.go.token, cause.token_text);
    const std::string token_first = Views::tr("{} at {} {}, {}", what, *cause.go.token, cause.token_text, cause.where);
    const TextStyle style = picture.small(theme.ink);
    fitted_text(picture.canvas, {x, y + row / 2}, fitting(picture.canvas, full, token_first, style, list.right() - x), style,
                list.right() - x);
    picture.canvas.hit({list.x, y, list.w, row}, {kCauseIds + i});
    y += row;
  }
}

class NeedleView : public View {
 public:
  std::vector<Question> questions(const Snapshot& snapshot, const Cursor& cursor) const override {
    if (!layer_of(snapshot)) return {};
    const NeedleQuestion question = needle_question(*snapshot.run, cursor.token);
    return is_asked(question, *snapshot.run) ? std::vector<Question>{question} : std::vector<Question>{};
  }
  std::span<const std::string_view> modes() const override {
    static constexpr std::array<std::string_view, 2> names = {QT_TRANSLATE_NOOP("Views", "Layers"),
                                                              QT_TRANSLATE_NOOP("Views", "Heads of the layer")};
    return names;
  }
  void build(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings) override {
    data_ = build_needle(snapshot, cursor, findings, static_cast<NeedleMode>(mode()));
  }
  void draw(Canvas& canvas, Rect area, const Frame& frame) const override { statescope::draw(data_, canvas, area, frame); }

  std::vector<Array> arrays() const override { return statescope::arrays(data_); }
  Table table() const override {
    if (data_.message) return {};
    Table table{{Views::tr("what"), Views::tr("where"), Views::tr("part of 1"), Views::tr("most at token")}, {}};
    for (const NeedleParts& parts : data_.parts) {
      const std::array<double, 5> values = values_of(parts);
      for (std::size_t i = 0; i < values.size(); ++i)
        table.rows.push_back({Views::tr(kPartNames[i]), parts.name, number(static_cast<float>(values[i]), 6), ""});
      table.rows.push_back({Views::tr("largest share of a read"), parts.name, number(static_cast<float>(parts.read_share), 6), ""});
    }
    for (const NeedleCause& cause : data_.causes)
      table.rows.push_back({Views::tr("{} took", Views::tr(cause.what.c_str())), cause.where, number(static_cast<float>(cause.lost), 6),
                            fmt::format("{} {}", *cause.go.token, cause.token_text)});
    return table;
  }
  std::string describe() const override {
    if (data_.message) return data_.message.sentence();
    return Views::tr("Needle \"{}\", tokens {} to {}, asked after token {}. {}; the needle is up to {:.2f} of what is read of a memory.",
                     data_.text, data_.begin, data_.end - 1, data_.question, summary(data_), data_.parts.front().read_share);
  }
  std::string tooltip(std::int64_t hit_id) const override {
    if (data_.message || hit_id < 0) return {};
    if (const auto i = index(hit_id, kLayerIds, data_.parts)) return layer_tooltip(data_.parts[*i]);
    if (const auto i = index(hit_id, kCauseIds, data_.causes)) return cause_tooltip(data_.causes[*i]);
    if (const auto i = index(hit_id, kFallIds, data_.falls)) {
      const NeedleStory::Fall& fall = data_.falls[*i];
      return Views::tr("token {} {}\nthe mean over the layers fell by {}\n{}", fall.token, visible_token(*data_.tokens.run, fall.token),
                       number(static_cast<float>(fall.by), 9), accuracy_words(NeedleStory::accuracy));
    }
    return hit_id < data_.tokens.count() ? token_tooltip(hit_id) : "";
  }
  CursorMove on_hit(std::int64_t hit_id) const override {
    if (data_.message || hit_id < 0) return {};
    if (const auto i = index(hit_id, kLayerIds, data_.parts))
      return data_.parts[*i].layer < 0 ? CursorMove{} : CursorMove{.layer = data_.parts[*i].layer};
    if (const auto i = index(hit_id, kCauseIds, data_.causes)) return data_.causes[*i].go;
    if (const auto i = index(hit_id, kFallIds, data_.falls)) return {.token = data_.falls[*i].token};
    return hit_id < data_.tokens.count() ? CursorMove{.token = data_.tokens.tokens[static_cast<std::size_t>(hit_id)]} : CursorMove{};
  }

 private:
  /// Ids of each kind begin at a power of two above all that the kinds before it have.
  template <class Things>
  static std::optional<std::size_t> index(std::int64_t hit_id, std::int64_t first, const Things& things) {
    if (hit_id < first || hit_id - first >= std::ssize(things)) return {};
    return static_cast<std::size_t>(hit_id - first);
  }
  std::string layer_tooltip(const NeedleParts& parts) const {
    std::string text = parts.name;
    const std::array<double, 5> values = values_of(parts);
    for (std::size_t i = 0; i < values.size(); ++i)
      text += fmt::format("\n{} {}", Views::tr(kPartNames[i]), number(static_cast<float>(values[i]), 9));
    const std::string share = number(static_cast<float>(parts.read_share), 9);
    const std::string most = parts.read_where.empty() ? share : fmt::format("{} ({})", share, parts.read_where);
    return joined({text, Views::tr("parts of what the needle wrote there; heads weigh by ‖C‖²"),
                   Views::tr("of one head's read at the question the needle's share is at most {}: ⟨o of the needle, o⟩ ÷ ⟨o, o⟩", most),
                   accuracy_words(NeedleStory::accuracy)},
                  "\n");
  }
  std::string cause_tooltip(const NeedleCause& cause) const {
    return Views::tr("{} took {} of all that the needle wrote, in {}\nmost at token {} {}\n{}", Views::tr(cause.what.c_str()),
                     number(static_cast<float>(cause.lost), 9), cause.where, *cause.go.token, cause.token_text,
                     accuracy_words(NeedleStory::accuracy));
  }
  std::string token_tooltip(std::int64_t place) const {
    const auto i = static_cast<std::size_t>(place);
    std::string text = Views::tr("token {} {}\nmean of the layers {}", data_.tokens.tokens[i],
                                 visible_token(*data_.tokens.run, data_.tokens.tokens[i]), number(data_.mean[i], 9));
    for (const NeedleCurve& curve : data_.curves) text += fmt::format("\n{} {}", curve.name, number(curve.kept[i], 9));
    if (data_.hidden_curves > 0) text += "\n" + Views::tr("and {} more that it wrote less to", data_.hidden_curves);
    return joined({text, Views::tr("‖C‖ after the token ÷ ‖C‖ after the needle, S = C + all else"), accuracy_words(NeedleStory::accuracy)},
                  "\n");
  }
  NeedleData data_;
};

}  // namespace

NeedleQuestion needle_question(const RunInfo& run, std::int64_t cursor_token) {
  NeedleQuestion question;
  question.question = run.prompt_length - 1;
  for (const TokenSpan& span : run.spans) {
    const bool under_cursor = cursor_token >= span.begin && cursor_token < span.end;
    if (span.kind == SpanKind::needle && (question.end == 0 || under_cursor)) question.begin = span.begin, question.end = span.end;
    if (span.kind == SpanKind::answer && span.begin < run.prompt_length) question.question = span.begin - 1;
  }
  return question;
}

NeedleData build_needle(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, NeedleMode mode) {
  NeedleData data;
  if (!layer_of(snapshot)) {
    data.message = {Views::tr("No token has been read yet"), Views::tr("It appears as soon as a model has read its first tokens.")};
    return data;
  }
  const RunInfo& run = *snapshot.run;
  const NeedleQuestion question = needle_question(run, cursor.token);
  if (question.end == 0) {
    data.message = {Views::tr("This prompt has no needle"),
                    Views::tr("Mark one in the prompt (Ctrl+T): select its words, then Needle; a model without a tokenizer has no words to "
                              "select. In a prompt file \"spans\" name it by its bytes.")};
    return data;
  }
  if (!is_asked(question, run) && std::ssize(run.tokens) < run.prompt_length) {
    data.message = {Views::tr("The prompt has not been read to its end yet"), Views::tr("What became of the needle shows when it has.")};
    return data;
  }
  if (!is_asked(question, run)) {
    data.message = {Views::tr("Nothing is asked behind the needle"), Views::tr("The prompt has to go on after it, with the question.")};
    return data;
  }
  const NeedleStory* story = findings.get(question);
  if (!story) {
    data.message = waiting(findings, question, Views::tr("What became of the needle"));
    return data;
  }
  if (!story->all.has_memory) {
    data.message = {
        Views::tr("The needle wrote to no matrix memory"),
        Views::tr(
            "Softmax attention keeps keys and values of tokens instead: there is no state in which they could fade or be written over.")};
    return data;
  }
  data.mode = mode;
  data.text = needle_text(run, question.begin, question.end);
  data.begin = question.begin;
  data.end = question.end;
  data.question = question.question;
  data.layer = snapshot.layer;
  const bool inside = cursor.token >= question.end - 1 && cursor.token <= question.question;
  data.tokens = {snapshot.run, token_range(question.end - 1, question.question + 1), inside ? cursor.token : -1};
  data.mean = story->all.kept;
  data.falls = story->falls;
  add_curves(data, *story, run, cursor);
  data.parts.push_back(parts_of(story->all, Views::tr("all layers")));
  for (std::size_t l = 0; l < story->layers.size(); ++l) {
    const NeedleStory::LayerFate& fate = story->layers[l];
    if (!fate.has_memory) continue;
    NeedleParts& parts = data.parts.emplace_back(parts_of(fate, Views::tr("layer {}", l)));
    parts.layer = static_cast<std::int64_t>(l);
    parts.chosen = parts.layer == data.layer;
    parts.read_where = place_name(run.model.layers[l], fate.read_slot, fate.read_head);
  }
  for (const NeedleStory::Cause& cause : story->causes) {
    if (cause.lost <= 0) continue;
    const LayerInfo& layer = run.model.layers[static_cast<std::size_t>(cause.layer)];
    data.causes.push_back({cause.what,
                           memory_place(layer, cause.layer, cause.slot, cause.head),
                           visible_token(run, cause.token),
                           cause.lost,
                           {.token = cause.token, .layer = cause.layer, .head = cause.head, .slot = cause.slot}});
  }
  return data;
}

void draw(const NeedleData& data, Canvas& canvas, Rect area, const Frame& frame) {
  if (data.message) {
    draw_message(canvas, area, frame, data.message.headline, data.message.detail);
    return;
  }
  const Picture picture(data, canvas, area, frame);
  canvas.push_clip(area);
  if (frame.shown.captions) draw_title(picture);
  draw_curves(picture);
  draw_parts(picture);
  draw_causes(picture);
  canvas.pop_clip();
}

std::unique_ptr<View> make_needle() { return std::make_unique<NeedleView>(); }

}  // namespace statescope

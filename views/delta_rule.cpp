#include "views/delta_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "views/colormaps.h"
#include "views/parts.h"
#include "views/sheets.h"
#include "views/words.h"

namespace statescope {
namespace {

/// One quantity along the run, with the colour it has everywhere in this view.
struct Line {
  std::vector<float> DeltaRule::*values;
  std::string_view sign, sign_of_two_keys;
  const char* name;       // in English
  std::int64_t identity;  // of identity_color

  std::string signed_name(bool two_keys) const { return fmt::format("{} {}", Views::tr(name), two_keys ? sign_of_two_keys : sign); }
};
/// One picture along the run.
struct Lane {
  DeltaMode mode;
  int sheet;
  std::vector<Line> lines;
};

// Blue: what was predicted and is taken away; green: what is wanted and put in; vermilion: the difference.
const std::array<Lane, 4>& lanes() {
  static const std::array<Lane, 4> all = {
      {{DeltaMode::prediction,
        DeltaRuleSheets::prediction,
        {{&DeltaRule::prediction, "‖π‖", "‖π‖", QT_TRANSLATE_NOOP("Views", "predicted"), 1},
         {&DeltaRule::value, "‖v‖", "‖v‖", QT_TRANSLATE_NOOP("Views", "wanted"), 3},
         {&DeltaRule::error, "‖v − π‖", "‖v − π‖", QT_TRANSLATE_NOOP("Views", "error"), 2}}},
       {DeltaMode::change,
        DeltaRuleSheets::change,
        {{&DeltaRule::erase, "β‖k‖‖π‖", "‖κ̂⊙a‖‖π‖", QT_TRANSLATE_NOOP("Views", "erased"), 1},
         {&DeltaRule::write, "β‖k‖‖v‖", "‖k‖‖v‖", QT_TRANSLATE_NOOP("Views", "written"), 3},
         {&DeltaRule::update, "β‖k‖‖v − π‖", "‖kᵀv − (κ̂⊙a)ᵀπ‖", QT_TRANSLATE_NOOP("Views", "net change"), 2}}},
       {DeltaMode::gates,
        DeltaRuleSheets::gates,
        {{&DeltaRule::along_key, "α(1 − β‖k‖²)", "Σκ̂²(w − a)", QT_TRANSLATE_NOOP("Views", "along the key"), 2},
         {&DeltaRule::beta, "β", "Σκ̂²a", QT_TRANSLATE_NOOP("Views", "strength"), 3},
         {&DeltaRule::alpha, "α", "Σκ̂²w", QT_TRANSLATE_NOOP("Views", "decay"), 1}}},
       {DeltaMode::angle,
        DeltaRuleSheets::angle,
        {{&DeltaRule::cosine, "cos(π, v)", "cos(π, v)", QT_TRANSLATE_NOOP("Views", "cosine of prediction and value"), 1}}}}};
  return all;
}

bool is_shown(const Lane& lane, DeltaMode mode) { return mode == DeltaMode::overview || mode == lane.mode; }

DeltaRuleQuestion question_of(const Snapshot& snapshot, const Cursor& cursor) {
  const LayerInfo& layer = *layer_of(snapshot);
  return {snapshot.layer, std::clamp<std::int64_t>(cursor.slot, 0, layer.slots() - 1), cursor.head};
}

/// RWKV-7's, too, takes away before it writes: what one key reads, along another.
bool follows_delta_rule(const LayerInfo& layer) { return layer.memory == "gated delta rule" || layer.mixer == "rwkv7"; }

Message other_rule(const Snapshot& snapshot) {
  const std::vector<LayerInfo>& layers = snapshot.run->model.layers;
  std::vector<std::int64_t> others;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (follows_delta_rule(layers[i])) others.push_back(static_cast<std::int64_t>(i));
  }
  const LayerInfo& layer = *layer_of(snapshot);
  return {Views::tr("Layer {} ({}) does not write by the delta rule", snapshot.layer, layer.mixer),
          others.empty()
              ? Views::tr("Models with the delta rule, such as DeltaNet, Gated DeltaNet, KDA, Comba, RWKV-7, SSE-GDN, SLA-GDN and MoM, "
                          "first take away what the key already reads.")
          : others.size() == 1 ? Views::tr("In this model, {} erases before it writes.", layer_list(others, ""))
                               : Views::tr("In this model, {} erase before they write.", layer_list(others, ""))};
}

float at(const DeltaRuleData& data, const std::vector<float> DeltaRule::*values, std::int64_t visit) {
  return (data.rule.*values)[static_cast<std::size_t>(visit)];
}

std::string token_words(const DeltaRuleData& data, std::int64_t visit) {
  return token_words(*data.tokens.run, data.rule.token[static_cast<std::size_t>(visit)]);
}

ValueAxis axis_of(const DeltaRule& rule, const Lane& lane) {
  if (lane.mode == DeltaMode::angle) return {-1, 1};
  double low = 0, high = 0;
  for (const Line& line : lane.lines) {
    const std::vector<float>& values = rule.*line.values;
    high = std::max(high, axis_over(values).high);
    for (const float v : values) low = std::min(low, static_cast<double>(v));
  }
  return {low < 0 ? -1.0 : 0.0, high};
}

/// The answer in a sentence.
std::string summary(const DeltaRuleData& data) {
  if (data.visit < 0) return sentence_at(Views::tr("no token has come here yet"), data.place);
  const std::string statement =
      data.rule.two_keys
          ? Views::tr("{:.0f} % of what the erase key reads taken away: read {}, written {}, cosine {}",
                      100 * at(data, &DeltaRule::beta, data.visit), number(at(data, &DeltaRule::prediction, data.visit), 3),
                      number(at(data, &DeltaRule::value, data.visit), 3), number(at(data, &DeltaRule::cosine, data.visit), 2))
          : Views::tr("{:.0f} % of the error corrected: predicted {}, wanted {}, cosine {}", 100 * at(data, &DeltaRule::mended, data.visit),
                      number(at(data, &DeltaRule::prediction, data.visit), 3), number(at(data, &DeltaRule::value, data.visit), 3),
                      number(at(data, &DeltaRule::cosine, data.visit), 2));
  std::string token = token_words(data, data.visit);
  if (const std::string step = data.step_words(data.visit); !step.empty()) token += ", " + step;
  return sentence_at(statement, fmt::format("{}, {}", data.here() ? token : Views::tr("last visited by {}", token), data.place));
}

/// One drawing: where things stand.
struct Picture {
  const DeltaRuleData& data;
  Canvas& canvas;
  const Frame& frame;
  float s;
  Rect title, step;
  struct Place {
    std::size_t lane;
    Plot plot;
  };
  std::vector<Place> places;
  bool token_axis = false;

  Picture(const DeltaRuleData& data_, Canvas& canvas_, Rect area, const Frame& frame_);
  Color color(const Line& line) const { return identity_color(line.identity, frame.theme); }
};

Picture::Picture(const DeltaRuleData& data_, Canvas& canvas_, Rect area, const Frame& frame_)
    : data(data_), canvas(canvas_), frame(frame_), s(frame_.scale) {
  const Rect inner = inset(area, 8 * s);
  title = {inner.x, inner.y, inner.w, std::min(caption_height(frame), inner.h)};
  const float name = 17 * s, least = 38 * s;
  float height = inner.bottom() - title.bottom();
  const float below = 245 * s;
  if (!frame.shown.cursor && inner.w < 560 * s) {  // a column of a journal: below the lanes
    if (height > below + 120 * s) step = {inner.x, inner.bottom() - below, inner.w, below};
    height -= below + 8 * s;
  } else if (inner.w > 440 * s && height > 120 * s) {
    const float w = std::min(0.36f * inner.w, 300 * s);
    step = {inner.right() - w, title.bottom() + 4 * s, w, height - 4 * s};
  }
  const float left = inner.x + value_axis_width(frame), right = step.x > inner.x ? step.x - 16 * s : inner.right();
  if (right - left < 60 * s || height < name + least) return;
  token_axis = height - token_axis_height(frame) > name + least;
  const float room = height - (token_axis ? token_axis_height(frame) : 0);
  const auto fit = static_cast<std::size_t>(room / (name + least));
  for (std::size_t i = 0; i < lanes().size() && places.size() < fit; ++i) {
    if (is_shown(lanes()[i], data.mode)) places.push_back({i, {}});
  }
  const float each = room / static_cast<float>(places.size());
  for (std::size_t i = 0; i < places.size(); ++i)
    places[i].plot =
        zoomed(canvas, {left, title.bottom() + each * static_cast<float>(i) + name, right - left, each - name}, true, false, frame);
}

/// Below the lane's zero: visits that turn what the key reads around.
void draw_negative_marks(const Picture& picture, const Plot& plot, const ValueAxis& axis) {
  const Within inside(picture.canvas, plot);
  float last = -1e9f;
  const Color color = identity_color(2, picture.frame.theme);
  for (std::int64_t i = 0; i < picture.data.tokens.count(); ++i) {
    if (at(picture.data, &DeltaRule::along_key, i) >= 0) continue;
    const float x = picture.data.tokens.x_of(plot, i);
    if (x - last < 1) continue;
    last = x;
    const float zero = height_of(plot, axis, 0);
    picture.canvas.fill_rect({x - picture.s, zero, 2 * picture.s, plot.bottom() - zero}, faded(color, 0.45f));
  }
}

void draw_lane(const Picture& picture, const Picture::Place& place) {
  const DeltaRuleData& data = picture.data;
  const Lane& lane = lanes()[place.lane];
  const ValueAxis axis = data.axes[place.lane];
  const float s = picture.s;
  draw_value_axis(picture.canvas, place.plot, axis, "", picture.frame);
  if (axis.low < 0) {
    const float zero = height_of(place.plot, axis, 0);
    picture.canvas.line({place.plot.x, zero}, {place.plot.right(), zero}, picture.frame.theme.faint, s);
  }
  if (lane.mode == DeltaMode::gates) draw_negative_marks(picture, place.plot, axis);
  // Lines often lie on each other: in a window the one beneath is the widest, on paper they have dashes.
  constexpr std::array<float, 3> widths = {2, 3.5f, 1.5f};
  const auto number = [&](std::size_t line) { return lane.lines.size() > 1 ? static_cast<std::int64_t>(line) : -1; };
  for (std::size_t i = 0; i < lane.lines.size(); ++i)
    draw_curve(picture.canvas, place.plot, axis, data.rule.*lane.lines[i].values, {picture.color(lane.lines[i]), number(i)},
               (picture.frame.shown.cursor ? widths[i] : 1.5f) * s, picture.frame);
  const bool wide = place.plot.w > 420 * s;
  std::vector<LegendEntry> legend;
  for (const Line& line : lane.lines)
    legend.push_back({picture.color(line), wide ? line.signed_name(data.rule.two_keys) : Views::tr(line.name), number(legend.size())});
  if (lane.mode == DeltaMode::gates && data.negative > 0)
    legend.push_back({faded(identity_color(2, picture.frame.theme), 0.45f), Views::tr("negative: {}", data.negative)});
  draw_legend(picture.canvas, {place.plot.x, place.plot.y - 16 * s, place.plot.w, 16 * s}, legend, picture.frame);
  draw_cursor_line(picture.canvas, place.plot, data.tokens, picture.frame);
  const std::int64_t n = data.tokens.count();
  hit_plot(picture.canvas, place.plot, {{lane.sheet, 0}, 1, n, 0, 0});
}

void draw_arrow(const Picture& picture, Point from, Point to, Color color, float width) {
  const float dx = to.x - from.x, dy = to.y - from.y, length = std::hypot(dx, dy), head = std::min(9 * picture.s, length);
  if (length < 0.5f) return;
  const Point unit{dx / length, dy / length}, base{to.x - head * unit.x, to.y - head * unit.y};
  picture.canvas.line(from, base, color, width);
  const float half = 0.45f * head;
  const Point tip[] = {to, {base.x - half * unit.y, base.y + half * unit.x}, {base.x + half * unit.y, base.y - half * unit.x}};
  picture.canvas.path(tip, color, width, true);
}

/// Prediction, value and what the update did, in their plane, as large as `area` allows.
void draw_plane(const Picture& picture, Rect area) {
  const DeltaPicture plane = delta_picture(picture.data.rule, picture.data.visit);
  const float s = picture.s;
  const Point all[] = {{0, 0}, plane.value, plane.prediction, plane.after};
  Point low{0, 0}, high{0, 0};
  for (const Point& p : all) {
    low = {std::min(low.x, p.x), std::min(low.y, p.y)};
    high = {std::max(high.x, p.x), std::max(high.y, p.y)};
  }
  const Rect room = inset(area, 20 * s);
  const float unit = std::min(room.w / std::max(high.x - low.x, 1e-9f), room.h / std::max(high.y - low.y, 1e-9f));
  const Point origin{room.x + (room.w - unit * (high.x - low.x)) / 2 - unit * low.x,
                     room.y + (room.h + unit * (high.y - low.y)) / 2 + unit * low.y};
  const auto to = [&](Point p) { return Point{origin.x + unit * p.x, origin.y - unit * p.y}; };
  const Theme& theme = picture.frame.theme;
  const Color predicted = identity_color(1, theme), wanted = identity_color(3, theme), mended = identity_color(2, theme);
  picture.canvas.line(to(plane.prediction), to(plane.value), faded(mended, 0.4f), 1.5f * s);
  draw_arrow(picture, origin, to(plane.value), wanted, 2.5f * s);
  draw_arrow(picture, origin, to(plane.prediction), predicted, 2.5f * s);
  draw_arrow(picture, to(plane.prediction), to(plane.after), mended, 4 * s);
  picture.canvas.fill_rect({origin.x - 3 * s, origin.y - 3 * s, 6 * s, 6 * s}, theme.ink, 3 * s);
  // The letters where they have room: beyond their tips, apart from each other.
  const Point v = to(plane.value), pi = to(plane.prediction);
  if (std::hypot(v.x - pi.x, v.y - pi.y) < 34 * s || area.h < 60 * s) return;
  const auto name_tip = [&](Point tip, std::string_view letter) {
    const float length = std::hypot(tip.x - origin.x, tip.y - origin.y);
    if (length < 10 * s) return;
    const Point at{tip.x + 12 * s * (tip.x - origin.x) / length, tip.y + 12 * s * (tip.y - origin.y) / length};
    picture.canvas.text(at, letter, value(picture.frame, kBodyType, theme.ink, Align::center, true));
  };
  name_tip(v, "v");
  name_tip(pi, "π");
}

struct StepRow {
  std::string name, short_name, value;
  Color color;
  float bar = -1;  // share of the row's track; −1: no bar
};
std::vector<StepRow> step_rows(const Picture& picture) {
  const DeltaRuleData& data = picture.data;
  const auto of = [&](const std::vector<float> DeltaRule::*values) { return at(data, values, data.visit); };
  const Theme& theme = picture.frame.theme;
  const Color predicted = identity_color(1, theme), wanted = identity_color(3, theme), difference = identity_color(2, theme);
  const float vector = std::max({of(&DeltaRule::prediction), of(&DeltaRule::value), of(&DeltaRule::error), 1e-30f});
  const float change = std::max({of(&DeltaRule::erase), of(&DeltaRule::write), of(&DeltaRule::update), 1e-30f});
  const auto row = [&](std::string_view name, const std::vector<float> DeltaRule::*values, Color color, float most) {
    return StepRow{std::string(name), std::string(name), number(of(values), 4), color, of(values) / most};
  };
  const float along_key = of(&DeltaRule::along_key);
  return {row(Views::tr("predicted π"), &DeltaRule::prediction, predicted, vector),
          row(Views::tr("wanted v"), &DeltaRule::value, wanted, vector),
          row(Views::tr("error v − π"), &DeltaRule::error, difference, vector),
          row(Views::tr("1. erased"), &DeltaRule::erase, predicted, change),
          row(Views::tr("2. written"), &DeltaRule::write, wanted, change),
          row(Views::tr("net change"), &DeltaRule::update, difference, change),
          {data.rule.two_keys ? Views::tr("of π taken away") : Views::tr("of the error corrected"),
           data.rule.two_keys ? Views::tr("taken away") : Views::tr("corrected"), fmt::format("{:.1f} %", 100 * of(&DeltaRule::mended)),
           theme.ink},
          {along_key < 0 ? Views::tr("along k, negative") : Views::tr("old state along k"), Views::tr("along k"), number(along_key, 4),
           along_key < 0 ? difference : theme.ink}};
}

void draw_step_row(const Picture& picture, const StepRow& row, Rect line, float name_width, float value_width) {
  const Theme& theme = picture.frame.theme;
  const float s = picture.s, y = line.y + line.h / 2;
  const float gap = 8 * s, track = line.w - name_width - value_width - 2 * gap;
  const bool bar = row.bar >= 0 && track > 24 * s;
  const TextStyle style = label(picture.frame, kBodyType, theme.ink);
  const float name_room = line.w - value_width - gap;
  fitted_text(picture.canvas, {line.x, y}, fitting(picture.canvas, row.name, row.short_name, style, name_room), style, name_room);
  picture.canvas.text({line.right(), y}, row.value, value(picture.frame, kBodyType, theme.ink, Align::right));
  if (bar) picture.canvas.fill_rect({line.x + name_width + gap, y - 4 * s, track * row.bar, 8 * s}, row.color, s);
}

/// At the cursor: predicted, wanted, changed.
void draw_step(const Picture& picture) {
  if (picture.step.w <= 0 || picture.data.visit < 0) return;
  const float s = picture.s, line = 1.45f * kBodyType * s;
  if (picture.data.visit >= 0) picture.canvas.hit(picture.step, {{DeltaRuleSheets::prediction, Hit::here}});
  const std::vector<StepRow> rows = step_rows(picture);
  const float plane_least = 70 * s, caption = 17 * s;
  const auto fit = static_cast<std::size_t>(std::max(0.0f, (picture.step.h - caption - plane_least) / line));
  const std::size_t count = std::min(rows.size(), fit);
  if (count < rows.size()) picture.canvas.left_out();
  const float rows_height = line * static_cast<float>(count);
  const Rect plane{picture.step.x, picture.step.y + caption, picture.step.w, picture.step.h - caption - rows_height};
  const std::string caption_text =
      picture.data.here() ? Views::tr("Erase, then write") : Views::tr("Last visit: {}", token_words(picture.data, picture.data.visit));
  fitted_text(picture.canvas, {picture.step.x, picture.step.y + caption / 2}, caption_text,
              label(picture.frame, kBodyType, picture.frame.theme.ink, Align::left, true), picture.step.w);
  draw_plane(picture, plane);
  float name_width = 0, value_width = 0;
  for (const StepRow& row : rows) {
    if (row.bar >= 0) name_width = std::max(name_width, picture.canvas.text_width(row.name, label(picture.frame, kBodyType, {})));
    value_width = std::max(value_width, picture.canvas.text_width(row.value, value(picture.frame, kBodyType, {})));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Rect row{picture.step.x, plane.bottom() + line * static_cast<float>(i), picture.step.w, line};
    draw_step_row(picture, rows[i], row, name_width, value_width);
  }
}

class DeltaRuleView : public View {
 public:
  std::vector<Question> questions(const Snapshot& snapshot, const Cursor& cursor) const override {
    if (without_memory(snapshot, cursor.head) || !follows_delta_rule(*layer_of(snapshot))) return {};
    return {question_of(snapshot, cursor)};
  }
  std::span<const std::string_view> modes() const override {
    static constexpr std::array<std::string_view, 5> names = {
        QT_TRANSLATE_NOOP("Views", "Overview"), QT_TRANSLATE_NOOP("Views", "Prediction"), QT_TRANSLATE_NOOP("Views", "Angle"),
        QT_TRANSLATE_NOOP("Views", "Erase and write"), QT_TRANSLATE_NOOP("Views", "Gates")};
    return names;
  }
  void build(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings) override {
    data_ = build_delta_rule(snapshot, cursor, findings, static_cast<DeltaMode>(mode()));
  }
  void draw(Canvas& canvas, Rect area, const Frame& frame) const override { statescope::draw(data_, canvas, area, frame); }

  std::vector<Sheet> sheets() const override { return statescope::sheets(data_); }
  std::string sentence() const override {
    if (data_.message) return data_.message.sentence();
    return Views::tr("{}; the old state along the key is reversed at {} of {} tokens.", summary(data_), data_.negative,
                     data_.tokens.count());
  }

 private:
  DeltaRuleData data_;
};

}  // namespace

// ⟨π, v⟩ = ‖π‖ ‖v‖ cos θ, v along x
DeltaPicture delta_picture(const DeltaRule& rule, std::int64_t visit) {
  const auto i = static_cast<std::size_t>(visit);
  const float cosine = std::clamp(rule.cosine[i], -1.0f, 1.0f), sine = std::sqrt(1 - cosine * cosine);
  DeltaPicture picture{{rule.value[i], 0}, {rule.prediction[i] * cosine, rule.prediction[i] * sine}, {}};
  const float taken = rule.mended[i], put = rule.two_keys ? rule.put[i] : taken;
  picture.after = {(1 - taken) * picture.prediction.x + put * picture.value.x, (1 - taken) * picture.prediction.y};
  return picture;
}

std::string DeltaRuleData::step_words(std::int64_t visit_) const {
  if (rule.steps == 1) return {};
  std::int64_t step = 1;
  for (auto i = static_cast<std::size_t>(visit_); i > 0 && rule.token[i - 1] == rule.token[i]; --i) ++step;
  return Views::tr("step {} of {}", step, rule.steps);
}

DeltaRuleData build_delta_rule(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, DeltaMode mode) {
  DeltaRuleData data;
  data.mode = mode;
  data.message = without_memory(snapshot, cursor.head);
  if (data.message) return data;
  const LayerInfo& layer = *layer_of(snapshot);
  if (!follows_delta_rule(layer)) {
    data.message = other_rule(snapshot);
    return data;
  }
  const DeltaRuleQuestion question = question_of(snapshot, cursor);
  data.place = memory_place(layer, question.layer, question.slot, question.head);
  const DeltaRule* rule = findings.get(question);
  if (!rule) {
    data.message = waiting(findings, question, Views::tr("The delta rule of {}", data.place));
    return data;
  }
  if (rule->token.empty()) {
    data.message = {Views::tr("No token came to {}", data.place),
                    Views::tr("Where no token comes nothing is predicted, erased or written.")};
    return data;
  }
  const auto tokens = static_cast<std::int64_t>(snapshot.run->tokens.size());
  data.rule = *rule;
  std::ranges::transform(lanes(), data.axes.begin(), [&](const Lane& lane) { return axis_of(*rule, lane); });
  data.token = std::clamp<std::int64_t>(cursor.token, 0, tokens - 1) - (cursor.progress < 1 ? 1 : 0);
  data.tokens = {snapshot.run, rule->token, data.token};
  data.visit = data.tokens.place_of(data.token);
  data.negative = std::ranges::count_if(rule->along_key, [](float value) { return value < 0; });
  return data;
}

void draw(const DeltaRuleData& data, Canvas& canvas, Rect area, const Frame& frame) {
  if (data.message) {
    draw_message(canvas, area, frame, data.message.headline, data.message.detail);
    return;
  }
  const Picture picture(data, canvas, area, frame);
  canvas.push_clip(area);
  draw_caption(canvas, picture.title, summary(data), kRecomputed, frame);
  const auto wanted = std::ranges::count_if(lanes(), [&](const Lane& lane) { return is_shown(lane, data.mode); });
  if (std::ssize(picture.places) < wanted || !picture.token_axis || picture.step.w <= 0) canvas.left_out();
  for (const Picture::Place& place : picture.places) draw_lane(picture, place);
  if (picture.token_axis && !picture.places.empty()) draw_token_axis(canvas, picture.places.back().plot, data.tokens, frame);
  draw_step(picture);
  canvas.pop_clip();
}

std::unique_ptr<View> make_delta_rule() { return std::make_unique<DeltaRuleView>(); }

}  // namespace statescope

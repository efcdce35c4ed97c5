#include "views/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "views/colormaps.h"
#include "views/parts.h"
#include "views/sheets.h"
#include "views/words.h"

namespace statescope {
namespace {

constexpr std::int64_t kLeastTokens = 1, kMostTokens = 32768;
constexpr std::int64_t kUsualTokens = 512;

LayerSeriesQuestion layer_question(const Snapshot& snapshot, TokenWindow window) {
  return {.layer = snapshot.layer, .from = window.from, .to = window.to};
}
LossSeriesQuestion loss_question(TokenWindow window) { return {.from = window.from, .to = window.to}; }

/// Rows [slots, n] as a curve per slot.
std::vector<LaneCurve> slot_curves(const LayerInfo& layer, const LayerSeries& series, const std::vector<float>& rows) {
  std::vector<LaneCurve> curves;
  const std::int64_t n = series.to - series.from;
  for (std::int64_t slot = 0; slot < series.slots; ++slot) {
    const auto row = rows.begin() + slot * n;
    curves.push_back({slot_name(layer, slot), series.slots > 1 ? slot_identity(layer, slot) : -1, {row, row + n}});
  }
  return curves;
}

std::vector<float> numbers(const std::vector<std::int32_t>& winners) { return {winners.begin(), winners.end()}; }

void add_layer_lanes(TimelineData& data, const LayerInfo& layer, const LayerSeries& series) {
  const auto add = [&](std::string name, std::string title, std::string source, double high, std::vector<LaneCurve> curves) {
    data.lanes.push_back({.name = std::move(name),
                          .title = std::move(title),
                          .source = std::move(source),
                          .accuracy = LayerSeries::accuracy,
                          .low = 0,
                          .high = high,
                          .curves = std::move(curves),
                          .missing = {}});
  };
  if (series.slots > 0) {
    add("‖S‖", Views::tr("size of the state"), Views::tr("‖S_t‖_F over all heads"), 0, slot_curves(layer, series, series.state_norm));
    add("‖ΔS‖", Views::tr("change by the token"), Views::tr("‖S_t − S_{t−1}‖_F over all heads"), 0,
        slot_curves(layer, series, series.update_norm));
  }
  if (!series.routing_entropy.empty())
    add(Views::tr("routing"), Views::tr("entropy of the routing: 0 decided, 1 undecided"), Views::tr("−Σ e log e / log N, e of SSE eq. 9"),
        1, {{"", -1, series.routing_entropy}});
  if (!series.gate_entropy_q.empty()) {
    add(Views::tr("gates"), Views::tr("entropy of the head gates: 0 one head wins, 1 all alike"),
        Views::tr("−Σ G log G / log H (SLA eq. 4)"), 1,
        {{Views::tr("read G^Q"), 1, series.gate_entropy_q}, {Views::tr("write G^K"), 2, series.gate_entropy_k}});
    add(Views::tr("winner"), Views::tr("head that wins"), Views::tr("argmax of G over the heads (SLA eq. 4)"),
        static_cast<double>(std::max<std::int64_t>(layer.heads - 1, 1)),
        {{Views::tr("read G^Q"), 1, numbers(series.gate_winner_q)}, {Views::tr("write G^K"), 2, numbers(series.gate_winner_k)}});
  }
  add("‖x‖", Views::tr("size of what enters the block"), Views::tr("‖x_t‖, norm of the residual stream"), 0,
      {{"", -1, series.residual_norm}});
}

void add_loss_lane(TimelineData& data, const LossSeries& series) {
  data.lanes.push_back({.name = Views::tr("loss"),
                        .title = Views::tr("surprise at the token, nat"),
                        .source = Views::tr("−ln p of the token, as predicted by those before it"),
                        .accuracy = LossSeries::accuracy,
                        .low = 0,
                        .high = 0,
                        .curves = {{"", -1, series.loss}},
                        .missing = {}});
}

ValueAxis axis_of(const Lane& lane) {
  if (lane.high > 0) return {lane.low, lane.high};
  std::vector<float> all;
  for (const LaneCurve& curve : lane.curves) all.insert(all.end(), curve.values.begin(), curve.values.end());
  return axis_over(all, lane.low);
}

Color curve_color(const LaneCurve& curve, const Theme& theme) {
  return curve.identity < 0 ? theme.ink : identity_color(curve.identity, theme);
}

LegendEntry entry_of(const LaneCurve& curve, const Frame& frame) { return {curve_color(curve, frame.theme), curve.name, curve.identity}; }

constexpr float kLegendLine = 15;

/// Name and meaning on the left of a lane's first line, whose curve is which behind them, or below.
void draw_lane_title(const Lane& lane, Canvas& canvas, Rect row, bool below, const Frame& frame) {
  const TextStyle name = label(frame, kSmallType, frame.theme.ink, Align::left, true), title = label(frame, kSmallType, frame.theme.faint);
  const float y = row.y + row.h / 2, title_x = row.x + canvas.text_width(lane.name, name) + 8 * frame.scale;
  fitted_text(canvas, {row.x, y}, lane.name, name, row.w);
  if (title_x >= row.right()) return;
  fitted_text(canvas, {title_x, y}, lane.title, title, row.right() - title_x);
  const float legend_x = below ? row.x : title_x + canvas.text_width(lane.title, title) + 16 * frame.scale;
  if (lane.curves.size() < 2 || legend_x >= row.right()) return;
  std::vector<LegendEntry> entries;
  for (const LaneCurve& curve : lane.curves) entries.push_back(entry_of(curve, frame));
  draw_legend(canvas, {legend_x, row.y + (below ? kLegendLine * frame.scale : 0), row.right() - legend_x, row.h}, entries, frame);
}

/// Whether one line has no room for a lane's title and its legend.
bool needs_two_lines(const Lane& lane, const Canvas& canvas, float width, const Frame& frame) {
  if (lane.curves.size() < 2) return false;
  const TextStyle plain = label(frame, kSmallType, frame.theme.ink), bold = label(frame, kSmallType, frame.theme.ink, Align::left, true);
  float used = canvas.text_width(lane.name, bold) + canvas.text_width(lane.title, plain) + 24 * frame.scale;
  for (const LaneCurve& curve : lane.curves)
    used += canvas.text_width(curve.name, plain) + legend_sample(entry_of(curve, frame), frame) + 12 * frame.scale;
  return used > width;
}

/// A dashed line where the sequences that the model was trained on ended.
void draw_trained_length(const TimelineData& data, Canvas& canvas, const Plot& plot, const Frame& frame, bool named) {
  if (!frame.shown.marks || data.trained_length <= data.from || data.trained_length >= data.to) return;
  const float s = frame.scale, dash = 5 * s;
  const float x = plot.all.x + plot.all.w * static_cast<float>(data.trained_length - data.from) / static_cast<float>(data.to - data.from);
  if (x < plot.x || x > plot.right()) return;
  for (float y = plot.y; y < plot.bottom(); y += 2 * dash)
    canvas.line({x, y}, {x, std::min(y + dash, plot.bottom())}, frame.theme.accent, 1.5f * s);
  if (named)
    fitted_text(canvas, {x + 4 * s, plot.y + 8 * s}, Views::tr("training length"), label(frame, kSmallType, frame.theme.ink),
                plot.right() - x - 4 * s);
}

void draw_lane(const TimelineData& data, std::size_t index, Canvas& canvas, const Plot& plot, const Frame& frame) {
  const Lane& lane = data.lanes[index];
  if (lane.missing) {
    fitted_text(canvas, {plot.x, plot.y + plot.h / 2}, lane.missing.sentence(), label(frame, kSmallType, frame.theme.faint), plot.w);
    return;
  }
  const ValueAxis axis = axis_of(lane);
  draw_value_axis(canvas, plot, axis, "", frame);
  for (const LaneCurve& curve : lane.curves)
    draw_curve(canvas, plot, axis, curve.values, {curve_color(curve, frame.theme), curve.identity}, 1.5f * frame.scale, frame);
  draw_trained_length(data, canvas, plot, frame, index == 0);
  draw_cursor_line(canvas, plot, data.tokens, frame);
  hit_plot(canvas, plot, {{static_cast<std::int64_t>(index), Hit::all, 0}, 1, data.tokens.count()});
}

class TimelineView : public View {
 public:
  std::vector<Question> questions(const Snapshot& snapshot, const Cursor& cursor) const override {
    if (!layer_of(snapshot) || !snapshot.run) return {};
    const TokenWindow window = timeline_window(cursor.token, std::ssize(snapshot.run->tokens), wanted_);
    return {layer_question(snapshot, window), loss_question(window)};
  }
  std::optional<Knob> knob() const override {
    return Knob{.name = QT_TRANSLATE_NOOP("Views", "tokens"),
                .help = QT_TRANSLATE_NOOP("Views", "How many tokens are shown at once"),
                .low = static_cast<double>(kLeastTokens),
                .high = static_cast<double>(kMostTokens),
                .value = static_cast<double>(wanted_),
                .logarithmic = true};
  }
  void turn(double value) override { wanted_ = std::clamp(static_cast<std::int64_t>(std::llround(value)), kLeastTokens, kMostTokens); }

  void build(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings) override {
    data_ = build_timeline(snapshot, cursor, findings, wanted_);
  }
  void draw(Canvas& canvas, Rect area, const Frame& frame) const override { statescope::draw(data_, canvas, area, frame); }

  std::vector<Sheet> sheets() const override { return statescope::sheets(data_); }
  std::string sentence() const override {
    if (data_.message) return data_.message.sentence();
    return Views::tr("Layer {}, tokens {} to {} of {}.", data_.layer, data_.from, data_.to - 1, data_.run);
  }

 private:
  std::int64_t wanted_ = kUsualTokens;
  TimelineData data_;
};

}  // namespace

TokenWindow timeline_window(std::int64_t token, std::int64_t tokens, std::int64_t wanted) {
  if (tokens <= wanted) return {0, tokens};
  const std::int64_t half = std::max<std::int64_t>(wanted / 2, 1);
  const std::int64_t from = std::clamp<std::int64_t>((token / half) * half - half / 2, 0, tokens - wanted);
  return {from, from + wanted};
}

TimelineData build_timeline(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, std::int64_t wanted) {
  TimelineData data;
  const LayerInfo* layer = layer_of(snapshot);
  if (!layer || snapshot.run->tokens.empty()) {
    data.message = {Views::tr("Nothing to read yet"), Views::tr("It appears as soon as a model has read its first tokens.")};
    return data;
  }
  data.layer = snapshot.layer;
  data.trained_length = snapshot.run->model.trained_length;
  data.run = std::ssize(snapshot.run->tokens);
  const TokenWindow window = timeline_window(cursor.token, data.run, wanted);
  data.from = window.from;
  data.to = window.to;
  data.tokens = {snapshot.run, token_range(window.from, window.to), cursor.token};
  const LayerSeriesQuestion of_layer = layer_question(snapshot, window);
  const LossSeriesQuestion of_loss = loss_question(window);
  if (const LayerSeries* series = findings.get(of_layer))
    add_layer_lanes(data, *layer, *series);
  else
    data.lanes.push_back({.name = "‖S‖", .missing = waiting(findings, of_layer, Views::tr("Layer {}'s lanes", snapshot.layer))});
  if (const LossSeries* series = findings.get(of_loss))
    add_loss_lane(data, *series);
  else
    data.lanes.push_back({.name = Views::tr("loss"), .missing = waiting(findings, of_loss, Views::tr("The loss"))});
  return data;
}

void draw(const TimelineData& data, Canvas& canvas, Rect area, const Frame& frame) {
  if (data.message) {
    draw_message(canvas, area, frame, data.message.headline, data.message.detail);
    return;
  }
  const float s = frame.scale;
  const Rect inner = inset(area, 8 * s);
  const bool below = !frame.shown.cursor &&
                     std::ranges::any_of(data.lanes, [&](const Lane& lane) { return needs_two_lines(lane, canvas, inner.w, frame); });
  // On paper the upper number of an axis stands at its line.
  const float title = (frame.shown.cursor ? 18 : below ? 24 + kLegendLine : 24) * s;
  const float left = inner.x + value_axis_width(frame);
  const bool named = inner.h > token_axis_height(frame) + 2 * (title + 24 * s);
  const float bottom = inner.bottom() - (named ? token_axis_height(frame) : 0);
  // As many lanes as have room for a line of words and a curve; the first ones.
  const auto room = static_cast<std::size_t>(std::max(1.0f, std::floor((bottom - inner.y) / (title + 30 * s))));
  const std::size_t shown = std::min(room, data.lanes.size());
  const float each = (bottom - inner.y) / static_cast<float>(shown);
  if (shown < data.lanes.size() || !named || inner.right() - left < 40 * s) canvas.left_out();
  if (inner.right() - left < 40 * s) return;
  Plot plot;
  for (std::size_t i = 0; i < shown; ++i) {
    const float y = inner.y + each * static_cast<float>(i);
    const bool more = i + 1 == shown && shown < data.lanes.size();
    Lane titled{.name = data.lanes[i].name, .title = data.lanes[i].title, .curves = data.lanes[i].curves};
    if (more) titled.title = Views::tr("{}; {} more lanes where there is more room", titled.title, data.lanes.size() - shown);
    draw_lane_title(titled, canvas, {inner.x, y, inner.w, 18 * s}, below, frame);
    plot = zoomed(canvas, {left, y + title, inner.right() - left, each - title - 6 * s}, true, false, frame);
    draw_lane(data, i, canvas, plot, frame);
  }
  if (named) draw_token_axis(canvas, plot, data.tokens, frame);
}

std::unique_ptr<View> make_timeline() { return std::make_unique<TimelineView>(); }

}  // namespace statescope

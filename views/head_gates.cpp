#include "views/head_gates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "views/arrays.h"
#include "views/colormaps.h"
#include "views/parts.h"
#include "views/words.h"

namespace statescope {
namespace {

// Hit ids: cells of the map from 0 on, then the other places.
constexpr std::int64_t kHeadIds = std::int64_t{1} << 40, kLaneIds = std::int64_t{1} << 41, kCurveIds = std::int64_t{1} << 42;
constexpr std::int64_t kTableRows = 256;

Color head_color(std::int64_t head, const Theme& theme) { return identity_color(head + 1, theme); }
Color q_color(const Theme& theme) { return identity_color(1, theme); }
Color k_color(const Theme& theme) { return identity_color(3, theme); }
Color flow_color(const Theme& theme) { return identity_color(2, theme); }

TokenWindow window_of(const Snapshot& snapshot, const Cursor& cursor) {
  const auto tokens = static_cast<std::int64_t>(snapshot.run->tokens.size());
  return window_around(std::clamp<std::int64_t>(cursor.token, 0, tokens - 1), tokens);
}

SharpenedGatesQuestion sharpened_of(const Snapshot& snapshot, const Cursor& cursor, double lambda) {
  const TokenWindow window = window_of(snapshot, cursor);
  return {snapshot.layer, window.from, window.to, lambda};
}

std::vector<float> part(const std::vector<float>& values, std::int64_t from, std::int64_t to) {
  return {values.begin() + from, values.begin() + to};
}

/// [H, n] of gates [T, H] at the tokens [from, to)
std::vector<float> by_head(const std::vector<float>& gates, std::int64_t heads, TokenWindow window) {
  std::vector<float> result;
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t t = window.from; t < window.to; ++t) result.push_back(gates[static_cast<std::size_t>(t * heads + h)]);
  }
  return result;
}

GateNow gate_at(const std::vector<float>& gates, const std::vector<float>& entropy, const std::vector<std::int32_t>& winner,
                const std::vector<float>& margin, std::int64_t heads, std::int64_t token) {
  const auto t = static_cast<std::size_t>(token);
  return {part(gates, token * heads, (token + 1) * heads), {}, entropy[t], margin[t], winner[t]};
}

/// C_{t,s} of the window, NaN above the diagonal: a token reads nothing from later ones.
std::vector<float> causal(const std::vector<float>& flow, std::int64_t n) {
  std::vector<float> map = flow;
  for (std::int64_t t = 0; t < n; ++t) {
    for (std::int64_t s = t + 1; s < n; ++s) map[static_cast<std::size_t>(t * n + s)] = std::numeric_limits<float>::quiet_NaN();
  }
  return map;
}

void fill_map(HeadGatesData& data, const std::vector<float>& flow, const RangeChoice& range) {
  const float high = static_cast<float>(axis_over(flow).high);
  std::vector<float> map = causal(flow, data.tokens.count());
  data.coloring = colored(map, {0, high}, {{0, "0"}, {high / 2, number(high / 2, 2)}, {high, number(high, 2)}}, range);
  data.map = Pyramid(std::move(map), data.tokens.count(), data.tokens.count());
}

void fill_probe(HeadGatesData& data, const SharpenedGates& sharp) {
  const std::int64_t m = std::ssize(sharp.lambda), place = data.place();
  if (place < 0) return;
  if (data.lambda != 1) {
    data.q.probe = part(sharp.gate_q, place * data.heads, (place + 1) * data.heads);
    data.k.probe = part(sharp.gate_k, place * data.heads, (place + 1) * data.heads);
  }
  data.lambdas = sharp.lambda;
  data.curve_q = part(sharp.curve_q, place * m, (place + 1) * m);
  data.curve_k = part(sharp.curve_k, place * m, (place + 1) * m);
  data.curve_flow = part(sharp.curve_flow, place * m, (place + 1) * m);
}

/// The answer in a sentence.
std::string summary(const HeadGatesData& data) {
  const std::string place = Views::tr("layer {}", data.layer);
  if (data.token < 0) return sentence_at(Views::tr("no token has been read yet"), place);
  return sentence_at(Views::tr("head {} wins the write, head {} the read; C(t,t) = {}", data.k.winner, data.q.winner, number(data.flow, 3)),
                     fmt::format("{}, {}", token_words(*data.tokens.run, data.token), place));
}

std::string lambda_words(double lambda) { return Views::tr("λ = {:.3g}, a probe that changes nothing in the run", lambda); }

/// One drawing: where things stand.
struct Picture {
  const HeadGatesData& data;
  Canvas& canvas;
  const Frame& frame;
  float s;
  Rect title, body;

  Picture(const HeadGatesData& data_, Canvas& canvas_, Rect area, const Frame& frame_)
      : data(data_), canvas(canvas_), frame(frame_), s(frame_.scale) {
    const Rect inner = inset(area, 8 * s);
    title = {inner.x, inner.y, inner.w, std::min(caption_height(frame), inner.h)};
    body = {inner.x, title.bottom() + 2 * s, inner.w, std::max(0.0f, inner.bottom() - title.bottom() - 2 * s)};
  }
};

/// G as a bar from the middle outwards, its number behind it; at another λ the probe as an outline over it.
void draw_gate_bar(const Picture& picture, Rect track, const GateNow& gate, std::int64_t head, bool leftwards, float number_width) {
  const auto i = static_cast<std::size_t>(head);
  const Theme& theme = picture.frame.theme;
  const float s = picture.s, room = track.w - number_width;
  const bool wins = gate.winner == head;
  const auto bar = [&](float share) {
    const float w = room * std::clamp(share, 0.0f, 1.0f);
    return Rect{leftwards ? track.right() - w : track.x, track.y, w, track.h};
  };
  const Color color = head_color(head, theme);
  picture.canvas.fill_rect(bar(gate.gate[i]), faded(color, wins ? 1 : 0.45f), 2 * s);
  float end = bar(gate.gate[i]).w;
  if (!gate.probe.empty()) {
    const Rect outline = bar(gate.probe[i]);
    picture.canvas.stroke_rect(outline, theme.ink, 2 * s, 2 * s);
    end = std::max(end, outline.w);
  }
  const Align align = leftwards ? Align::right : Align::left;
  const float x = leftwards ? track.right() - end - 6 * s : track.x + end + 6 * s;
  const TextStyle style = value(picture.frame, kBodyType, wins ? theme.ink : theme.faint, align, wins);
  const std::string text = wins ? Views::tr("{:.3f} wins", gate.gate[i]) : fmt::format("{:.3f}", gate.gate[i]);
  fitted_text(picture.canvas, {x, track.y + track.h / 2}, text, style, number_width - 6 * s);
}

/// Every head's read gate leftwards, its write gate rightwards.
void draw_contest(const Picture& picture, Rect area) {
  const HeadGatesData& data = picture.data;
  if (data.token < 0) return;
  const Theme& theme = picture.frame.theme;
  const float s = picture.s, row_least = 18 * s, header = 20 * s, note = 18 * s;
  const TextStyle name = label(picture.frame, kBodyType, theme.ink, Align::center, true);
  const float middle = picture.canvas.text_width(Views::tr("head {}", data.heads), name) + 10 * s;
  const float number_width =
      picture.canvas.text_width(Views::tr("{:.3f} wins", 0.0f), value(picture.frame, kBodyType, {}, Align::left, true)) + 8 * s;
  const float side = (area.w - middle) / 2;
  const bool notes = area.h > header + 2 * row_least + 2 * note;
  const float room = area.h - header - (notes ? 2 * note : 0);
  if (side < number_width + 12 * s || room < row_least) return;
  const std::int64_t fit = std::max<std::int64_t>(1, static_cast<std::int64_t>(room / row_least));
  std::vector<bool> important;
  for (std::int64_t h = 0; h < data.heads; ++h) important.push_back(h == data.q.winner || h == data.k.winner || h == data.chosen);
  const std::vector<std::int64_t> shown = choose_shown(data.heads, fit, important);
  const float each = std::min(room / static_cast<float>(shown.size()), 80 * s);

  const TextStyle head_line = label(picture.frame, kBodyType, theme.ink, Align::right);
  const float top = area.y + header;
  const std::string reads =
      std::ssize(shown) < data.heads ? Views::tr("reads, G^Q ({} of {} heads)", shown.size(), data.heads) : Views::tr("reads, G^Q");
  fitted_text(picture.canvas, {area.x + side, area.y + header / 2}, reads, head_line, side);
  TextStyle write_line = head_line;
  write_line.align = Align::left;
  fitted_text(picture.canvas, {area.right() - side, area.y + header / 2}, Views::tr("writes, G^K"), write_line, side);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const std::int64_t h = shown[i];
    const float y = top + each * static_cast<float>(i), gap = 0.14f * each;
    const Rect left{area.x, y + gap, side, each - 2 * gap}, right{area.right() - side, y + gap, side, each - 2 * gap};
    if (h == data.chosen) picture.canvas.fill_rect({left.right(), y, middle, each}, faded(theme.accent, 0.15f), 3 * s);
    picture.canvas.text({area.x + side + middle / 2, y + each / 2}, Views::tr("head {}", h), name);
    draw_gate_bar(picture, left, data.q, h, true, number_width);
    draw_gate_bar(picture, right, data.k, h, false, number_width);
    picture.canvas.hit({area.x, y, area.w, each}, {kHeadIds + h});
  }
  if (!notes) return;
  const auto note_of = [](const GateNow& gate) { return Views::tr("margin {:.2f}, entropy {:.2f}", gate.margin, gate.entropy); };
  const TextStyle faint = label(picture.frame, kSmallType, theme.faint, Align::right);
  const float y = top + each * static_cast<float>(shown.size()) + note / 2;
  fitted_text(picture.canvas, {area.x + area.w / 2 - 8 * s, y}, note_of(data.q), faint, area.w / 2 - 8 * s);
  TextStyle right = faint;
  right.align = Align::left;
  fitted_text(picture.canvas, {area.x + area.w / 2 + 8 * s, y}, note_of(data.k), right, area.w / 2 - 8 * s);
  std::string last = data.lambda != 1 ? (data.q.probe.empty() ? Views::tr("Outlines appear when λ has been worked out.")
                                                              : Views::tr("Outlined: {}", lambda_words(data.lambda)))
                                      : "";
  if (last.empty() && data.effective)
    last = Views::tr("Were G^Q 1, the layer's output would change by {} % of itself.",
                     *data.effective < 0.1f ? number(100 * *data.effective, 2) : fmt::format("{:.0f}", 100 * *data.effective));
  fitted_text(picture.canvas, {area.x + area.w / 2, y + note}, last, label(picture.frame, kSmallType, theme.ink, Align::center), area.w);
}

/// Entropies and C_{t,t} of the token's gates against λ.
void draw_sharpness(const Picture& picture, Rect area) {
  const HeadGatesData& data = picture.data;
  const Theme& theme = picture.frame.theme;
  const float s = picture.s;
  const Rect plot{area.x + value_axis_width(picture.frame), area.y + 22 * s, area.w - value_axis_width(picture.frame) - 4 * s,
                  area.h - 22 * s - 36 * s};
  if (plot.w < 60 * s || plot.h < 30 * s) return;
  draw_value_axis(picture.canvas, plot, {0, 1}, "", picture.frame);
  const LegendEntry legend[] = {{q_color(theme), Views::tr("entropy Q")}, {k_color(theme), "K"}, {flow_color(theme), "C(t,t)"}};
  draw_legend(picture.canvas, {area.x, area.y, area.w, 18 * s}, legend, picture.frame);
  const ValueAxis lambda{0.25, 16, true};
  const auto x_of = [&](double value) { return plot.x + plot.w * static_cast<float>(lambda.share(value)); };
  const TextStyle tick = value(picture.frame, kSmallType, theme.faint, Align::center);
  for (const auto& [at, text] : {std::pair{0.25, "1/4"}, {1.0, "1"}, {4.0, "4"}, {16.0, "16"}}) {
    const float half = picture.canvas.text_width(text, tick) / 2;
    picture.canvas.text({std::clamp(x_of(at), plot.x + half, plot.right() - half), plot.bottom() + 10 * s}, text, tick);
  }
  fitted_text(picture.canvas, {area.x + area.w / 2, plot.bottom() + 25 * s}, Views::tr("λ: a probe, the run stays as it is"),
              label(picture.frame, kSmallType, theme.faint, Align::center), area.w);
  const auto draw_line = [&](const std::vector<float>& values, Color color) {
    std::vector<Point> points;
    for (std::size_t i = 0; i < values.size(); ++i) points.push_back({x_of(data.lambdas[i]), height_of(plot, {0, 1}, values[i])});
    if (points.size() > 1) picture.canvas.path(points, color, 2.5f * s);
    for (const Point& p : points) picture.canvas.fill_rect({p.x - 3 * s, p.y - 3 * s, 6 * s, 6 * s}, color, 3 * s);
  };
  draw_line(data.curve_q, q_color(theme));
  draw_line(data.curve_k, k_color(theme));
  draw_line(data.curve_flow, flow_color(theme));
  const float x = x_of(data.lambda);
  picture.canvas.line({x, plot.y}, {x, plot.bottom()}, theme.accent, 2 * s);
  picture.canvas.hit(plot, {kCurveIds, 1, std::max<std::int64_t>(1, std::ssize(data.lambdas))});
}

/// Under a lane: which head wins, as stripes of its colour with its number where it fits.
void draw_winners(const Picture& picture, Rect strip, const std::vector<std::int32_t>& winners) {
  const auto n = static_cast<std::int64_t>(winners.size());
  const float each = strip.w / static_cast<float>(n);
  for (std::int64_t begin = 0, end = 0; begin < n; begin = end) {
    const std::int32_t winner = winners[static_cast<std::size_t>(begin)];
    while (end < n && winners[static_cast<std::size_t>(end)] == winner) ++end;
    const Rect rect{strip.x + each * static_cast<float>(begin), strip.y, each * static_cast<float>(end - begin), strip.h};
    const Color color = head_color(winner, picture.frame.theme);
    picture.canvas.fill_rect(rect, color);
    const TextStyle style = value(picture.frame, kSmallType, readable_on(color), Align::center, true);
    const std::string text = std::to_string(winner);
    if (picture.canvas.text_width(text, style) + 4 * picture.s < rect.w && strip.h >= kSmallType * picture.s)
      picture.canvas.text({rect.x + rect.w / 2, rect.y + rect.h / 2}, text, style);
  }
}

struct Lane {
  std::string name;
  const std::vector<float>* gates = nullptr;           // [H, n]; null: the summary
  const std::vector<std::int32_t>* winners = nullptr;  // [n]
};
std::array<Lane, 3> lanes_of(const HeadGatesData& data) {
  return {{{Views::tr("write gate G^K, winner beneath"), &data.gate_k, &data.winner_k},
           {Views::tr("read gate G^Q, winner beneath"), &data.gate_q, &data.winner_q},
           {"", nullptr, nullptr}}};
}

void draw_lane(const Picture& picture, const Lane& lane, Rect plot) {
  const HeadGatesData& data = picture.data;
  const Theme& theme = picture.frame.theme;
  const float s = picture.s;
  const auto n = static_cast<std::size_t>(data.tokens.count());
  const Rect above{plot.x, plot.y - 17 * s, plot.w, 17 * s};
  if (!lane.gates) {
    draw_value_axis(picture.canvas, plot, {0, 1}, "", picture.frame);
    const LegendEntry legend[] = {{q_color(theme), Views::tr("entropy Q")}, {k_color(theme), "K"}, {flow_color(theme), "C(t,t)"}};
    draw_legend(picture.canvas, above, legend, picture.frame);
    draw_curve(picture.canvas, plot, {0, 1}, data.entropy_q, q_color(theme), 2 * s);
    draw_curve(picture.canvas, plot, {0, 1}, data.entropy_k, k_color(theme), 2 * s);
    draw_curve(picture.canvas, plot, {0, 1}, data.own_flow, flow_color(theme), 2 * s);
    return;
  }
  Rect strip{plot.x, plot.bottom() - 13 * s, plot.w, 13 * s};
  plot.h -= 15 * s;
  draw_value_axis(picture.canvas, plot, {0, 1}, "", picture.frame);
  std::vector<LegendEntry> legend;
  for (std::int64_t h = 0; h < data.heads; ++h) legend.push_back({head_color(h, theme), std::to_string(h)});
  const TextStyle style = label(picture.frame, kSmallType, theme.faint);
  fitted_text(picture.canvas, {above.x, above.y + above.h / 2}, lane.name, style, above.w);
  const float x = above.x + picture.canvas.text_width(lane.name, style) + 14 * s;
  if (x < above.right()) draw_legend(picture.canvas, {x, above.y, above.right() - x, above.h}, legend, picture.frame);
  for (std::int64_t h = 0; h < data.heads; ++h) {
    const auto values = std::span(*lane.gates).subspan(static_cast<std::size_t>(h) * n, n);
    draw_curve(picture.canvas, plot, {0, 1}, values, head_color(h, theme), (h == data.chosen ? 2.5f : 1.5f) * s);
  }
  draw_winners(picture, strip, *lane.winners);
}

void draw_over_time(const Picture& picture) {
  const HeadGatesData& data = picture.data;
  const float s = picture.s, name = 18 * s, least = name + 44 * s;
  const Rect& body = picture.body;
  const float left = body.x + value_axis_width(picture.frame), width = body.right() - left;
  const bool axis = body.h - token_axis_height(picture.frame) > least;
  const float room = body.h - (axis ? token_axis_height(picture.frame) : 0);
  const auto count = std::min<std::size_t>(3, static_cast<std::size_t>(room / least));
  if (width < 60 * s || count == 0) return;
  const float each = room / static_cast<float>(count);
  Rect plot;
  for (std::size_t i = 0; i < count; ++i) {
    plot = {left, body.y + each * static_cast<float>(i) + name, width, each - name};
    draw_lane(picture, lanes_of(data)[i], plot);
    draw_cursor_line(picture.canvas, plot, data.tokens, picture.frame);
    picture.canvas.hit(plot, {kLaneIds, 1, data.tokens.count()});
  }
  if (axis) draw_token_axis(picture.canvas, plot, data.tokens, picture.frame);
}

void draw_flow(const Picture& picture) {
  const HeadGatesData& data = picture.data;
  const float s = picture.s;
  const Rect& body = picture.body;
  const float left = token_side_width(picture.frame), bottom = token_axis_height(picture.frame), bar = 64 * s, note = 18 * s;
  const float side = std::min(body.w - left - bar, body.h - bottom - note);
  if (side < 40 * s || data.map.rows() == 0) return;
  const Rect plot{body.x + left + std::max(0.0f, (body.w - left - bar - side) / 2), body.y + note, side, side};
  draw_matrix(picture.canvas, plot, data.map, data.coloring->scale(), 0);
  // Above the diagonal nothing can be read: the ground shows.
  const Point later[] = {{plot.x - 1, plot.y - 1}, {plot.right() + 1, plot.y - 1}, {plot.right() + 1, plot.bottom() + 1}};
  picture.canvas.path(later, picture.frame.theme.panel, 0, true);
  std::string text =
      data.lambda == 1 ? Views::tr("row t reads from column s: C(t,s)") : Views::tr("C(t,s) at {}", lambda_words(data.lambda));
  if (const std::string gathered = gathered_text(picture.canvas, data.map, plot); !gathered.empty()) text += "; " + gathered;
  fitted_text(picture.canvas, {body.x, body.y + note / 2}, text, label(picture.frame, kSmallType, picture.frame.theme.faint), body.w);
  draw_token_axis(picture.canvas, plot, data.tokens, picture.frame);
  draw_token_side(picture.canvas, plot, data.tokens, picture.frame);
  draw_color_bar(picture.canvas, {plot.right() + 12 * s, plot.y, 12 * s, plot.h}, data.coloring->scale(), data.coloring->marks,
                 picture.frame);
}

class HeadGatesView : public View {
 public:
  std::vector<Question> questions(const Snapshot& snapshot, const Cursor& cursor) const override {
    if (!layer_of(snapshot)) return {};
    return {HeadGatesQuestion{snapshot.layer}, sharpened_of(snapshot, cursor, lambda_)};
  }
  std::span<const std::string_view> modes() const override {
    static constexpr std::array<std::string_view, 4> names = {QT_TRANSLATE_NOOP("Views", "Contest"),
                                                              QT_TRANSLATE_NOOP("Views", "Over time"), QT_TRANSLATE_NOOP("Views", "Flow"),
                                                              QT_TRANSLATE_NOOP("Views", "Sharpness")};
    return names;
  }
  std::optional<Knob> knob() const override {
    return Knob{
        "λ",
        QT_TRANSLATE_NOOP("Views", "Multiplies the logits of both gates (SLA Thm 4.2, 4.3): a probe, which changes nothing in the run."),
        0.25,
        16,
        lambda_,
        true};
  }
  /// A slider has places around 1 but none at it.
  void turn(double value) override { lambda_ = std::abs(std::log2(value)) < 0.02 ? 1 : value; }
  void build(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings) override {
    data_ = build_head_gates(snapshot, cursor, findings, static_cast<GateMode>(mode()), lambda_, range());
  }
  std::optional<Shading> shading() const override { return shading_of(data_.coloring); }
  void draw(Canvas& canvas, Rect area, const Frame& frame) const override { statescope::draw(data_, canvas, area, frame); }

  std::vector<Array> arrays() const override { return statescope::arrays(data_); }
  Table table() const override {
    if (data_.message) return {};
    return data_.mode == GateMode::over_time ? series_table() : data_.mode == GateMode::sharpness ? sharpness_table() : head_table();
  }
  std::string describe() const override { return data_.message ? data_.message.sentence() : summary(data_) + "."; }

  std::string tooltip(std::int64_t hit_id) const override {
    if (data_.message || hit_id < 0) return {};
    if (hit_id >= kCurveIds) return hit_id - kCurveIds <= std::ssize(data_.lambdas) ? curve_tooltip(hit_id - kCurveIds) : "";
    if (hit_id >= kLaneIds) return hit_id - kLaneIds < data_.tokens.count() ? series_tooltip(hit_id - kLaneIds) : "";
    if (hit_id >= kHeadIds) return hit_id - kHeadIds < data_.heads ? head_tooltip(hit_id - kHeadIds) : "";
    const std::int64_t n = data_.map.columns();
    return hit_id < n * n ? flow_tooltip(hit_id / n, hit_id % n) : "";
  }
  CursorMove on_hit(std::int64_t hit_id) const override {
    if (data_.message || hit_id < 0 || hit_id >= kCurveIds) return {};
    if (hit_id >= kLaneIds)
      return hit_id - kLaneIds < data_.tokens.count() ? CursorMove{.token = token_at(hit_id - kLaneIds)} : CursorMove{};
    if (hit_id >= kHeadIds) return hit_id - kHeadIds < data_.heads ? CursorMove{.head = hit_id - kHeadIds} : CursorMove{};
    const std::int64_t n = data_.map.columns();
    return hit_id < n * n ? CursorMove{.token = token_at(hit_id / n)} : CursorMove{};
  }

 private:
  std::int64_t token_at(std::int64_t place) const { return data_.tokens.tokens[static_cast<std::size_t>(place)]; }

  std::string head_tooltip(std::int64_t head) const {
    const auto h = static_cast<std::size_t>(head);
    std::string text =
        Views::tr("head {} at {}\nG^Q = {}, reads\nG^K = {}, writes\nsoftmax over {} heads (SLA eq. 4)", head,
                  token_words(*data_.tokens.run, data_.token), number(data_.q.gate[h], 9), number(data_.k.gate[h], 9), data_.heads);
    if (!data_.q.probe.empty())
      text += "\n" + Views::tr("at λ = {:.3g}: G^Q = {}, G^K = {}, a probe that changes nothing in the run", data_.lambda,
                               number(data_.q.probe[h], 9), number(data_.k.probe[h], 9));
    if (data_.effective)
      text += "\n" +
              Views::tr("read_gate_effective = {}: relative change of the layer's output if G^Q were 1 (A13)", number(*data_.effective, 9));
    return fmt::format("{}\n{}", text, accuracy_words(HeadContest::accuracy));
  }
  std::string series_tooltip(std::int64_t place) const {
    const auto i = static_cast<std::size_t>(place);
    return Views::tr(
        "{}\nwins the write: head {}, entropy of G^K {}\nwins the read: head {}, entropy of G^Q {}\nC(t,t) = {} = Σ_h G^Q G^K\n{}",
        token_words(*data_.tokens.run, token_at(place)), data_.winner_k[i], number(data_.entropy_k[i], 9), data_.winner_q[i],
        number(data_.entropy_q[i], 9), number(data_.own_flow[i], 9), accuracy_words(HeadContest::accuracy));
  }
  std::string flow_tooltip(std::int64_t row, std::int64_t column) const {
    const std::string reader = token_words(*data_.tokens.run, token_at(row)), source = token_words(*data_.tokens.run, token_at(column));
    if (column > row) return Views::tr("{} reads from {}: nothing, it comes later", reader, source);
    std::string text =
        Views::tr("{} reads from {}\nC = {} = Σ_h G^Q_h,t G^K_h,s (SLA Thm 4.3)", reader, source, number(data_.map.at(row, column), 9));
    if (data_.lambda != 1) text += "\n" + Views::tr("at {}", lambda_words(data_.lambda));
    return fmt::format("{}\n{}", text, accuracy_words(SharpenedGates::accuracy));
  }
  std::string curve_tooltip(std::int64_t index) const {
    if (index >= std::ssize(data_.lambdas)) return Views::tr("The curves have not been worked out yet");
    const auto i = static_cast<std::size_t>(index);
    const std::string entropies = Views::tr("λ = {:g}\nentropy of G^Q {} (SLA eq. 8: never grows with λ)\nentropy of G^K {}",
                                            data_.lambdas[i], number(data_.curve_q[i], 9), number(data_.curve_k[i], 9));
    const std::string own = number(data_.curve_flow[i], 9);
    const std::string flow = data_.q.winner == data_.k.winner
                                 ? Views::tr("C(t,t) = {} (SLA eq. 9: tends to 1, for one head wins both)", own)
                                 : Views::tr("C(t,t) = {} (SLA eq. 9: tends to 0, for two heads win)", own);
    return joined({entropies, flow, accuracy_words(SharpenedGates::accuracy)}, "\n");
  }
  Table head_table() const {
    Table table{{Views::tr("head"), Views::tr("G^Q, reads"), Views::tr("G^K, writes"), Views::tr("at λ: G^Q"), Views::tr("at λ: G^K")}, {}};
    for (std::size_t h = 0; data_.token >= 0 && h < static_cast<std::size_t>(data_.heads); ++h) {
      table.rows.push_back({std::to_string(h), number(data_.q.gate[h], 9), number(data_.k.gate[h], 9),
                            data_.q.probe.empty() ? "" : number(data_.q.probe[h], 9),
                            data_.k.probe.empty() ? "" : number(data_.k.probe[h], 9)});
    }
    return table;
  }
  Table series_table() const {
    Table table{{Views::tr("token"), Views::tr("text"), Views::tr("wins the write"), Views::tr("wins the read"),
                 Views::tr("entropy of G^K"), Views::tr("entropy of G^Q"), "C(t,t)"},
                {}};
    const std::int64_t first = std::max<std::int64_t>(0, data_.place() - kTableRows / 2);
    for (std::int64_t place = first; place < std::min(data_.tokens.count(), first + kTableRows); ++place) {
      const auto i = static_cast<std::size_t>(place);
      table.rows.push_back({std::to_string(token_at(place)), visible_token(*data_.tokens.run, token_at(place)),
                            std::to_string(data_.winner_k[i]), std::to_string(data_.winner_q[i]), number(data_.entropy_k[i], 9),
                            number(data_.entropy_q[i], 9), number(data_.own_flow[i], 9)});
    }
    return table;
  }
  Table sharpness_table() const {
    Table table{{"λ", Views::tr("entropy of G^Q"), Views::tr("entropy of G^K"), "C(t,t)"}, {}};
    for (std::size_t i = 0; i < data_.lambdas.size(); ++i) {
      table.rows.push_back(
          {number(data_.lambdas[i], 4), number(data_.curve_q[i], 9), number(data_.curve_k[i], 9), number(data_.curve_flow[i], 9)});
    }
    return table;
  }

  HeadGatesData data_;
  double lambda_ = 1;
};

}  // namespace

HeadGatesData build_head_gates(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, GateMode mode, double lambda,
                               const RangeChoice& range) {
  HeadGatesData data;
  data.mode = mode;
  data.lambda = lambda;
  const LayerInfo* layer = layer_of(snapshot);
  if (!layer) {
    data.message = without_memory(snapshot);
    return data;
  }
  data.layer = snapshot.layer;
  const HeadContest* contest = findings.get(HeadGatesQuestion{snapshot.layer});
  if (!contest) {
    data.message = waiting(findings, HeadGatesQuestion{snapshot.layer}, Views::tr("The contest of the heads of layer {}", snapshot.layer));
    return data;
  }
  if (contest->heads == 0) {
    data.message = {Views::tr("The heads of layer {} ({}) do not compete", snapshot.layer, layer->mixer),
                    Views::tr("Every head writes and reads every token in full. SLA models have gates over their heads.")};
    return data;
  }
  const TokenWindow window = window_of(snapshot, cursor);
  const auto tokens = static_cast<std::int64_t>(snapshot.run->tokens.size());
  data.heads = contest->heads;
  data.chosen = std::clamp<std::int64_t>(cursor.head, 0, data.heads - 1);
  data.token = std::clamp<std::int64_t>(cursor.token, 0, tokens - 1) - (cursor.progress < 1 ? 1 : 0);
  data.tokens = {snapshot.run, token_range(window.from, window.to), data.token};
  data.gate_q = by_head(contest->gate_q, data.heads, window);
  data.gate_k = by_head(contest->gate_k, data.heads, window);
  data.entropy_q = part(contest->entropy_q, window.from, window.to);
  data.entropy_k = part(contest->entropy_k, window.from, window.to);
  data.own_flow = part(contest->flow, window.from, window.to);
  data.winner_q = {contest->winner_q.begin() + window.from, contest->winner_q.begin() + window.to};
  data.winner_k = {contest->winner_k.begin() + window.from, contest->winner_k.begin() + window.to};
  if (data.token >= 0) {
    data.q = gate_at(contest->gate_q, contest->entropy_q, contest->winner_q, contest->margin_q, data.heads, data.token);
    data.k = gate_at(contest->gate_k, contest->entropy_k, contest->winner_k, contest->margin_k, data.heads, data.token);
    data.flow = contest->flow[static_cast<std::size_t>(data.token)];
    if (!contest->read_gate_effective.empty()) data.effective = contest->read_gate_effective[static_cast<std::size_t>(data.token)];
  }
  const SharpenedGatesQuestion probe = sharpened_of(snapshot, cursor, lambda);
  if (const SharpenedGates* sharp = findings.get(probe)) {
    fill_probe(data, *sharp);
    if (mode == GateMode::flow) fill_map(data, sharp->flow, range);
  } else if (mode == GateMode::flow || mode == GateMode::sharpness) {
    data.message = waiting(findings, probe, Views::tr("What passes between the tokens of layer {}", snapshot.layer));
  }
  return data;
}

void draw(const HeadGatesData& data, Canvas& canvas, Rect area, const Frame& frame) {
  if (data.message) {
    draw_message(canvas, area, frame, data.message.headline, data.message.detail);
    return;
  }
  const Picture picture(data, canvas, area, frame);
  canvas.push_clip(area);
  draw_caption(canvas, picture.title, summary(data), kRecomputed, frame);
  const bool wide = picture.body.w > 560 * frame.scale && picture.body.h > 120 * frame.scale;
  Rect left = picture.body, right = picture.body;
  left.w = wide ? 0.66f * picture.body.w - 12 * frame.scale : picture.body.w;
  right.x = picture.body.x + 0.66f * picture.body.w;
  right.w = picture.body.right() - right.x;
  switch (data.mode) {
    case GateMode::contest:
      draw_contest(picture, left);
      if (wide) draw_sharpness(picture, right);
      break;
    case GateMode::over_time:
      draw_over_time(picture);
      break;
    case GateMode::flow:
      draw_flow(picture);
      break;
    case GateMode::sharpness:
      draw_sharpness(picture, picture.body);
      break;
  }
  canvas.pop_clip();
}

std::unique_ptr<View> make_head_gates() { return std::make_unique<HeadGatesView>(); }

}  // namespace statescope

// How the contest of the heads is drawn: bars of both gates, lanes over time, the map of what passes, curves against λ.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "views/colormaps.h"
#include "views/head_gates.h"
#include "views/hits.h"
#include "views/parts.h"
#include "views/sheets.h"
#include "views/words.h"

namespace statescope {
namespace {

Color head_color(std::int64_t head, const Theme& theme) { return identity_color(head + 1, theme); }
Color q_color(const Theme& theme) { return identity_color(1, theme); }
Color k_color(const Theme& theme) { return identity_color(3, theme); }
Color flow_color(const Theme& theme) { return identity_color(2, theme); }

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

constexpr float kNote = 18;  // height of a line below the heads

/// How sharp both gates are, and what the outlines or the effect of the read gate say; the first line's middle at `y`.
void draw_contest_notes(const Picture& picture, Rect area, float y) {
  const HeadGatesData& data = picture.data;
  const Theme& theme = picture.frame.theme;
  const float s = picture.s;
  const auto note_of = [](const GateNow& gate) { return Views::tr("margin {:.2f}, entropy {:.2f}", gate.margin, gate.entropy); };
  const TextStyle faint = label(picture.frame, kSmallType, theme.faint, Align::right);
  clauses_text(picture.canvas, {area.x + area.w / 2 - 8 * s, y}, note_of(data.q), faint, area.w / 2 - 8 * s, true);
  TextStyle right = faint;
  right.align = Align::left;
  clauses_text(picture.canvas, {area.x + area.w / 2 + 8 * s, y}, note_of(data.k), right, area.w / 2 - 8 * s, true);
  std::string last = data.lambda != 1 ? (data.q.probe.empty() ? Views::tr("Outlines appear when the gates at λ have been worked out.")
                                                              : Views::tr("Outlined: {}", lambda_words(data.lambda)))
                                      : "";
  const TextStyle style = label(picture.frame, kSmallType, theme.ink, Align::center);
  if (last.empty() && data.effective) {
    const std::string percent = *data.effective < 0.1f ? number(100 * *data.effective, 2) : fmt::format("{:.0f}", 100 * *data.effective);
    last = fitting(picture.canvas, Views::tr("If G^Q were 1, the layer's output would change by {} % of itself.", percent),
                   Views::tr("If G^Q were 1: output changes by {} %", percent), style, area.w);
  }
  clauses_text(picture.canvas, {area.x + area.w / 2, y + kNote * s}, last, style, area.w, true);
}

/// Every head's read gate leftwards, its write gate rightwards.
void draw_contest(const Picture& picture, Rect area) {
  const HeadGatesData& data = picture.data;
  if (data.token < 0) return;
  const Theme& theme = picture.frame.theme;
  const float s = picture.s, row_least = 18 * s, header = 20 * s, note = kNote * s;
  const TextStyle name = label(picture.frame, kBodyType, theme.ink, Align::center, true);
  const float middle = picture.canvas.text_width(Views::tr("head {}", data.heads), name) + 10 * s;
  const float number_width =
      picture.canvas.text_width(Views::tr("{:.3f} wins", 0.0f), value(picture.frame, kBodyType, {}, Align::left, true)) + 8 * s;
  const float side = (area.w - middle) / 2;
  const bool notes = area.h > header + 2 * row_least + 2 * note;
  const float room = area.h - header - (notes ? 2 * note : 0);
  if (!notes) picture.canvas.left_out();
  if (side < number_width + 12 * s || room < row_least) return picture.canvas.left_out();
  const std::int64_t fit = std::max<std::int64_t>(1, static_cast<std::int64_t>(room / row_least));
  std::vector<bool> important;
  for (std::int64_t h = 0; h < data.heads; ++h) important.push_back(h == data.q.winner || h == data.k.winner || h == data.chosen);
  const std::vector<std::int64_t> shown = choose_shown(data.heads, fit, important);
  if (std::ssize(shown) < data.heads) picture.canvas.left_out();
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
    if (h == data.chosen && picture.frame.shown.cursor)
      picture.canvas.fill_rect({left.right(), y, middle, each}, faded(theme.accent, 0.15f), 3 * s);
    picture.canvas.text({area.x + side + middle / 2, y + each / 2}, Views::tr("head {}", h), name);
    draw_gate_bar(picture, left, data.q, h, true, number_width);
    draw_gate_bar(picture, right, data.k, h, false, number_width);
    picture.canvas.hit({area.x, y, area.w, each}, {{HeadGatesSheets::contest, h}});
  }
  if (notes) draw_contest_notes(picture, area, top + each * static_cast<float>(shown.size()) + note / 2);
}

/// Entropies and C_{t,t} of the token's gates against λ.
void draw_sharpness(const Picture& picture, Rect area) {
  const HeadGatesData& data = picture.data;
  const Theme& theme = picture.frame.theme;
  const float s = picture.s;
  const Rect plot{area.x + value_axis_width(picture.frame), area.y + 22 * s, area.w - value_axis_width(picture.frame) - 4 * s,
                  area.h - 22 * s - 36 * s};
  if (plot.w < 60 * s || plot.h < 30 * s) return picture.canvas.left_out();
  draw_value_axis(picture.canvas, plot, {0, 1}, "", picture.frame);
  const LegendEntry legend[] = {{q_color(theme), Views::tr("entropy Q"), 0}, {k_color(theme), "K", 1}, {flow_color(theme), "C(t,t)", 2}};
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
  const auto draw_values = [&](const std::vector<float>& values, Color color, std::int64_t number) {
    std::vector<Point> points;
    for (std::size_t i = 0; i < values.size(); ++i) points.push_back({x_of(data.lambdas[i]), height_of(plot, {0, 1}, values[i])});
    const LineLook look = on(picture.frame, {color, number});
    if (points.size() > 1) draw_line(picture.canvas, points, look, 2.5f * s, picture.frame);
    for (const Point& p : points) draw_marker(picture.canvas, p, {color, std::max<std::int64_t>(look.number, 0)}, 3, picture.frame);
  };
  draw_values(data.curve_q, q_color(theme), 0);
  draw_values(data.curve_k, k_color(theme), 1);
  draw_values(data.curve_flow, flow_color(theme), 2);
  const float x = x_of(data.lambda);
  picture.canvas.line({x, plot.y}, {x, plot.bottom()}, theme.accent, 2 * s);
  if (!data.lambdas.empty()) picture.canvas.hit(plot, {{HeadGatesSheets::sharpness, 0}, 1, std::ssize(data.lambdas), 0, 0});
}

/// Under a lane: which head wins, as stripes of its colour with its number where it fits.
void draw_winners(const Picture& picture, const Plot& strip, const std::vector<std::int32_t>& winners) {
  const auto n = static_cast<std::int64_t>(winners.size());
  const float each = strip.all.w / static_cast<float>(n);
  for (std::int64_t begin = 0, end = 0; begin < n; begin = end) {
    const std::int32_t winner = winners[static_cast<std::size_t>(begin)];
    while (end < n && winners[static_cast<std::size_t>(end)] == winner) ++end;
    Rect rect{strip.all.x + each * static_cast<float>(begin), strip.y, each * static_cast<float>(end - begin), strip.h};
    if (strip.shows_part()) rect = intersection(rect, strip);
    if (rect.w <= 0) continue;
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

void draw_lane(const Picture& picture, const Lane& lane, Plot plot) {
  const HeadGatesData& data = picture.data;
  const Theme& theme = picture.frame.theme;
  const float s = picture.s;
  const auto n = static_cast<std::size_t>(data.tokens.count());
  const Rect above{plot.x, plot.y - 17 * s, plot.w, 17 * s};
  if (!lane.gates) {
    draw_value_axis(picture.canvas, plot, {0, 1}, "", picture.frame);
    const LegendEntry legend[] = {{q_color(theme), Views::tr("entropy Q"), 0}, {k_color(theme), "K", 1}, {flow_color(theme), "C(t,t)", 2}};
    draw_legend(picture.canvas, above, legend, picture.frame);
    draw_curve(picture.canvas, plot, {0, 1}, data.entropy_q, {q_color(theme), 0}, 2 * s, picture.frame);
    draw_curve(picture.canvas, plot, {0, 1}, data.entropy_k, {k_color(theme), 1}, 2 * s, picture.frame);
    draw_curve(picture.canvas, plot, {0, 1}, data.own_flow, {flow_color(theme), 2}, 2 * s, picture.frame);
    return;
  }
  const Plot strip{{plot.x, plot.bottom() - 13 * s, plot.w, 13 * s}, {plot.all.x, plot.bottom() - 13 * s, plot.all.w, 13 * s}};
  plot.h -= 15 * s;
  plot.all.h = plot.h;
  draw_value_axis(picture.canvas, plot, {0, 1}, "", picture.frame);
  std::vector<LegendEntry> legend;
  for (std::int64_t h = 0; h < data.heads; ++h) legend.push_back({head_color(h, theme), std::to_string(h), h});
  const TextStyle style = label(picture.frame, kSmallType, theme.faint);
  fitted_text(picture.canvas, {above.x, above.y + above.h / 2}, lane.name, style, above.w);
  const float x = above.x + picture.canvas.text_width(lane.name, style) + 14 * s;
  if (x >= above.right()) picture.canvas.left_out();
  if (x < above.right()) draw_legend(picture.canvas, {x, above.y, above.right() - x, above.h}, legend, picture.frame);
  for (std::int64_t h = 0; h < data.heads; ++h) {
    const auto values = std::span(*lane.gates).subspan(static_cast<std::size_t>(h) * n, n);
    draw_curve(picture.canvas, plot, {0, 1}, values, {head_color(h, theme), h},
               (h == data.chosen && picture.frame.shown.cursor ? 2.5f : 1.5f) * s, picture.frame);
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
  if (count < 3 || !axis || width < 60 * s) picture.canvas.left_out();
  if (width < 60 * s || count == 0) return;
  const float each = room / static_cast<float>(count);
  Plot plot;
  for (std::size_t i = 0; i < count; ++i) {
    plot = zoomed(picture.canvas, {left, body.y + each * static_cast<float>(i) + name, width, each - name}, true, false, picture.frame);
    draw_lane(picture, lanes_of(data)[i], plot);
    draw_cursor_line(picture.canvas, plot, data.tokens, picture.frame);
    hit_plot(picture.canvas, plot, {{HeadGatesSheets::over_time, Hit::all, 0}, 1, data.tokens.count()});
  }
  if (axis) draw_token_axis(picture.canvas, plot, data.tokens, picture.frame);
}

void draw_flow(const Picture& picture) {
  const HeadGatesData& data = picture.data;
  const float s = picture.s;
  const Rect& body = picture.body;
  const float left = token_side_width(picture.frame), bottom = token_axis_height(picture.frame), note = 18 * s,
              bar = bar_room(picture.frame, 64 * s);
  const float side = std::min(body.w - left - bar, body.h - bottom - note);
  if (side < 40 * s) picture.canvas.left_out();
  if (side < 40 * s || data.map.rows() == 0) return;
  const Rect square{body.x + left + std::max(0.0f, (body.w - left - bar - side) / 2), body.y + note, side, side};
  const Plot plot = zoomed(picture.canvas, square, true, true, picture.frame);
  draw_matrix(picture.canvas, plot, data.map, data.coloring->scale(), {HeadGatesSheets::flow, 0, 0});
  // Above the diagonal nothing can be read: the ground shows.
  const Rect& all = plot.all;
  const Point later[] = {{all.x - 1, all.y - 1}, {all.right() + 1, all.y - 1}, {all.right() + 1, all.bottom() + 1}};
  {
    const Within inside(picture.canvas, plot);
    picture.canvas.path(later, picture.frame.theme.panel, 0, true);
  }
  std::string text =
      data.lambda == 1 ? Views::tr("row t reads from column s: C(t,s)") : Views::tr("C(t,s) at {}", lambda_words(data.lambda));
  if (const std::string gathered = gathered_text(picture.canvas, data.map, plot); !gathered.empty()) text += "; " + gathered;
  fitted_text(picture.canvas, {body.x, body.y + note / 2}, text, label(picture.frame, kSmallType, picture.frame.theme.faint), body.w);
  draw_token_axis(picture.canvas, plot, data.tokens, picture.frame);
  draw_token_side(picture.canvas, plot, data.tokens, picture.frame);
  draw_color_bar(picture.canvas, {plot.right() + 12 * s, plot.y, 12 * s, plot.h}, data.coloring->scale(), data.coloring->marks,
                 picture.frame);
}

}  // namespace

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

}  // namespace statescope

#include "views/predictions_beside.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ranges>

#include "views/beside.h"
#include "views/colormaps.h"
#include "views/matrix.h"
#include "views/parts.h"
#include "views/sheets.h"
#include "views/words.h"

namespace statescope {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr std::int64_t kOwnColor = 1;  // the colours of models: A, B, …

std::int64_t color_of(std::string_view letter) { return letter.empty() ? 0 : letter[0] - 'A' + kOwnColor; }

/// After the token shown: while it moves, those of the token before, where they are known.
std::span<const Prediction> shown_predictions(const Snapshot& snapshot, bool moving, const Predictions* found) {
  if (!moving) return snapshot.predictions;
  const std::int64_t token = snapshot.token - 1;
  if (!found || token < found->from || token >= found->to) return {};
  return found->top[static_cast<std::size_t>(token - found->from)];
}

float least_of(std::span<const Prediction> predictions) { return predictions.empty() ? 1 : predictions.back().probability; }

/// By their texts: the two may number their tokens differently.
void add_bars(PredictionsBesideData& data, std::span<const Prediction> own, std::span<const Prediction> other, const TokenInfo* due) {
  const auto is_finite = [](const Prediction& prediction) { return std::isfinite(prediction.probability); };
  for (const Prediction& prediction : own | std::views::filter(is_finite)) {
    const auto same = std::ranges::find(other, prediction.text, &Prediction::text);
    data.bars.push_back({prediction.text, prediction.probability, same == other.end() ? kNaN : same->probability});
  }
  for (const Prediction& prediction : other | std::views::filter(is_finite))
    if (std::ranges::count(own, prediction.text, &Prediction::text) == 0)
      data.bars.push_back({prediction.text, kNaN, prediction.probability});
  const auto larger = [](const PairedBar& bar) { return std::fmax(bar.own, bar.other); };
  std::ranges::stable_sort(data.bars, std::greater(), larger);
  for (PairedBar& bar : data.bars) {
    bar.right = due && due->text == bar.text;
    bar.text = visible_text(bar.text);
  }
  data.own_least = least_of(own);
  data.other_least = least_of(other);
}

/// Up to where the two have read the same.
void add_curves(PredictionsBesideData& data, const Predictions& own, const Predictions& other, std::int64_t same_until) {
  data.own = own.next_probability;
  for (std::int64_t i = 0; i < std::ssize(data.own); ++i) {
    const std::int64_t token = own.from + i, j = token - other.from;
    const bool known = token + 1 < same_until && j >= 0 && j < std::ssize(other.next_probability);
    data.other.push_back(known ? other.next_probability[static_cast<std::size_t>(j)] : kNaN);
    data.difference.push_back(data.own[static_cast<std::size_t>(i)] - data.other.back());
  }
}

/// How probable each token of the right answer was where it was due.
std::vector<RightToken> right_tokens(const Predictions& found, const PredictionsQuestion& question, const RunInfo& run, std::int64_t from) {
  std::vector<RightToken> right;
  for (std::size_t i = 0; i < run.expected.size(); ++i) {
    const std::int64_t token = run.prompt_length - 1 + static_cast<std::int64_t>(i);
    const auto k = static_cast<std::size_t>(std::ranges::find(question.ids, run.expected[i].id) - question.ids.begin());
    if (token < found.from || token >= found.to || k == question.ids.size()) continue;
    const float p = found.probabilities[static_cast<std::size_t>(token - found.from) * question.ids.size() + k];
    right.push_back({token - from, visible_text(run.expected[i].text), p});
  }
  return right;
}

std::string probability_text(float probability, float least, int digits) {
  return std::isnan(probability) ? fmt::format("< {}", number(least, digits)) : number(probability, digits);
}

/// "A expects “4”, 0.91, which is right"
std::string opinion(const PredictionsBesideData& data, float PairedBar::*of, const std::string& letter) {
  const auto value_of = [of](const PairedBar& bar) { return std::isnan(bar.*of) ? -1 : bar.*of; };
  const PairedBar& best = *std::ranges::max_element(data.bars, {}, value_of);
  return best.right ? Views::tr("{} expects “{}”, {}, which is right", letter, best.text, chance(best.*of))
                    : Views::tr("{} expects “{}”, {}", letter, best.text, chance(best.*of));
}

struct Picture {
  const PredictionsBesideData& data;
  Canvas& canvas;
  const Frame& frame;
  float s;
  Rect title, bars, curves;  // w 0: left out

  Picture(const PredictionsBesideData& data_, Canvas& canvas_, Rect area, const Frame& frame_)
      : data(data_), canvas(canvas_), frame(frame_), s(frame_.scale) {
    const Rect inner = inset(area, 8 * s);
    title = {inner.x, inner.y, inner.w, std::min(caption_height(frame), inner.h)};
    const Rect body{inner.x, title.bottom() + 4 * s, inner.w, std::max(0.0f, inner.bottom() - title.bottom() - 4 * s)};
    const bool both = body.w >= 460 * s;
    const float width = both ? std::min(0.5f * body.w, 420 * s) : body.w;
    bars = {body.x, body.y, width, body.h};
    if (both) curves = {body.x + width + 20 * s, body.y, body.w - width - 20 * s, body.h};
  }
  Color color(std::string_view letter) const { return identity_color(color_of(letter), frame.theme); }
};

/// Both models' bars of one token, above each other, their numbers and the difference.
void draw_bar(const Picture& picture, const PairedBar& bar, Rect row, float text_width) {
  const PredictionsBesideData& data = picture.data;
  const Theme& theme = picture.frame.theme;
  const float s = picture.s, y = row.y + row.h / 2;
  token_text(picture.canvas, {row.x + text_width, y}, bar.text, label(picture.frame, kTokenType, theme.ink, Align::right, bar.right),
             text_width);
  const TextStyle figure = value(picture.frame, kSmallType, theme.ink, Align::right);
  const float figure_width = picture.canvas.text_width("< 1.23e-05", figure) + 6 * s;
  const float signed_width = picture.canvas.text_width("-1.23e-05", figure) + 6 * s;
  const Rect track{row.x + text_width + 8 * s, row.y + 3 * s, row.w - text_width - figure_width - signed_width - 8 * s, row.h - 6 * s};
  const float half = track.h / 2;
  const auto half_bar = [&](float probability, float least, const std::string& letter, float top) {
    if (track.w >= 10 * s) {
      picture.canvas.fill_rect({track.x, top, track.w, half - s}, faded(theme.line, 0.35f));
      const float length = std::isnan(probability) ? 0 : std::clamp(probability, 0.0f, 1.0f);
      picture.canvas.fill_rect({track.x, top, track.w * length, half - s}, faded(picture.color(letter), 0.8f));
    }
    fitted_text(picture.canvas, {row.right() - signed_width, top + half / 2}, probability_text(probability, least, 3), figure,
                figure_width);
  };
  half_bar(bar.own, data.own_least, data.own_letter, track.y);
  half_bar(bar.other, data.other_least, data.letter, track.y + half);
  if (!std::isnan(bar.difference()))
    fitted_text(picture.canvas, {row.right(), y}, bar.difference() == 0 ? "0" : fmt::format("{:+.3g}", bar.difference()), figure,
                signed_width);
}

void draw_bars(const Picture& picture) {
  const PredictionsBesideData& data = picture.data;
  const Theme& theme = picture.frame.theme;
  const float s = picture.s, head = 1.5f * kSmallType * s, row = 32 * s;
  const LegendEntry entries[] = {{picture.color(data.own_letter), data.own_letter}, {picture.color(data.letter), data.letter}};
  if (picture.bars.h < head + row) return picture.canvas.left_out();
  draw_legend(picture.canvas, {picture.bars.x, picture.bars.y, picture.bars.w, head}, entries, picture.frame);
  fitted_text(picture.canvas, {picture.bars.right(), picture.bars.y + head / 2}, fmt::format("{} − {}", data.own_letter, data.letter),
              label(picture.frame, kSmallType, theme.faint, Align::right), 60 * s);
  float text_width = 0;
  for (const PairedBar& bar : data.bars)
    text_width = std::max(text_width, picture.canvas.text_width(bar.text, label(picture.frame, kTokenType, theme.ink, Align::right, true)));
  text_width = std::min(text_width, 0.3f * picture.bars.w);
  const auto count = std::min(std::ssize(data.bars), static_cast<std::ptrdiff_t>((picture.bars.h - head) / row));
  if (count < std::ssize(data.bars)) picture.canvas.left_out();
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const Rect place{picture.bars.x, picture.bars.y + head + row * static_cast<float>(i), picture.bars.w, row};
    draw_bar(picture, data.bars[static_cast<std::size_t>(i)], place, text_width);
    picture.canvas.hit(place, {{PredictionsSheets::bars, i}});
  }
}

void draw_right(const Picture& picture, const Plot& plot, const ValueAxis& axis, std::span<const RightToken> tokens, Color color) {
  const Within inside(picture.canvas, plot);
  const float side = 8 * picture.s;
  for (const RightToken& token : tokens) {
    const Point at{picture.data.tokens.x_of(plot, token.place), height_of(plot, axis, token.probability)};
    picture.canvas.fill_rect({at.x - side / 2, at.y - side / 2, side, side}, picture.frame.theme.panel);
    picture.canvas.stroke_rect({at.x - side / 2, at.y - side / 2, side, side}, color, 2 * picture.s);
  }
}

void draw_lanes(const Picture& picture) {
  const PredictionsBesideData& data = picture.data;
  if (picture.curves.w <= 0) return picture.canvas.left_out();
  if (data.curves_message) {
    draw_message(picture.canvas, picture.curves, picture.frame, data.curves_message.headline, data.curves_message.detail);
    return;
  }
  const float s = picture.s, name = 17 * s;
  const float left = picture.curves.x + value_axis_width(picture.frame), width = picture.curves.right() - left;
  const bool has_axis = picture.curves.h > token_axis_height(picture.frame) + 100 * s;
  const float bottom = picture.curves.bottom() - (has_axis ? token_axis_height(picture.frame) : 2 * s);
  const float room = bottom - picture.curves.y - 2 * name;
  if (room < 40 * s || width < 60 * s || !has_axis) picture.canvas.left_out();
  if (room < 40 * s || width < 60 * s) return;
  const auto lane = [&](float top, float height) { return zoomed(picture.canvas, {left, top, width, height}, true, false, picture.frame); };
  const Plot plot = lane(picture.curves.y + name, 0.55f * room), below = lane(plot.bottom() + name, 0.45f * room);
  const std::string of_next = data.window ? Views::tr("probability of the token that follows, in a window of the run")
                                          : Views::tr("probability of the token that follows");
  const ValueAxis unit{0, 1}, both_ways{-1, 1};
  const Color own = picture.color(data.own_letter), other = picture.color(data.letter);
  draw_value_axis(picture.canvas, plot, unit, of_next, picture.frame);
  draw_curve(picture.canvas, plot, unit, data.other, {other, 1}, 1.25f * s, picture.frame);
  draw_curve(picture.canvas, plot, unit, data.own, {own, 0}, 1.25f * s, picture.frame);
  draw_right(picture, plot, unit, data.other_right, other);
  draw_right(picture, plot, unit, data.own_right, own);
  draw_cursor_line(picture.canvas, plot, data.tokens, picture.frame);
  draw_value_axis(picture.canvas, below, both_ways, fmt::format("{} − {}", data.own_letter, data.letter), picture.frame);
  draw_curve(picture.canvas, below, both_ways, data.difference, {picture.frame.theme.ink}, s, picture.frame);
  draw_cursor_line(picture.canvas, below, data.tokens, picture.frame);
  if (has_axis) draw_token_axis(picture.canvas, below, data.tokens, picture.frame);
  for (const Plot& each : {plot, below}) hit_plot(picture.canvas, each, {{PredictionsSheets::tokens, 0}, 1, data.tokens.count(), 0, 0});
}

}  // namespace

PredictionsBesideData build_predictions_beside(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings,
                                               const PredictionsQuestion& question) {
  PredictionsBesideData data;
  data.message = without_peer(findings);
  if (data.message) return data;
  const Peer& peer = *findings.peer;
  const RunInfo& run = *snapshot.run;
  const bool moving = cursor.progress < 1;
  data.own_letter = peer.own_letter;
  data.letter = peer.letter;
  data.token = moving ? snapshot.token - 1 : snapshot.token;
  data.token_text = visible_token(run, data.token);
  data.tokens = {snapshot.run, token_range(question.from, question.to), data.token};
  data.window = data.tokens.count() < std::ssize(run.tokens);
  const Predictions *own = findings.get(question), *other = peer.findings.get(question);
  add_bars(data, shown_predictions(snapshot, moving, own), shown_predictions(*peer.snapshot, moving, other), due_after(run, data.token));
  if (peer.same_until <= question.from + 1) {
    data.curves_message = {Views::tr("{} and {} read different tokens here", data.own_letter, data.letter),
                           Views::tr("Curves stand side by side where both have read the same.")};
  } else if (!own || !other) {
    data.curves_message = waiting(own ? peer.findings : findings, question, Views::tr("What is predicted along the run"));
  } else {
    add_curves(data, *own, *other, peer.same_until);
    data.own_right = right_tokens(*own, question, run, question.from);
    data.other_right = right_tokens(*other, question, *peer.snapshot->run, question.from);
  }
  return data;
}

std::string summary(const PredictionsBesideData& data) {
  if (data.bars.empty()) return Views::tr("After token {} “{}”", data.token, data.token_text);
  return Views::tr("After token {} “{}” {}; {}", data.token, data.token_text, opinion(data, &PairedBar::own, data.own_letter),
                   opinion(data, &PairedBar::other, data.letter));
}

void draw(const PredictionsBesideData& data, Canvas& canvas, Rect area, const Frame& frame) {
  if (data.message) return draw_message(canvas, area, frame, data.message.headline, data.message.detail);
  const Picture picture(data, canvas, area, frame);
  canvas.push_clip(area);
  if (frame.shown.captions)
    clauses_text(canvas, {picture.title.x, picture.title.y + picture.title.h / 2}, summary(data),
                 label(frame, kBodyType, frame.theme.ink, Align::left, true), picture.title.w);
  draw_bars(picture);
  draw_lanes(picture);
  canvas.pop_clip();
}

}  // namespace statescope

#include "views/predictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "views/colormaps.h"
#include "views/matrix.h"
#include "views/parts.h"
#include "views/predictions_beside.h"
#include "views/sheets.h"
#include "views/words.h"

namespace statescope {
namespace {

constexpr std::size_t kMostCurves = 6, kTopCurves = 4;

/// Whose numbers are followed along the run.
std::vector<TokenInfo> followed(const Snapshot& snapshot, PredictionsMode mode) {
  std::vector<TokenInfo> tokens = answer_tokens(*snapshot.run);
  if (!tokens.empty() || mode != PredictionsMode::logits) return tokens;
  for (std::size_t i = 0; i < std::min(kTopCurves, snapshot.predictions.size()); ++i)
    tokens.push_back({snapshot.predictions[i].id, snapshot.predictions[i].text});
  return tokens;
}

PredictionsQuestion question_of(const Snapshot& snapshot, PredictionsMode mode) {
  const TokenWindow window = window_around(snapshot.token, std::ssize(snapshot.run->tokens));
  PredictionsQuestion question{window.from, window.to, {}};
  for (const TokenInfo& token : followed(snapshot, mode)) question.ids.push_back(token.id);
  return question;
}

void add_bars(PredictionsData& data, const RunInfo& run, std::span<const Prediction> predictions) {
  const TokenInfo* due = due_after(run, data.token);
  const std::int64_t next = data.token + 1;
  for (const Prediction& prediction : predictions) {
    if (!std::isfinite(prediction.probability)) continue;
    const bool follows = next < std::ssize(run.tokens) && run.tokens[static_cast<std::size_t>(next)].id == prediction.id;
    data.bars.push_back({prediction.id, visible_text(prediction.text), prediction.probability, follows, due && due->id == prediction.id});
  }
  data.not_finite = data.bars.empty() && !predictions.empty();
}

void add_curves(PredictionsData& data, const Predictions& found, const RunInfo& run, const std::vector<TokenInfo>& ids) {
  data.next = found.next_probability;
  data.entropy = found.entropy;
  for (const std::int32_t rank : found.next_rank)
    data.rank.push_back(rank < 0 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(rank + 1));
  const std::vector<float>& numbers = data.mode == PredictionsMode::logits ? found.logits : found.probabilities;
  for (std::size_t k = 0; k < ids.size(); ++k) {
    TokenCurve& curve = data.curves.emplace_back(TokenCurve{ids[k].id, visible_text(ids[k].text), {}});
    for (std::size_t i = k; i < numbers.size(); i += ids.size()) curve.values.push_back(numbers[i]);
  }
  bool says_it = !run.expected.empty();
  double all = 1;
  for (std::size_t i = 0; i < run.expected.size(); ++i) {
    const std::int64_t token = run.prompt_length - 1 + static_cast<std::int64_t>(i);
    const auto k = static_cast<std::size_t>(std::ranges::find(ids, run.expected[i].id, &TokenInfo::id) - ids.begin());
    if (token < found.from || token >= found.to || k == ids.size()) {
      says_it = false;
      continue;
    }
    const float p = found.probabilities[static_cast<std::size_t>(token - found.from) * ids.size() + k];
    data.right.push_back({token - found.from, visible_text(run.expected[i].text), p});
    all *= p;
    // The next of them was predicted behind this one only where the run says it.
    const std::int64_t next = token + 1;
    const bool last = i + 1 == run.expected.size();
    if (!last && (next >= std::ssize(run.tokens) || run.tokens[static_cast<std::size_t>(next)].id != run.expected[i].id)) says_it = false;
  }
  if (says_it) data.answer = all;
}

std::string quoted(std::string_view text) { return fmt::format("“{}”", text); }

/// "After token 118 “is” the model expects “4”, 0.91, which is right"
std::string summary(const PredictionsData& data) {
  const std::string token = quoted(data.token_text);
  if (data.not_finite)
    return Views::tr("After token {} {} the model predicts nothing: its numbers are not finite (NaN or infinity)", data.token, token);
  if (data.bars.empty()) return Views::tr("After token {} {}", data.token, token);
  const PredictionBar& first = data.bars.front();
  if (first.right)
    return Views::tr("After token {} {} the model expects {}, {}, which is right", data.token, token, quoted(first.text),
                     chance(first.probability));
  const std::string text =
      Views::tr("After token {} {} the model expects {}, {}", data.token, token, quoted(first.text), chance(first.probability));
  const auto right = std::ranges::find(data.bars, true, &PredictionBar::right);
  if (right == data.bars.end()) return text;
  return Views::tr("{}; right would be {}, {}, rank {}", text, quoted(right->text), chance(right->probability),
                   right - data.bars.begin() + 1);
}

/// One drawing: where things stand.
struct Picture {
  const PredictionsData& data;
  Canvas& canvas;
  const Frame& frame;
  float s;
  Rect title, bars, curves;  // w or h 0: left out
  bool token_axis = false;

  Picture(const PredictionsData& data_, Canvas& canvas_, Rect area, const Frame& frame_)
      : data(data_), canvas(canvas_), frame(frame_), s(frame_.scale) {
    const Rect inner = inset(area, 8 * s);
    title = {inner.x, inner.y, inner.w, std::min(caption_height(frame), inner.h)};
    const Rect body{inner.x, title.bottom() + 4 * s, inner.w, std::max(0.0f, inner.bottom() - title.bottom() - 4 * s)};
    const float rows = 9 * 24 * s;                  // of the bars, and of what stands below them
    if (!frame.shown.cursor && body.w < 700 * s) {  // a column of a journal: the curves below the bars
      bars = {body.x, body.y, body.w, rows};
      curves = {body.x, body.y + rows + 8 * s, body.w, body.h - rows - 8 * s};
      token_axis = curves.h > token_axis_height(frame) + 80 * s;
      return;
    }
    const bool both = body.w >= 440 * s;
    const float width = both ? std::min(0.38f * body.w, 380 * s) : body.w;
    bars = {body.x, body.y, width, body.h};
    if (both) curves = {body.x + width + 20 * s, body.y, body.w - width - 20 * s, body.h};
    token_axis = curves.h > token_axis_height(frame) + 80 * s;
  }
  TextStyle small(Color color, Align align = Align::left, bool bold = false) const { return label(frame, kSmallType, color, align, bold); }
};

void draw_title(const Picture& picture) {
  const PredictionsData& data = picture.data;
  const Theme& theme = picture.frame.theme;
  const float y = picture.title.y + picture.title.h / 2;
  std::string text = summary(data);
  if (!std::isnan(data.answer)) text = Views::tr("{}; probability of the whole right answer: {:.4g}", text, data.answer);
  const TextStyle bold = label(picture.frame, kBodyType, theme.ink, Align::left, true);
  const PredictionBar* const first = data.bars.empty() ? nullptr : &data.bars.front();
  const auto has_room = [&](const std::string& words) { return picture.canvas.text_width(words, bold) <= picture.title.w; };
  if (first && !has_room(Views::tr("After token {} {} the model expects {}", data.token, quoted(data.token_text), quoted(first->text))))
    text = Views::tr("The model expects {}, {}", quoted(first->text), chance(first->probability));
  clauses_text(picture.canvas, {picture.title.x, y}, text, bold, picture.title.w, true);
}

}  // namespace

std::string marks_of(const PredictionBar& bar) {
  return bar.right && bar.follows ? Views::tr("right, follows") : bar.right ? Views::tr("right") : bar.follows ? Views::tr("follows") : "";
}

namespace {

void draw_bar(const Picture& picture, const PredictionBar& bar, Rect row, float text_width) {
  const Theme& theme = picture.frame.theme;
  const float s = picture.s, y = row.y + row.h / 2;
  const TextStyle token = label(picture.frame, kTokenType, theme.ink, Align::right, bar.right || bar.follows);
  const TextStyle figure = value(picture.frame, kBodyType, theme.ink, Align::right);
  const float figure_width = picture.canvas.text_width("1.234e-06", figure) + 6 * s;
  token_text(picture.canvas, {row.x + text_width, y}, bar.text, token, text_width);
  const Rect track{row.x + text_width + 8 * s, row.y + 4 * s, row.w - text_width - figure_width - 8 * s, row.h - 8 * s};
  fitted_text(picture.canvas, {row.right(), y}, number(bar.probability, 4), figure, figure_width);
  if (track.w < 10 * s) return;
  const Color color = bar.right ? theme.answer : theme.accent;
  picture.canvas.fill_rect(track, faded(theme.line, 0.35f));
  picture.canvas.fill_rect({track.x, track.y, track.w * std::clamp(bar.probability, 0.0f, 1.0f), track.h}, faded(color, 0.55f));
  if (bar.follows) picture.canvas.stroke_rect(track, theme.ink, 1.5f * s);
  const std::string marks = marks_of(bar);
  const TextStyle note = picture.small(theme.ink, Align::right, true);
  if (!marks.empty() && picture.canvas.text_width(marks, note) <= track.w - 8 * s)
    picture.canvas.text({track.right() - 4 * s, y}, marks, note);
}

void draw_bars(const Picture& picture) {
  const PredictionsData& data = picture.data;
  if (data.not_finite)
    draw_message(picture.canvas, picture.bars, picture.frame, Views::tr("No prediction"),
                 Views::tr("What the model computes after this token is not a finite number."));
  if (data.bars.empty()) return;
  const float row = std::clamp(picture.bars.h / static_cast<float>(data.bars.size() + 1), 24 * picture.s, 40 * picture.s);
  if (picture.bars.h < row) return;
  const Theme& theme = picture.frame.theme;
  const auto fit = static_cast<std::int64_t>(picture.bars.h / row);
  const bool all = fit > std::ssize(data.bars);
  const std::int64_t count = all ? std::ssize(data.bars) : std::max<std::int64_t>(1, fit - 1);
  float text_width = 0;
  for (const PredictionBar& bar : data.bars)
    text_width = std::max(text_width, picture.canvas.text_width(bar.text, label(picture.frame, kTokenType, theme.ink, Align::right, true)));
  text_width = std::min(text_width, 0.35f * picture.bars.w);
  if (!all) picture.canvas.left_out();
  float y = picture.bars.y, shown = 0;
  for (std::int64_t i = 0; i < count; ++i, y += row) {
    const PredictionBar& bar = data.bars[static_cast<std::size_t>(i)];
    const Rect place{picture.bars.x, y, picture.bars.w, row};
    draw_bar(picture, bar, place, text_width);
    picture.canvas.hit(place, {{PredictionsSheets::bars, i}});
    shown += bar.probability;
  }
  if (y + row > picture.bars.bottom()) return;
  const std::string others = number(std::max(0.0f, 1 - shown), 3);
  const TextStyle note = picture.small(theme.faint);
  const std::string all_others = Views::tr("all other tokens together {}", others), short_form = Views::tr("all others {}", others);
  fitted_text(picture.canvas, {picture.bars.x, y + row / 2}, fitting(picture.canvas, all_others, short_form, note, picture.bars.w), note,
              picture.bars.w);
}

void draw_right_tokens(const Picture& picture, const Plot& plot, const ValueAxis& axis) {
  const Within inside(picture.canvas, plot);
  const Theme& theme = picture.frame.theme;
  const float side = 8 * picture.s;
  for (const RightToken& token : picture.data.right) {
    const Point at{picture.data.tokens.x_of(plot, token.place), height_of(plot, axis, token.probability)};
    picture.canvas.fill_rect({at.x - side / 2, at.y - side / 2, side, side}, theme.panel);
    picture.canvas.stroke_rect({at.x - side / 2, at.y - side / 2, side, side}, theme.answer, 2 * picture.s);
  }
}

/// Of all finite numbers, with a little room.
ValueAxis logit_axis(const std::vector<TokenCurve>& curves) {
  double low = 0, high = 1;
  for (const TokenCurve& curve : curves) {
    for (const float z : curve.values) {
      if (!std::isfinite(z)) continue;
      low = std::min<double>(low, z);
      high = std::max<double>(high, z);
    }
  }
  const double step = round_range(static_cast<float>((high - low) / 8));
  return {step * std::floor(low / step), step * std::ceil(high / step)};
}

void draw_followed(const Picture& picture, const Plot& plot, const ValueAxis& axis) {
  for (std::size_t k = 0; k < picture.data.curves.size(); ++k) {
    draw_curve(picture.canvas, plot, axis, picture.data.curves[k].values,
               {identity_color(static_cast<std::int64_t>(k) + 1, picture.frame.theme), static_cast<std::int64_t>(k)}, 1.75f * picture.s,
               picture.frame);
  }
}

/// In the line above the first plot's axis name.
void draw_legend_of(const Picture& picture, Rect plot) {
  const PredictionsData& data = picture.data;
  const Theme& theme = picture.frame.theme;
  std::vector<LegendEntry> legend;
  const TextStyle style = picture.small(theme.ink);
  const float words = picture.canvas.text_width(Views::tr("the token that follows"), style), others = 60 * picture.s;
  const bool wide = words + others * static_cast<float>(data.curves.size()) <= plot.w;
  if (data.mode == PredictionsMode::probabilities)
    legend.push_back({theme.ink, wide ? Views::tr("the token that follows") : Views::tr("next token")});
  for (std::size_t k = 0; k < data.curves.size(); ++k)
    legend.push_back({identity_color(static_cast<std::int64_t>(k) + 1, theme), quoted(data.curves[k].text), static_cast<std::int64_t>(k)});
  const float end = draw_legend(picture.canvas, {plot.x, plot.y - 32 * picture.s, plot.w, kSmallType * picture.s}, legend, picture.frame);
  if (data.right.empty() || data.mode == PredictionsMode::logits) return;
  const std::string squares = Views::tr("squares: the right answer where it is due"), brief = Views::tr("squares: right");
  const float room = plot.right() - end;
  if (picture.canvas.text_width(brief, style) > room) return picture.canvas.left_out();
  fitted_text(picture.canvas, {end, plot.y - 32 * picture.s + 0.5f * kSmallType * picture.s},
              fitting(picture.canvas, squares, brief, style, room), style, room);
}

void draw_lane(const Picture& picture, const Plot& plot, const ValueAxis& axis, std::string_view name, std::span<const float> values) {
  draw_value_axis(picture.canvas, plot, axis, name, picture.frame);
  draw_curve(picture.canvas, plot, axis, values, {faded(picture.frame.theme.ink, 0.75f)}, picture.s, picture.frame);
  draw_cursor_line(picture.canvas, plot, picture.data.tokens, picture.frame);
  hit_plot(picture.canvas, plot, {{PredictionsSheets::tokens, 0}, 1, picture.data.tokens.count(), 0, 0});
}

void draw_lanes(const Picture& picture) {
  const PredictionsData& data = picture.data;
  if (picture.curves.w <= 0) return picture.canvas.left_out();
  if (data.curves_message) {
    draw_message(picture.canvas, picture.curves, picture.frame, data.curves_message.headline, data.curves_message.detail);
    return;
  }
  const float s = picture.s, name = 17 * s, legend = 16 * s;
  const float left = picture.curves.x + value_axis_width(picture.frame), width = picture.curves.right() - left;
  const float bottom = picture.curves.bottom() - (picture.token_axis ? token_axis_height(picture.frame) : 2 * s);
  const float room = bottom - picture.curves.y - legend;
  if (room < name + 16 * s || width < 60 * s) return picture.canvas.left_out();
  const bool lanes = data.mode == PredictionsMode::probabilities && room > 3 * name + 130 * s;
  if ((data.mode == PredictionsMode::probabilities && !lanes) || !picture.token_axis) picture.canvas.left_out();
  const float first = lanes ? 0.5f * (room - 3 * name) : room - name, other = lanes ? 0.25f * (room - 3 * name) : 0;
  const auto lane = [&](float top, float height) { return zoomed(picture.canvas, {left, top, width, height}, true, false, picture.frame); };
  const Plot plot = lane(picture.curves.y + legend + name, first);
  draw_legend_of(picture, plot);
  const auto in_window = [&](const std::string& what) { return data.window ? Views::tr("{}, in a window of the run", what) : what; };
  if (data.mode == PredictionsMode::logits) {
    const ValueAxis axis = logit_axis(data.curves);
    draw_lane(picture, plot, axis,
              in_window(data.of_answer ? Views::tr("logits of the right answer's tokens")
                                       : Views::tr("logits of what is most probable at the cursor")),
              {});
    draw_followed(picture, plot, axis);
  } else {
    const ValueAxis unit{0, 1};
    draw_lane(picture, plot, unit, in_window(Views::tr("probability")), data.next);
    draw_followed(picture, plot, unit);
    draw_right_tokens(picture, plot, unit);
  }
  Plot last = plot;
  if (lanes) {
    float most = 10;
    for (const float rank : data.rank) most = std::isnan(rank) ? most : std::max(most, rank);
    last = lane(plot.bottom() + name, other);
    const std::string name_of_rank = Views::tr("rank of the token that follows, 1 is first"), short_name = Views::tr("rank, 1 is first");
    draw_lane(picture, last, {1, std::pow(10, std::ceil(std::log10(most))), true},
              fitting(picture.canvas, name_of_rank, short_name, picture.small({}), width), data.rank);
    last = lane(last.bottom() + name, other);
    draw_lane(picture, last, axis_over(data.entropy), Views::tr("entropy, nat"), data.entropy);
  }
  if (picture.token_axis) draw_token_axis(picture.canvas, last, data.tokens, picture.frame);
}

class PredictionsView : public View {
 public:
  std::vector<Question> questions(const Snapshot& snapshot, const Cursor&) const override {
    if (!layer_of(snapshot)) return {};
    return {question_of(snapshot, shown())};
  }
  std::span<const std::string_view> modes() const override {
    static constexpr std::array<std::string_view, 3> names = {
        QT_TRANSLATE_NOOP("Views", "Probabilities"), QT_TRANSLATE_NOOP("Views", "Logits"), QT_TRANSLATE_NOOP("Views", "Other model")};
    return names;
  }
  bool compares() const override { return shown() == PredictionsMode::other_model; }
  std::vector<Question> peer_questions(const Snapshot& snapshot, const Findings&, const Snapshot&, const Cursor&) const override {
    if (!layer_of(snapshot)) return {};
    return {question_of(snapshot, shown())};
  }
  void build(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings) override {
    data_ = build_predictions(snapshot, cursor, findings, shown());
    beside_.reset();
    if (compares() && !data_.message) beside_ = build_predictions_beside(snapshot, cursor, findings, question_of(snapshot, shown()));
  }
  void draw(Canvas& canvas, Rect area, const Frame& frame) const override {
    if (beside_) return statescope::draw(*beside_, canvas, area, frame);
    statescope::draw(data_, canvas, area, frame);
  }

  std::vector<Sheet> sheets() const override { return beside_ ? statescope::sheets(*beside_) : statescope::sheets(data_); }
  std::string sentence() const override {
    if (beside_) return beside_->message ? beside_->message.sentence() : statescope::summary(*beside_) + ".";
    return data_.message ? data_.message.sentence() : summary(data_) + ".";
  }

 private:
  PredictionsMode shown() const { return static_cast<PredictionsMode>(mode()); }

  PredictionsData data_;
  std::optional<PredictionsBesideData> beside_;  // instead of it, where models are compared
};

}  // namespace

std::vector<TokenInfo> answer_tokens(const RunInfo& run) {
  std::vector<TokenInfo> tokens;
  const auto add = [&](const TokenInfo& token) {
    if (tokens.size() < kMostCurves && std::ranges::find(tokens, token.id, &TokenInfo::id) == tokens.end()) tokens.push_back(token);
  };
  for (const TokenInfo& token : run.expected) add(token);
  if (!tokens.empty()) return tokens;
  for (const TokenSpan& span : run.spans) {
    for (std::int64_t t = span.begin; span.kind == SpanKind::answer && t < std::min(span.end, std::ssize(run.tokens)); ++t)
      add(run.tokens[static_cast<std::size_t>(t)]);
  }
  return tokens;
}

const TokenInfo* due_after(const RunInfo& run, std::int64_t token) {
  const std::int64_t i = token + 1 - run.prompt_length;
  return i >= 0 && i < std::ssize(run.expected) ? &run.expected[static_cast<std::size_t>(i)] : nullptr;
}

PredictionsData build_predictions(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, PredictionsMode mode) {
  PredictionsData data;
  if (!layer_of(snapshot)) {
    data.message = {Views::tr("No token has been read yet"), Views::tr("It appears as soon as a model has read its first tokens.")};
    return data;
  }
  const RunInfo& run = *snapshot.run;
  const bool moving = cursor.progress < 1;
  data.mode = mode;
  data.token = moving ? snapshot.token - 1 : snapshot.token;
  data.token_text = visible_token(run, data.token);
  data.of_answer = !answer_tokens(run).empty();
  const PredictionsQuestion question = question_of(snapshot, mode);
  data.tokens = {snapshot.run, token_range(question.from, question.to), data.token};
  data.window = data.tokens.count() < std::ssize(run.tokens);
  const Predictions* found = findings.get(question);
  if (!moving) {
    add_bars(data, run, snapshot.predictions);
  } else if (found && data.token >= found->from && data.token < found->to) {
    add_bars(data, run, found->top[static_cast<std::size_t>(data.token - found->from)]);
  }
  if (found)
    add_curves(data, *found, run, followed(snapshot, mode));
  else
    data.curves_message = waiting(findings, question, Views::tr("What is predicted along the run"));
  return data;
}

void draw(const PredictionsData& data, Canvas& canvas, Rect area, const Frame& frame) {
  if (data.message) {
    draw_message(canvas, area, frame, data.message.headline, data.message.detail);
    return;
  }
  const Picture picture(data, canvas, area, frame);
  canvas.push_clip(area);
  if (frame.shown.captions) draw_title(picture);
  draw_bars(picture);
  draw_lanes(picture);
  canvas.pop_clip();
}

std::unique_ptr<View> make_predictions() { return std::make_unique<PredictionsView>(); }

}  // namespace statescope

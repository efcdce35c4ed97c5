#include "views/remembered.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "views/colormaps.h"
#include "views/matrix.h"
#include "views/parts.h"
#include "views/sheets.h"
#include "views/words.h"

namespace statescope {
namespace {

bool has_coefficients(const LayerInfo& layer) { return layer.memory == "state space" && layer.slots() == 1; }

std::int64_t channel_of(const LayerInfo& layer, const Cursor& cursor) {
  return std::clamp<std::int64_t>(cursor.column, 0, layer.columns - 1);
}

RememberedQuestion question_of(const Snapshot& snapshot, const Cursor& cursor) {
  const TokenWindow window = window_around(snapshot.token, std::ssize(snapshot.run->tokens));
  return {.layer = snapshot.layer,
          .channel = channel_of(*layer_of(snapshot), cursor),
          .token = std::max<std::int64_t>(0, shown_token(snapshot, cursor)),
          .from = window.from,
          .to = window.to};
}

/// Where there is nothing to ask.
Message without_coefficients(const Snapshot& snapshot) {
  if (const Message message = without_memory(snapshot)) return message;
  const LayerInfo& layer = *layer_of(snapshot);
  if (has_coefficients(layer)) return {};
  return {Views::tr("Layer {} ({}) keeps no coefficients of its input", snapshot.layer, layer.mixer),
          Views::tr("S4 with HiPPO's matrix does: its states are coefficients of Legendre polynomials.")};
}

/// Both signs, as far as either curve goes.
ValueAxis axis_of(const RememberedData& data) {
  float most = 0;
  for (const std::vector<float>* all : {&data.entered, &data.remembered}) {
    for (const float x : *all) most = std::isfinite(x) ? std::max(most, std::abs(x)) : most;
  }
  const double high = round_range(most);
  return {-high, high};
}

class RememberedView : public View {
 public:
  std::vector<Question> questions(const Snapshot& snapshot, const Cursor& cursor) const override {
    if (without_coefficients(snapshot)) return {};
    return {question_of(snapshot, cursor)};
  }
  void build(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings) override {
    data_ = build_remembered(snapshot, cursor, findings);
  }
  void draw(Canvas& canvas, Rect area, const Frame& frame) const override { statescope::draw(data_, canvas, area, frame); }

  std::vector<Sheet> sheets() const override { return statescope::sheets(data_); }
  std::string sentence() const override { return data_.message ? data_.message.sentence() : data_.title + "."; }

 private:
  RememberedData data_;
};

}  // namespace

double forgotten_part(const RememberedData& data, std::int64_t count) {
  double missing = 0, all = 0;
  for (std::size_t i = data.remembered.size(); i-- > 0 && count > 0;) {
    if (std::isnan(data.remembered[i])) continue;
    missing += std::pow(double{data.remembered[i]} - data.entered[i], 2);
    all += std::pow(double{data.entered[i]}, 2);
    --count;
  }
  return all > 0 ? std::sqrt(missing / all) : std::nan("");
}

RememberedData build_remembered(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings) {
  RememberedData data;
  data.message = without_coefficients(snapshot);
  if (data.message) return data;
  const RememberedQuestion question = question_of(snapshot, cursor);
  data.place = Views::tr("layer {}, channel {}", snapshot.layer, question.channel);
  const Remembered* known = findings.get(question);
  if (!known) {
    data.message = waiting(findings, question, Views::tr("What is remembered in {}", data.place));
    return data;
  }
  data.tokens = {snapshot.run, token_range(question.from, question.to), question.token};
  data.entered = known->entered;
  data.remembered = known->remembered;
  // Within 1 / Δ tokens a coefficient falls to 1 / e.
  const std::int64_t count = std::clamp<std::int64_t>(std::llround(1 / known->step), 1, question.token - question.from + 1);
  const double part = forgotten_part(data, count);
  data.title = sentence_at(
      std::isnan(part) ? Views::tr("over the last {} nothing came in", tokens_text(count))
                       : Views::tr("over the last {} what is remembered is off by {:.2f} of the input's size", tokens_text(count), part),
      data.place);
  return data;
}

void draw(const RememberedData& data, Canvas& canvas, Rect area, const Frame& frame) {
  if (data.message) {
    draw_message(canvas, area, frame, data.message.headline, data.message.detail);
    return;
  }
  const float s = frame.scale, name = 30 * s, axis_height = token_axis_height(frame);
  const Rect inner = inset(area, 8 * s), title{inner.x, inner.y, inner.w, std::min(inner.h, caption_height(frame))};
  const float top = title.bottom() + 4 * s + name, height = inner.bottom() - top;
  const bool names_tokens = height > axis_height + 30 * s;
  const Rect place{inner.x + value_axis_width(frame), top, inner.w - value_axis_width(frame), height - (names_tokens ? axis_height : 0)};
  canvas.push_clip(area);
  draw_caption(canvas, title, data.title, kRecomputed, frame);
  if (!names_tokens || place.w < 60 * s || place.h < 20 * s) canvas.left_out();
  if (place.w >= 60 * s && place.h >= 20 * s) {
    const Plot plot = zoomed(canvas, place, true, false, frame);
    const ValueAxis axis = axis_of(data);
    const Color entered = faded(frame.theme.ink, 0.55f), remembered = frame.theme.accent;
    draw_value_axis(canvas, plot, axis, Views::tr("input of the channel"), frame);
    const std::array<LegendEntry, 2> legend = {
        {{entered, Views::tr("what came in, u"), 0}, {remembered, Views::tr("what is remembered, û"), 1}}};
    draw_legend(canvas, {plot.x, plot.y - name, plot.w, kSmallType * s}, legend, frame);
    draw_curve(canvas, plot, axis, data.entered, {entered, 0}, 1.5f * s, frame);
    draw_curve(canvas, plot, axis, data.remembered, {remembered, 1}, 2.5f * s, frame);
    hit_plot(canvas, plot, {{RememberedSheets::tokens, 0}, 1, data.tokens.count(), 0, 0});
    names_tokens ? draw_token_axis(canvas, plot, data.tokens, frame) : draw_cursor_line(canvas, plot, data.tokens, frame);
  }
  canvas.pop_clip();
}

std::unique_ptr<View> make_remembered() { return std::make_unique<RememberedView>(); }

}  // namespace statescope

#include "views/writes.h"

#include <fmt/format.h>

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

Question question_of(const Snapshot& snapshot, const Cursor& cursor, WritesMode mode) {
  const std::int64_t head = cursor.head;
  if (mode != WritesMode::spread) return RowAgesQuestion{snapshot.layer, head, std::max<std::int64_t>(0, shown_token(snapshot, cursor))};
  const TokenWindow window = window_around(snapshot.token, std::ssize(snapshot.run->tokens));
  return WriteSpreadQuestion{snapshot.layer, head, window.from, window.to};
}

float most_of(const std::vector<float>& numbers) {
  float most = 1;
  for (const float x : numbers) most = std::isnan(x) ? most : std::max(most, x);
  return most;
}

void fill_colors(WritesData& data, const RangeChoice& range) {
  const float most = round_range(most_of(data.ages));
  const bool ago = data.mode == WritesMode::written;
  data.coloring = colored(
      data.ages, {0, most},
      {{most, ago ? Views::tr("{} ago", axis_number(double{most})) : axis_number(double{most})}, {0, ago ? Views::tr("now") : "0"}}, range);
}

void fill_ages(WritesData& data, const RowAges& ages) {
  std::vector<float> known;
  for (std::int64_t r = 0; r < data.rows; ++r) {
    for (std::int64_t slot = 0; slot < data.slots; ++slot) {
      const auto& all = data.mode == WritesMode::written ? ages.written : ages.halved;
      const std::int32_t age = all[static_cast<std::size_t>(slot * data.rows + r)];
      data.ages.push_back(age < 0 ? NAN : static_cast<float>(age));
      if (age >= 0) known.push_back(static_cast<float>(age));
    }
  }
  const auto none = std::ssize(data.ages) - std::ssize(known);
  if (known.empty()) {
    data.title = sentence_at(
        data.mode == WritesMode::written ? Views::tr("no row has been written yet") : Views::tr("no row has lost half of anything"),
        data.place);
    return;
  }
  std::ranges::nth_element(known, known.begin() + std::ssize(known) / 2);
  const float median = known[known.size() / 2];
  data.title =
      sentence_at(data.mode == WritesMode::written
                      ? Views::tr("half of the written rows were written in the last {}; not written yet: {}",
                                  tokens_text(static_cast<std::int64_t>(median) + 1), none)
                      : Views::tr("rows lose half within {} (median); not yet: {}", tokens_text(static_cast<std::int64_t>(median)), none),
                  data.place);
}

void fill_spread(WritesData& data, const WriteSpreads& spreads, const Snapshot& snapshot, const WriteSpreadQuestion& question) {
  const std::int64_t n = question.to - question.from;
  const auto of_slot = [&](const std::vector<float>& all) {
    return std::vector<float>(all.begin() + data.slot * n, all.begin() + (data.slot + 1) * n);
  };
  data.effective = of_slot(spreads.effective);
  data.counted = of_slot(spreads.counted);
  data.tokens = {snapshot.run, token_range(question.from, question.to), data.token};
  double sum = 0;
  std::int64_t writers = 0;
  for (const float rows : data.effective) {
    if (!std::isnan(rows)) sum += rows, ++writers;
  }
  data.title =
      sentence_at(writers == 0 ? Views::tr("no token writes here")
                               : Views::tr("a token writes to {:.1f} of {} rows on average", sum / static_cast<double>(writers), data.rows),
                  data.place);
}

/// Whole names where all have room, else the short ones, those that do not touch.
void draw_slot_names(const WritesData& data, Canvas& canvas, const Plot& plot, const Frame& frame) {
  const float s = frame.scale, w = plot.all.w / static_cast<float>(data.slots);
  const auto style_of = [&](std::int64_t slot) {
    const bool chosen = slot == data.slot && frame.shown.cursor;
    return label(frame, kSmallType, chosen ? frame.theme.accent : frame.theme.ink, Align::center, chosen);
  };
  bool whole = true;
  for (std::int64_t slot = 0; slot < data.slots; ++slot)
    whole = whole && canvas.text_width(data.slot_names[static_cast<std::size_t>(slot)], style_of(slot)) <= w - 6 * s;
  const std::vector<std::string>& names = whole ? data.slot_names : data.short_names;
  float free = plot.x - 30 * s;
  std::int64_t skipped = 0;
  const PlaceRange shown = places_across(plot, data.slots);
  for (std::int64_t slot = shown.from; slot < shown.to; ++slot) {
    const std::string& name = names[static_cast<std::size_t>(slot)];
    const float x = plot.all.x + w * (static_cast<float>(slot) + 0.5f), half = canvas.text_width(name, style_of(slot)) / 2;
    const float left = slot == 0 ? std::min(x - half, x + w / 2 - 2 * half) : x - half;  // the first has room at its left
    if (plot.shows_part() && (x < plot.x || x > plot.right())) continue;
    skipped += left < free ? 1 : 0;
    if (left < free) continue;
    canvas.text({left + half, plot.bottom() + 12 * s}, name, style_of(slot));
    free = left + 2 * half + 4 * s;
  }
  if (2 * skipped > data.slots) canvas.left_out();
}

void draw_ages(const WritesData& data, Canvas& canvas, Rect body, const Frame& frame) {
  const float s = frame.scale, left = 40 * s, right = bar_room(frame, 70 * s), below = 22 * s;
  const Rect place{body.x + left, body.y, body.w - left - right, body.h - below};
  if (place.w < 60 * s || place.h < 30 * s) return canvas.left_out();
  const Plot plot = zoomed(canvas, place, true, true, frame);
  const ColorScale scale = data.coloring->scale();
  draw_matrix(canvas, plot, Pyramid(data.ages, data.rows, data.slots), scale, {WritesSheets::ages, 0, 0});
  canvas.stroke_rect(plot, frame.theme.line, s);
  const TextStyle number_style = value(frame, kSmallType, frame.theme.faint, Align::right);
  const float each = plot.all.h / static_cast<float>(data.rows);
  const auto most = std::max<std::int64_t>(1, static_cast<std::int64_t>(plot.h / (22 * s)));
  for (const std::int64_t r : axis_ticks(places_down(plot, data.rows), most)) {
    const float y = plot.all.y + each * (static_cast<float>(r) + 0.5f), half = number_style.size / 2;
    if (y < plot.y || y > plot.bottom()) continue;
    const float shown_y = frame.shown.cursor ? std::clamp(y, plot.y + half, plot.bottom() - half) : y;
    canvas.text({plot.x - 6 * s, shown_y}, std::to_string(r), number_style);
  }
  draw_slot_names(data, canvas, plot, frame);
  draw_color_bar(canvas, {plot.right() + 10 * s, plot.y, 12 * s, plot.h}, scale, data.coloring->marks, frame);
}

/// One of each token, none where it does not come: those that come may stand far apart.
void draw_bars(Canvas& canvas, const Plot& plot, const ValueAxis& axis, std::span<const float> values, Color color) {
  const Within inside(canvas, plot);
  const float each = plot.all.w / static_cast<float>(values.size()), width = std::max(1.0f, 0.8f * each);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) continue;
    const float x = plot.all.x + each * (static_cast<float>(i) + 0.5f), top = height_of(plot, axis, values[i]);
    canvas.fill_rect({x - width / 2, top, width, plot.bottom() - top}, color);
  }
}

void draw_spread(const WritesData& data, Canvas& canvas, Rect body, const Frame& frame) {
  const float s = frame.scale, name = 30 * s, axis_height = token_axis_height(frame);
  const bool tokens = body.h - name > axis_height + 30 * s;
  const Rect place{body.x + value_axis_width(frame), body.y + name, body.w - value_axis_width(frame),
                   body.h - name - (tokens ? axis_height : 0)};
  if (!tokens) canvas.left_out();
  if (place.w < 60 * s || place.h < 20 * s) return canvas.left_out();
  const Plot plot = zoomed(canvas, place, true, false, frame);
  const ValueAxis axis{0, static_cast<double>(data.rows)};
  draw_value_axis(canvas, plot, axis, Views::tr("rows that a token writes to"), frame);
  const Color pale = frame.theme.faint, strong = frame.theme.accent;
  const std::array<LegendEntry, 2> legend = {
      {{strong, Views::tr("effective, (Σ|ω|)² / Σω²")}, {faded(pale, 0.5f), Views::tr("counted, |ω| ≥ 0.001 Σ|ω|")}}};
  draw_legend(canvas, {plot.x, plot.y - 30 * s, plot.w, kSmallType * s}, legend, frame);
  draw_bars(canvas, plot, axis, data.counted, faded(pale, 0.5f));
  draw_bars(canvas, plot, axis, data.effective, strong);
  hit_plot(canvas, plot, {{WritesSheets::tokens, 0}, 1, data.tokens.count(), 0, 0});
  if (tokens)
    draw_token_axis(canvas, plot, data.tokens, frame);
  else
    draw_cursor_line(canvas, plot, data.tokens, frame);
}

class WritesView : public View {
 public:
  std::vector<Question> questions(const Snapshot& snapshot, const Cursor& cursor) const override {
    if (without_memory(snapshot, cursor.head)) return {};
    return {question_of(snapshot, cursor, shown())};
  }
  std::span<const std::string_view> modes() const override {
    static constexpr std::array<std::string_view, 3> names = {QT_TRANSLATE_NOOP("Views", "Age of the rows"),
                                                              QT_TRANSLATE_NOOP("Views", "Half gone"),
                                                              QT_TRANSLATE_NOOP("Views", "Rows a token writes")};
    return names;
  }
  void build(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings) override {
    data_ = build_writes(snapshot, cursor, findings, shown(), range());
  }
  std::optional<Shading> shading() const override { return shading_of(data_.coloring); }
  void draw(Canvas& canvas, Rect area, const Frame& frame) const override { statescope::draw(data_, canvas, area, frame); }

  std::vector<Sheet> sheets() const override { return statescope::sheets(data_); }
  std::string sentence() const override { return data_.message ? data_.message.sentence() : data_.title + "."; }

 private:
  WritesMode shown() const { return static_cast<WritesMode>(mode()); }
  WritesData data_;
};

}  // namespace

WritesData build_writes(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, WritesMode mode,
                        const RangeChoice& range) {
  WritesData data;
  data.mode = mode;
  data.message = without_memory(snapshot, cursor.head);
  if (data.message) return data;
  const LayerInfo& layer = *layer_of(snapshot);
  const std::int64_t head = cursor.head;
  data.rows = layer.rows;
  data.row_name = Engine::tr(layer.row_name.c_str());
  data.slots = layer.slots();
  data.row = cursor.row;
  data.slot = std::clamp<std::int64_t>(cursor.slot, 0, data.slots - 1);
  data.token = shown_token(snapshot, cursor);
  data.place = mode == WritesMode::spread ? memory_place(layer, snapshot.layer, data.slot, head)
                                          : Views::tr("layer {}, head {}", snapshot.layer, head);
  if (mode == WritesMode::halved) data.place = decay_place(layer, data.place);
  for (std::int64_t slot = 0; slot < data.slots; ++slot) {
    data.short_names.push_back(slot_name(layer, slot));
    data.slot_names.push_back(slot_title(slot_identity(layer, slot), data.short_names.back()));
  }
  const Question question = question_of(snapshot, cursor, mode);
  const auto* of_tokens = std::get_if<WriteSpreadQuestion>(&question);
  const WriteSpreads* spreads = of_tokens ? findings.get(*of_tokens) : nullptr;
  const RowAges* ages = of_tokens ? nullptr : findings.get(std::get<RowAgesQuestion>(question));
  if (spreads) {
    fill_spread(data, *spreads, snapshot, *of_tokens);
  } else if (ages) {
    fill_ages(data, *ages);
    fill_colors(data, range);
  } else {
    data.message = waiting(findings, question, Views::tr("What was written in {}", data.place));
  }
  return data;
}

void draw(const WritesData& data, Canvas& canvas, Rect area, const Frame& frame) {
  if (data.message) {
    draw_message(canvas, area, frame, data.message.headline, data.message.detail);
    return;
  }
  const Rect inner = inset(area, 8 * frame.scale);
  const Rect title{inner.x, inner.y, inner.w, std::min(inner.h, caption_height(frame))};
  const float top = title.bottom() + 4 * frame.scale;
  const Rect body{inner.x, top, inner.w, inner.bottom() - top};
  canvas.push_clip(area);
  draw_caption(canvas, title, data.title, kRecomputed, frame);
  data.mode == WritesMode::spread ? draw_spread(data, canvas, body, frame) : draw_ages(data, canvas, body, frame);
  canvas.pop_clip();
}

std::unique_ptr<View> make_writes() { return std::make_unique<WritesView>(); }

}  // namespace statescope

// What views with axes share: values along a line, tokens along the bottom, curves that keep their peaks, colour bars, legends.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "views/line_look.h"
#include "views/view.h"

namespace statescope {

/// The least of 1, 2, 5 · 10ⁿ that is not below `value`: a range that changes seldom while stepping. 1 for zero and NaN.
float round_range(float value);

/// Where numbers stand along an axis of `count` cells: 0 and every so many, at most `most`.
std::vector<std::int64_t> axis_ticks(std::int64_t count, std::int64_t most);

/// `plot` with the part of its data that is in sight (Frame::in_sight); the canvas is told that it can be enlarged, across, down or both.
Plot zoomed(Canvas& canvas, Rect plot, bool across, bool down, const Frame& frame);
/// What the first `share` of a plot's width would be a plot of.
Plot left_part(const Plot& plot, float share);
/// Of equal places those in sight, also in part: [from, to).
struct PlaceRange {
  std::int64_t from = 0, to = 0;
};
PlaceRange places_across(const Plot& plot, std::int64_t count);
PlaceRange places_down(const Plot& plot, std::int64_t count);
/// Where numbers stand along those, at most `most`.
std::vector<std::int64_t> axis_ticks(PlaceRange places, std::int64_t most);
/// Whether a text of this size around `middle` is whole there: always, unless the plot shows a part of its data.
bool holds_text(const Plot& plot, Point middle, Size size);
/// While it lives nothing is drawn beyond `clip`, if the plot shows a part of its data.
class Within {
 public:
  Within(Canvas& canvas, const Plot& plot, Rect clip);
  Within(Canvas& canvas, const Plot& plot) : Within(canvas, plot, plot) {}
  ~Within();
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;

 private:
  Canvas* canvas_;
};
/// What is in sight of the plot answers the pointer as the places of `grid`.
void hit_plot(Canvas& canvas, const Plot& plot, const HitGrid& grid);

/// Low … high of what is drawn; logarithmic: low > 0.
struct ValueAxis {
  double low = 0, high = 1;
  bool logarithmic = false;

  /// 0 at low, 1 at high; beyond them clamped. NaN stays NaN.
  double share(double value) const;
};
/// Values to name along an axis, ascending, at most about `most`: multiples of 1, 2 or 5 · 10ⁿ; logarithmic: powers of ten, or these.
std::vector<double> axis_values(const ValueAxis& axis, std::int64_t most);
/// "0.001", "10⁻⁶", "20k": as an axis names a value.
std::string axis_number(double value);
/// From `low` to the least round number that holds all finite values; high > low always.
ValueAxis axis_over(std::span<const float> values, double low = 0);

/// Lines across `plot` at round values, their numbers left of it (they need value_axis_width), and the axis' name above its left edge.
void draw_value_axis(Canvas& canvas, Rect plot, const ValueAxis& axis, std::string_view name, const Frame& frame);
float value_axis_width(const Frame& frame);
/// Where the value lies on the plot's height.
float height_of(Rect plot, const ValueAxis& axis, double value);

/// Tokens [from, to) of a run.
struct TokenWindow {
  std::int64_t from = 0, to = 0;
};
/// 512 tokens with `token` among them (all of a shorter run), moved on by 256 at a time, so that it seldom changes while stepping.
TokenWindow window_around(std::int64_t token, std::int64_t tokens);

/// What stands along the bottom: tokens of a run, ascending, each at its place, or one for each of its steps; equally wide.
struct TokenAxis {
  std::shared_ptr<const RunInfo> run;
  std::vector<std::int32_t> tokens;  // [n]
  std::int64_t cursor = 0;           // the cursor's token

  std::int64_t count() const { return static_cast<std::int64_t>(tokens.size()); }
  /// The last place whose token is not after `token`; −1: none.
  std::int64_t place_of(std::int64_t token) const;
  /// The middle of place i.
  float x_of(const Plot& plot, std::int64_t i) const;
};
/// from, from + 1, …, to − 1
std::vector<std::int32_t> token_range(std::int64_t from, std::int64_t to);

/// Below `plot`: texts and numbers of as many tokens as fit, the cursor's in bold, lines with N, Q, A under what the prompt's maker marked.
/// Through it: the cursor's line. Needs token_axis_height.
void draw_token_axis(Canvas& canvas, const Plot& plot, const TokenAxis& axis, const Frame& frame);
float token_axis_height(const Frame& frame);
/// The line of the cursor's token, alone.
void draw_cursor_line(Canvas& canvas, const Plot& plot, const TokenAxis& axis, const Frame& frame);

/// values [n], value i in the middle of the i-th of n equal places; NaN interrupts. Where places are narrower than a unit, each unit spans
/// from its least to its largest value: no peak is lost. On paper with the look's dash, and some markers.
void draw_curve(Canvas& canvas, const Plot& plot, const ValueAxis& axis, std::span<const float> values, const LineLook& look, float width,
                const Frame& frame);

/// What a colour means, or the line of that look (LineLook::number).
struct LegendEntry {
  Color color;
  std::string text;
  std::int64_t line = -1;
};
/// What an entry takes beside its text.
float legend_sample(const LegendEntry& entry, const Frame& frame);
/// In one line, those that fit, and of how many others there is no room. Returns where the next thing may stand: at the line's end where
/// there are others.
float draw_legend(Canvas& canvas, Rect line, std::span<const LegendEntry> entries, const Frame& frame);

/// A named value of a colour scale.
struct ScaleMark {
  float value = 0;
  std::string text;
};
/// What a colour bar takes of a drawing's width: nothing where one for several drawings stands elsewhere.
float bar_room(const Frame& frame, float width);
/// Upright, the marks right of it: those that do not touch, from the ends on. `bar` is the colours' own place.
void draw_color_bar(Canvas& canvas, Rect bar, const ColorScale& scale, std::span<const ScaleMark> marks, const Frame& frame);

/// What an empty view says. `headline` empty: there is something to show.
struct Message {
  std::string headline, detail;

  explicit operator bool() const { return !headline.empty(); }
  /// For the screen reader.
  std::string sentence() const { return headline + ". " + detail; }
};
/// Before a model has read anything.
Message nothing_read();
/// While the answer to `question` is missing: how far the work is, or why there is none. `what`: "The decay of layer 2".
Message waiting(const Findings& findings, const Question& question, std::string_view what);
/// "token 12 “␣anna”"
std::string token_words(const RunInfo& run, std::int64_t token);
/// The last token whose step the numbers contain: while one moves, the one before it; −1: none yet.
std::int64_t shown_token(const Snapshot& snapshot, const Cursor& cursor);
/// "after token 12 “␣anna”"; of −1 "before the first token".
std::string after_words(const RunInfo& run, std::int64_t token);
/// "layer 2, partition 3, head 0": as much as the layer has of it; head −1: all of them.
std::string memory_place(const LayerInfo& layer, std::int64_t index, std::int64_t slot, std::int64_t head);
/// The place of what is told of a row's decay: where every cell has one of its own, that is a mean over the row.
std::string decay_place(const LayerInfo& layer, const std::string& place);
/// "Half is gone after 12 tokens · layer 2, head 0": what is said first, where it holds last, for lines are cut at their ends.
std::string sentence_at(std::string statement, std::string_view place);
/// Where there is no such layer, or no matrix state in it, so that nothing needs to be asked; else false.
Message without_memory(const Snapshot& snapshot);
/// The same, or where its matrix state has no such head.
Message without_memory(const Snapshot& snapshot, std::int64_t head);
/// Where the layer's softmax attention has no such head.
Message without_attention_head(const Snapshot& snapshot, std::int64_t head);

}  // namespace statescope

#include "views/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

#include "views/colormaps.h"
#include "views/parts.h"
#include "views/shading.h"
#include "views/sheets.h"
#include "views/token_tiles.h"
#include "views/words.h"

namespace statescope {
namespace {

constexpr std::int64_t kFewest = 16, kMostTokens = std::int64_t{1} << 20, kAllTokens = std::int64_t{1} << 40;
constexpr std::int64_t kFewestAsked = 256;  // tokens; with fewer shown, a part of them is
constexpr std::size_t kMostNamed = 10;      // sources

constexpr std::string_view kAllTogether = QT_TRANSLATE_NOOP("Views", "All together"), kShares = QT_TRANSLATE_NOOP("Views", "Shares |A|");

constexpr std::int64_t kBeside = AttentionQuestion::kBeside;

bool is_softmax(const LayerInfo& layer) { return layer.memory == "softmax attention"; }
WeightKind kind_of(const LayerInfo& layer, std::int64_t slot) {
  if (layer.mixer == "nsa") return WeightKind::branches;
  if (is_softmax(layer) || slot == kBeside) return WeightKind::softmax;
  return layer.memory == "selective scan" ? WeightKind::channels : WeightKind::implicit;
}

Message nothing_to_read(const Snapshot& snapshot, const Cursor& cursor, std::int64_t slot) {
  const LayerInfo* layer = layer_of(snapshot);
  if (layer && (is_softmax(*layer) || slot == kBeside)) return without_attention_head(snapshot, cursor.head);
  if (layer && !layer->has_state())
    return {Views::tr("Layer {} ({}) reads no earlier tokens by weights", snapshot.layer, layer->mixer),
            nearest_layer(snapshot, [](const LayerInfo& other) { return other.has_state() || is_softmax(other); })};
  return without_memory(snapshot, cursor.head);
}

/// The tokens along both sides of the map that is asked for.
TokenSteps asked_tokens(const Snapshot& snapshot, std::int64_t shown) {
  return steps_around(snapshot.token, std::ssize(snapshot.run->tokens), std::max(shown, kFewestAsked));
}

AttentionQuestion question_of(const Snapshot& snapshot, const Cursor& cursor, std::int64_t slot, const TokenSteps& rows,
                              const TokenSteps& columns) {
  return {snapshot.layer, cursor.head, rows, columns, slot};
}

/// While a token moves, the numbers are those of the token before.
std::int64_t reader(const Snapshot& snapshot, const Cursor& cursor) { return cursor.progress < 1 ? snapshot.token - 1 : snapshot.token; }

/// What has the cursor's row with every token that is shown: the part of the map that it is in, or, where that leaves tokens out, a
/// question of its own. None before the first token.
std::optional<AttentionQuestion> row_question(const Snapshot& snapshot, const Cursor& cursor, std::int64_t slot, const TokenSteps& asked) {
  const std::int64_t token = reader(snapshot, cursor), end = asked.from + asked.count * asked.step;
  if (token < asked.from) return {};
  if (asked.step > 1) {
    const TokenSteps all{asked.from, 1, std::min(end, std::ssize(snapshot.run->tokens)) - asked.from};
    return question_of(snapshot, cursor, slot, {token, 1, 1}, all);
  }
  const std::int64_t tile = (token - asked.from) / AttentionMap::kMostRows;
  return question_of(snapshot, cursor, slot, tiles_of(asked, AttentionMap::kMostRows)[static_cast<std::size_t>(tile)], asked);
}

/// 99 in 100 of the numbers that are not 0 are no larger; a few large ones must not leave the rest pale.
float common_range(std::vector<float> sizes) {
  std::erase_if(sizes, [](float size) { return !(size > 0); });
  if (sizes.empty()) return 1;
  const auto at = sizes.begin() + static_cast<std::ptrdiff_t>(0.99 * static_cast<double>(sizes.size() - 1));
  std::nth_element(sizes.begin(), at, sizes.end());
  return round_range(*at);
}

/// Each arm to a round number of its own.
ValueAxis axis_of_row(const std::vector<AttentionData::Source>& row) {
  const auto [low, high] = std::ranges::minmax(row, {}, &AttentionData::Source::weight);
  const float least = low.weight, most = high.weight;
  return {least < 0 ? -round_range(-least) : 0.0, most > 0 || least == 0 ? round_range(most) : 0.0};
}

std::string title_of(const AttentionData& data) {
  if (data.shares) return Views::tr("Shares of what is read in {}", data.place);
  switch (data.kind) {
    case WeightKind::softmax:
      return Views::tr("Softmax weights of {}", data.place);
    case WeightKind::branches:
      return Views::tr("Gated weights of three branches of {}", data.place);
    case WeightKind::channels:
      return Views::tr("Mean |A| over the channels of {}", data.place);
    default:
      return Views::tr("Implicit attention of {}", data.place);
  }
}

std::string percent(double share) { return fmt::format("{:.{}f} %", 100 * share, share < 0.095 ? 1 : 0); }

/// "“␣4” (31) reads most from “␣anna” (29): 38 %; from the needle 52 %"
std::string summary(const AttentionData& data) {
  if (data.tokens.cursor < 0) return Views::tr("nothing has been read yet");
  const std::string reading = numbered_token(*data.tokens.run, data.tokens.cursor);
  if (!(data.all > 0) || data.strongest.empty()) return Views::tr("{} reads nothing here", reading);
  const AttentionData::Source& most = data.strongest.front();
  const std::string source = numbered_token(*data.tokens.run, most.token), share = percent(std::abs(most.weight) / data.all);
  if (!(data.of_needle > 0)) return Views::tr("{} reads most from {}: {}", reading, source, share);
  return Views::tr("{} reads most from {}: {}; from the needle {}", reading, source, share, percent(data.of_needle / data.all));
}

/// One drawing: where things stand.
struct Picture {
  const AttentionData& data;
  Canvas& canvas;
  const Frame& frame;
  float s;
  Rect title, words, color_bar;  // w 0: left out
  Plot bars, map;
  bool token_axis = false;

  Picture(const AttentionData& data_, Canvas& canvas_, Rect area, const Frame& frame_);
  ColorScale scale() const {
    const ColorRange& range = data.shading.range;
    const ColorMap colors = !data.shading.is_signed ? ColorMap::viridis : frame.theme.dark ? ColorMap::diverging_dark : ColorMap::diverging;
    return {colors, range.low, range.high, range.logarithmic};
  }
};

Picture::Picture(const AttentionData& data_, Canvas& canvas_, Rect area, const Frame& frame_)
    : data(data_), canvas(canvas_), frame(frame_), s(frame_.scale) {
  const Rect inner = inset(area, 8 * s);
  title = {inner.x, inner.y, inner.w, std::min(inner.h, caption_height(frame))};
  words = {inner.x, title.bottom(), inner.w, inner.bottom() - title.bottom()};
  const float left = token_side_width(frame),
              right = bar_room(frame, 12 * s + canvas.text_width("≤ −0.002", value(frame, kSmallType, {})) + 16 * s);
  const float name = 17 * s, named = 1.4f * kSmallType * s, w = inner.w - left - right;
  const float top = title.bottom() + name + named, room = inner.bottom() - top;
  if (w < 80 * s || room < 40 * s) return;
  words = {};
  token_axis = room - token_axis_height(frame) > 30 * s;
  const float bottom = inner.bottom() - (token_axis ? token_axis_height(frame) : 0);
  const float height = bottom - top;
  const bool both = height > 150 * s;
  bars = zoomed(canvas, {inner.x + left, top, w, both ? std::clamp(0.3f * height, 50 * s, 160 * s) : height}, true, false, frame);
  if (!both) return;
  const float map_top = bars.bottom() + name;
  map = zoomed(canvas, {bars.x, map_top, w, bottom - map_top}, true, true, frame);
  color_bar = {map.right() + 8 * s, map.y, 12 * s, map.h};
}

Color bar_color(const Picture& picture, std::size_t place) {
  const AttentionData& data = picture.data;
  if (data.needle[place]) return picture.frame.theme.needle;
  const ColorMap map = picture.frame.theme.dark ? ColorMap::diverging_dark : ColorMap::diverging;
  return data.shares ? picture.frame.theme.accent : color_at(map, data.row[place].weight < 0 ? 0.12f : 0.88f);
}

/// Names of the strongest sources above their bars, those that do not touch.
void draw_names(const Picture& picture) {
  const AttentionData& data = picture.data;
  const float s = picture.s, y = picture.bars.y - 0.7f * kSmallType * s;
  const TextStyle style = label(picture.frame, kSmallType, picture.frame.theme.ink, Align::center);
  std::vector<std::pair<float, float>> taken;
  for (const auto& [token, a] : data.strongest) {
    if (a == 0 || std::abs(a) < 0.2f * std::abs(data.strongest.front().weight) || taken.size() == kMostNamed) return;
    const std::string word = elided(picture.canvas, visible_token(*data.tokens.run, token), style, 80 * s);
    const std::string text = fmt::format("{}: {}", word, data.shares ? percent(a) : number(a, 2));
    const float width = picture.canvas.text_width(text, style), middle = data.tokens.x_of(picture.bars, data.tokens.place_of(token));
    if (width > picture.bars.w || middle < picture.bars.x || middle > picture.bars.right()) continue;
    const float x = std::clamp(middle, picture.bars.x + width / 2, picture.bars.right() - width / 2);
    const float from = x - width / 2 - 4 * s, to = x + width / 2 + 4 * s;
    if (std::ranges::any_of(taken, [&](const auto& other) { return from < other.second && other.first < to; })) continue;
    taken.emplace_back(from, to);
    picture.canvas.text({x, y}, text, style);
  }
}

void draw_bars(const Picture& picture) {
  const AttentionData& data = picture.data;
  const Plot& bars = picture.bars;
  if (bars.w <= 0) return;
  const float s = picture.s, each = bars.all.w / static_cast<float>(data.count()), zero = height_of(bars, data.row_axis, 0);
  // What lies before the tokens shown, as one bar left of them.
  const Rect before{bars.x - 34 * s, bars.y, 22 * s, bars.h}, all{before.x, bars.y, bars.right() - before.x, bars.h};
  std::string name = Views::tr("{} of {}", data.symbol(), numbered_token(*data.tokens.run, data.tokens.cursor));
  const bool of_memory_tokens = data.token_at(0) == 0 && data.before > 0;
  if (data.token_at(0) > 0)
    name += "; " + Views::tr("pale bar: Σ|A| = {0} of the {1} tokens before {1}", number(data.before, 3), data.token_at(0));
  if (of_memory_tokens) name += "; " + Views::tr("pale bar: Σ|A| = {} of the memory tokens", number(data.before, 3));
  draw_value_axis(picture.canvas, all, data.row_axis, "", picture.frame);
  fitted_text(picture.canvas, {picture.title.x, bars.y - 8 * s - 1.4f * kSmallType * s}, name,
              label(picture.frame, kSmallType, picture.frame.theme.faint), picture.title.w);
  if (data.token_at(0) > 0 || of_memory_tokens) {
    const float top = height_of(bars, data.row_axis, data.before);
    picture.canvas.fill_rect({before.x, top, before.w, zero - top}, faded(picture.frame.theme.faint, 0.5f));
    picture.canvas.stroke_rect({before.x, top, before.w, zero - top}, picture.frame.theme.faint, s);
    picture.canvas.hit(before, {{AttentionSheets::before, 0}});
  }
  const PlaceRange shown = places_across(bars, data.count());
  for (std::int64_t place = shown.from; place < shown.to; ++place) {
    const auto i = static_cast<std::size_t>(place);
    const float a = data.row[i].weight;
    if (a == 0) continue;
    const Within inside(picture.canvas, bars);
    const float end = height_of(bars, data.row_axis, a), width = std::max(1.0f, 0.8f * each);
    const float x = data.tokens.x_of(bars, place) - width / 2;
    picture.canvas.fill_rect({x, std::min(zero, end), width, std::max(std::abs(zero - end), 0.5f * s)}, bar_color(picture, i));
  }
  picture.canvas.line({before.x, zero}, {bars.right(), zero}, picture.frame.theme.ink, s);
  hit_plot(picture.canvas, bars, {{AttentionSheets::row, 0}, 1, data.count(), 0, 0});
  draw_names(picture);
}

void draw_map(const Picture& picture) {
  const AttentionData& data = picture.data;
  const Plot& map = picture.map;
  if (map.w <= 0) return;
  const float s = picture.s;
  draw_matrix(picture.canvas, map, data.cells, picture.scale(), {AttentionSheets::map, 0, 0});
  picture.canvas.stroke_rect(map, picture.frame.theme.line, s);
  draw_token_side(picture.canvas, map, data.tokens, picture.frame);
  draw_color_bar(picture.canvas, picture.color_bar, picture.scale(), data.marks, picture.frame);
  std::vector<std::string> notes = {Views::tr("row t reads column s")};
  if (data.step > 1) notes = {Views::tr("1 of every {0} rows, a column is the strongest of {0} tokens", data.step)};
  if (data.known < data.parts) notes.push_back(Views::tr("{} of {} parts worked out, the rest hatched", data.known, data.parts));
  if (const std::string gathered = gathered_text(picture.canvas, data.cells, map); !gathered.empty()) notes.push_back(gathered);
  if (data.most > 1.01f * data.shading.range.high) notes.push_back(Views::tr("up to {}", number(data.most, 3)));
  clauses_text(picture.canvas, {map.x, map.y - 8 * s}, joined(notes, "; "), label(picture.frame, kSmallType, picture.frame.theme.faint),
               map.w);
}

/// Of what is asked for, what is shown.
TokenSteps shown_part(std::int64_t token, const TokenSteps& asked, std::int64_t shown) {
  if (shown >= asked.count) return asked;
  const TokenWindow part = part_around(token, {asked.from, asked.from + asked.count}, shown);
  return {part.from, 1, part.to - part.from};
}

/// From A to |A| / Σ|A| where those are shown.
double unit_of(const AttentionMap& answer, std::int64_t row, bool shares) {
  const double all = answer.all[static_cast<std::size_t>(row)];
  return !shares ? 1 : all > 0 ? 1 / all : 0;
}

/// Every token's number in the reader's row, of which `part` is shown.
void fill_row(AttentionData& data, const AttentionMap& answer, const AttentionQuestion& question, const TokenSteps& part) {
  const std::int64_t row = data.tokens.cursor - question.rows.from, width = question.columns.count;
  const std::int64_t skipped = part.from - question.columns.from;
  const double unit = unit_of(answer, row, data.shares);
  const RunInfo& run = *data.tokens.run;
  double before = answer.before[static_cast<std::size_t>(row)];
  data.row.resize(static_cast<std::size_t>(part.count));
  data.needle.resize(static_cast<std::size_t>(part.count));
  for (std::int64_t i = 0; i < width; ++i) {
    const float a = answer.weight[static_cast<std::size_t>(row * width + i)];
    const std::int64_t token = question.columns.from + i, place = (i - skipped) / part.step;
    if (i < skipped) before += std::abs(a);
    if (i < skipped || place >= part.count) continue;
    const AttentionData::Source source{token, static_cast<float>(unit * (data.shares ? std::abs(a) : a))};
    AttentionData::Source& shown = data.row[static_cast<std::size_t>(place)];
    if ((token - part.from) % part.step == 0 || std::abs(source.weight) > std::abs(shown.weight)) shown = source;
    data.strongest.push_back(source);
    if (!is_needle(run, token)) continue;
    data.needle[static_cast<std::size_t>(place)] = true;
    data.of_needle += std::abs(source.weight);
  }
  data.before = static_cast<float>(unit * before);
  data.all = unit * answer.all[static_cast<std::size_t>(row)];
  const auto most = data.strongest.begin() + std::min(std::ssize(data.strongest), static_cast<std::ptrdiff_t>(AttentionData::kMostSources));
  std::ranges::partial_sort(data.strongest, most, [](const auto& a, const auto& b) {
    return std::abs(a.weight) != std::abs(b.weight) ? std::abs(a.weight) > std::abs(b.weight) : a.token < b.token;
  });
  data.strongest.erase(most, data.strongest.end());
}

/// The rows of an answer that are shown, into cells [part, part].
void copy_rows(std::vector<float>& cells, const AttentionMap& answer, const TokenSteps& rows, const TokenSteps& asked,
               const TokenSteps& part, bool shares) {
  const std::int64_t skipped = (part.from - asked.from) / part.step;
  for (std::int64_t r = 0; r < rows.count; ++r) {
    const std::int64_t place = (rows.from - part.from) / part.step + r;
    if (place < 0 || place >= part.count) continue;
    const auto unit = static_cast<float>(unit_of(answer, r, shares));
    for (std::int64_t c = 0; c < part.count; ++c) {
      const float a = answer.weight[static_cast<std::size_t>(r * asked.count + skipped + c)];
      cells[static_cast<std::size_t>(place * part.count + c)] = shares ? unit * std::abs(a) : a;
    }
  }
}

void shade_cells(AttentionData& data, const std::vector<float>& cells, const RangeChoice& range) {
  std::vector<float> sizes;
  sizes.reserve(cells.size());
  for (const float cell : cells) sizes.push_back(std::abs(cell));
  for (const float size : sizes) data.most = std::fmax(data.most, size);
  const float high = common_range(std::move(sizes));
  const bool is_signed = !data.shares && data.kind == WeightKind::implicit;
  data.shading = shade(cells, {is_signed ? -high : 0, high}, is_signed, range);
  const std::string name = number(high, 3);
  const std::string most = (data.shading.above > 0 ? "≥ " : "") + name, least = (data.shading.below > 0 ? "≤ −" : "−") + name;
  data.marks = is_own(range) ? std::vector<ScaleMark>{{high, most}, {0, "0"}, {is_signed ? -high : 0, is_signed ? least : "0"}}
                             : range_marks(data.shading);
}

class AttentionView : public View {
 public:
  std::vector<Question> questions(const Snapshot& snapshot, const Cursor& cursor) const override {
    const LayerInfo* layer = layer_of(snapshot);
    const std::int64_t slot = layer ? slot_of(*layer) : AttentionQuestion::kAllSlots;
    if (nothing_to_read(snapshot, cursor, slot)) return {};
    const TokenSteps asked = asked_tokens(snapshot, shown_);
    std::vector<Question> questions;
    const auto ask = [&](const AttentionQuestion& question) {
      if (std::ranges::count(questions, Question(question)) == 0) questions.emplace_back(question);
    };
    if (const auto row = row_question(snapshot, cursor, slot, asked)) ask(*row);
    for (const TokenSteps& rows : tiles_of(asked, AttentionMap::kMostRows)) ask(question_of(snapshot, cursor, slot, rows, asked));
    return questions;
  }
  /// All slots, their shares, then each slot of the layer last built.
  std::span<const std::string_view> modes() const override { return names_; }
  std::optional<Knob> knob() const override {
    if (tokens_ > 0 && tokens_ <= kFewest) return {};
    const auto most = static_cast<double>(tokens_ > 0 ? tokens_ : kMostTokens);
    return Knob{QT_TRANSLATE_NOOP("Views", "Tokens"),
                QT_TRANSLATE_NOOP("Views", "How many tokens are shown, the cursor's among them."),
                static_cast<double>(kFewest),
                most,
                std::min(most, static_cast<double>(shown_)),
                true};
  }
  void turn(double value) override {
    const bool all = tokens_ > 0 && value >= static_cast<double>(tokens_);  // of a run that may still grow
    shown_ = all ? kAllTokens : std::max<std::int64_t>(kFewest, std::llround(value));
  }

  void build(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings) override {
    const LayerInfo* layer = layer_of(snapshot);
    tokens_ = snapshot.run ? std::ssize(snapshot.run->tokens) : 0;
    titles_.clear();
    for (std::int64_t slot = 0; layer && layer->slots() > 1 && slot < layer->slots(); ++slot)
      titles_.push_back(Views::tr("Only {}", slot_title(slot_identity(*layer, slot), slot_name(*layer, slot))));
    if (layer && layer->attends_beside()) titles_.push_back(Views::tr("Attention beside the memory"));
    names_ = {kAllTogether, kShares};
    names_.insert(names_.end(), titles_.begin(), titles_.end());
    const std::int64_t slot = layer ? slot_of(*layer) : -1;
    data_ = build_attention(snapshot, cursor, findings, slot, mode() == 1, shown_, range());
  }
  std::optional<Shading> shading() const override { return data_.message ? std::nullopt : std::optional(data_.shading); }
  void draw(Canvas& canvas, Rect area, const Frame& frame) const override { statescope::draw(data_, canvas, area, frame); }

  std::vector<Sheet> sheets() const override { return statescope::sheets(data_); }
  std::string sentence() const override {
    return data_.message ? data_.message.sentence() : fmt::format("{}: {}.", data_.title, summary(data_));
  }

 private:
  std::int64_t slot_of(const LayerInfo& layer) const {
    const std::int64_t slot = static_cast<std::int64_t>(mode()) - 2, slots = layer.slots() > 1 ? layer.slots() : 0;
    if (layer.attends_beside() && slot == slots) return kBeside;
    return slot >= 0 && slot < slots ? slot : -1;
  }
  std::int64_t shown_ = 256, tokens_ = 0;  // of how many
  std::vector<std::string> titles_;
  std::vector<std::string_view> names_ = {kAllTogether, kShares};
  AttentionData data_;
};

}  // namespace

std::string AttentionData::symbol() const {
  if (shares) return "|A| / Σ|A|";
  switch (kind) {
    case WeightKind::softmax:
      return Views::tr("weight");
    case WeightKind::branches:
      return Views::tr("gated weight");
    case WeightKind::channels:
      return Views::tr("mean |A|");
    default:
      return "A";
  }
}

std::string AttentionData::equation() const {
  switch (kind) {
    case WeightKind::softmax:
      return Views::tr("A = softmax(q kᵀ / √d)");
    case WeightKind::branches:
      return Views::tr("A = Σ_b g_b softmax(q k_bᵀ / √d) over the branches b: means of blocks, chosen blocks, window (NSA eq. 5)");
    case WeightKind::channels:
      return Views::tr("y^c_t = Σ_s A^c_{t,s} x^c_s of every channel c; the mean of |A^c| over them");
    default:
      return Views::tr("o_t = Σ_s A_{t,s} v_s (SSE Def. 3)");
  }
}

TokenWindow part_around(std::int64_t token, TokenWindow window, std::int64_t shown) {
  const std::int64_t from = std::clamp(token - 2 * shown / 3, window.from, std::max(window.from, window.to - shown));
  return {from, std::min(window.to, from + shown)};
}

AttentionData build_attention(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, std::int64_t slot, bool shares,
                              std::int64_t shown, const RangeChoice& range) {
  AttentionData data;
  data.message = nothing_to_read(snapshot, cursor, slot);
  if (data.message) return data;
  const LayerInfo& layer = *layer_of(snapshot);
  const TokenSteps asked = asked_tokens(snapshot, shown);
  const std::vector<TokenSteps> tiles = tiles_of(asked, AttentionMap::kMostRows);
  const std::optional<AttentionQuestion> of_row = row_question(snapshot, cursor, slot, asked);
  const AttentionQuestion first = of_row.value_or(question_of(snapshot, cursor, slot, tiles.front(), asked));
  const AttentionMap* answer = findings.get(first);
  data.kind = kind_of(layer, slot);
  data.shares = shares;
  data.place = Views::tr("layer {}, head {}", snapshot.layer, first.head);
  if (slot == kBeside) data.place = Views::tr("{}, attention beside the memory", data.place);
  if (slot >= 0) data.place += fmt::format(", {}", slot_title(slot_identity(layer, slot), slot_name(layer, slot)));
  if (!answer) {
    data.message = waiting(findings, first, Views::tr("What tokens read in {}", data.place));
    return data;
  }
  data.title = title_of(data);
  const TokenSteps part = shown_part(snapshot.token, asked, shown);
  data.step = part.step;
  data.tokens = {snapshot.run, {}, reader(snapshot, cursor)};
  for (const std::int64_t token : tokens_of(part)) data.tokens.tokens.push_back(static_cast<std::int32_t>(token));
  if (of_row)
    fill_row(data, *answer, *of_row, part);
  else
    data.row.resize(static_cast<std::size_t>(part.count));
  data.row_axis = axis_of_row(data.row);

  std::vector<float> cells(static_cast<std::size_t>(part.count * part.count), NAN);
  for (const TokenSteps& rows : tiles) {
    const AttentionMap* known = findings.get(question_of(snapshot, cursor, slot, rows, asked));
    data.known += known != nullptr;
    if (known) copy_rows(cells, *known, rows, asked, part, shares);
  }
  data.parts = std::ssize(tiles);
  shade_cells(data, cells, range);
  data.cells = Pyramid(std::move(cells), part.count, part.count);
  return data;
}

void draw(const AttentionData& data, Canvas& canvas, Rect area, const Frame& frame) {
  if (data.message) {
    draw_message(canvas, area, frame, data.message.headline, data.message.detail);
    return;
  }
  const Picture picture(data, canvas, area, frame);
  canvas.push_clip(area);
  draw_caption(canvas, picture.title, sentence_at(summary(data), data.place), AttentionMap::accuracy, frame);
  if (picture.map.w <= 0 || !picture.token_axis) canvas.left_out();
  if (picture.words.w > 0) {
    std::vector<Fact> facts;
    for (const auto& [token, weight] : std::span(data.strongest).first(std::min(kMostNamed, data.strongest.size())))
      facts.push_back({fmt::format("{} ({})", visible_token(*data.tokens.run, token), token), number(weight, 3)});
    draw_fact_lines(canvas, picture.words, facts, frame);
  }
  draw_bars(picture);
  draw_map(picture);
  if (picture.token_axis) draw_token_axis(canvas, picture.map.w > 0 ? picture.map : picture.bars, data.tokens, frame);
  if (picture.map.w > 0) draw_cursor_line(canvas, picture.bars, data.tokens, frame);
  canvas.pop_clip();
}

std::unique_ptr<View> make_attention() { return std::make_unique<AttentionView>(); }

}  // namespace statescope

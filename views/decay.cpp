#include "views/decay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "views/arrays.h"
#include "views/colormaps.h"
#include "views/parts.h"
#include "views/words.h"

namespace statescope {
namespace {

constexpr float kThreshold = 0.001f;  // of the receptive field
// Hit ids: cells below, then the places of the curve, then the ranks.
constexpr std::int64_t kCurveIds = std::int64_t{1} << 40, kRankIds = std::int64_t{1} << 41;

std::string channel_word(Decay::Axis axis) {
  switch (axis) {
    case Decay::Axis::heads:
      return Views::tr("head");
    case Decay::Axis::columns:
      return Views::tr("value column");
    default:
      return Views::tr("key row");
  }
}

/// What stands below the bars of all channels.
std::string ranked_words(const DecayData& data) {
  const auto place = std::ranges::find(data.ranks, data.chosen, &DecayRank::channel) - data.ranks.begin() + 1;
  const std::string chosen = data.channel_name(data.chosen);
  switch (data.axis) {
    case Decay::Axis::heads:
      return Views::tr("heads, fastest first; {} is number {} of {}", chosen, place, data.channels);
    case Decay::Axis::columns:
      return Views::tr("value columns, fastest first; {} is number {} of {}", chosen, place, data.channels);
    default:
      return Views::tr("key rows, fastest first; {} is number {} of {}", chosen, place, data.channels);
  }
}

/// The one of middling half-life: what is shown before the reader chooses.
std::int64_t middle_channel(const Decay& decay) {
  std::vector<std::size_t> order(decay.half_life.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::size_t c) { return decay.half_life[c]; });
  return static_cast<std::int64_t>(order[order.size() / 2]);
}

std::int64_t chosen_channel(const Cursor& cursor, const Decay& decay) {
  using Axis = Decay::Axis;
  const std::int64_t wanted = decay.axis == Axis::heads ? cursor.head : decay.axis == Axis::columns ? cursor.column : cursor.row;
  return wanted < 0 ? middle_channel(decay) : std::min(wanted, decay.channels - 1);
}

CursorMove to_channel(const DecayData& data, std::int64_t channel) {
  if (data.axis == Decay::Axis::heads) return {.head = channel};
  return data.axis == Decay::Axis::columns ? CursorMove{.column = channel} : CursorMove{.row = channel};
}

/// Δ_{t,s} = exp(Σ_{j=s+1…t} log α_j) for the visits s so far, t the last of them
std::vector<float> left_after(const Decay& decay, std::int64_t until) {
  std::vector<float> left;
  if (until == 0) return left;
  const auto sum = [&](std::int64_t i, std::int64_t c) { return decay.log_sum[static_cast<std::size_t>(i * decay.channels + c)]; };
  for (std::int64_t c = 0; c < decay.channels; ++c) {
    for (std::int64_t s = 0; s < until; ++s) left.push_back(static_cast<float>(std::exp(sum(until - 1, c) - sum(s, c))));
  }
  return left;
}

std::vector<float> alphas(const Decay& decay) {
  const std::size_t n = decay.token.size(), channels = static_cast<std::size_t>(decay.channels);
  std::vector<float> alpha(n * channels);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t c = 0; c < channels; ++c) alpha[c * n + i] = std::exp(decay.log_decay[i * channels + c]);
  }
  return alpha;
}

std::vector<DecayRank> ranked(const Decay& decay, DecayMode mode) {
  std::vector<DecayRank> ranks;
  for (std::int64_t c = 0; c < decay.channels; ++c) {
    const auto i = static_cast<std::size_t>(c);
    ranks.push_back({c, decay.half_life[i], decay.width[i], decay.censored[i]});
  }
  std::ranges::stable_sort(ranks, {}, mode == DecayMode::receptive_field ? &DecayRank::width : &DecayRank::half_life);
  return ranks;
}

DecayQuestion question_of(const Snapshot& snapshot, const Cursor& cursor) {
  const LayerInfo& layer = *layer_of(snapshot);
  const auto tokens = static_cast<std::int64_t>(snapshot.run->tokens.size());
  const TokenWindow window = window_around(std::clamp<std::int64_t>(cursor.token, 0, tokens - 1), tokens);
  return {snapshot.layer, std::clamp<std::int64_t>(cursor.slot, 0, layer.slots() - 1),
          std::clamp<std::int64_t>(cursor.head, 0, layer.heads - 1), window.from, window.to};
}

Message never_forgets(const LayerInfo& layer, std::int64_t index) {
  return {Views::tr("The memory of layer {} ({}) never forgets by decay", index, layer.mixer),
          layer.memory == "gated delta rule"
              ? Views::tr("Its α is 1 at every token: what was written leaves only by being erased (see the delta rule).")
              : Views::tr("Its α is 1 at every token: everything that was written stays, and adds up.")};
}

Message no_visit(const DecayData& data, const DecayQuestion& question) {
  return {Views::tr("No token from {} to {} came to {}", question.from, question.to - 1, data.place),
          Views::tr("Where no token comes nothing decays: what is there stays as it is.")};
}

/// "12 tokens", "over 40 tokens": as far as the window goes back
std::string span_words(const DecayData& data, float share) {
  const std::int64_t tokens = tokens_until(data, data.chosen, share);
  if (tokens < 0) return Views::tr("over {} tokens", data.token - data.tokens.tokens.front());
  return tokens_text(tokens);
}

std::string token_words(const DecayData& data, std::int64_t place) {
  return token_words(*data.tokens.run, data.tokens.tokens[static_cast<std::size_t>(place)]);
}

float ranked_value(const DecayData& data, const DecayRank& rank) {
  return data.mode == DecayMode::receptive_field ? rank.width : rank.half_life;
}

std::string tokens_number(float tokens) {
  return std::isinf(tokens) ? "∞" : tokens >= 100 ? fmt::format("{:.0f}", tokens) : number(tokens, 2);
}

std::string rank_summary(const DecayData& data) {
  const float least = ranked_value(data, data.ranks.front()), most = ranked_value(data, data.ranks.back());
  const std::size_t count = data.ranks.size();
  const float median = std::midpoint(ranked_value(data, data.ranks[(count - 1) / 2]), ranked_value(data, data.ranks[count / 2]));
  const std::string spread =
      data.ranks.size() == 1 ? Views::tr("{} tokens", tokens_number(least))
                             : Views::tr("{} to {} tokens, median {}", tokens_number(least), tokens_number(most), tokens_number(median));
  if (data.mode == DecayMode::half_life) return Views::tr("half is gone after {}", spread);
  const auto censored = std::ranges::count_if(data.ranks, [](const DecayRank& rank) { return rank.censored > 0; });
  if (censored == 0) return Views::tr("a write is felt for {}", spread);
  return Views::tr("a write is felt for {}; {} of {} reach the run's beginning", spread, censored, data.channels);
}

/// The answer in a sentence.
std::string statement(const DecayData& data) {
  if (data.mode == DecayMode::half_life || data.mode == DecayMode::receptive_field) return rank_summary(data);
  if (data.until == 0) return Views::tr("no token has come here yet");
  const std::string channel = data.channel_name(data.chosen);
  if (data.mode == DecayMode::each_token) {
    const float alpha = data.alpha[static_cast<std::size_t>(data.chosen * data.tokens.count() + data.until - 1)];
    return Views::tr("{} keeps α = {} of itself at {}", channel, number(alpha, 4), token_words(data, data.until - 1));
  }
  return Views::tr("{}: half of a write is gone after {}, 99.9 % after {}", channel, span_words(data, 0.5f),
                   span_words(data, kThreshold));
}
std::string summary(const DecayData& data) { return sentence_at(statement(data), data.place); }

/// Δ, or 1 − α: what forgets fast is the strongest.
void fill_cells(DecayData& data, const RangeChoice& range) {
  const bool cumulative = data.mode == DecayMode::cumulative;
  std::vector<float> values = cumulative ? data.left : data.alpha;
  if (!cumulative) std::ranges::transform(values, values.begin(), [](float alpha) { return 1 - alpha; });
  if (cumulative)
    data.coloring = colored(values, {0.001f, 1, true}, {{1, "1"}, {0.1f, "0.1"}, {0.01f, "0.01"}, {0.001f, "≤ 0.001"}}, range);
  else
    data.coloring =
        colored(values, {0.0001f, 1, true}, {{1, "0"}, {0.1f, "0.9"}, {0.01f, "0.99"}, {0.001f, "0.999"}, {0.0001f, "1"}}, range);
  data.names_alpha = is_own(range);
  data.cells = {std::move(values), data.channels, cumulative ? data.until : data.tokens.count()};
}

/// One drawing: where things stand.
struct Picture {
  const DecayData& data;
  Canvas& canvas;
  const Frame& frame;
  float s;
  Rect title, cells, curve, ranks;  // w or h 0: left out
  float bar_width = 0;              // of the colour bar with its numbers
  bool token_axis = false;

  Picture(const DecayData& data_, Canvas& canvas_, Rect area, const Frame& frame_);
  bool ranking() const { return data.mode == DecayMode::half_life || data.mode == DecayMode::receptive_field; }
};

Picture::Picture(const DecayData& data_, Canvas& canvas_, Rect area, const Frame& frame_)
    : data(data_), canvas(canvas_), frame(frame_), s(frame_.scale) {
  const Rect inner = inset(area, 8 * s);
  const float name = 17 * s;
  title = {inner.x, inner.y, inner.w, std::min(caption_height(frame), inner.h)};
  const float left = inner.x + value_axis_width(frame), top = title.bottom() + name;
  if (inner.right() - left < 80 * s || inner.bottom() - top < 30 * s) return;
  if (ranking()) {
    ranks = {left, top, inner.right() - left, inner.bottom() - top - 20 * s};
    return;
  }
  bar_width = 12 * s + 4 * s + canvas.text_width("≤ 0.001", value(frame, kSmallType, {})) + 8 * s;
  const float width = std::max(40 * s, inner.right() - left - bar_width);
  token_axis = inner.bottom() - top - token_axis_height(frame) > 30 * s;
  const float bottom = inner.bottom() - (token_axis ? token_axis_height(frame) : 0);
  const float room = bottom - top, curve_least = 60 * s;
  if (room > 60 * s + name + curve_least) {
    const float height = std::min(0.58f * (room - name), 26 * s * static_cast<float>(data.channels));
    cells = {left, top, width, height};
    curve = {left, cells.bottom() + name, width, bottom - cells.bottom() - name};
  } else {
    curve = {left, top, inner.right() - left, room};
  }
}

void draw_cells(const Picture& picture) {
  const DecayData& data = picture.data;
  if (picture.cells.w <= 0) return;
  Canvas& canvas = picture.canvas;
  const float s = picture.s;
  const bool cumulative = data.mode == DecayMode::cumulative;
  Rect rect = picture.cells;
  rect.w *= static_cast<float>(data.cells.columns()) / static_cast<float>(data.tokens.count());
  canvas.stroke_rect(picture.cells, picture.frame.theme.line, s);
  draw_matrix(canvas, rect, data.cells, data.coloring->scale(), 0);
  const float each = rect.h / static_cast<float>(data.channels), half = 0.5f * kSmallType * s;
  const float y = rect.y + each * static_cast<float>(data.chosen);
  const TextStyle tick = value(picture.frame, kSmallType, picture.frame.theme.faint, Align::right);
  const float chosen_y = std::clamp(y + each / 2, rect.y + half, rect.bottom() - half);
  const TextStyle bold = value(picture.frame, kSmallType, picture.frame.theme.ink, Align::right, true);
  canvas.text({rect.x - 5 * s, chosen_y}, std::to_string(data.chosen), bold);
  for (const std::int64_t c : axis_ticks(data.channels, std::max<std::int64_t>(1, static_cast<std::int64_t>(rect.h / (18 * s))))) {
    const float tick_y = std::clamp(rect.y + each * (static_cast<float>(c) + 0.5f), rect.y + half, rect.bottom() - half);
    if (std::abs(tick_y - chosen_y) > 2.2f * half) canvas.text({rect.x - 5 * s, tick_y}, std::to_string(c), tick);
  }
  // The chosen channel between two lines, so that its cells stay free.
  for (const float edge : {y, y + each}) canvas.line({rect.x, edge}, {picture.cells.right(), edge}, picture.frame.theme.ink, s);
  const std::string what = cumulative         ? Views::tr("colour: what is left of each token's write")
                           : data.names_alpha ? Views::tr("colour: α, the part that each token keeps")
                                              : Views::tr("colour: 1 − α, the part that each token takes");
  const std::string gathered = gathered_text(canvas, data.cells, rect);
  fitted_text(canvas, {picture.title.x, rect.y - 8 * s},
              fmt::format("{} ↓   {}{}{}", channel_word(data.axis), what, gathered.empty() ? "" : "; ", gathered),
              label(picture.frame, kSmallType, picture.frame.theme.faint), picture.cells.right() - picture.title.x);
  draw_color_bar(canvas, {picture.cells.right() + 8 * s, rect.y, 12 * s, rect.h}, data.coloring->scale(), data.coloring->marks,
                 picture.frame);
  draw_cursor_line(canvas, picture.cells, data.tokens, picture.frame);
}

/// The least round number 1 − 10⁻ⁿ below all of them: curves of α lie close to 1.
ValueAxis alpha_axis(std::span<const float> alpha) {
  const float least = alpha.empty() ? 0 : std::ranges::min(alpha);
  for (const double low : {0.999, 0.99, 0.9, 0.5}) {
    if (least >= static_cast<float>(low)) return {low, 1};
  }
  return {0, 1};
}

void draw_dashes(const Picture& picture, Rect plot, float y) {
  const float dash = 6 * picture.s;
  for (float x = plot.x; x < plot.right(); x += 2 * dash)
    picture.canvas.line({x, y}, {std::min(x + dash, plot.right()), y}, picture.frame.theme.ink, 1.5f * picture.s);
}

void draw_chosen_curve(const Picture& picture) {
  const DecayData& data = picture.data;
  const bool cumulative = data.mode == DecayMode::cumulative;
  const std::int64_t n = data.tokens.count(), columns = cumulative ? data.until : n;
  const std::span<const float> all = cumulative ? data.left : data.alpha;
  const auto channel = [&](std::int64_t c) {
    return all.subspan(static_cast<std::size_t>(c * columns), static_cast<std::size_t>(columns));
  };
  const bool heads = data.axis == Decay::Axis::heads;
  const ValueAxis axis = cumulative ? ValueAxis{1e-4, 1, true} : alpha_axis(heads ? all : channel(data.chosen));
  const std::string name = cumulative ? Views::tr("{}: Δ, left of each token's write; dashes: 0.001", data.channel_name(data.chosen))
                                      : fmt::format("{}: α", data.channel_name(data.chosen));
  draw_value_axis(picture.canvas, picture.curve, axis, name, picture.frame);
  if (cumulative) draw_dashes(picture, picture.curve, height_of(picture.curve, axis, kThreshold));
  Rect part = picture.curve;
  part.w *= static_cast<float>(columns) / static_cast<float>(std::max<std::int64_t>(1, n));
  const Theme& theme = picture.frame.theme;
  for (std::int64_t c = 0; heads && c < data.channels; ++c)
    draw_curve(picture.canvas, part, axis, channel(c), faded(identity_color(c + 1, theme), 0.7f), picture.s);
  draw_curve(picture.canvas, part, axis, channel(data.chosen), heads ? identity_color(data.chosen + 1, theme) : theme.ink,
             2.5f * picture.s);
  if (n > 0) picture.canvas.hit(picture.curve, {kCurveIds, 1, n});
}

void draw_rank_bars(const Picture& picture, const ValueAxis& axis) {
  const DecayData& data = picture.data;
  const Rect& plot = picture.ranks;
  const Theme& theme = picture.frame.theme;
  const float each = plot.w / static_cast<float>(data.channels), gap = each > 6 * picture.s ? 0.15f * each : 0;
  for (std::size_t i = 0; i < data.ranks.size(); ++i) {
    const DecayRank& rank = data.ranks[i];
    const float value = ranked_value(data, rank), top = height_of(plot, axis, std::isnan(value) ? axis.low : value);
    const Rect bar{plot.x + each * static_cast<float>(i) + gap / 2, top, each - gap, plot.bottom() - top};
    const bool open = std::isinf(value) || (data.mode == DecayMode::receptive_field && rank.censored > 0);
    const Color color = rank.channel == data.chosen ? theme.accent : faded(theme.ink, 0.55f);
    if (open && bar.w > 3 * picture.s) {
      picture.canvas.fill_rect(bar, faded(color, 0.25f));
      picture.canvas.stroke_rect(bar, color, 1.5f * picture.s);
    } else {
      picture.canvas.fill_rect(bar, faded(color, open ? 0.4f : 1));
    }
  }
  picture.canvas.hit(plot, {kRankIds, 1, data.channels});
}

/// Whole powers of ten around all finite values and the run's length.
ValueAxis rank_axis(const DecayData& data) {
  double low = static_cast<double>(data.run), high = std::max<double>(10, low);
  for (const DecayRank& rank : data.ranks) {
    const float value = ranked_value(data, rank);
    if (!std::isfinite(value)) continue;
    low = std::min(low, std::max(0.1, double{value}));
    high = std::max(high, double{value});
  }
  return {std::pow(10, std::floor(std::log10(low) + 1e-9)), std::pow(10, std::ceil(std::log10(high))), true};
}

void draw_ranks(const Picture& picture) {
  const DecayData& data = picture.data;
  const Rect& plot = picture.ranks;
  if (plot.w <= 0) return;
  const ValueAxis axis = rank_axis(data);
  const std::string name = data.mode == DecayMode::half_life
                               ? Views::tr("tokens until half is gone; hollow: never; dashes: length of the run, {}", data.run)
                               : Views::tr("tokens until a thousandth is left; hollow: at least; dashes: length of the run, {}", data.run);
  draw_value_axis(picture.canvas, plot, axis, name, picture.frame);
  draw_rank_bars(picture, axis);
  draw_dashes(picture, plot, height_of(plot, axis, static_cast<double>(data.run)));
  const TextStyle below = label(picture.frame, kSmallType, picture.frame.theme.faint);
  fitted_text(picture.canvas, {plot.x, plot.bottom() + 11 * picture.s}, ranked_words(data), below, plot.w);
}

class DecayView : public View {
 public:
  std::vector<Question> questions(const Snapshot& snapshot, const Cursor& cursor) const override {
    if (without_memory(snapshot)) return {};
    return {question_of(snapshot, cursor)};
  }
  std::span<const std::string_view> modes() const override {
    static constexpr std::array<std::string_view, 4> names = {
        QT_TRANSLATE_NOOP("Views", "Cumulative"), QT_TRANSLATE_NOOP("Views", "Each token"), QT_TRANSLATE_NOOP("Views", "Half-life"),
        QT_TRANSLATE_NOOP("Views", "Receptive field")};
    return names;
  }
  void build(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings) override {
    data_ = build_decay(snapshot, cursor, findings, static_cast<DecayMode>(mode()), range());
  }
  std::optional<Shading> shading() const override { return shading_of(data_.coloring); }
  void draw(Canvas& canvas, Rect area, const Frame& frame) const override { statescope::draw(data_, canvas, area, frame); }

  std::vector<Array> arrays() const override { return statescope::arrays(data_); }
  Table table() const override {
    if (data_.message) return {};
    return data_.ranks.empty() ? token_table() : rank_table();
  }
  std::string describe() const override { return data_.message ? data_.message.sentence() : summary(data_) + "."; }

  std::string tooltip(std::int64_t hit_id) const override {
    if (data_.message || hit_id < 0) return {};
    if (hit_id >= kRankIds)
      return hit_id - kRankIds < std::ssize(data_.ranks) ? rank_tooltip(data_.ranks[static_cast<std::size_t>(hit_id - kRankIds)]) : "";
    if (hit_id >= kCurveIds) return hit_id - kCurveIds < data_.tokens.count() ? cell_tooltip(data_.chosen, hit_id - kCurveIds) : "";
    const std::int64_t columns = cell_columns();
    return hit_id < columns * data_.channels ? cell_tooltip(hit_id / columns, hit_id % columns) : "";
  }

  CursorMove on_hit(std::int64_t hit_id) const override {
    if (data_.message || hit_id < 0) return {};
    if (hit_id >= kRankIds)
      return hit_id - kRankIds < std::ssize(data_.ranks)
                 ? to_channel(data_, data_.ranks[static_cast<std::size_t>(hit_id - kRankIds)].channel)
                 : CursorMove{};
    if (hit_id >= kCurveIds)
      return hit_id - kCurveIds < data_.tokens.count() ? CursorMove{.token = token_at(hit_id - kCurveIds)} : CursorMove{};
    const std::int64_t columns = cell_columns();
    if (hit_id >= columns * data_.channels) return {};
    CursorMove move = to_channel(data_, hit_id / columns);
    // A click on the landscape of Δ would change the landscape: it chooses the row alone.
    if (data_.mode == DecayMode::each_token) move.token = token_at(hit_id % columns);
    return move;
  }

 private:
  std::int64_t cell_columns() const { return data_.mode == DecayMode::cumulative ? data_.until : data_.tokens.count(); }
  std::int64_t token_at(std::int64_t place) const { return data_.tokens.tokens[static_cast<std::size_t>(place)]; }

  std::string cell_tooltip(std::int64_t channel, std::int64_t place) const {
    const std::int64_t n = data_.tokens.count();
    std::string text = fmt::format("{}, {}\nα = {}", data_.channel_name(channel), token_words(data_, place),
                                   number(data_.alpha[static_cast<std::size_t>(channel * n + place)], 9));
    if (place < data_.until) {
      text += "\n" + Views::tr("Δ = {} of its write is left after token {}: the product of the later α (spec §12.3)",
                               number(data_.left[static_cast<std::size_t>(channel * data_.until + place)], 9), data_.token);
    }
    return fmt::format("{}\n{}", text, accuracy_words(Decay::accuracy));
  }
  std::string rank_tooltip(const DecayRank& rank) const {
    const std::string half_life = Views::tr("half-life {} tokens: ln 2 / mean(−log α) over the run (spec §12.3)",
                                            std::isinf(rank.half_life) ? "∞" : number(rank.half_life, 9));
    std::string field =
        Views::tr("receptive field {} tokens: Δ ≥ 0.001, mean over the last {} tokens (spec §12.4)", number(rank.width, 9), data_.measured);
    if (rank.censored > 0) field += "; " + Views::tr("at least: {} of them still feel the run's first token", rank.censored);
    return joined({data_.channel_name(rank.channel), half_life, field, accuracy_words(Decay::accuracy)}, "\n");
  }
  Table token_table() const {
    Table table{{Views::tr("token"), Views::tr("text"), "α", Views::tr("Δ left")}, {}};
    const std::int64_t n = data_.tokens.count();
    for (std::int64_t i = 0; i < n; ++i) {
      table.rows.push_back({std::to_string(token_at(i)), visible_token(*data_.tokens.run, token_at(i)),
                            number(data_.alpha[static_cast<std::size_t>(data_.chosen * n + i)], 9),
                            i < data_.until ? number(data_.left[static_cast<std::size_t>(data_.chosen * data_.until + i)], 9) : ""});
    }
    return table;
  }
  Table rank_table() const {
    Table table{{channel_word(data_.axis), Views::tr("half-life, tokens"), Views::tr("receptive field, tokens"),
                 Views::tr("reach the run's beginning")},
                {}};
    for (const DecayRank& rank : data_.ranks) {
      table.rows.push_back({std::to_string(rank.channel), std::isinf(rank.half_life) ? "∞" : number(rank.half_life, 9),
                            number(rank.width, 9), Views::tr("{} of {}", rank.censored, data_.measured)});
    }
    return table;
  }

  DecayData data_;
};

}  // namespace

std::string DecayData::channel_name(std::int64_t channel) const {
  return axis == Decay::Axis::rows      ? Views::tr("row {}", channel)
         : axis == Decay::Axis::columns ? Views::tr("column {}", channel)
                                        : Views::tr("head {}", channel);
}

std::int64_t tokens_until(const DecayData& data, std::int64_t channel, float share) {
  for (std::int64_t i = data.until - 1; i >= 0; --i) {
    if (data.left[static_cast<std::size_t>(channel * data.until + i)] < share)
      return data.token - data.tokens.tokens[static_cast<std::size_t>(i)];
  }
  return -1;
}

DecayData build_decay(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, DecayMode mode, const RangeChoice& range) {
  DecayData data;
  data.mode = mode;
  data.message = without_memory(snapshot);
  if (data.message) return data;
  const LayerInfo& layer = *layer_of(snapshot);
  const DecayQuestion question = question_of(snapshot, cursor);
  const Decay* decay = findings.get(question);
  data.place = memory_place(layer, question.layer, question.slot, decay && decay->axis == Decay::Axis::heads ? -1 : question.head);
  if (!decay) {
    data.message = waiting(findings, question, Views::tr("The decay of {}", data.place));
    return data;
  }
  if (decay->axis == Decay::Axis::none) {
    data.message = never_forgets(layer, question.layer);
    return data;
  }
  const bool ranking = mode == DecayMode::half_life || mode == DecayMode::receptive_field;
  if (decay->token.empty() && !ranking) {
    data.message = no_visit(data, question);
    return data;
  }
  data.run = static_cast<std::int64_t>(snapshot.run->tokens.size());
  data.token = std::clamp<std::int64_t>(cursor.token, 0, data.run - 1) - (cursor.progress < 1 ? 1 : 0);
  data.axis = decay->axis;
  data.channels = decay->channels;
  data.chosen = chosen_channel(cursor, *decay);
  data.tokens = {snapshot.run, decay->token, data.token};
  data.until = data.tokens.place_of(data.token) + 1;
  data.measured = decay->measured;
  if (ranking) {
    data.ranks = ranked(*decay, mode);
    return data;
  }
  data.alpha = alphas(*decay);
  data.left = left_after(*decay, data.until);
  fill_cells(data, range);
  return data;
}

void draw(const DecayData& data, Canvas& canvas, Rect area, const Frame& frame) {
  if (data.message) {
    draw_message(canvas, area, frame, data.message.headline, data.message.detail);
    return;
  }
  const Picture picture(data, canvas, area, frame);
  canvas.push_clip(area);
  draw_caption(canvas, picture.title, summary(data), kRecomputed, frame);
  if (picture.ranking()) {
    draw_ranks(picture);
  } else if (picture.curve.w > 0) {
    draw_cells(picture);
    draw_chosen_curve(picture);
    if (picture.token_axis) {
      draw_token_axis(canvas, picture.curve, data.tokens, frame);
    } else {
      draw_cursor_line(canvas, picture.curve, data.tokens, frame);
    }
  }
  canvas.pop_clip();
}

std::unique_ptr<View> make_decay() { return std::make_unique<DecayView>(); }

}  // namespace statescope

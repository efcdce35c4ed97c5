#include "views/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "views/beside.h"
#include "views/parts.h"
#include "views/sheets.h"
#include "views/words.h"

namespace statescope {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// One model's numbers of the channels that are compared, [channels, n] over the window; NaN where it has none.
struct Series {
  std::int64_t channels = 0;  // 0: it has nothing of the kind
  std::string kind;           // "partitions", "key rows", in English: only the same kinds are compared
  std::vector<float> values;
};

std::int64_t clamped(std::int64_t index, std::int64_t count) {
  return std::clamp<std::int64_t>(index, 0, std::max<std::int64_t>(count - 1, 0));
}

/// What is asked of either model about the window.
Question question_of(const Snapshot& snapshot, TokenWindow window, const Cursor& cursor, DifferenceMode mode) {
  const LayerInfo& layer = *layer_of(snapshot);
  if (mode == DifferenceMode::decay)
    return DecayQuestion{snapshot.layer, clamped(cursor.slot, layer.slots()), clamped(cursor.head, layer.heads), window.from, window.to};
  return HeadGatesQuestion{snapshot.layer};
}

TokenWindow window_of(const Snapshot& snapshot) { return window_around(snapshot.token, std::ssize(snapshot.run->tokens)); }

Series routing_of(const Snapshot& snapshot, TokenWindow window) {
  if (!snapshot.routing) return {};
  const Routing& routing = *snapshot.routing;
  Series series{routing.partitions, QT_TRANSLATE_NOOP("Views", "partitions"), {}};
  for (std::int64_t p = 0; p < routing.partitions; ++p)
    for (std::int64_t t = window.from; t < window.to; ++t) series.values.push_back(t < routing.tokens() ? routing.gate_at(t, p) : kNaN);
  return series;
}

Series decay_of(const Decay& decay, TokenWindow window) {
  static constexpr std::array<const char*, 4> kinds = {"", QT_TRANSLATE_NOOP("Views", "heads"), QT_TRANSLATE_NOOP("Views", "key rows"),
                                                       QT_TRANSLATE_NOOP("Views", "value columns")};
  const std::int64_t n = window.to - window.from;
  Series series{decay.axis == Decay::Axis::none ? 0 : decay.channels, kinds[static_cast<std::size_t>(decay.axis)],
                std::vector<float>(static_cast<std::size_t>(decay.channels * n), kNaN)};
  for (std::size_t i = 0; i < decay.token.size(); ++i) {
    const std::int64_t at = decay.token[i] - window.from;
    for (std::int64_t c = 0; at >= 0 && at < n && c < series.channels; ++c)
      series.values[static_cast<std::size_t>(c * n + at)] =
          std::exp(decay.log_decay[i * static_cast<std::size_t>(decay.channels) + static_cast<std::size_t>(c)]);
  }
  return series;
}

Series gates_of(const HeadContest& contest, TokenWindow window, bool writing) {
  const std::vector<float>& gate = writing ? contest.gate_k : contest.gate_q;
  Series series{contest.heads, QT_TRANSLATE_NOOP("Views", "heads"), {}};
  for (std::int64_t h = 0; h < contest.heads; ++h) {
    for (std::int64_t t = window.from; t < window.to; ++t) {
      const auto i = static_cast<std::size_t>(t * contest.heads + h);
      series.values.push_back(i < gate.size() ? gate[i] : kNaN);
    }
  }
  return series;
}

std::string unlike_words(const Peer& peer, DifferenceMode mode) {
  const std::string &a = peer.own_letter, &b = peer.letter;
  switch (mode) {
    case DifferenceMode::routing:
      return Views::tr("The routing of {} and {} cannot be compared", a, b);
    case DifferenceMode::decay:
      return Views::tr("The decay of {} and {} cannot be compared", a, b);
    case DifferenceMode::writing_gates:
      return Views::tr("The write gates of {} and {} cannot be compared", a, b);
    case DifferenceMode::reading_gates:
      return Views::tr("The read gates of {} and {} cannot be compared", a, b);
  }
  return {};
}

/// What is still missing of one of the two.
std::string subject(DifferenceMode mode, const std::string& letter) {
  switch (mode) {
    case DifferenceMode::routing:
      return Views::tr("The routing of {}", letter);
    case DifferenceMode::decay:
      return Views::tr("The decay of {}", letter);
    case DifferenceMode::writing_gates:
      return Views::tr("The write gates of {}", letter);
    case DifferenceMode::reading_gates:
      return Views::tr("The read gates of {}", letter);
  }
  return {};
}

/// Of either model; nothing where the answer is missing.
std::optional<Series> series_of(const Snapshot& snapshot, const Findings& findings, TokenWindow window, const Cursor& cursor,
                                DifferenceMode mode) {
  if (mode == DifferenceMode::routing) return routing_of(snapshot, window);
  const Question question = question_of(snapshot, window, cursor, mode);
  if (mode == DifferenceMode::decay) {
    const Decay* decay = findings.get(std::get<DecayQuestion>(question));
    return decay ? std::optional(decay_of(*decay, window)) : std::nullopt;
  }
  const HeadContest* contest = findings.get(std::get<HeadGatesQuestion>(question));
  return contest ? std::optional(gates_of(*contest, window, mode == DifferenceMode::writing_gates)) : std::nullopt;
}

/// Which of the two has what, where they cannot be compared.
Message unlike(const Series& own, const Series& other, const Peer& peer, DifferenceMode mode) {
  if (own.channels > 0 && own.channels == other.channels && own.kind == other.kind) return {};
  const auto channels = [](const Series& series) {
    return series.channels > 0 ? fmt::format("{} {}", series.channels, Views::tr(series.kind.c_str())) : Views::tr("none");
  };
  return {unlike_words(peer, mode), fmt::format("{}: {}. {}: {}.", peer.own_letter, channels(own), peer.letter, channels(other))};
}

void name_channels(DifferenceData& data, const Series& own, const LayerInfo& layer) {
  data.of_rows = own.kind == "key rows";
  for (std::int64_t c = 0; c < own.channels; ++c) {
    const std::int64_t slot = c + (layer.has_shared_slot ? 1 : 0);
    const bool routed = data.mode == DifferenceMode::routing;
    data.names.push_back(routed                        ? slot_title(slot_identity(layer, slot), slot_name(layer, slot))
                         : data.of_rows                ? Views::tr("row {}", c)
                         : own.kind == "value columns" ? Views::tr("column {}", c)
                                                       : Views::tr("head {}", c));
    const bool has_identity = routed || own.kind == "heads";
    data.channels.push_back({c, c + 1,
                             routed         ? slot_name(layer, slot)
                             : has_identity ? data.names.back()
                                            : std::to_string(c),
                             routed         ? slot_identity(layer, slot)
                             : has_identity ? c + 1
                                            : 0});
  }
}

/// "A − B of α is 0.31 at most, in row 3 after token 41"
std::string title_of(const DifferenceData& data, std::string_view place) {
  float most = 0;
  std::int64_t channel = -1, at = -1;
  for (std::int64_t c = 0; c < data.cells.rows(); ++c) {
    for (std::int64_t i = 0; i < data.cells.columns(); ++i) {
      const float value = data.cells.at(c, i);
      if (std::isnan(value) || std::abs(value) <= std::abs(most)) continue;
      most = value;
      channel = c;
      at = i;
    }
  }
  if (channel < 0) return sentence_at(Views::tr("{} of {} is 0 wherever both have one", data.models, data.quantity), place);
  return sentence_at(Views::tr("{} of {} is {:+.3g} at most: {}, token {}", data.models, data.quantity, most,
                               data.names[static_cast<std::size_t>(channel)], data.tokens.tokens[static_cast<std::size_t>(at)]),
                     place);
}

struct Picture {
  Rect title, bar;
  Plot plot;  // w 0: no room

  Picture(const DifferenceData& data, Canvas& canvas, Rect area, const Frame& frame) {
    const float s = frame.scale;
    const Rect inner = inset(area, 8 * s);
    title = {inner.x, inner.y, inner.w, std::min(inner.h, caption_height(frame))};
    const float left = group_axis_width(canvas, data.channels, frame), top = title.bottom() + 6 * s;
    const float bar_width = bar_room(frame, 12 * s + canvas.text_width("-0.0005", value(frame, kSmallType, {})) + 20 * s);
    const float w = inner.w - left - bar_width, h = inner.bottom() - top - token_axis_height(frame);
    if (w < 60 * s || h < 30 * s) return;
    plot = zoomed(canvas, {inner.x + left, top, w, h}, true, true, frame);
    bar = {plot.right() + 8 * s, plot.y, 12 * s, plot.h};
  }
};

class DifferenceView : public View {
 public:
  std::vector<Question> questions(const Snapshot& snapshot, const Cursor& cursor) const override {
    return asked(snapshot, snapshot, cursor);
  }
  bool compares() const override { return true; }
  std::vector<Question> peer_questions(const Snapshot& snapshot, const Findings&, const Snapshot& peer,
                                       const Cursor& cursor) const override {
    return asked(snapshot, peer, cursor);
  }
  std::span<const std::string_view> modes() const override {
    static constexpr std::array<std::string_view, 4> names = {QT_TRANSLATE_NOOP("Views", "Routing"), QT_TRANSLATE_NOOP("Views", "Decay"),
                                                              QT_TRANSLATE_NOOP("Views", "Write gates"),
                                                              QT_TRANSLATE_NOOP("Views", "Read gates")};
    return names;
  }
  void build(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings) override {
    data_ = build_difference(snapshot, cursor, findings, shown());
  }
  void draw(Canvas& canvas, Rect area, const Frame& frame) const override { statescope::draw(data_, canvas, area, frame); }

  std::vector<Sheet> sheets() const override { return statescope::sheets(data_); }
  std::string sentence() const override { return data_.message ? data_.message.sentence() : data_.title + "."; }

 private:
  DifferenceMode shown() const { return static_cast<DifferenceMode>(mode()); }
  /// About `of`, in the window around the cursor of `snapshot`.
  std::vector<Question> asked(const Snapshot& snapshot, const Snapshot& of, const Cursor& cursor) const {
    if (!layer_of(snapshot) || !layer_of(of) || !layer_of(of)->has_state() || shown() == DifferenceMode::routing) return {};
    return {question_of(of, window_of(snapshot), cursor, shown())};
  }

  DifferenceData data_;
};

}  // namespace

DifferenceData build_difference(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, DifferenceMode mode) {
  static constexpr std::array<std::string_view, 4> quantities = {"e", "α", "G^K", "G^Q"};
  DifferenceData data;
  data.mode = mode;
  data.message = without_memory(snapshot, cursor.head);
  if (!data.message) data.message = without_peer_layer(snapshot, findings);
  if (data.message) return data;
  const Peer& peer = *findings.peer;
  const TokenWindow window = window_of(snapshot);
  data.models = fmt::format("{} − {}", peer.own_letter, peer.letter);
  data.quantity = quantities[static_cast<std::size_t>(mode)];
  if (peer.same_until <= window.from) {
    data.message = {Views::tr("{} and {} read different tokens here", peer.own_letter, peer.letter),
                    Views::tr("They are compared token by token where both have read the same.")};
    return data;
  }
  const std::optional<Series> own = series_of(snapshot, findings, window, cursor, mode);
  const std::optional<Series> other = layer_of(*peer.snapshot)->has_state() ? series_of(*peer.snapshot, peer.findings, window, cursor, mode)
                                                                            : std::optional<Series>(Series{});
  if (!own || !other) {
    const Snapshot& missing = own ? *peer.snapshot : snapshot;
    data.message = waiting(own ? peer.findings : findings, question_of(missing, window, cursor, mode),
                           subject(mode, own ? peer.letter : peer.own_letter));
    return data;
  }
  data.message = unlike(*own, *other, peer, mode);
  if (data.message) return data;
  const std::int64_t n = window.to - window.from;
  std::vector<float> cells;
  float most = 0;
  for (std::int64_t i = 0; i < own->channels * n; ++i) {
    const bool same = window.from + i % n < peer.same_until;
    const auto at = static_cast<std::size_t>(i);
    cells.push_back(same ? own->values[at] - other->values[at] : kNaN);
    if (!std::isnan(cells.back())) most = std::max(most, std::abs(cells.back()));
  }
  data.cells = Pyramid(std::move(cells), own->channels, n);
  data.range = round_range(most);
  data.tokens = {snapshot.run, token_range(window.from, window.to), shown_token(snapshot, cursor)};
  name_channels(data, *own, *layer_of(snapshot));
  data.recurrence = layer_of(snapshot)->recurrence;
  const bool of_slot = mode == DifferenceMode::decay;
  data.title = title_of(data, of_slot ? memory_place(*layer_of(snapshot), snapshot.layer, clamped(cursor.slot, snapshot.state.slots),
                                                     clamped(cursor.head, snapshot.state.heads))
                                      : Views::tr("layer {}", snapshot.layer));
  return data;
}

void draw(const DifferenceData& data, Canvas& canvas, Rect area, const Frame& frame) {
  if (data.message) return draw_message(canvas, area, frame, data.message.headline, data.message.detail);
  const Picture picture(data, canvas, area, frame);
  canvas.push_clip(area);
  draw_caption(canvas, picture.title, data.title, kReplayed, frame);
  if (picture.plot.w <= 0) canvas.left_out();
  if (picture.plot.w > 0) {
    const ColorScale scale{frame.theme.dark ? ColorMap::diverging_dark : ColorMap::diverging, -data.range, data.range};
    draw_matrix(canvas, picture.plot, data.cells, scale, {0, 0, 0});
    canvas.stroke_rect(picture.plot, frame.theme.line, frame.scale);
    draw_group_side(canvas, picture.plot, data.cells.rows(), data.channels, false, frame);
    draw_token_axis(canvas, picture.plot, data.tokens, frame);
    const std::array<ScaleMark, 3> marks = {{{data.range, number(data.range, 3)}, {0, "0"}, {-data.range, number(-data.range, 3)}}};
    draw_color_bar(canvas, picture.bar, scale, marks, frame);
  }
  canvas.pop_clip();
}

std::unique_ptr<View> make_difference() { return std::make_unique<DifferenceView>(); }

}  // namespace statescope

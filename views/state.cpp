#include "views/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "views/arrays.h"
#include "views/beside.h"
#include "views/colormaps.h"
#include "views/matrix.h"
#include "views/parts.h"
#include "views/plot.h"
#include "views/shading.h"
#include "views/words.h"

namespace statescope {
namespace {

constexpr float kSmallLine = 1.4f * kSmallType;
constexpr std::int64_t kHistoryIds = std::int64_t{1} << 40;  // hit ids: cells and rows below, the tokens that wrote a cell from here on

std::size_t cell_of(const StateData& data, std::int64_t row, std::int64_t column) {
  return static_cast<std::size_t>(row * data.columns + column);
}

float largest(const std::vector<float>& values) {
  float most = 0;
  for (const float v : values) most = std::isfinite(v) ? std::max(most, std::abs(v)) : most;
  return most;
}

SlotMatrix build_slot(const Snapshot& snapshot, const LayerInfo& layer, std::int64_t slot, const StateData& data) {
  const LayerState& state = snapshot.state;
  const auto cells = static_cast<std::ptrdiff_t>(state.rows * state.columns);
  const bool has_before = snapshot.before.values.size() == state.values.size();
  const float* after = state.matrix(slot, data.head);
  const float* before = has_before ? snapshot.before.matrix(slot, data.head) : after;

  SlotMatrix matrix;
  matrix.slot = slot;
  matrix.identity = slot_identity(layer, slot);
  matrix.name = slot_name(layer, slot);
  matrix.written = !std::equal(after, after + cells, before);
  matrix.row_change.assign(static_cast<std::size_t>(state.rows), 0.0f);
  if (data.moving()) {
    matrix.values.assign(before, before + cells);
    matrix.range = round_range(largest(matrix.values));
    return matrix;
  }
  matrix.values.assign(after, after + cells);
  matrix.range = round_range(largest(matrix.values));
  if (has_before) matrix.before.assign(before, before + cells);
  double all = 0;
  for (std::int64_t r = 0; r < state.rows; ++r) {
    double sum = 0;  // ‖S_t − S_{t−1}‖² of row r
    for (std::int64_t i = r * state.columns; i < (r + 1) * state.columns; ++i) sum += std::pow(double{after[i]} - before[i], 2);
    matrix.row_change[static_cast<std::size_t>(r)] = static_cast<float>(std::sqrt(sum));
    all += sum;
  }
  matrix.change = static_cast<float>(std::sqrt(all));
  return matrix;
}

StateData without_state(const Snapshot& snapshot, const LayerInfo* layer) {
  StateData data;
  data.layer = snapshot.layer;
  if (!layer) {
    data.headline = "No token has been read yet";
    data.detail = "Open a checkpoint and give it a prompt.";
  } else if (layer->has_state()) {
    data.headline = fmt::format("The state of layer {} has not been computed yet", snapshot.layer);
    data.detail = "It appears as soon as the run has been replayed to this token.";
  } else {
    data.headline = fmt::format("Layer {} ({}) keeps no matrix state", snapshot.layer, layer->mixer);
    data.detail = layer->memory == "softmax attention"
                      ? "Softmax attention keeps the key and the value of every token instead, and compares the query with all of them."
                      : fmt::format("Its memory is: {}.", layer->memory);
  }
  return data;
}

UpdateQuestion update_question(const Snapshot& snapshot, std::int64_t head) {
  return {.layer = snapshot.layer, .head = head, .token = snapshot.token};
}

/// Whom to ask who wrote the chosen cell, or row; row −1: none is chosen.
HistoryQuestion history_question(const Snapshot& snapshot, const StateData& data) {
  return {.layer = snapshot.layer,
          .slot = static_cast<std::int64_t>(data.chosen),
          .head = data.head,
          .row = data.row,
          .column = data.column,
          .token = snapshot.token};
}

std::string shape_text(const LayerState& state) {
  return fmt::format("{} {}, {} {} of {} × {}", state.slots, state.slots == 1 ? "memory" : "memories", state.heads,
                     state.heads == 1 ? "head" : "heads", state.rows, state.columns);
}

/// Why the states of two models cannot be taken from each other.
Message unlike_shapes(const LayerState& own, const LayerState& other, const Peer& peer) {
  const auto shape = [](const LayerState& state) { return std::array{state.slots, state.heads, state.rows, state.columns}; };
  if (shape(own) == shape(other)) return {};
  if (other.values.empty())
    return {fmt::format("{} keeps no matrix state in layer {}", peer.letter, peer.snapshot->layer), "There is nothing to take away."};
  return {fmt::format("The states of {} and {} have different shapes", peer.own_letter, peer.letter),
          fmt::format("{}: {}. {}: {}. Numbers are taken from each other only where both have a place.", peer.own_letter, shape_text(own),
                      peer.letter, shape_text(other))};
}

/// The state that is taken away from the cursor's; null: `why` says why there is none.
const LayerState* taken_away(const Snapshot& snapshot, const Findings& findings, const StateData& data, Message& why) {
  if (data.mode == StateMode::change) return &snapshot.before;
  if (data.mode == StateMode::other_model) {
    why = without_peer_layer(snapshot, findings);
    if (why) return nullptr;
    const Snapshot& peer = *findings.peer->snapshot;
    const LayerState& other = data.moving() ? peer.before : peer.state;
    why = unlike_shapes(snapshot.state, other, *findings.peer);
    return why ? nullptr : &other;
  }
  const StateQuestion question{.layer = snapshot.layer, .token = data.reference};
  const LayerState* other = data.reference < 0 ? nullptr : findings.get(question);
  if (data.reference < 0)
    why = {"There is no token to compare with", "Press D at another token: its state is taken away from that of the cursor's."};
  else if (!other)
    why = waiting(findings, question, fmt::format("The state after token {}", data.reference));
  return other;
}

/// [slots, K, V] of what the mode shows; empty: it is not known, and `data` says why.
std::vector<float> matrices_of(const Snapshot& snapshot, const Findings& findings, StateData& data) {
  const LayerState& after = data.moving() ? snapshot.before : snapshot.state;
  const std::int64_t cells = data.rows * data.columns;
  std::vector<float> shown(static_cast<std::size_t>(after.slots * cells));
  if (data.mode == StateMode::erase && layer_of(snapshot)->memory.find("delta") == std::string::npos) {
    data.headline = fmt::format("The memory of layer {} erases nothing", snapshot.layer);
    data.detail =
        "A decayed outer product only fades. The delta rule (DeltaNet, Gated DeltaNet) takes away what a key reads before it writes.";
    return {};
  }
  if (data.mode == StateMode::decay || data.mode == StateMode::erase || data.mode == StateMode::write) {
    const Update* update = findings.get(update_question(snapshot, data.head));
    if (!update) {
      const Message message = waiting(findings, update_question(snapshot, data.head), "What the token did to the memory");
      data.headline = message.headline;
      data.detail = message.detail;
      return {};
    }
    data.accuracy = kRecomputed;
    if (data.moving()) return shown;  // it has not happened yet
    return data.mode == StateMode::decay ? update->decayed : data.mode == StateMode::erase ? update->erased : update->written;
  }
  Message why;
  const LayerState* other = taken_away(snapshot, findings, data, why);
  if (!other) {
    data.headline = why.headline;
    data.detail = why.detail;
    return {};
  }
  for (std::int64_t slot = 0; slot < after.slots; ++slot) {
    const float *a = after.matrix(slot, data.head), *b = other->matrix(slot, data.head);
    std::transform(a, a + cells, b, shown.begin() + slot * cells, std::minus());
  }
  return shown;
}

/// Puts what the mode shows in the place of the states.
void show(std::span<const float> matrices, StateData& data) {
  const auto cells = static_cast<std::size_t>(data.rows * data.columns), columns = static_cast<std::size_t>(data.columns);
  for (SlotMatrix& matrix : data.slots) {
    const std::span<const float> values = matrices.subspan(static_cast<std::size_t>(matrix.slot) * cells, cells);
    matrix.values.assign(values.begin(), values.end());
    matrix.before.clear();
    matrix.range = round_range(largest(matrix.values));
    double all = 0;
    for (std::size_t r = 0; r < matrix.row_change.size(); ++r) {
      double sum = 0;
      for (const float x : values.subspan(r * columns, columns)) sum += std::pow(double{x}, 2);
      matrix.row_change[r] = static_cast<float>(std::sqrt(sum));
      all += sum;
    }
    matrix.change = static_cast<float>(std::sqrt(all));
  }
}

std::string_view symbol(StateMode mode) {
  static constexpr std::array<std::string_view, 7> symbols = {"S", "change", "decay", "erase", "write", "difference", "difference"};
  return symbols[static_cast<std::size_t>(mode)];
}

/// The value, the one before and the difference, exactly.
std::vector<std::string> cell_words(const StateData& data, const SlotMatrix& slot, std::int64_t row, std::int64_t column) {
  const std::size_t i = cell_of(data, row, column);
  std::vector<std::string> words = {fmt::format("{}[{}, {}] = {}", symbol(data.mode), row, column, number(slot.values[i], 9))};
  if (slot.before.empty()) return words;
  words.push_back(fmt::format("before {}", number(slot.before[i], 9)));
  words.push_back(fmt::format("change {}", number(slot.values[i] - slot.before[i], 9)));
  return words;
}

std::string place_text(const StateData& data, const SlotMatrix& slot) {
  const std::string head = fmt::format("layer {}, head {}", data.layer, data.head);
  return data.slots.size() > 1 ? fmt::format("{}, {}", head, slot_title(slot.identity, slot.name)) : head;
}

/// The last token whose step the numbers contain.
std::int64_t shown_token(const StateData& data) { return data.moving() ? data.token - 1 : data.token; }

/// One drawing: where things stand.
struct Picture {
  const StateData& data;
  Canvas& canvas;
  const Frame& frame;
  float s;
  Rect title, main, changes, bar, others, readout, history;  // main: the large heatmap; bar: its colour bar
  bool compact = false;                                      // little height: the matrix alone, without axes, changes and readout

  Picture(const StateData& data_, Canvas& canvas_, Rect area, const Frame& frame_);

  ColorScale scale(const SlotMatrix& slot) const {
    return {frame.theme.dark ? ColorMap::diverging_dark : ColorMap::diverging, -slot.range, slot.range};
  }
  Heatmap cells(const SlotMatrix& slot) const { return {data.rows, data.columns, slot.values, scale(slot)}; }
  TextStyle tick(Align align) const { return value(frame, kSmallType, frame.theme.faint, align); }
  TextStyle axis(Align align) const { return label(frame, kSmallType, frame.theme.faint, align); }
  TextStyle exact() const { return value(frame, kBodyType, frame.theme.ink); }
  std::int64_t hit_base(const SlotMatrix& slot) const { return slot.slot * data.rows * data.columns; }
  float line() const { return 1.5f * kBodyType * s; }
  /// In a place too small for the matrix only words are drawn.
  bool has_room() const { return main.w >= 40 * s && main.h >= 40 * s; }
};

Picture::Picture(const StateData& data_, Canvas& canvas_, Rect area, const Frame& frame_)
    : data(data_), canvas(canvas_), frame(frame_), s(frame_.scale) {
  Rect inner = inset(area, 8 * s);
  // Room for who wrote the cell, whether one is chosen or not: the picture does not jump.
  if (frame.shown.captions && inner.h >= 250 * s && inner.w >= 200 * s) {
    history = {inner.x, inner.bottom() - history_height(frame), inner.w, history_height(frame)};
    inner.h -= history.h + 2 * s;
  }
  // Room for the longest value in any case, so that the picture does not jump when a cell is chosen.
  const float longest = canvas.text_width(std::string(82, '0'), exact());
  const float most_lines = history.h > 0 && inner.h < 360 * s ? 1 : 3;
  const float readout_lines = frame.shown.captions ? std::clamp(std::ceil(longest / std::max(1.0f, inner.w)), 1.0f, most_lines) : 0;
  title = {inner.x, inner.y, inner.w, caption_height(frame)};
  const float gap = 6 * s;
  compact = inner.h - (1 + readout_lines) * line() - 45 * s - gap < 80 * s;
  const float small = compact ? 2 * s : 15 * s;  // a line of axis names above, ticks and axis name below
  const float readout_height = compact ? 0 : readout_lines * line();
  readout = {inner.x, inner.bottom() - readout_height, inner.w, readout_height};
  const float ticks_width = canvas.text_width(std::to_string(std::max<std::int64_t>(data.rows, 100)), tick(Align::right)) + 6 * s;
  const float changes_width = canvas.text_width("change", axis(Align::left)) + 4 * s;
  const float bar_width = 12 * s + gap + canvas.text_width("-0.0005", tick(Align::left));
  const Rect middle{inner.x, title.bottom() + small, inner.w, readout.y - title.bottom() - 3 * small - gap};

  const float others_least = data.slots.size() > 1 ? 0.25f * inner.w : 0;
  const float fixed = ticks_width + gap + changes_width + gap + bar_width + (others_least > 0 ? 3 * gap : 0);
  const float w = std::max(1.0f, middle.w - others_least - fixed), h = std::max(1.0f, middle.h);
  float cell = std::min(w / static_cast<float>(data.columns), h / static_cast<float>(data.rows));
  if (cell > 4) cell = std::floor(cell);
  main = {middle.x + ticks_width, middle.y, cell * static_cast<float>(data.columns), cell * static_cast<float>(data.rows)};
  changes = {main.right() + gap, main.y, changes_width, main.h};
  bar = {changes.right() + gap, main.y, 12 * s, main.h};
  const float others_x = bar.x + bar_width + 3 * gap;
  others = {others_x, title.bottom(), others_least > 0 ? inner.right() - others_x : 0, readout.y - title.bottom() - gap};
  if (!has_room()) readout = {inner.x, title.bottom(), inner.w, inner.bottom() - title.bottom()};
}

/// "after token 118 anna", "written by token 118 anna"
std::string time_words(const StateData& data) {
  const std::string token = fmt::format("token {}  {}", data.token, data.token_text);
  if (data.moving() && data.mode != StateMode::state && data.mode != StateMode::difference && data.mode != StateMode::other_model)
    return fmt::format("nothing has happened yet at {}", token);
  switch (data.mode) {
    case StateMode::state:
      return fmt::format("{} {}", data.moving() ? "before" : "after", token);
    case StateMode::change:
      return "changed by " + token;
    case StateMode::decay:
      return "taken by decay at " + token;
    case StateMode::erase:
      return "erased by " + token;
    case StateMode::write:
      return "written by " + token;
    case StateMode::difference:
      return fmt::format("{} {}, less that after token {}", data.moving() ? "before" : "after", token, data.reference);
    case StateMode::other_model:
      return fmt::format("{} {} {}", data.models, data.moving() ? "before" : "after", token);
  }
  return token;
}

void draw_title(const Picture& picture) {
  const StateData& data = picture.data;
  std::string text = place_text(data, data.matrix());
  text[0] = 'L';
  text += ", " + time_words(data);
  const bool only_here = picture.readout.h < picture.line() && data.row >= 0 && data.column >= 0;
  if (only_here) text = fmt::format("{}  {}", cell_words(data, data.matrix(), data.row, data.column).front(), text);
  const TextStyle note = picture.axis(Align::right);
  const std::string_view how = data.accuracy.name();
  const float y = picture.title.y + picture.title.h / 2, how_width = picture.canvas.text_width(how, note) + 10 * picture.s;
  fitted_text(picture.canvas, {picture.title.x, y}, text, label(picture.frame, kBodyType, picture.frame.theme.ink),
              picture.title.w - how_width);
  fitted_text(picture.canvas, {picture.title.right(), y}, how, note, picture.title.w);
}

/// Two strokes, so that the outline is seen on dark and light cells.
void draw_outline(const Picture& picture, Rect rect) {
  picture.canvas.stroke_rect(rect, picture.frame.theme.panel, 4 * picture.s);
  picture.canvas.stroke_rect(rect, picture.frame.theme.ink, 2 * picture.s);
}

void draw_axes(const Picture& picture) {
  const StateData& data = picture.data;
  const Rect& main = picture.main;
  const float s = picture.s, h = main.h / static_cast<float>(data.rows), w = main.w / static_cast<float>(data.columns);
  const auto fit = [](float length, float each) { return std::max<std::int64_t>(1, static_cast<std::int64_t>(length / each)); };
  for (const std::int64_t r : axis_ticks(data.rows, fit(main.h, 22 * s))) {
    const float y = main.y + std::max(h * (static_cast<float>(r) + 0.5f), 0.5f * kSmallType * s);  // below the axis name
    picture.canvas.text({main.x - 6 * s, y}, std::to_string(r), picture.tick(Align::right));
  }
  const float room = picture.canvas.text_width(std::to_string(data.columns), picture.tick(Align::center)) + 12 * s;
  for (const std::int64_t c : axis_ticks(data.columns, fit(main.w, room))) {
    picture.canvas.text({main.x + w * (static_cast<float>(c) + 0.5f), main.bottom() + 9 * s}, std::to_string(c),
                        picture.tick(Align::center));
  }
  fitted_text(picture.canvas, {picture.title.x, main.y - 8 * s}, "key row", picture.axis(Align::left), picture.changes.x - picture.title.x);
  fitted_text(picture.canvas, {main.x + main.w / 2, main.bottom() + 24 * s}, "value column", picture.axis(Align::center),
              2 * std::min(main.w / 2 + 6 * s, main.x + main.w / 2 - picture.title.x));
}

/// ‖S_t − S_{t−1}‖ per row, as bars beside the rows: a row that nothing happened to has none.
void draw_changes(const Picture& picture) {
  const StateData& data = picture.data;
  const std::vector<float>& change = data.matrix().row_change;
  const Rect& area = picture.changes;
  const float s = picture.s, most = std::ranges::max(change), h = area.h / static_cast<float>(data.rows);
  picture.canvas.text({area.x, area.y - 8 * s}, data.mode == StateMode::state ? "change" : "norm", picture.axis(Align::left));
  picture.canvas.line({area.x, area.y}, {area.x, area.bottom()}, picture.frame.theme.line, s);
  const auto slots = static_cast<std::int64_t>(data.slots.size());
  picture.canvas.hit(area, {slots * data.rows * data.columns, data.rows, 1});
  if (!(most > 0)) return;
  for (std::int64_t r = 0; r < data.rows; ++r) {
    const float length = area.w * change[static_cast<std::size_t>(r)] / most;
    const Rect bar{area.x, area.y + h * (static_cast<float>(r) + 0.2f), length, 0.6f * h};
    if (length > 0) picture.canvas.fill_rect(bar, picture.frame.theme.ink);
  }
  fitted_text(picture.canvas, {area.right(), area.bottom() + 9 * s}, number(most, 3), picture.tick(Align::right), area.w);
}

void draw_main(const Picture& picture) {
  const StateData& data = picture.data;
  const SlotMatrix& slot = data.matrix();
  picture.canvas.heatmap(picture.main, picture.cells(slot));
  picture.canvas.hit(picture.main, {picture.hit_base(slot), data.rows, data.columns});
  const Color edge = slot.written ? faded(picture.frame.theme.ink, data.progress) : picture.frame.theme.line;
  picture.canvas.stroke_rect(picture.main, edge, (slot.written ? 2 : 1) * picture.s);
  if (data.row < 0 || data.column < 0) return;
  const float w = picture.main.w / static_cast<float>(data.columns), h = picture.main.h / static_cast<float>(data.rows);
  draw_outline(picture, {picture.main.x + w * static_cast<float>(data.column), picture.main.y + h * static_cast<float>(data.row), w, h});
}

void draw_color_bar(const Picture& picture) {
  constexpr std::size_t kSteps = 101;
  std::vector<float> steps(kSteps);
  const SlotMatrix& slot = picture.data.matrix();
  for (std::size_t i = 0; i < kSteps; ++i) steps[i] = slot.range * (1 - static_cast<float>(i) / 50);
  const Rect& bar = picture.bar;
  picture.canvas.heatmap(bar, {kSteps, 1, steps, picture.scale(slot)});
  const float x = bar.right() + 5 * picture.s, half = 0.5f * kSmallType * picture.s;
  const TextStyle style = picture.tick(Align::left);
  picture.canvas.text({x, bar.y + half}, number(slot.range, 4), style);
  if (bar.h > 6 * half) picture.canvas.text({x, bar.y + bar.h / 2}, "0", style);
  if (bar.h > 4 * half) picture.canvas.text({x, bar.bottom() - half}, number(-slot.range, 4), style);
}

void draw_small(const Picture& picture, const SlotMatrix& slot, Rect rect) {
  const Theme& theme = picture.frame.theme;
  const float s = picture.s, line = kSmallLine * s;
  const StateData& data = picture.data;
  const bool chosen = &slot == &data.matrix();
  const float cell = std::min(rect.w / static_cast<float>(data.columns), (rect.h - 2 * line) / static_cast<float>(data.rows));
  const Rect map{rect.x, rect.y + line, cell * static_cast<float>(data.columns), cell * static_cast<float>(data.rows)};
  picture.canvas.fill_rect({rect.x, rect.y + line / 2 - 4 * s, 8 * s, 8 * s}, identity_color(slot.identity, theme));
  const std::string span = fmt::format("±{}", number(slot.range, 4));
  const float span_width = picture.canvas.text_width(span, picture.tick(Align::right)), name_width = map.w - 16 * s - span_width;
  const bool room_for_span = name_width >= 24 * s;
  fitted_text(picture.canvas, {rect.x + 12 * s, rect.y + line / 2}, slot.name,
              label(picture.frame, kSmallType, chosen ? theme.accent : theme.ink, Align::left, chosen),
              room_for_span ? name_width : rect.w - 12 * s);
  if (room_for_span) picture.canvas.text({map.right(), rect.y + line / 2}, span, picture.tick(Align::right));
  picture.canvas.heatmap(map, picture.cells(slot));
  picture.canvas.stroke_rect(map, slot.written ? faded(theme.ink, data.progress) : theme.line, (slot.written ? 2 : 1) * s);
  picture.canvas.hit(map, {picture.hit_base(slot), data.rows, data.columns});
  const std::string norm = number(slot.change, 3);
  const std::string change = data.moving()                   ? ""
                             : data.mode != StateMode::state ? (slot.change > 0 ? "norm " + norm : "all 0")
                             : slot.written                  ? "Δ " + norm
                                                             : "unchanged";
  fitted_text(picture.canvas, {rect.x, map.bottom() + line / 2}, change, label(picture.frame, kSmallType, theme.faint), rect.w);
}

void draw_others(const Picture& picture) {
  const StateData& data = picture.data;
  Rect area = picture.others;
  const float s = picture.s, least = 60 * s, gap = 10 * s, words = 2 * kSmallLine * s;
  if (area.w < least || area.h < least) return;
  const auto fit = [gap](float length, float each) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>((length + gap) / (each + gap)));
  };
  const std::int64_t all = std::ssize(data.slots);
  if (fit(area.w, least) * fit(area.h, least + words) < all) area.h -= kSmallLine * s;  // a line says how many are hidden
  const std::int64_t count = std::min(all, fit(area.w, least) * fit(area.h, least + words));
  const float aspect = static_cast<float>(data.columns) / static_cast<float>(data.rows);
  const std::int64_t columns = best_columns(count, area.w, area.h, aspect, words, gap), rows = (count + columns - 1) / columns;
  const float w = (area.w + gap) / static_cast<float>(columns) - gap;
  const float h = std::min((area.h + gap) / static_cast<float>(rows) - gap, w / aspect + words);
  std::vector<bool> important;
  for (const SlotMatrix& slot : data.slots) important.push_back(slot.written || &slot == &data.matrix());
  std::int64_t place = 0;
  for (const std::int64_t i : choose_shown(all, count, important)) {
    const auto column = static_cast<float>(place % columns), row = static_cast<float>(place / columns);
    draw_small(picture, data.slots[static_cast<std::size_t>(i)], {area.x + column * (w + gap), area.y + row * (h + gap), w, h});
    ++place;
  }
  if (count == all) return;
  fitted_text(picture.canvas, {area.x, area.bottom() + kSmallLine * s / 2}, fmt::format("{} of {} shown", count, all),
              picture.axis(Align::left), area.w);
}

void draw_readout(const Picture& picture) {
  const StateData& data = picture.data;
  const Rect& area = picture.readout;
  Point at{area.x, area.y + picture.line() / 2};
  if (data.row < 0 || data.column < 0) {
    fitted_text(picture.canvas, at, "Point at a cell to read its value and who wrote it.",
                label(picture.frame, kBodyType, picture.frame.theme.faint), area.w);
    return;
  }
  for (const std::string& word : cell_words(data, data.matrix(), data.row, data.column)) {
    const float width = picture.canvas.text_width(word, picture.exact());
    if (at.x > area.x && at.x + width > area.right()) at = {area.x, at.y + picture.line()};
    if (at.y < area.bottom()) fitted_text(picture.canvas, at, word, picture.exact(), area.right() - at.x);
    at.x += width + 24 * picture.s;
  }
}

class StateView : public View {
 public:
  std::vector<Question> questions(const Snapshot& snapshot, const Cursor& cursor) const override {
    const StateData data = build_state(snapshot, cursor);
    if (data.slots.empty()) return {};
    std::vector<Question> questions;
    const auto mode = static_cast<StateMode>(View::mode());
    if (mode == StateMode::decay || mode == StateMode::erase || mode == StateMode::write)
      questions.emplace_back(update_question(snapshot, data.head));
    if (mode == StateMode::difference && cursor.reference >= 0)
      questions.emplace_back(StateQuestion{.layer = snapshot.layer, .token = cursor.reference});
    if (data.row >= 0) questions.emplace_back(history_question(snapshot, data));
    return questions;
  }
  std::span<const std::string_view> modes() const override {
    static constexpr std::array<std::string_view, 7> names = {
        QT_TRANSLATE_NOOP("Views", "State"),      QT_TRANSLATE_NOOP("Views", "Change"), QT_TRANSLATE_NOOP("Views", "Decay"),
        QT_TRANSLATE_NOOP("Views", "Erase"),      QT_TRANSLATE_NOOP("Views", "Write"),  QT_TRANSLATE_NOOP("Views", "Difference"),
        QT_TRANSLATE_NOOP("Views", "Other model")};
    return names;
  }
  bool compares() const override { return static_cast<StateMode>(mode()) == StateMode::other_model; }
  void build(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings) override {
    data_ = build_state(snapshot, cursor, findings, static_cast<StateMode>(mode()));
    shading_.reset();
    for (SlotMatrix& slot : data_.slots) {
      const bool chosen = &slot == &data_.matrix();
      if (!chosen && is_own(range())) continue;
      const Shading shading = shade(slot.values, {-slot.range, slot.range}, true, range());
      slot.range = shading.range.high;
      if (chosen) shading_ = shading;
    }
  }
  std::optional<Shading> shading() const override { return shading_; }
  void draw(Canvas& canvas, Rect area, const Frame& frame) const override { statescope::draw(data_, canvas, area, frame); }

  std::vector<Array> arrays() const override { return statescope::arrays(data_); }
  Table table() const override {
    Table table{{"row"}, {}};
    for (std::int64_t c = 0; c < data_.columns; ++c) table.columns.push_back(std::to_string(c));
    for (std::int64_t r = 0; r < data_.rows; ++r) {
      std::vector<std::string> row{std::to_string(r)};
      for (std::int64_t c = 0; c < data_.columns; ++c) row.push_back(number(data_.matrix().values[cell_of(data_, r, c)], 9));
      table.rows.push_back(std::move(row));
    }
    for (const HistoryPart& part : data_.history.parts) {
      std::vector<std::string> row(table.columns.size());
      row[0] = fmt::format("of {} by token {} {}", data_.history.what, part.token, part.text);
      row[1] = number(part.contribution, 9);
      table.rows.push_back(std::move(row));
    }
    return table;
  }

  std::string describe() const override {
    if (!data_.headline.empty()) return data_.headline + ". " + data_.detail;
    std::string text = data_.mode == StateMode::state
                           ? fmt::format("State of {} after token {}", place_text(data_, data_.matrix()), shown_token(data_))
                           : fmt::format("State of {}, {}", place_text(data_, data_.matrix()), time_words(data_));
    text += fmt::format(": {} rows, {} columns", data_.rows, data_.columns);
    if (data_.row >= 0 && data_.column >= 0) {
      text += fmt::format("; {}", joined(cell_words(data_, data_.matrix(), data_.row, data_.column), ", "));
    }
    if (!data_.history.parts.empty()) text += fmt::format(". {}; most of it: {}", data_.history.sentence(), data_.history.largest(3));
    return text + ".";
  }

  std::string tooltip(std::int64_t hit_id) const override {
    if (hit_id >= kHistoryIds) return statescope::tooltip(data_.history, static_cast<std::size_t>(hit_id - kHistoryIds));
    const std::int64_t cells = data_.rows * data_.columns, all = cells * std::ssize(data_.slots);
    if (hit_id < 0 || hit_id >= all + data_.rows || data_.slots.empty()) return {};
    if (hit_id >= all) {
      const std::int64_t row = hit_id - all;
      const std::string size = number(data_.matrix().row_change[static_cast<std::size_t>(row)], 9);
      return data_.mode == StateMode::state ? fmt::format("row {}: changed by {} (norm of S_t - S_t-1 along the row)", row, size)
                                            : fmt::format("row {}: norm {} of what is shown", row, size);
    }
    const SlotMatrix& slot = data_.slots[static_cast<std::size_t>(hit_id / cells)];
    const std::int64_t row = hit_id % cells / data_.columns, column = hit_id % data_.columns;
    const std::string when = data_.mode == StateMode::state ? fmt::format("after token {}", shown_token(data_)) : time_words(data_);
    return fmt::format("{}\n{}, {}\n{}", joined(cell_words(data_, slot, row, column), "\n"), place_text(data_, slot), when,
                       data_.accuracy.text());
  }

  CursorMove on_hit(std::int64_t hit_id) const override {
    if (hit_id >= kHistoryIds) {
      const auto part = static_cast<std::size_t>(hit_id - kHistoryIds);
      return part < data_.history.parts.size() ? CursorMove{.token = data_.history.parts[part].token} : CursorMove{};
    }
    const std::int64_t cells = data_.rows * data_.columns, all = cells * std::ssize(data_.slots);
    if (hit_id < 0 || hit_id >= all + data_.rows) return {};
    if (hit_id >= all) return {.row = hit_id - all};
    return {.slot = hit_id / cells, .row = hit_id % cells / data_.columns, .column = hit_id % data_.columns};
  }

 private:
  StateData data_;
  std::optional<Shading> shading_;  // of the chosen slot
};

}  // namespace

std::int64_t best_columns(std::int64_t count, float w, float h, float aspect, float extra, float gap) {
  std::int64_t best = 1;
  float largest_width = 0;
  for (std::int64_t columns = 1; columns <= count; ++columns) {
    const std::int64_t rows = (count + columns - 1) / columns;
    const float each_w = (w + gap) / static_cast<float>(columns) - gap, each_h = (h + gap) / static_cast<float>(rows) - gap - extra;
    const float width = std::min(each_w, each_h * aspect);
    if (width <= largest_width) continue;
    largest_width = width;
    best = columns;
  }
  return best;
}

StateData build_state(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, StateMode mode) {
  const LayerInfo* layer = layer_of(snapshot);
  const LayerState& state = snapshot.state;
  if (!layer || !layer->has_state() || state.values.empty()) return without_state(snapshot, layer);

  StateData data;
  data.layer = snapshot.layer;
  data.heads = state.heads;
  data.head = std::clamp<std::int64_t>(cursor.head, 0, state.heads - 1);
  data.token = snapshot.token;
  data.token_text = visible_token(*snapshot.run, snapshot.token);
  data.rows = state.rows;
  data.columns = state.columns;
  data.progress = std::clamp(cursor.progress, 0.0f, 1.0f);
  data.accuracy = snapshot.accuracy;
  for (std::int64_t slot = 0; slot < state.slots; ++slot) data.slots.push_back(build_slot(snapshot, *layer, slot, data));
  data.chosen = static_cast<std::size_t>(std::clamp<std::int64_t>(cursor.slot, 0, state.slots - 1));
  data.row = cursor.row < state.rows ? cursor.row : -1;
  data.column = cursor.column < state.columns ? cursor.column : -1;
  data.mode = mode;
  data.reference = cursor.reference;
  if (findings.peer) data.models = fmt::format("{} − {}", findings.peer->own_letter, findings.peer->letter);
  if (mode != StateMode::state) {
    const std::vector<float> matrices = matrices_of(snapshot, findings, data);
    if (matrices.empty()) {
      data.slots.clear();
      data.rows = data.columns = 0;
      return data;
    }
    show(matrices, data);
  }
  if (!data.moving()) data.history = build_history(*snapshot.run, history_question(snapshot, data), findings);
  return data;
}

void draw(const StateData& data, Canvas& canvas, Rect area, const Frame& frame) {
  if (!data.headline.empty()) {
    draw_message(canvas, area, frame, data.headline, data.detail);
    return;
  }
  const Picture picture(data, canvas, area, frame);
  canvas.push_clip(area);
  if (frame.shown.captions) draw_title(picture);
  if (picture.has_room()) {
    if (!picture.compact) draw_axes(picture);
    if (!picture.compact) draw_changes(picture);
    draw_main(picture);
    if (frame.shown.color_bars) draw_color_bar(picture);
    draw_others(picture);
  }
  if (picture.readout.h >= picture.line() && picture.readout.y >= picture.title.bottom()) draw_readout(picture);
  draw(data.history, canvas, picture.history, frame, kHistoryIds);
  canvas.pop_clip();
}

std::unique_ptr<View> make_state() { return std::make_unique<StateView>(); }

}  // namespace statescope

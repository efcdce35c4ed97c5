#include "views/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "views/colormaps.h"
#include "views/parts.h"

namespace statescope {
namespace {

std::size_t cell_of(const StateData& data, std::int64_t row, std::int64_t column) {
  return static_cast<std::size_t>(row * data.columns + column);
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
  matrix.name = slot < layer.slots() ? layer.slot_names[static_cast<std::size_t>(slot)] : std::to_string(slot);
  matrix.written = !std::equal(after, after + cells, before);
  matrix.row_change.assign(static_cast<std::size_t>(state.rows), 0.0f);
  if (data.moving()) {
    matrix.values.assign(before, before + cells);
    return matrix;
  }
  matrix.values.assign(after, after + cells);
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

float largest(const StateData& data) {
  float most = 0;
  for (const SlotMatrix& slot : data.slots) {
    for (const float v : slot.values) most = std::isfinite(v) ? std::max(most, std::abs(v)) : most;
  }
  return most;
}

/// "S[3, 5] of partition 2, head 0 …": exact value, the one before, the difference, and where they come from.
std::string cell_text(const StateData& data, const SlotMatrix& slot, std::int64_t row, std::int64_t column) {
  const std::size_t i = cell_of(data, row, column);
  std::string text = fmt::format("S[{}, {}] = {}", row, column, number(slot.values[i], 9));
  if (slot.before.empty()) return text;
  return fmt::format("{}   before {}   change {}", text, number(slot.before[i], 9), number(slot.values[i] - slot.before[i], 9));
}

/// One drawing: where things stand.
struct Picture {
  const StateData& data;
  Canvas& canvas;
  const Frame& frame;
  float s;
  Rect title, main, marker, bar, others, readout;  // main: the large heatmap; bar: its colour bar

  Picture(const StateData& data_, Canvas& canvas_, Rect area, const Frame& frame_);

  ColorScale scale() const { return {frame.theme.dark ? ColorMap::diverging_dark : ColorMap::diverging, -data.range, data.range}; }
  Heatmap cells(const SlotMatrix& slot) const { return {data.rows, data.columns, slot.values, scale()}; }
  TextStyle tick(Align align) const { return value(frame, kSmallType, frame.theme.faint, align); }
  std::int64_t hit_base(const SlotMatrix& slot) const { return slot.slot * data.rows * data.columns; }
};

Picture::Picture(const StateData& data_, Canvas& canvas_, Rect area, const Frame& frame_)
    : data(data_), canvas(canvas_), frame(frame_), s(frame_.scale) {
  const Rect inner = inset(area, 8 * s);
  const float line = 1.5f * kBodyType * s;
  title = {inner.x, inner.y, inner.w, line};
  readout = {inner.x, inner.bottom() - line, inner.w, line};
  const float axis_width = canvas.text_width(std::to_string(std::max<std::int64_t>(data.rows, 100)), tick(Align::right)) + 6 * s;
  const float axis_height = 16 * s, marker_width = 8 * s, gap = 6 * s;
  const float bar_width = 12 * s + gap + canvas.text_width("-0.0005", tick(Align::left));
  const Rect middle{inner.x, title.bottom() + gap, inner.w, readout.y - title.bottom() - 2 * gap};
  const float others_width = data.slots.size() > 1 ? 0.3f * inner.w : 0;
  const float fixed = axis_width + marker_width + 2 * gap + bar_width + (others_width > 0 ? 2 * gap : 0);
  const float w = std::max(1.0f, middle.w - others_width - fixed), h = std::max(1.0f, middle.h - axis_height);
  float cell = std::min(w / static_cast<float>(data.columns), h / static_cast<float>(data.rows));
  if (cell > 4) cell = std::floor(cell);
  main = {middle.x + axis_width + marker_width + gap, middle.y, cell * static_cast<float>(data.columns),
          cell * static_cast<float>(data.rows)};
  marker = {main.x - marker_width - gap / 2, main.y, marker_width, main.h};
  bar = {main.right() + gap, main.y, 12 * s, main.h};
  const float others_x = bar.x + bar_width + 2 * gap;
  others = {others_x, middle.y, others_width > 0 ? inner.right() - others_x : 0, middle.h};
}

void draw_title(const Picture& picture) {
  const StateData& data = picture.data;
  const std::string_view when = data.moving() ? "before" : "after";
  const std::string text = fmt::format("Layer {}  head {}  slot {}, {} token {} {}", data.layer, data.head, data.matrix().name, when,
                                       data.token, data.token_text);
  fitted_text(picture.canvas, {picture.title.x, picture.title.y + picture.title.h / 2}, text,
              label(picture.frame, kBodyType, picture.frame.theme.ink), picture.title.w);
}

/// Two strokes, so that the outline is seen on dark and light cells.
void draw_outline(const Picture& picture, Rect rect) {
  picture.canvas.stroke_rect(rect, picture.frame.theme.panel, 4 * picture.s);
  picture.canvas.stroke_rect(rect, picture.frame.theme.ink, 2 * picture.s);
}

void draw_axes(const Picture& picture) {
  const StateData& data = picture.data;
  const Rect& main = picture.main;
  const float s = picture.s, cell = main.h / static_cast<float>(data.rows);
  const auto fit = [](float length, float each) { return std::max<std::int64_t>(1, static_cast<std::int64_t>(length / each)); };
  for (const std::int64_t r : axis_ticks(data.rows, fit(main.h, 22 * s))) {
    picture.canvas.text({picture.marker.x - 3 * s, main.y + cell * (static_cast<float>(r) + 0.5f)}, std::to_string(r),
                        picture.tick(Align::right));
  }
  const float width = main.w / static_cast<float>(data.columns);
  const float y = main.bottom() + 9 * s;
  const float room = picture.canvas.text_width(std::to_string(data.columns), picture.tick(Align::center)) + 12 * s;
  for (const std::int64_t c : axis_ticks(data.columns, fit(main.w, room))) {
    picture.canvas.text({main.x + width * (static_cast<float>(c) + 0.5f), y}, std::to_string(c), picture.tick(Align::center));
  }
}

/// ‖S_t − S_{t−1}‖ per row, beside the rows.
void draw_marker(const Picture& picture) {
  const StateData& data = picture.data;
  const float most = std::ranges::max(data.matrix().row_change);
  const Heatmap column{data.rows, 1, data.matrix().row_change, {ColorMap::cividis, 0, most > 0 ? most : 1}};
  picture.canvas.heatmap(picture.marker, column);
  const auto slots = static_cast<std::int64_t>(data.slots.size());
  picture.canvas.hit(picture.marker, {slots * data.rows * data.columns, data.rows, 1});
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
  for (std::size_t i = 0; i < kSteps; ++i) steps[i] = picture.data.range * (1 - static_cast<float>(i) / 50);
  const Rect& bar = picture.bar;
  picture.canvas.heatmap(bar, {kSteps, 1, steps, picture.scale()});
  const float x = bar.right() + 5 * picture.s, half = 0.5f * kSmallType * picture.s;
  const TextStyle style = picture.tick(Align::left);
  picture.canvas.text({x, bar.y + half}, number(picture.data.range, 3), style);
  if (bar.h > 6 * half) picture.canvas.text({x, bar.y + bar.h / 2}, "0", style);
  if (bar.h > 4 * half) picture.canvas.text({x, bar.bottom() - half}, number(-picture.data.range, 3), style);
}

void draw_small(const Picture& picture, const SlotMatrix& slot, Rect rect) {
  const Theme& theme = picture.frame.theme;
  const float s = picture.s, line = 1.4f * kSmallType * s;
  const StateData& data = picture.data;
  const bool chosen = &slot == &data.matrix();
  const float cell = std::min(rect.w / static_cast<float>(data.columns), (rect.h - 2 * line) / static_cast<float>(data.rows));
  const Rect map{rect.x, rect.y + line, cell * static_cast<float>(data.columns), cell * static_cast<float>(data.rows)};
  picture.canvas.fill_rect({rect.x, rect.y + line / 2 - 4 * s, 8 * s, 8 * s}, identity_color(slot.identity, theme));
  fitted_text(picture.canvas, {rect.x + 12 * s, rect.y + line / 2}, slot.name,
              label(picture.frame, kSmallType, chosen ? theme.accent : theme.ink, Align::left, chosen), rect.w - 12 * s);
  picture.canvas.heatmap(map, picture.cells(slot));
  picture.canvas.stroke_rect(map, slot.written ? faded(theme.ink, data.progress) : theme.line, (slot.written ? 2 : 1) * s);
  picture.canvas.hit(map, {picture.hit_base(slot), data.rows, data.columns});
  const std::string change = data.moving() ? "" : slot.written ? fmt::format("Δ {}", number(slot.change, 3)) : "unchanged";
  fitted_text(picture.canvas, {rect.x, map.bottom() + line / 2}, change, value(picture.frame, kSmallType, theme.faint), rect.w);
}

void draw_others(const Picture& picture) {
  const StateData& data = picture.data;
  const Rect& area = picture.others;
  const float s = picture.s, least = 64 * s, gap = 10 * s;
  if (area.w < least || area.h < least) return;
  const auto fit = [&](float length) { return std::max<std::int64_t>(1, static_cast<std::int64_t>((length + gap) / (least + gap))); };
  const std::int64_t count = std::min<std::int64_t>(std::ssize(data.slots), fit(area.w) * fit(area.h));
  std::int64_t columns = 1;
  while (columns < fit(area.w) && (count + columns - 1) / columns > fit(area.h)) ++columns;
  const std::int64_t rows = (count + columns - 1) / columns;
  std::vector<bool> important;
  for (const SlotMatrix& slot : data.slots) important.push_back(slot.written || &slot == &data.matrix());
  const float w = (area.w + gap) / static_cast<float>(columns) - gap, h = (area.h + gap) / static_cast<float>(rows) - gap;
  std::int64_t place = 0;
  for (const std::int64_t i : choose_shown(std::ssize(data.slots), count, important)) {
    const auto column = static_cast<float>(place % columns), row = static_cast<float>(place / columns);
    draw_small(picture, data.slots[static_cast<std::size_t>(i)], {area.x + column * (w + gap), area.y + row * (h + gap), w, h});
    ++place;
  }
}

void draw_readout(const Picture& picture) {
  const StateData& data = picture.data;
  const bool cell = data.row >= 0 && data.column >= 0;
  const std::string text = cell ? cell_text(data, data.matrix(), data.row, data.column) : "Point at a cell to read its value.";
  const Color color = cell ? picture.frame.theme.ink : picture.frame.theme.faint;
  const TextStyle style = cell ? value(picture.frame, kBodyType, color) : label(picture.frame, kBodyType, color);
  fitted_text(picture.canvas, {picture.readout.x, picture.readout.y + picture.readout.h / 2}, text, style, picture.readout.w);
}

class StateView : public View {
 public:
  void build(const Snapshot& snapshot, const Cursor& cursor) override { data_ = build_state(snapshot, cursor); }
  void draw(Canvas& canvas, Rect area, const Frame& frame) const override { statescope::draw(data_, canvas, area, frame); }

  Table table() const override {
    Table table{{"row"}, {}};
    for (std::int64_t c = 0; c < data_.columns; ++c) table.columns.push_back(std::to_string(c));
    for (std::int64_t r = 0; r < data_.rows; ++r) {
      std::vector<std::string> row{std::to_string(r)};
      for (std::int64_t c = 0; c < data_.columns; ++c) row.push_back(number(data_.matrix().values[cell_of(data_, r, c)], 9));
      table.rows.push_back(std::move(row));
    }
    return table;
  }

  std::string describe() const override {
    if (!data_.headline.empty()) return data_.headline + ". " + data_.detail;
    std::string text = fmt::format("State of layer {}, head {}, slot {} after token {}: {} rows, {} columns", data_.layer, data_.head,
                                   data_.matrix().name, data_.moving() ? data_.token - 1 : data_.token, data_.rows, data_.columns);
    if (data_.row >= 0 && data_.column >= 0) text += "; " + cell_text(data_, data_.matrix(), data_.row, data_.column);
    return text + ".";
  }

  std::string tooltip(std::int64_t hit_id) const override {
    const std::int64_t cells = data_.rows * data_.columns, all = cells * std::ssize(data_.slots);
    if (hit_id < 0 || hit_id >= all + data_.rows || data_.slots.empty()) return {};
    if (hit_id >= all) {
      const std::int64_t row = hit_id - all;
      return fmt::format("row {}: changed by {} (norm of S_t - S_t-1 along the row)", row,
                         number(data_.matrix().row_change[static_cast<std::size_t>(row)], 9));
    }
    const SlotMatrix& slot = data_.slots[static_cast<std::size_t>(hit_id / cells)];
    const std::int64_t row = hit_id % cells / data_.columns, column = hit_id % data_.columns;
    return fmt::format("{}\nlayer {}, head {}, slot {}\n{}", cell_text(data_, slot, row, column), data_.layer, data_.head, slot.name,
                       exactness_text(data_.exactness));
  }

  CursorMove on_hit(std::int64_t hit_id) const override {
    const std::int64_t cells = data_.rows * data_.columns, all = cells * std::ssize(data_.slots);
    if (hit_id < 0 || hit_id >= all + data_.rows) return {};
    if (hit_id >= all) return {.row = hit_id - all};
    return {.slot = hit_id / cells, .row = hit_id % cells / data_.columns, .column = hit_id % data_.columns};
  }

 private:
  StateData data_;
};

}  // namespace

float round_range(float value) {
  if (!(value > 0) || !std::isfinite(value)) return 1;
  const double power = std::pow(10.0, std::floor(std::log10(double{value})));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (value <= step * power * (1 + 1e-6)) return static_cast<float>(step * power);
  }
  return static_cast<float>(10 * power);
}

std::vector<std::int64_t> axis_ticks(std::int64_t count, std::int64_t most) {
  std::int64_t step = 1;
  while ((count + step - 1) / step > most) step *= 2;
  std::vector<std::int64_t> ticks;
  for (std::int64_t i = 0; i < count; i += step) ticks.push_back(i);
  return ticks;
}

StateData build_state(const Snapshot& snapshot, const Cursor& cursor) {
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
  data.exactness = snapshot.exactness;
  for (std::int64_t slot = 0; slot < state.slots; ++slot) data.slots.push_back(build_slot(snapshot, *layer, slot, data));
  data.chosen = static_cast<std::size_t>(std::clamp<std::int64_t>(cursor.slot, 0, state.slots - 1));
  data.row = cursor.row < state.rows ? cursor.row : -1;
  data.column = cursor.column < state.columns ? cursor.column : -1;
  data.range = round_range(largest(data));
  return data;
}

void draw(const StateData& data, Canvas& canvas, Rect area, const Frame& frame) {
  if (!data.headline.empty()) {
    draw_message(canvas, area, frame, data.headline, data.detail);
    return;
  }
  const Picture picture(data, canvas, area, frame);
  canvas.push_clip(area);
  draw_title(picture);
  draw_axes(picture);
  draw_marker(picture);
  draw_main(picture);
  draw_color_bar(picture);
  draw_others(picture);
  draw_readout(picture);
  canvas.pop_clip();
}

std::unique_ptr<View> make_state() { return std::make_unique<StateView>(); }

}  // namespace statescope

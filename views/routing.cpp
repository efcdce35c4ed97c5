#include "views/routing.h"

#include <fmt/format.h>

#include <algorithm>

#include "views/colormaps.h"
#include "views/hits.h"
#include "views/parts.h"
#include "views/plot.h"
#include "views/sheets.h"
#include "views/words.h"

namespace statescope {
namespace {

constexpr std::int64_t kEarlier = 40, kLater = 4;

std::vector<Write> writes_of(const Routing& routing, const LayerInfo& layer, std::int64_t token) {
  std::vector<Write> writes;
  const std::int64_t first_slot = layer.has_shared_slot ? 1 : 0;
  if (layer.has_shared_slot) writes.push_back({0, 1.0f});
  for (std::int64_t n = 0; n < routing.partitions; ++n) {
    if (routing.selected_at(token, n)) writes.push_back({first_slot + n, routing.gate_at(token, n)});
  }
  return writes;
}

std::vector<std::int64_t> loads_after(const Routing& routing, std::int64_t tokens) {
  std::vector<std::int64_t> loads(static_cast<std::size_t>(routing.partitions));
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t n = 0; n < routing.partitions; ++n) loads[static_cast<std::size_t>(n)] += routing.selected_at(t, n);
  }
  return loads;
}

std::vector<PartitionBox> build_boxes(const Routing& routing, const LayerInfo& layer, std::int64_t shown) {
  std::vector<PartitionBox> boxes;
  const std::int64_t first_slot = layer.has_shared_slot ? 1 : 0, tokens = shown + 1;
  if (layer.has_shared_slot) boxes.push_back({0, 0, slot_name(layer, 0), true, shown >= 0, 1, tokens, 1, {}});
  const std::vector<std::int64_t> loads = loads_after(routing, tokens);
  std::int64_t all = 0;
  for (const std::int64_t load : loads) all += load;
  for (std::int64_t n = 0; n < routing.partitions; ++n) {
    const std::int64_t slot = first_slot + n, load = loads[static_cast<std::size_t>(n)];
    // load ratio = load_n / (Σ_m load_m / N)
    const float ratio = all > 0 ? static_cast<float>(load * routing.partitions) / static_cast<float>(all) : 0;
    const bool written = shown >= 0 && routing.selected_at(shown, n);
    const float gate = shown >= 0 ? routing.gate_at(shown, n) : 0;
    boxes.push_back(
        {slot, n + 1, slot_name(layer, slot), false, written, gate, load, ratio, load_alarm(load, ratio, tokens, routing.partitions)});
  }
  return boxes;
}

RoutingData without_routing(const Snapshot& snapshot, const LayerInfo& layer) {
  const std::vector<std::int64_t> routed = layers_that(snapshot.run->model, [](const LayerInfo& each) { return each.partitions > 0; });
  RoutingData data;
  data.layer = snapshot.layer;
  if (layer.partitions > 0) {
    data.headline = Views::tr("The routing of layer {} has not been computed yet", snapshot.layer);
    data.detail = Views::tr("It appears with the first token that is read.");
    return data;
  }
  data.headline = Views::tr("Layer {} ({}) does not route its tokens", snapshot.layer, layer.mixer);
  const std::string layers_with = layer_list(routed, "");
  data.detail = routed.empty() ? Views::tr("No layer of this model has partitions. SSE and MoM models do.")
                : routed.size() == 1
                    ? Views::tr("Every token goes to the same memory. In this model, {} chooses among partitions.", layers_with)
                    : Views::tr("Every token goes to the same memory. In this model, {} choose among partitions.", layers_with);
  return data;
}

/// One drawing: where things stand.
struct Picture {
  const RoutingData& data;
  Canvas& canvas;
  const Frame& frame;
  float s;
  Plot plot;  // all of it: enlarged downwards alone, so that texts and gates stay readable
  Rect tokens, boxes;
  std::int64_t first_token = 0, last_token = 0;  // of data.tokens: those that fit
  std::vector<std::int64_t> shown_boxes;         // of data.boxes: those that fit
  float row_height = 0, box_height = 0, box_gap = 0;

  Picture(const RoutingData& data_, Canvas& canvas_, Rect area, const Frame& frame_);

  std::int64_t cursor_index() const {
    return std::ranges::find_if(data.tokens, [&](const RoutedToken& t) { return t.token == data.token; }) - data.tokens.begin();
  }
  Rect token_rect(std::int64_t index) const {
    return {tokens.x, tokens.y + row_height * static_cast<float>(index - first_token), tokens.w, row_height};
  }
  Rect box_rect(std::int64_t place) const {
    return {boxes.x, boxes.y + (box_height + box_gap) * static_cast<float>(place), boxes.w, box_height};
  }
  /// Where the ribbons of token `index` end at a box: later tokens below earlier ones.
  Point arrival(std::int64_t place, std::int64_t index) const {
    const Rect box = box_rect(place);
    const float share = (static_cast<float>(index - first_token) + 0.5f) / static_cast<float>(last_token - first_token);
    return {box.x, box.y + box.h * (0.2f + 0.6f * share)};
  }
  /// Of the widest name, so that all bars begin at the same place; the short names where "partition 12" is wider than `most`.
  float name_width(float most) const {
    const TextStyle bold = label(frame, kBodyType, {}, Align::left, true);
    float titles = 0, names = 0;
    for (const std::int64_t i : shown_boxes) {
      const PartitionBox& box = data.boxes[static_cast<std::size_t>(i)];
      if (box.shared) continue;
      titles = std::max(titles, canvas.text_width(slot_title(box.identity, box.name), bold));
      names = std::max(names, canvas.text_width(box.name, bold));
    }
    return titles <= most ? titles : names;
  }
  Point departure(std::int64_t index) const {
    const Rect row = token_rect(index);
    return {row.right(), row.y + row.h / 2};
  }
};

Picture::Picture(const RoutingData& data_, Canvas& canvas_, Rect area, const Frame& frame_)
    : data(data_), canvas(canvas_), frame(frame_), s(frame_.scale) {
  const Rect inner = inset(area, 8 * s);
  plot = zoomed(canvas, area, false, true, frame);
  const float zoom = plot.h > 0 ? plot.all.h / plot.h : 1;
  const Rect all_of_it{inner.x, plot.all.y + 8 * s * zoom, inner.w, inner.h * zoom};
  const float token_width = std::min(0.28f * inner.w, 150 * s), box_width = std::min(0.48f * inner.w, 300 * s);
  tokens = {inner.x, all_of_it.y, token_width, all_of_it.h};
  boxes = {inner.right() - box_width, all_of_it.y, box_width, all_of_it.h};

  row_height = 24 * s * zoom;
  const auto rows = std::max<std::int64_t>(1, static_cast<std::int64_t>(all_of_it.h / row_height));
  const std::int64_t later = std::min<std::int64_t>({kLater, rows / 5, std::ssize(data.tokens) - 1 - cursor_index()});
  last_token = cursor_index() + later + 1;
  first_token = std::max<std::int64_t>(0, last_token - rows);
  tokens.y += (tokens.h - row_height * static_cast<float>(last_token - first_token)) / 2;

  box_gap = 6 * s;
  const float least = 24 * s, note = 18 * s;  // a line says how many are hidden
  const auto fit = [&](float height) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>((height + box_gap) / (least + box_gap)));
  };
  const bool all = fit(boxes.h) >= std::ssize(data.boxes);
  const float height = all ? boxes.h : boxes.h - note;
  std::vector<bool> important;
  for (const PartitionBox& box : data.boxes) important.push_back(box.written || box.shared || box.slot == data.chosen_slot);
  shown_boxes = choose_shown(std::ssize(data.boxes), fit(height), important);
  const auto count = static_cast<float>(shown_boxes.size());
  box_height = std::min(62 * s * zoom, (height - box_gap * (count - 1)) / count);
  if (all) boxes.y += (height - count * box_height - (count - 1) * box_gap) / 2;
}

void draw_ribbons_of(const Picture& picture, std::int64_t index) {
  const RoutedToken& token = picture.data.tokens[static_cast<std::size_t>(index)];
  const bool current = token.token == picture.data.token;
  const float age = static_cast<float>(picture.data.token - token.token);
  const float opacity = current ? 0.9f * picture.data.progress : 0.4f / (1 + 0.35f * age);
  for (const Write& write : token.writes) {
    for (std::size_t place = 0; place < picture.shown_boxes.size(); ++place) {
      const PartitionBox& box = picture.data.boxes[static_cast<std::size_t>(picture.shown_boxes[place])];
      if (box.slot != write.slot) continue;
      const float width = (current ? 2 + 6 * write.gate : 1 + 3 * write.gate) * picture.s;
      picture.canvas.ribbon(picture.departure(index), picture.arrival(static_cast<std::int64_t>(place), index),
                            faded(identity_color(box.identity, picture.frame.theme), opacity), box.shared ? 1.5f * picture.s : width);
    }
  }
}

void draw_token_row(const Picture& picture, std::int64_t index) {
  const RoutedToken& token = picture.data.tokens[static_cast<std::size_t>(index)];
  const Theme& theme = picture.frame.theme;
  const bool current = token.token == picture.data.token, unread = token.token > picture.data.token;
  const Rect row = picture.token_rect(index), chip = inset(row, 1.5f * picture.s), shown = seen(picture.plot, row);
  if (current) picture.canvas.fill_rect(chip, theme.panel, 3 * picture.s);
  if (token.needle) picture.canvas.fill_rect(chip, faded(theme.needle, unread ? 0.15f : 0.35f), 3 * picture.s);
  if (current) picture.canvas.stroke_rect(chip, theme.accent, 2 * picture.s, 3 * picture.s);
  const TextStyle position = value(picture.frame, kSmallType, token.needle && !unread ? theme.ink : theme.faint);
  const TextStyle style = label(picture.frame, kTokenType, unread ? theme.faint : theme.ink, Align::right, current);
  picture.canvas.hit(row, {{RoutingSheets::tokens, index}});
  if (shown.h < kTokenType * picture.s) return;
  const float y = shown.y + shown.h / 2;
  const std::string number = std::to_string(token.token);
  const float number_width = picture.canvas.text_width(number, position) + 14 * picture.s;
  const float text_width = row.w - 14 * picture.s;
  const bool room = picture.canvas.text_width(token.text, style) + number_width <= text_width;
  if (room) picture.canvas.text({row.x + 6 * picture.s, y}, number, position);
  token_text(picture.canvas, {row.right() - 8 * picture.s, y}, token.text, style, text_width);
}

}  // namespace

std::string alarm_words(std::string_view alarm) { return alarm.empty() ? "" : Views::tr(std::string(alarm).c_str()); }

namespace {

/// From the longest to the shortest.
std::vector<std::string> load_texts(const PartitionBox& box) {
  const std::string tokens = tokens_text(box.load);
  if (box.shared) return {Views::tr("{}, all", tokens), tokens};
  return {Views::tr("{}, load {:.2f}", tokens, box.load_ratio), Views::tr("load {:.2f}", box.load_ratio),
          fmt::format("{:.2f}", box.load_ratio)};
}

/// The name, e as a bar, e as a number.
void draw_gate_line(const Picture& picture, const PartitionBox& box, Rect row) {
  const Theme& theme = picture.frame.theme;
  const bool chosen = box.slot == picture.data.chosen_slot && picture.frame.shown.cursor;
  const Color ink = box.written ? theme.ink : theme.faint;
  const TextStyle name = label(picture.frame, kBodyType, chosen ? theme.accent : ink, Align::left, box.written || chosen);
  const TextStyle gate = value(picture.frame, kBodyType, ink, Align::right, box.written);
  const float y = row.y + row.h / 2, gap = 10 * picture.s;
  const float gate_width = picture.canvas.text_width("0.000", gate), name_width = picture.name_width(0.5f * (row.w - gate_width));
  const std::string title = slot_title(box.identity, box.name);
  fitted_text(picture.canvas, {row.x, y}, fitting(picture.canvas, title, box.name, name, name_width), name,
              box.shared ? row.w : name_width);
  if (box.shared || picture.data.shown < 0) return;
  fitted_text(picture.canvas, {row.right(), y}, fmt::format("{:.3f}", box.gate), gate, row.w - name_width);
  const Rect track{row.x + name_width + gap, y - 3 * picture.s, row.w - name_width - gate_width - 2 * gap, 6 * picture.s};
  if (track.w < 2 * gap) return picture.canvas.left_out();
  picture.canvas.fill_rect(track, faded(theme.line, 0.5f));
  picture.canvas.fill_rect({track.x, track.y, track.w * std::clamp(box.gate, 0.0f, 1.0f), track.h}, identity_color(box.identity, theme));
}

/// The load in as many words as there is room for, and beside it what is wrong with it.
void draw_load_line(const Picture& picture, const PartitionBox& box, Rect row) {
  const TextStyle alarm = label(picture.frame, kSmallType, picture.frame.theme.ink, Align::right, true);
  const TextStyle faint = label(picture.frame, kSmallType, picture.frame.theme.faint);
  const std::string alarm_text = alarm_words(box.alarm);
  const float alarm_width = alarm_text.empty() ? 0 : picture.canvas.text_width(alarm_text, alarm) + 8 * picture.s;
  const float number_width = picture.canvas.text_width(load_texts(box).back(), faint) + 8 * picture.s;
  if (!alarm_text.empty() && alarm_width + number_width > row.w) {
    picture.canvas.left_out();
    return fitted_text(picture.canvas, {row.right(), row.y + row.h / 2}, alarm_text, alarm, row.w);
  }
  const float y = row.y + row.h / 2, room = row.w - alarm_width;
  const std::vector<std::string> texts = load_texts(box);
  const auto fits = [&](const std::string& text) { return picture.canvas.text_width(text, faint) <= room; };
  const auto load = std::ranges::find_if(texts, fits);
  const std::string& shown = load == texts.end() ? texts.back() : *load;
  fitted_text(picture.canvas, {row.x, y}, shown, faint, row.w);
  const float left = row.w - picture.canvas.text_width(shown, faint) - 8 * picture.s;
  if (!alarm_text.empty()) fitted_text(picture.canvas, {row.right(), y}, alarm_text, alarm, left);
}

void draw_box(const Picture& picture, std::int64_t place) {
  const PartitionBox& partition = picture.data.boxes[static_cast<std::size_t>(picture.shown_boxes[static_cast<std::size_t>(place)])];
  const Theme& theme = picture.frame.theme;
  const float s = picture.s;
  const Rect box = picture.box_rect(place);
  const Color identity = identity_color(partition.identity, theme);
  picture.canvas.fill_rect(box, theme.panel, 3 * s);
  picture.canvas.fill_rect({box.x, box.y, 6 * s, box.h}, faded(identity, partition.written ? 1 : 0.5f), 3 * s);
  picture.canvas.stroke_rect(box, partition.written ? identity : theme.line, (partition.written ? 2 : 1) * s, 3 * s);
  picture.canvas.hit(box, {{RoutingSheets::partitions, partition.slot}});
  const Rect shown = seen(picture.plot, box);
  const float line = 18 * s, left = box.x + 16 * s, width = box.w - 28 * s;
  if (shown.h < line) return;
  const bool two_lines = shown.h >= 2.2f * line;
  const float top = shown.y + (shown.h - (two_lines ? 2.1f : 1.0f) * line) / 2;
  draw_gate_line(picture, partition, {left, top, width, line});
  if (two_lines) draw_load_line(picture, partition, {left, top + 1.1f * line, width, line});
}

void draw_hidden_count(const Picture& picture) {
  const auto shown = std::ssize(picture.shown_boxes), all = std::ssize(picture.data.boxes);
  if (shown == all) return;
  picture.canvas.left_out();
  const Point at{picture.boxes.x + 16 * picture.s, picture.boxes.bottom() - 7 * picture.s};
  if (!holds_text(picture.plot, at, {0, kSmallType * picture.s})) return;
  fitted_text(picture.canvas, at, Views::tr("{} of {} shown", shown, all), label(picture.frame, kSmallType, picture.frame.theme.faint),
              picture.boxes.w - 16 * picture.s);
}

/// While a token moves, its chip travels along each of its ribbons.
void draw_travelling_chips(const Picture& picture) {
  const std::int64_t index = picture.cursor_index();
  const RoutedToken& token = picture.data.tokens[static_cast<std::size_t>(index)];
  const TextStyle style = label(picture.frame, kBodyType, picture.frame.theme.ink, Align::center, true);
  const float width = picture.canvas.text_width(token.text, style) + 10 * picture.s, height = 20 * picture.s;
  for (const Write& write : token.writes) {
    for (std::size_t place = 0; place < picture.shown_boxes.size(); ++place) {
      const PartitionBox& box = picture.data.boxes[static_cast<std::size_t>(picture.shown_boxes[place])];
      if (box.slot != write.slot) continue;
      const Point at =
          point_on_ribbon(picture.departure(index), picture.arrival(static_cast<std::int64_t>(place), index), picture.data.progress);
      const Rect chip{at.x - width / 2, at.y - height / 2, width, height};
      picture.canvas.fill_rect(chip, picture.frame.theme.panel, 3 * picture.s);
      picture.canvas.stroke_rect(chip, identity_color(box.identity, picture.frame.theme), 2 * picture.s, 3 * picture.s);
      picture.canvas.text(at, token.text, style);
    }
  }
}

void draw_picture(const Picture& picture) {
  const Within inside(picture.canvas, picture.plot);
  for (std::int64_t i = picture.first_token; i < picture.last_token; ++i) draw_ribbons_of(picture, i);
  for (std::int64_t i = picture.first_token; i < picture.last_token; ++i) draw_token_row(picture, i);
  for (std::int64_t place = 0; place < std::ssize(picture.shown_boxes); ++place) draw_box(picture, place);
  draw_hidden_count(picture);
  if (picture.data.moving()) draw_travelling_chips(picture);
}

class RoutingView : public View {
 public:
  void build(const Snapshot& snapshot, const Cursor& cursor, const Findings&) override { data_ = build_routing(snapshot, cursor); }
  void draw(Canvas& canvas, Rect area, const Frame& frame) const override { statescope::draw(data_, canvas, area, frame); }

  std::vector<Sheet> sheets() const override { return statescope::sheets(data_); }
  std::string sentence() const override {
    if (!data_.headline.empty()) return data_.headline + ". " + data_.detail;
    std::string written;
    for (const PartitionBox& box : data_.boxes) {
      if (box.written) written = written.empty() ? box.name : Views::tr("{} and {}", written, box.name);
    }
    if (written.empty()) return Views::tr("Layer {}: no token has been routed yet.", data_.layer);
    return Views::tr("Layer {}: token {} is written to {}.", data_.layer, data_.shown, written);
  }

 private:
  RoutingData data_;
};

}  // namespace

std::string_view load_alarm(std::int64_t load, float load_ratio, std::int64_t tokens, std::int64_t partitions) {
  if (tokens < 32 * partitions) return {};
  return load == 0 ? QT_TRANSLATE_NOOP("Views", "dead") : load_ratio > 2 ? QT_TRANSLATE_NOOP("Views", "overloaded") : "";
}

// The ribbon is the cubic Bézier curve from → (middle, from.y) → (middle, to.y) → to.
Point point_on_ribbon(Point from, Point to, float progress) {
  const float t = std::clamp(progress, 0.0f, 1.0f), u = 1 - t, middle = (from.x + to.x) / 2;
  const float end = u * u * u, inner_end = 3 * u * u * t, inner_start = 3 * u * t * t, start = t * t * t;
  return {end * from.x + (inner_end + inner_start) * middle + start * to.x, (end + inner_end) * from.y + (inner_start + start) * to.y};
}

RoutingData build_routing(const Snapshot& snapshot, const Cursor& cursor) {
  const LayerInfo* layer = layer_of(snapshot);
  if (!layer) {
    RoutingData data;
    const auto [headline, detail] = nothing_read();
    data.headline = headline;
    data.detail = detail;
    return data;
  }
  if (layer->partitions == 0 || !snapshot.routing || snapshot.routing->tokens() == 0) return without_routing(snapshot, *layer);

  const Routing& routing = *snapshot.routing;
  RoutingData data;
  data.layer = snapshot.layer;
  data.progress = std::clamp(cursor.progress, 0.0f, 1.0f);
  data.token = std::clamp<std::int64_t>(cursor.token, 0, routing.tokens() - 1);
  data.shown = data.moving() ? data.token - 1 : data.token;
  data.chosen_slot = cursor.slot;
  data.boxes = build_boxes(routing, *layer, data.shown);
  const auto tokens = static_cast<std::int64_t>(snapshot.run->tokens.size());
  for (std::int64_t t = std::max<std::int64_t>(0, data.token - kEarlier); t < std::min(tokens, data.token + 1 + kLater); ++t) {
    data.tokens.push_back({t, visible_token(*snapshot.run, t), is_needle(*snapshot.run, t),
                           t <= data.token ? writes_of(routing, *layer, t) : std::vector<Write>{}});
  }
  return data;
}

void draw(const RoutingData& data, Canvas& canvas, Rect area, const Frame& frame) {
  if (!data.headline.empty()) {
    draw_message(canvas, area, frame, data.headline, data.detail);
    return;
  }
  canvas.push_clip(area);
  draw_picture({data, canvas, area, frame});
  canvas.pop_clip();
}

std::unique_ptr<View> make_routing() { return std::make_unique<RoutingView>(); }

}  // namespace statescope

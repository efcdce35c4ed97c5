#include "views/model_map.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "views/colormaps.h"
#include "views/hits.h"
#include "views/matrix.h"
#include "views/parts.h"
#include "views/plot.h"
#include "views/sheets.h"
#include "views/words.h"

namespace statescope {
namespace {

LayerSign sign_of(const LayerInfo& layer) {
  if (layer.partitions > 0) return LayerSign::partitions;
  if (layer.has_state()) return LayerSign::matrix;
  return layer.memory == "softmax attention" ? LayerSign::tokens : LayerSign::none;
}

std::string size_of_memory(const LayerInfo& layer) {
  if (!layer.has_state()) return sign_of(layer) == LayerSign::tokens ? Views::tr("keys and values of every token") : "";
  const std::string heads = layer.heads == 1 ? Views::tr("{} head of {} × {}", layer.heads, layer.rows, layer.columns)
                                             : Views::tr("{} heads of {} × {}", layer.heads, layer.rows, layer.columns);
  if (layer.partitions == 0) return heads;
  return layer.has_shared_slot ? Views::tr("{}, shared and {} partitions", heads, layer.partitions)
                               : Views::tr("{}, {} partitions", heads, layer.partitions);
}

std::string size_of(const LayerInfo& layer) {
  std::vector<std::string> sizes;
  if (std::string memory = size_of_memory(layer); !memory.empty()) sizes.push_back(std::move(memory));
  if (layer.experts > 0) sizes.push_back(Views::tr("{} experts, {} a token", layer.experts, layer.chosen_experts));
  return joined(sizes, "; ");
}

std::string state_text(const ModelMap::LayerRow& row) {
  std::vector<std::string> sizes;
  if (row.state_bytes > 0) sizes.push_back(Views::tr("state {}", bytes_text(row.state_bytes)));
  if (row.state_bytes_per_token > 0) sizes.push_back(Views::tr("{} a token", bytes_text(row.state_bytes_per_token)));
  return joined(sizes, ", ");
}

}  // namespace

std::string shape_text(const std::vector<std::int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

namespace {

std::string thousands(double value, std::string_view unit) {
  static constexpr std::array<std::string_view, 5> prefixes = {"", "k", "M", "G", "T"};
  std::size_t power = 0;
  for (; value >= 999.5 && power + 1 < prefixes.size(); ++power) value /= 1000;
  return fmt::format("{:.3g} {}{}", value, prefixes[power], unit);
}

constexpr float kRowHeight = 19;

/// One drawing: where things stand.
struct Picture {
  const ModelMapData& data;
  Canvas& canvas;
  const Frame& frame;
  float s;
  Rect title, heading;  // w or h 0: left out
  Plot layers, rows;    // likewise; the title and the heading of the rows stay where these are enlarged
  Rect stack;           // of the layers, as far as they go
  std::vector<std::int64_t> shown;
  std::int64_t columns = 1, per_column = 1;
  float box_width = 0, box_height = 0, gap = 0;

  Picture(const ModelMapData& data_, Canvas& canvas_, Rect area, const Frame& frame_);
  TextStyle small(Color color, Align align = Align::left, bool bold = false) const { return label(frame, kSmallType, color, align, bold); }
  /// The first one at the bottom left; a full column goes on at the bottom of the next.
  Rect box(std::int64_t place) const {
    const auto column = static_cast<float>(place / per_column), row = static_cast<float>(place % per_column);
    return {stack.x + column * (box_width + 4 * gap), stack.bottom() - (row + 1) * box_height - row * gap, box_width, box_height};
  }
  std::int64_t row_count() const { return data.with_program ? std::ssize(data.program) : std::ssize(data.tensors); }

 private:
  void place_boxes();
  void place_rows(Rect beside);
};

Picture::Picture(const ModelMapData& data_, Canvas& canvas_, Rect area, const Frame& frame_)
    : data(data_), canvas(canvas_), frame(frame_), s(frame_.scale) {
  const Rect inner = inset(area, 8 * s);
  title = {inner.x, inner.y, inner.w, std::min(caption_height(frame), inner.h)};
  const Rect body{inner.x, title.bottom() + 4 * s, inner.w, std::max(0.0f, inner.bottom() - title.bottom() - 4 * s)};
  Rect place = body;
  if (body.w >= 860 * s && body.h >= 120 * s && row_count() > 0) {
    place_rows({body.x + 0.56f * body.w, body.y, 0.44f * body.w, body.h});
    place.w = 0.56f * body.w - 20 * s;
  }
  layers = place;
  place_boxes();
}

/// As many columns as the boxes need where all of the place is in sight; enlarged, it has room for more of them.
void Picture::place_boxes() {
  gap = 4 * s;
  const float least = 20 * s, most = 64 * s, narrowest = 230 * s;
  const std::int64_t all = std::ssize(data.boxes);
  const auto fit = [&](float height) { return std::max<std::int64_t>(1, static_cast<std::int64_t>((height + gap) / (least + gap))); };
  const std::int64_t most_columns = std::max<std::int64_t>(1, static_cast<std::int64_t>((layers.w + 4 * gap) / (narrowest + 4 * gap)));
  Rect place = layers;
  if (fit(place.h) * most_columns < all) place.h = std::max(0.0f, place.h - 18 * s);  // a line says how many are hidden
  const std::int64_t at_rest = std::min(all, fit(place.h) * most_columns);
  columns = (at_rest + fit(place.h) - 1) / fit(place.h);
  place.h = std::min(place.h, static_cast<float>((at_rest + columns - 1) / columns) * (most + gap) - gap);
  layers = zoomed(canvas, place, true, true, frame);
  stack = layers.all;
  const float zoom = layers.h > 0 ? stack.h / layers.h : 1;
  const std::int64_t count = std::min(all, fit(stack.h) * columns);
  per_column = (count + columns - 1) / columns;
  box_width = (stack.w + 4 * gap) / static_cast<float>(columns) - 4 * gap;
  box_height = std::min(most * zoom, (stack.h + gap) / static_cast<float>(per_column) - gap);
  stack.h = std::min(stack.h, static_cast<float>(per_column) * (box_height + gap) - gap);
  std::vector<bool> important;
  for (const LayerBox& one : data.boxes) important.push_back(one.chosen);
  shown = choose_shown(all, count, important);
}

/// Those that have no room come where they are enlarged.
void Picture::place_rows(Rect beside) {
  const float height = kRowHeight * s;
  heading = {beside.x, beside.y, beside.w, height};
  const Rect place{beside.x, heading.bottom(), beside.w, beside.h - height};
  const bool all_fit = static_cast<float>(row_count()) * height <= place.h;
  rows = all_fit ? Plot(place) : zoomed(canvas, place, false, true, frame);
}

void draw_title(const Picture& picture) {
  const Theme& theme = picture.frame.theme;
  const float y = picture.title.y + picture.title.h / 2;
  const TextStyle bold = label(picture.frame, kBodyType, theme.ink, Align::left, true), note = picture.small(theme.faint, Align::right);
  clauses_text(picture.canvas, {picture.title.x, y}, picture.data.summary, bold, picture.title.w, true);
  const float left = picture.canvas.text_width(picture.data.summary, bold) + 16 * picture.s;
  const std::string& words = picture.data.counting.empty() ? picture.data.device : picture.data.counting;
  if (picture.title.w - left > 80 * picture.s) fitted_text(picture.canvas, {picture.title.right(), y}, words, note, picture.title.w - left);
}

void draw_grid(const Picture& picture, Rect rect, int lines, Color color) {
  picture.canvas.stroke_rect(rect, color, picture.s);
  for (int i = 1; i < lines; ++i) {
    const float share = static_cast<float>(i) / static_cast<float>(lines);
    picture.canvas.line({rect.x + share * rect.w, rect.y}, {rect.x + share * rect.w, rect.bottom()}, color, 0.75f * picture.s);
    picture.canvas.line({rect.x, rect.y + share * rect.h}, {rect.right(), rect.y + share * rect.h}, color, 0.75f * picture.s);
  }
}

void draw_sign(const Picture& picture, const LayerBox& box, Rect rect) {
  const Theme& theme = picture.frame.theme;
  const float s = picture.s;
  switch (box.sign) {
    case LayerSign::matrix:
      return draw_grid(picture, rect, 4, theme.ink);
    case LayerSign::partitions: {
      const std::int64_t count = std::ssize(box.identities), side = count > 4 ? 3 : 2;
      const float each = (rect.w - 2 * s * static_cast<float>(side - 1)) / static_cast<float>(side);
      for (std::int64_t i = 0; i < std::min(side * side, count); ++i) {
        const Rect cell{rect.x + static_cast<float>(i % side) * (each + 2 * s), rect.y + static_cast<float>(i / side) * (each + 2 * s),
                        each, each};
        picture.canvas.fill_rect(cell, identity_color(box.identities[static_cast<std::size_t>(i)], theme));
        picture.canvas.stroke_rect(cell, theme.ink, 0.75f * s);
      }
      return;
    }
    case LayerSign::tokens:
      for (int i = 0; i < 4; ++i) {
        const float y = rect.y + rect.h * (static_cast<float>(i) + 0.5f) / 4;
        picture.canvas.line({rect.x, y}, {rect.x + rect.w * static_cast<float>(i + 1) / 4, y}, theme.ink, 2 * s);
      }
      return;
    case LayerSign::none:
      picture.canvas.stroke_rect(inset(rect, 3 * s), theme.faint, s, 2 * s);
  }
}

/// What a box says, in one line or two. The memory's name stands beside the layer's, or has a line of its own where it has no room there.
void draw_names(const Picture& picture, const LayerBox& box, Rect place, bool two) {
  Canvas& canvas = picture.canvas;
  const bool chosen = box.chosen && picture.frame.shown.cursor;
  const TextStyle name = label(picture.frame, kBodyType, chosen ? picture.frame.theme.accent : picture.frame.theme.ink, Align::left, true);
  const TextStyle quiet = picture.small(picture.frame.theme.faint);
  const auto width_of = [&](const std::string& text, const TextStyle& style) { return canvas.text_width(text, style); };
  const float first = two ? place.y + 0.32f * place.h : place.y + place.h / 2, second = place.y + 0.7f * place.h;
  const float behind_name = width_of(box.name, name) + 12 * picture.s;
  if (!two) {
    fitted_text(canvas, {place.x, first}, box.name, name, place.w);
    return fitted_text(canvas, {place.x + behind_name, first}, box.size.empty() ? box.memory : box.size, quiet, place.w - behind_name);
  }
  const std::string both = fmt::format("{}   {}", box.name, box.memory);
  if (width_of(both, name) <= place.w) {
    fitted_text(canvas, {place.x, first}, both, name, place.w);
    return clauses_text(canvas, {place.x, second}, box.size, quiet, place.w, true);
  }
  fitted_text(canvas, {place.x, first}, box.name, name, place.w);
  const bool size_beside = behind_name + width_of(box.size, quiet) <= place.w;
  if (size_beside) canvas.text({place.x + behind_name, first}, box.size, quiet);
  if (!size_beside) canvas.left_out();
  clauses_text(canvas, {place.x, second}, size_beside ? box.memory : box.size, quiet, place.w, true);
}

void draw_box(const Picture& picture, std::int64_t place) {
  const LayerBox& box = picture.data.boxes[static_cast<std::size_t>(picture.shown[static_cast<std::size_t>(place)])];
  const Theme& theme = picture.frame.theme;
  const float s = picture.s;
  const Rect rect = picture.box(place), in_sight = seen(picture.layers, rect);
  const bool chosen = box.chosen && picture.frame.shown.cursor;
  picture.canvas.fill_rect(rect, chosen ? over(faded(theme.accent, 0.12f), theme.panel) : theme.panel, 3 * s);
  picture.canvas.stroke_rect(rect, chosen ? theme.accent : theme.line, (chosen ? 2.5f : 1) * s, 3 * s);
  if (in_sight.h < 14 * s || in_sight.w < 60 * s) return;
  if (place % picture.per_column > 0) {  // the residual stream comes from below
    const float x = in_sight.x + 18 * s;
    picture.canvas.line({x, rect.bottom()}, {x, rect.bottom() + picture.gap}, theme.faint, 2 * s);
  }
  const float sign = std::min(in_sight.h - 6 * s, 26 * s);
  draw_sign(picture, box, {in_sight.x + 18 * s - sign / 2, in_sight.y + (in_sight.h - sign) / 2, sign, sign});
  const float left = in_sight.x + 40 * s, width = in_sight.right() - 8 * s - left;
  const TextStyle figures = picture.small(theme.ink, Align::right);
  const bool two = in_sight.h >= 38 * s;
  const float sizes = std::max(picture.canvas.text_width(box.parameters, figures), picture.canvas.text_width(box.state, figures)) + 10 * s;
  const bool has_figures = sizes < 0.5f * width;
  draw_names(picture, box, {left, in_sight.y, has_figures ? width - sizes : width, in_sight.h}, two);
  if (!has_figures) return picture.canvas.left_out();
  const float right = in_sight.right() - 8 * s;
  if (!two) return picture.canvas.text({right, in_sight.y + in_sight.h / 2}, box.state.empty() ? box.parameters : box.state, figures);
  picture.canvas.text({right, in_sight.y + 0.32f * in_sight.h}, box.parameters, figures);
  picture.canvas.text({right, in_sight.y + 0.7f * in_sight.h}, box.state, figures);
}

void draw_boxes(const Picture& picture) {
  const Within inside(picture.canvas, picture.layers);
  for (std::int64_t place = 0; place < std::ssize(picture.shown); ++place) {
    draw_box(picture, place);
    picture.canvas.hit(picture.box(place), {{ModelMapSheets::parts, picture.shown[static_cast<std::size_t>(place)]}});
  }
}

void draw_stack(const Picture& picture) {
  if (picture.box_height < 12 * picture.s || picture.box_width < 60 * picture.s) return picture.canvas.left_out();
  draw_boxes(picture);
  const std::int64_t all = std::ssize(picture.data.boxes);
  if (std::ssize(picture.shown) == all) return;
  picture.canvas.left_out();
  fitted_text(picture.canvas, {picture.layers.x, picture.layers.bottom() + 10 * picture.s},
              Views::tr("{} of {} shown, bottom to top", picture.shown.size(), all), picture.small(picture.frame.theme.faint),
              picture.layers.w);
}

/// As many of the rows as there is room for; `row` draws one in its rectangle. The last line says how many are left out.
void draw_rows(const Picture& picture, const std::string& heading, int sheet,
               const std::function<void(std::int64_t, const Rect&)>& draw_row) {
  if (picture.rows.w <= 0) return;
  const TextStyle faint = picture.small(picture.frame.theme.faint);
  fitted_text(picture.canvas, {picture.heading.x, picture.heading.y + picture.heading.h / 2}, heading, faint, picture.heading.w);
  const Rect& area = picture.rows.all;
  const std::int64_t all = picture.row_count();
  const float least = kRowHeight * picture.s;
  const auto fit = static_cast<std::int64_t>(area.h / least);
  const float height = picture.rows.shows_part() ? std::max(least, area.h / static_cast<float>(all)) : least;
  const std::int64_t count = all <= fit ? all : std::max<std::int64_t>(0, fit - 1);
  const Within inside(picture.canvas, picture.rows);
  const auto place = [&](std::int64_t i) { return Rect{area.x, area.y + height * static_cast<float>(i), area.w, height}; };
  const auto is_whole = [&](const Rect& row) { return holds_text(picture.rows, {row.x + row.w / 2, row.y + row.h / 2}, {0, least}); };
  for (std::int64_t i = 0; i < count; ++i) {
    if (is_whole(place(i))) draw_row(i, place(i));
    picture.canvas.hit(place(i), {{sheet, i}});
  }
  if (count == all || !is_whole(place(count))) return;
  fitted_text(picture.canvas, {area.x, place(count).y + height / 2}, Views::tr("{} of {} shown", count, all), faint, area.w);
}

void draw_tensors(const Picture& picture) {
  const TextStyle name = picture.small(picture.frame.theme.ink),
                  figures = value(picture.frame, kSmallType, picture.frame.theme.ink, Align::right);
  const auto draw_row = [&](std::int64_t i, const Rect& row) {
    const ModelMap::TensorRow& tensor = picture.data.tensors[static_cast<std::size_t>(i)];
    const std::string shape = fmt::format("{}  {}", shape_text(tensor.shape), tensor.dtype);
    const float width = picture.canvas.text_width(shape, figures) + 8 * picture.s, y = row.y + row.h / 2;
    fitted_text(picture.canvas, {row.x, y}, tensor.name, name, row.w - width);
    fitted_text(picture.canvas, {row.right(), y}, shape, figures, row.w);
  };
  draw_rows(picture, Views::tr("Tensors of layer {}, as stored", picture.data.layer), ModelMapSheets::tensors, draw_row);
}

void draw_program(const Picture& picture) {
  const TextStyle line = value(picture.frame, kSmallType, picture.frame.theme.ink);
  const auto draw_row = [&](std::int64_t i, const Rect& row) {
    fitted_text(picture.canvas, {row.x, row.y + row.h / 2}, picture.data.program[static_cast<std::size_t>(i)], line, row.w);
  };
  draw_rows(picture, Views::tr("What layer {} computes of a token x", picture.data.layer), ModelMapSheets::program, draw_row);
}

class ModelMapView : public View {
 public:
  std::vector<Question> questions(const Snapshot& snapshot, const Cursor&) const override {
    return layer_of(snapshot) ? std::vector<Question>{ModelMapQuestion{}} : std::vector<Question>{};
  }
  std::span<const std::string_view> modes() const override {
    static constexpr std::array<std::string_view, 2> names = {QT_TRANSLATE_NOOP("Views", "Tensors"), QT_TRANSLATE_NOOP("Views", "Program")};
    return names;
  }
  void build(const Snapshot& snapshot, const Cursor&, const Findings& findings) override {
    data_ = build_model_map(snapshot, findings, mode() == 1);
  }
  void draw(Canvas& canvas, Rect area, const Frame& frame) const override { statescope::draw(data_, canvas, area, frame); }

  std::vector<Sheet> sheets() const override { return statescope::sheets(data_); }
  std::string sentence() const override {
    if (data_.message) return data_.message.sentence();
    const auto chosen = std::ranges::find(data_.boxes, true, &LayerBox::chosen);
    return chosen == data_.boxes.end() ? data_.summary + "."
                                       : Views::tr("{}; chosen: layer {}, {}.", data_.summary, chosen->name, words_of(*chosen));
  }

 private:
  static std::string words_of(const LayerBox& box) {
    std::vector<std::string> words;
    for (const std::string* word : {&box.memory, &box.size, &box.parameters, &box.state}) {
      if (!word->empty()) words.push_back(*word);
    }
    return joined(words, ", ");
  }
  ModelMapData data_;
};

}  // namespace

std::string count_text(std::int64_t count) {
  std::string text = thousands(static_cast<double>(count), "");
  while (text.ends_with(' ')) text.pop_back();
  return text;
}
std::string bytes_text(std::int64_t bytes) { return thousands(static_cast<double>(bytes), "B"); }

ModelMapData build_model_map(const Snapshot& snapshot, const Findings& findings, bool with_program) {
  ModelMapData data;
  data.with_program = with_program;
  if (!layer_of(snapshot)) {
    data.message = {Views::tr("No model is open"), Views::tr("It appears as soon as a model has read its first tokens.")};
    return data;
  }
  const ModelInfo& model = snapshot.run->model;
  const ModelMap* found = findings.get(ModelMapQuestion{});
  const auto parameters = [](std::int64_t count) { return Views::tr("{} parameters", count_text(count)); };
  data.layer = snapshot.layer;
  data.device = model.placement.empty() ? model.device : joined(model.placement, "; ");
  const std::size_t layers = model.layers.size();
  data.summary =
      fmt::format("{}: {}, {}", model.name, model.family, layers == 1 ? Views::tr("{} layer", layers) : Views::tr("{} layers", layers));
  if (model.parameters > 0) data.summary += fmt::format(", {}, {}", parameters(model.parameters), bytes_text(model.weight_bytes));
  if (!found) data.counting = waiting(findings, ModelMapQuestion{}, Views::tr("The size of each layer")).headline;

  const auto add_rest = [&](const std::string& name, const std::string& what) {
    data.boxes.push_back({.name = name, .memory = what, .size = {}, .identities = {}, .parameters = {}, .state = {}});
  };
  add_rest(Views::tr("embedding"), Views::tr("token to vector"));
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const LayerInfo& layer = model.layers[i];
    LayerBox box{.layer = static_cast<std::int64_t>(i),
                 .name = fmt::format("{}  {}{}{}", i, layer.mixer, layer.device.empty() ? "" : " · ", layer.device),
                 .memory = Engine::tr(layer.memory.c_str()),
                 .size = size_of(layer),
                 .sign = sign_of(layer),
                 .identities = {},
                 .chosen = static_cast<std::int64_t>(i) == snapshot.layer,
                 .parameters = {},
                 .state = {}};
    for (std::int64_t slot = 0; layer.partitions > 0 && slot < layer.slots(); ++slot) box.identities.push_back(slot_identity(layer, slot));
    if (found && i < found->layers.size()) {
      box.parameters = parameters(found->layers[i].parameters);
      box.state = state_text(found->layers[i]);
      box.parameter_count = static_cast<float>(found->layers[i].parameters);
      box.state_bytes = static_cast<float>(found->layers[i].state_bytes + found->layers[i].state_bytes_per_token);
      if (box.chosen) data.tensors = found->layers[i].tensors, data.program = found->layers[i].program;
    }
    data.boxes.push_back(std::move(box));
  }
  add_rest(Views::tr("unembedding"), Views::tr("last norm, to logits"));
  if (found) {
    data.boxes.front().parameters = Views::tr("{} parameters of both ends", count_text(found->rest.parameters));
    data.boxes.front().parameter_count = static_cast<float>(found->rest.parameters);
  }
  return data;
}

void draw(const ModelMapData& data, Canvas& canvas, Rect area, const Frame& frame) {
  if (data.message) {
    draw_message(canvas, area, frame, data.message.headline, data.message.detail);
    return;
  }
  const Picture picture(data, canvas, area, frame);
  canvas.push_clip(area);
  if (frame.shown.captions) draw_title(picture);
  draw_stack(picture);
  data.with_program ? draw_program(picture) : draw_tensors(picture);
  canvas.pop_clip();
}

std::unique_ptr<View> make_model_map() { return std::make_unique<ModelMapView>(); }

}  // namespace statescope

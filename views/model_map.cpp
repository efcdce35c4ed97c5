#include "views/model_map.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "views/colormaps.h"
#include "views/matrix.h"
#include "views/parts.h"
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

/// One drawing: where things stand.
struct Picture {
  const ModelMapData& data;
  Canvas& canvas;
  const Frame& frame;
  float s;
  Rect title, stack, beside;  // w or h 0: left out
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
  bool two_lines() const { return box_height >= 38 * s; }
};

Picture::Picture(const ModelMapData& data_, Canvas& canvas_, Rect area, const Frame& frame_)
    : data(data_), canvas(canvas_), frame(frame_), s(frame_.scale) {
  const Rect inner = inset(area, 8 * s);
  title = {inner.x, inner.y, inner.w, std::min(caption_height(frame), inner.h)};
  const Rect body{inner.x, title.bottom() + 4 * s, inner.w, std::max(0.0f, inner.bottom() - title.bottom() - 4 * s)};
  stack = body;
  if (body.w >= 860 * s && body.h >= 120 * s && !(data.with_program ? data.program.empty() : data.tensors.empty())) {
    beside = {body.x + 0.56f * body.w, body.y, 0.44f * body.w, body.h};
    stack.w = 0.56f * body.w - 20 * s;
  }
  gap = 4 * s;
  const float least = 20 * s, most = 64 * s, narrowest = 230 * s;
  const std::int64_t all = std::ssize(data.boxes);
  const auto fit = [&](float height) { return std::max<std::int64_t>(1, static_cast<std::int64_t>((height + gap) / (least + gap))); };
  const std::int64_t most_columns = std::max<std::int64_t>(1, static_cast<std::int64_t>((stack.w + 4 * gap) / (narrowest + 4 * gap)));
  if (fit(stack.h) * most_columns < all) stack.h = std::max(0.0f, stack.h - 18 * s);  // a line says how many are hidden
  const std::int64_t count = std::min(all, fit(stack.h) * most_columns);
  columns = (count + fit(stack.h) - 1) / fit(stack.h);
  per_column = (count + columns - 1) / columns;
  box_width = (stack.w + 4 * gap) / static_cast<float>(columns) - 4 * gap;
  box_height = std::min(most, (stack.h + gap) / static_cast<float>(per_column) - gap);
  stack.h = std::min(stack.h, static_cast<float>(per_column) * (box_height + gap) - gap);
  std::vector<bool> important;
  for (const LayerBox& one : data.boxes) important.push_back(one.chosen);
  shown = choose_shown(all, count, important);
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

void draw_box(const Picture& picture, std::int64_t place) {
  const LayerBox& box = picture.data.boxes[static_cast<std::size_t>(picture.shown[static_cast<std::size_t>(place)])];
  const Theme& theme = picture.frame.theme;
  const float s = picture.s;
  const Rect rect = picture.box(place);
  const bool chosen = box.chosen && picture.frame.shown.cursor;
  picture.canvas.fill_rect(rect, chosen ? over(faded(theme.accent, 0.12f), theme.panel) : theme.panel, 3 * s);
  picture.canvas.stroke_rect(rect, chosen ? theme.accent : theme.line, (chosen ? 2.5f : 1) * s, 3 * s);
  if (place % picture.per_column > 0) {  // the residual stream comes from below
    const float x = rect.x + 18 * s;
    picture.canvas.line({x, rect.bottom()}, {x, rect.bottom() + picture.gap}, theme.faint, 2 * s);
  }
  const float sign = std::min(rect.h - 6 * s, 26 * s);
  draw_sign(picture, box, {rect.x + 18 * s - sign / 2, rect.y + (rect.h - sign) / 2, sign, sign});
  const float left = rect.x + 40 * s, width = rect.right() - 8 * s - left;
  const TextStyle name = label(picture.frame, kBodyType, chosen ? theme.accent : theme.ink, Align::left, true);
  const TextStyle quiet = picture.small(theme.faint), figures = picture.small(theme.ink, Align::right);
  const bool two = picture.two_lines();
  const float first = two ? rect.y + 0.32f * rect.h : rect.y + rect.h / 2, second = rect.y + 0.7f * rect.h;
  const float sizes = std::max(picture.canvas.text_width(box.parameters, figures), picture.canvas.text_width(box.state, figures)) + 10 * s;
  const float words = sizes < 0.5f * width ? width - sizes : width;
  if (words == width) picture.canvas.left_out();
  if (two) {
    fitted_text(picture.canvas, {left, first}, fmt::format("{}   {}", box.name, box.memory), name, words);
    fitted_text(picture.canvas, {left, second}, box.size, quiet, words);
    if (words == width) return;
    picture.canvas.text({rect.right() - 8 * s, first}, box.parameters, figures);
    picture.canvas.text({rect.right() - 8 * s, second}, box.state, figures);
    return;
  }
  const float shown_name = std::min(picture.canvas.text_width(box.name, name), words);
  fitted_text(picture.canvas, {left, first}, box.name, name, words);
  const std::string& size = box.size.empty() ? box.memory : box.size;
  fitted_text(picture.canvas, {left + shown_name + 12 * s, first}, size, quiet, words - shown_name - 12 * s);
  if (words < width) picture.canvas.text({rect.right() - 8 * s, first}, box.state.empty() ? box.parameters : box.state, figures);
}

void draw_stack(const Picture& picture) {
  if (picture.box_height < 12 * picture.s || picture.box_width < 60 * picture.s) return picture.canvas.left_out();
  for (std::int64_t place = 0; place < std::ssize(picture.shown); ++place) {
    draw_box(picture, place);
    picture.canvas.hit(picture.box(place), {{ModelMapSheets::parts, picture.shown[static_cast<std::size_t>(place)]}});
  }
  const std::int64_t all = std::ssize(picture.data.boxes);
  if (std::ssize(picture.shown) == all) return;
  picture.canvas.left_out();
  fitted_text(picture.canvas, {picture.stack.x, picture.stack.bottom() + 10 * picture.s},
              Views::tr("{} of {} shown, bottom to top", picture.shown.size(), all), picture.small(picture.frame.theme.faint),
              picture.stack.w);
}

/// A heading and as many of `all` rows as there is room for; `row` draws one in its rectangle. The last line says how many are left out.
void draw_rows(const Picture& picture, const std::string& heading, std::int64_t all, int sheet,
               const std::function<void(std::int64_t, const Rect&)>& draw_row) {
  const Rect& area = picture.beside;
  if (area.w <= 0) return;
  const float height = 19 * picture.s;
  const TextStyle faint = picture.small(picture.frame.theme.faint);
  fitted_text(picture.canvas, {area.x, area.y + height / 2}, heading, faint, area.w);
  const auto fit = static_cast<std::int64_t>((area.h - height) / height);
  const std::int64_t count = all <= fit ? all : std::max<std::int64_t>(0, fit - 1);
  const auto place = [&](std::int64_t i) { return Rect{area.x, area.y + height * static_cast<float>(i + 1), area.w, height}; };
  for (std::int64_t i = 0; i < count; ++i) {
    draw_row(i, place(i));
    picture.canvas.hit(place(i), {{sheet, i}});
  }
  if (count == all) return;
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
  draw_rows(picture, Views::tr("Tensors of layer {}, as stored", picture.data.layer), std::ssize(picture.data.tensors),
            ModelMapSheets::tensors, draw_row);
}

void draw_program(const Picture& picture) {
  const TextStyle line = value(picture.frame, kSmallType, picture.frame.theme.ink);
  const auto draw_row = [&](std::int64_t i, const Rect& row) {
    fitted_text(picture.canvas, {row.x, row.y + row.h / 2}, picture.data.program[static_cast<std::size_t>(i)], line, row.w);
  };
  draw_rows(picture, Views::tr("What layer {} computes of a token x", picture.data.layer), std::ssize(picture.data.program),
            ModelMapSheets::program, draw_row);
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

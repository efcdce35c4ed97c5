#include "app/figure/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/assets.h"
#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"
#include "engine/checkpoint/json_object.h"
#include "engine/error.h"
#include "views/chosen.h"

namespace statescope {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::size_t kMostBytes = 64 << 20, kMostPanels = 100;
constexpr double kLeastMm = 20, kMostMm = 600;
constexpr std::int64_t kMostIndex = std::int64_t{1} << 31;

struct Preset {
  std::string_view name;
  double width_mm, height_mm;  // height 0: by the panels
  double type_pt;
};
constexpr std::array<Preset, 5> kPresets{
    {{"single", 89, 0, 6}, {"double", 183, 0, 6}, {"neurips", 139.7, 0, 7}, {"iclr", 139.7, 0, 7}, {"slide", 254, 142.875, 10}}};
constexpr std::array<std::pair<std::string_view, FigureColors>, 4> kColors{{{"viridis", FigureColors::viridis},
                                                                            {"cividis", FigureColors::cividis},
                                                                            {"grey", FigureColors::grey},
                                                                            {"grey-safe", FigureColors::grey_safe}}};
constexpr std::array<std::pair<std::string_view, RangeChoice::Fit>, 3> kFits{
    {{"own", RangeChoice::Fit::own}, {"full", RangeChoice::Fit::full}, {"most", RangeChoice::Fit::most}}};
constexpr std::array<std::pair<std::string_view, SpanKind>, 3> kSpans{
    {{"needle", SpanKind::needle}, {"question", SpanKind::question}, {"answer", SpanKind::answer}}};
/// A list of these makes several panels.
constexpr std::array<const char*, 6> kExpanded{"checkpoint", "layer", "head", "slot", "token", "mode"};

template <class Table>
std::string names_of(const Table& table) {
  std::string names;
  for (const auto& [name, value] : table) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}
template <class Table, class Value>
std::string_view name_of(const Table& table, Value value) {
  return std::ranges::find(table, value, [](const auto& row) { return row.second; })->first;
}

std::optional<double> real_in(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// Says the place of what is wrong with a text that another function reads.
template <class Read>
void read_text(JsonObject& object, const char* key, const Read& read) {
  const json* value = object.find(key);
  if (!value) return;
  try {
    read(object.text_of(*value, key));
  } catch (const Error& error) {
    object.refuse(fmt::format("{}: {}", key, error.what()));
  }
}

TextSpan span_in(const json& value, const std::string& place, std::int64_t length) {
  JsonObject object(value, place);
  std::string part;
  object.take("part", part);
  const auto kind = std::ranges::find(kSpans, part, [](const auto& row) { return row.first; });
  if (kind == kSpans.end()) object.wrong("part", names_of(kSpans));
  std::int64_t begin = 0, end = 0;
  object.take("begin", begin, 0, length);
  object.take("end", end, begin + 1, length);
  if (end == 0) object.refuse("has no \"begin\" and \"end\"");
  object.nothing_else("a span");
  return {kind->second, static_cast<std::size_t>(begin), static_cast<std::size_t>(end)};
}

std::vector<TextSpan> spans_in(JsonObject& of, const std::string& place, std::int64_t length) {
  std::vector<TextSpan> spans;
  const json* all = of.find("spans");
  if (!all) return spans;
  if (!all->is_array()) of.wrong("spans", "a list of objects");
  for (std::size_t i = 0; i < all->size(); ++i) spans.push_back(span_in((*all)[i], fmt::format("{}.spans[{}]", place, i), length));
  return spans;
}

std::vector<ChatTurn> turns_in(JsonObject& prompt, const std::string& place) {
  std::vector<ChatTurn> turns;
  const json* all = prompt.find("turns");
  if (!all) return turns;
  if (!all->is_array()) prompt.wrong("turns", "a list of objects");
  for (std::size_t i = 0; i < all->size(); ++i) {
    const std::string own = fmt::format("{}.turns[{}]", place, i);
    JsonObject object((*all)[i], own);
    ChatTurn& turn = turns.emplace_back();
    object.take("role", turn.role);
    object.take("text", turn.text);
    turn.spans = spans_in(object, own, std::ssize(turn.text));
    object.nothing_else("a turn");
  }
  return turns;
}

/// The prompt itself: {"text": …, "spans": [{"part", "begin", "end"}], "ids": […], "in_chat": true, "turns": [{"role", "text", "spans"}],
/// "expected": …}.
PromptInput prompt_in(const json& value, const std::string& place) {
  JsonObject object(value, place);
  PromptInput input;
  object.take("text", input.text);
  object.take("in_chat", input.in_chat);
  object.take("expected", input.expected);
  if (const json* ids = object.find("ids")) {
    if (!ids->is_array()) object.wrong("ids", "a list of token ids");
    for (const json& id : *ids) input.ids.push_back(static_cast<std::int32_t>(object.integer_of(id, "ids", 0, kMostIndex - 1)));
  }
  input.spans = spans_in(object, place, std::max(std::ssize(input.text), std::ssize(input.ids)));
  input.turns = turns_in(object, place);
  object.nothing_else("a prompt");
  if (input.text.empty() == input.ids.empty()) object.refuse("has neither or both of \"text\" and \"ids\"");
  return input;
}

RangeChoice range_in(const json& value, JsonObject& object) {
  if (value.is_string()) return figure_range(object.text_of(value, "range"));
  if (!value.is_array() || value.size() != 2 || !value[0].is_number() || !value[1].is_number() || !(value[0] < value[1]))
    object.wrong("range", "own, full, most or [low, high]");
  return {RangeChoice::Fit::fixed, value[0].get<float>(), value[1].get<float>(), false};
}

/// Which run it is of.
void read_run(JsonObject& object, FigurePanel& panel) {
  std::string checkpoint;
  object.take("checkpoint", checkpoint);
  object.take("checkpoints", panel.checkpoints);
  if (!checkpoint.empty() && !panel.checkpoints.empty()) object.refuse("has both \"checkpoint\" and \"checkpoints\"");
  if (!checkpoint.empty()) panel.checkpoints = {checkpoint};
  if (const json* prompt = object.find("prompt")) {
    if (prompt->is_object())
      panel.input = prompt_in(*prompt, object.place() + ".prompt");
    else
      panel.prompt = object.text_of(*prompt, "prompt");
  }
  object.take("generate", panel.generate, 0, 1'000'000);
  object.take("interventions", panel.interventions);
}

FigurePanel panel_in(const json& value, const std::string& place) {
  JsonObject object(value, place);
  FigurePanel panel;
  object.take("view", panel.view);
  object.take("chart", panel.chart);
  object.take("data", panel.data);
  object.take("length", panel.length, 1, kMostIndex);
  object.take("load", panel.load, 0, kMostIndex);
  read_run(object, panel);
  object.take("layer", panel.layer, 0, kMostIndex);
  object.take("head", panel.head, 0, kMostIndex);
  object.take("slot", panel.slot, 0, kMostIndex);
  object.take("token", panel.token, -kMostIndex, kMostIndex);
  object.take("reference", panel.reference, -kMostIndex, kMostIndex);
  if (const json* row = object.find("row")) panel.row = *row == "all" ? kAllRows : object.integer_of(*row, "row", -1, kMostIndex);
  object.take("column", panel.column, -1, kMostIndex);
  object.take("mode", panel.mode);
  if (object.find("knob")) object.take("knob", panel.knob.emplace(), -1e12, 1e12);
  if (const json* range = object.find("range")) panel.range = range_in(*range, object);
  object.take("logarithmic", panel.range.logarithmic);
  read_chart_keys(object, panel.keys);
  if (object.find("title")) object.take("title", panel.title.emplace());
  object.nothing_else("a panel");
  try {
    check_panel(panel);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", place, error.what()));
  }
  return panel;
}

/// A panel of each combination of what stands in lists.
std::vector<json> expanded(const json& panel, const std::string& place, std::int64_t& columns) {
  std::vector<json> all{panel};
  if (!panel.is_object()) return all;
  for (const char* key : kExpanded) {
    const auto list = panel.find(key);
    if (list == panel.end() || !list->is_array()) continue;
    if (list->empty()) throw Error(fmt::format("{}: \"{}\" is an empty list: no panel is left", place, key));
    std::vector<json> more;
    for (const json& each : all) {
      for (const json& value : *list) {
        if (more.size() >= kMostPanels) throw Error(fmt::format("a figure has at most {} panels", kMostPanels));
        more.push_back(each);
        more.back()[key] = value;
      }
    }
    all = std::move(more);
    columns = std::ssize(*list);
  }
  return all;
}

void read_panels(JsonObject& object, FigureSpec& spec) {
  const json none = json::object(), *defaults = object.find("defaults"), *panels = object.find("panels");
  if (!panels || !panels->is_array() || panels->empty()) throw Error("\"panels\" is not a list of panels");
  if (!defaults) defaults = &none;
  if (!defaults->is_object()) object.wrong("defaults", "an object");
  std::int64_t of_lists = 0;
  for (std::size_t i = 0; i < panels->size(); ++i) {
    json panel = (*panels)[i];
    const std::string place = fmt::format("panels[{}]", i);
    if (!panel.is_object()) throw Error(place + ": is not an object");
    for (const auto& [key, value] : defaults->items()) {
      if (!panel.contains(key)) panel[key] = value;
    }
    for (const json& each : expanded(panel, place, of_lists)) {
      if (spec.panels.size() >= kMostPanels) throw Error(fmt::format("a figure has at most {} panels", kMostPanels));
      spec.panels.push_back(panel_in(each, place));
    }
  }
  if (spec.columns == 0) spec.columns = of_lists;
}

FigureSpec spec_in(const json& value) {
  JsonObject object(value, "");
  FigureSpec spec;
  read_text(object, "size", [&](const std::string& size) { set_size(spec, size); });
  if (object.find("aspect")) object.take("aspect", spec.aspect.emplace(), 0.1, 10);
  if (object.find("max_height")) object.take("max_height", spec.max_height_mm.emplace(), kLeastMm, kMostMm);
  if (spec.max_height_mm && spec.height_mm) object.wrong("max_height", "away where \"size\" says the height");
  object.take("font", spec.family);
  object.take("type", spec.type_pt, 5, 12);
  object.take("line_width", spec.line_width, 0.1, 10);
  read_text(object, "map", [&](const std::string& name) { spec.colors = figure_colors(name); });
  object.take("shared_range", spec.shared_range);
  object.take("color_bars", spec.color_bars);
  object.take("titles", spec.titles);
  object.take("annotations", spec.annotations);
  object.take("captions", spec.captions);
  if (object.find("letters")) object.take("letters", spec.letters.emplace());
  object.take("ticks", spec.ticks, 0.1, 4);
  object.take("transparent", spec.transparent);
  object.take("outlines", spec.outlines);
  object.take("dpi", spec.dpi, 50, 2400);
  object.take("columns", spec.columns, 0, static_cast<std::int64_t>(kMostPanels));
  read_panels(object, spec);
  object.nothing_else("a figure");
  return spec;
}

void put_spans(json& into, const std::vector<TextSpan>& spans) {
  for (const TextSpan& span : spans)
    into["spans"].push_back({{"part", name_of(kSpans, span.kind)}, {"begin", span.begin}, {"end", span.end}});
}

json prompt_json(const PromptInput& input) {
  json prompt = input.ids.empty() ? json{{"text", input.text}} : json{{"ids", input.ids}};
  if (input.in_chat) prompt["in_chat"] = true;
  if (!input.expected.empty()) prompt["expected"] = input.expected;
  put_spans(prompt, input.spans);
  for (const ChatTurn& turn : input.turns) {
    json one{{"role", turn.role}, {"text", turn.text}};
    put_spans(one, turn.spans);
    prompt["turns"].push_back(std::move(one));
  }
  return prompt;
}

template <class Value>
void put(json& object, const char* key, const Value& value, const Value& usual) {
  if (value != usual) object[key] = value;
}
template <class Value>
void put(json& object, const char* key, const std::optional<Value>& value) {
  if (value) object[key] = *value;
}

json panel_json(const FigurePanel& panel) {
  const FigurePanel usual;
  json out = json::object();
  put(out, "view", panel.view, usual.view);
  put(out, "chart", panel.chart, usual.chart);
  put(out, "checkpoints", panel.checkpoints, usual.checkpoints);
  put(out, "data", panel.data, usual.data);
  put(out, "length", panel.length);
  put(out, "load", panel.load);
  put(out, "prompt", panel.prompt, usual.prompt);
  if (panel.input) out["prompt"] = prompt_json(*panel.input);
  put(out, "generate", panel.generate);
  put(out, "interventions", panel.interventions, usual.interventions);
  put(out, "layer", panel.layer);
  put(out, "head", panel.head, usual.head);
  put(out, "slot", panel.slot, usual.slot);
  put(out, "token", panel.token);
  put(out, "reference", panel.reference);
  if (panel.row == kAllRows) out["row"] = "all";
  if (panel.row >= 0) out["row"] = panel.row;
  put(out, "column", panel.column, usual.column);
  put(out, "mode", panel.mode, usual.mode);
  put(out, "knob", panel.knob);
  if (panel.range.fit == RangeChoice::Fit::fixed)
    out["range"] = {panel.range.low, panel.range.high};
  else if (panel.range.fit != RangeChoice::Fit::own)
    out["range"] = name_of(kFits, panel.range.fit);
  put(out, "logarithmic", panel.range.logarithmic, false);
  put_chart_keys(out, panel.keys);
  put(out, "title", panel.title);
  return out;
}

std::string size_text(const FigureSpec& spec) {
  return spec.height_mm ? fmt::format("{}x{}mm", spec.width_mm, *spec.height_mm) : fmt::format("{}mm", spec.width_mm);
}

}  // namespace

std::int64_t FigureSpec::grid_columns() const {
  const std::int64_t count = std::max<std::int64_t>(1, std::ssize(panels));
  if (columns > 0) return std::min(columns, count);
  return static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
}
std::int64_t FigureSpec::grid_rows() const { return (std::max<std::int64_t>(1, std::ssize(panels)) + grid_columns() - 1) / grid_columns(); }

std::size_t mode_number(const View& view, std::string_view id, const std::string& mode) {
  const auto modes = view.modes();
  if (const auto found = std::ranges::find(modes, mode); found != modes.end()) return static_cast<std::size_t>(found - modes.begin());
  std::string known;
  for (const std::string_view each : modes) known += (known.empty() ? "there are " : ", ") + std::string(each);
  throw Error(fmt::format("{} has no mode {}: {}", id, in_quotes(mode), known.empty() ? "there is only one" : known));
}

void check_panel(const FigurePanel& panel) {
  if (panel.view.empty() == panel.chart.empty()) throw Error("needs either \"view\" or \"chart\"");
  if (panel.view.empty()) return;
  if (panel.keys != ChartKeys{}) throw Error("\"x_axis\", \"y_axis\", \"names\", \"legend\", \"x\", \"y\" and \"by\" are a chart's");
  const auto row = std::ranges::find(view_catalogue(), panel.view, &ViewRow::id);
  if (row == view_catalogue().end()) {
    std::string known;
    for (const ViewRow& each : view_catalogue()) known += (known.empty() ? "" : ", ") + std::string(each.id);
    throw Error(fmt::format("there is no view {}: there are {}", in_quotes(panel.view), known));
  }
  // Attention has modes of a layer's: each partition, and what attends beside a memory. They are known once it is built (view_picture.cpp).
  const bool of_layer = panel.view == "attention" && (panel.mode.starts_with("Only ") || panel.mode == "Attention beside the memory");
  if (!panel.mode.empty() && !of_layer) mode_number(*row->make(), row->id, panel.mode);
  if (panel.checkpoints.empty() || panel.checkpoints.size() > 2) throw Error("a view has one checkpoint, or two where it compares them");
}

FigureSpec parse_figure_spec(std::string_view text, const std::string& name) {
  check_json_text(name, "the spec", text);
  json value;
  try {
    value = json::parse(text);
  } catch (const json::parse_error& error) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(std::min(error.byte, text.size())), '\n');
    fail(fmt::format("{}:{}", name, line), "this is not JSON");
  } catch (const json::exception&) {
    fail(name, "has a number that is too large");
  }
  try {
    return spec_in(value);
  } catch (const Error& error) {
    fail(name, error.what());
  }
}

FigureSpec load_figure_spec(const fs::path& path) {
  if (path != "-") return parse_figure_spec(read_file(path, kMostBytes), path.string());
  std::string text(kMostBytes + 1, '\0');
  std::cin.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::cin.gcount()));
  if (text.size() > kMostBytes) throw Error("standard input: is too long for a figure's spec");
  return parse_figure_spec(text, "standard input");
}

std::string to_json(const FigureSpec& spec) {
  const FigureSpec usual;
  json out{{"size", size_text(spec)}, {"type", spec.type_pt}};
  put(out, "aspect", spec.aspect);
  put(out, "max_height", spec.max_height_mm);
  put(out, "font", spec.family, usual.family);
  put(out, "line_width", spec.line_width, usual.line_width);
  put(out, "map", name_of(kColors, spec.colors), name_of(kColors, usual.colors));
  put(out, "shared_range", spec.shared_range, usual.shared_range);
  put(out, "color_bars", spec.color_bars, usual.color_bars);
  put(out, "titles", spec.titles, usual.titles);
  put(out, "annotations", spec.annotations, usual.annotations);
  put(out, "captions", spec.captions, usual.captions);
  put(out, "letters", spec.letters);
  put(out, "ticks", spec.ticks, usual.ticks);
  put(out, "transparent", spec.transparent, usual.transparent);
  put(out, "outlines", spec.outlines, usual.outlines);
  put(out, "dpi", spec.dpi, usual.dpi);
  put(out, "columns", spec.columns, usual.columns);
  for (const FigurePanel& panel : spec.panels) out["panels"].push_back(panel_json(panel));
  return out.dump(2, ' ', true, json::error_handler_t::replace) + "\n";
}

double usual_aspect(std::string_view view) {
  const bool is_square = view == "similarity";  // with a bar of colours beside it
  return is_square ? 1.2 : 1.5;
}

void set_size(FigureSpec& spec, std::string_view size) {
  if (const auto preset = std::ranges::find(kPresets, size, &Preset::name); preset != kPresets.end()) {
    spec.width_mm = preset->width_mm;
    spec.height_mm = preset->height_mm > 0 ? std::optional(preset->height_mm) : std::nullopt;
    spec.type_pt = preset->type_pt;
    return;
  }
  const std::string_view numbers = size.ends_with("mm") ? size.substr(0, size.size() - 2) : std::string_view();
  const std::size_t cross = numbers.find('x');
  const std::optional<double> width = real_in(numbers.substr(0, cross));
  const std::optional<double> height = cross == numbers.npos ? std::nullopt : real_in(numbers.substr(cross + 1));
  const auto possible = [](double mm) { return mm >= kLeastMm && mm <= kMostMm; };
  if (!width || (cross != numbers.npos && !height))
    throw Error(fmt::format("{} is no size: write single, double, neurips, iclr, slide, 89mm or 89x60mm", in_quotes(size)));
  if (!possible(*width) || (height && !possible(*height)))
    throw Error(fmt::format("{} is no size of a figure: its sides have {:g} to {:g} mm", in_quotes(size), kLeastMm, kMostMm));
  spec.width_mm = *width;
  spec.height_mm = height;
}

FigureColors figure_colors(std::string_view name) {
  const auto found = std::ranges::find(kColors, name, [](const auto& row) { return row.first; });
  if (found == kColors.end()) throw Error(fmt::format("there is no colour map {}: there are {}", in_quotes(name), names_of(kColors)));
  return found->second;
}

RangeChoice figure_range(std::string_view text) {
  const auto fit = std::ranges::find(kFits, text, [](const auto& row) { return row.first; });
  if (fit != kFits.end()) return {.fit = fit->second};
  const std::size_t comma = text.find(',');
  const std::optional<double> low = real_in(text.substr(0, comma));
  const std::optional<double> high = comma == text.npos ? std::nullopt : real_in(text.substr(comma + 1));
  if (!low || !high || !(*low < *high)) throw Error(fmt::format("{} is no range: write own, full, most or low,high", in_quotes(text)));
  return {RangeChoice::Fit::fixed, static_cast<float>(*low), static_cast<float>(*high), false};
}

fs::path figure_file(const std::string& name, const fs::path& folder, const char* kind) {
  std::vector<fs::path> places{folder / name, fs::path(name)};
  try {
    places.push_back(assets_folder() / kind / name);
  } catch (const Error&) {
  }
  for (const fs::path& place : places) {
    std::error_code none;
    const fs::path path = std::string_view(kind) == "checkpoints" ? checkpoint_at(place) : place;
    if (fs::exists(path, none)) return path;
  }
  throw Error(name + ": there is no such file");
}

}  // namespace statescope

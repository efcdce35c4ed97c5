// Sheets of the views that look at a model as a whole.
#include <fmt/format.h>

#include <limits>

#include "views/model_map.h"
#include "views/needle.h"
#include "views/needle_grid.h"
#include "views/parts.h"
#include "views/sheets.h"
#include "views/words.h"

namespace statescope {
namespace {

Sheet curves_sheet(const NeedleData& data) {
  const std::string kept = Views::tr("‖C_t‖ / ‖C‖, C_t what is left of what the needle's tokens wrote");
  std::vector<std::string> names;
  for (const NeedleCurve& curve : data.curves) names.push_back(curve.name);
  Sheet sheet{.axes = {axis_of_names(Views::tr("curve"), names, std::ssize(names) - 1), axis_of_tokens(data.tokens)},
              .accuracy = NeedleStory::accuracy,
              .rows = 1,
              .across = 0};
  sheet.add({.name = Views::tr("left"), .equation = kept, .along = {0, 1}, .number = [&data, n = data.tokens.count()](std::int64_t i) {
               return data.curves[static_cast<std::size_t>(i / n)].kept[static_cast<std::size_t>(i % n)];
             }});
  sheet.add(Views::tr("left, mean of the layers"), "", kept, {1}, data.mean);
  sheet.remark = [&data](const Hit&) -> std::string {
    return data.hidden_curves > 0 ? Views::tr("and {} more that it wrote less to", data.hidden_curves) : "";
  };
  return sheet;
}

Sheet parts_sheet(const NeedleData& data) {
  const auto of = [&data](std::int64_t i) -> const NeedleParts& { return data.parts[static_cast<std::size_t>(i)]; };
  std::vector<std::string> names;
  std::int64_t here = 0;
  for (const NeedleParts& part : data.parts) {
    if (part.chosen) here = std::ssize(names);
    names.push_back(part.name);
  }
  std::vector<std::string> fates;
  for (const char* fate : {QT_TRANSLATE_NOOP("Views", "clear"), QT_TRANSLATE_NOOP("Views", "decayed"), QT_TRANSLATE_NOOP("Views", "erased"),
                           QT_TRANSLATE_NOOP("Views", "overwritten"), QT_TRANSLATE_NOOP("Views", "misrouted")})
    fates.push_back(Views::tr(fate));
  Sheet sheet{.axes = {axis_of_names(Views::tr("layer"), names, here), axis_of_names(Views::tr("fate"), fates)},
              .accuracy = NeedleStory::accuracy,
              .across = 1};
  sheet.axes[0].move = [of](std::int64_t i) { return of(i).layer < 0 ? CursorMove{} : CursorMove{.layer = of(i).layer}; };
  sheet.add({.name = Views::tr("part"),
             .equation = Views::tr("parts of what the needle wrote, at the question; they add up to 1"),
             .along = {0, 1},
             .number = [of](std::int64_t i) { return static_cast<float>(of(i / 5).values()[static_cast<std::size_t>(i % 5)]); }});
  sheet.add({.name = Views::tr("share of what the question reads"),
             .equation = Views::tr("the largest of all heads (SSE Def. 3)"),
             .along = {0},
             .number = [of](std::int64_t i) { return static_cast<float>(of(i).read_share); }});
  sheet.add({.name = Views::tr("which reads it"), .along = {0}, .text = [of](std::int64_t i) { return of(i).read_where; }});
  return sheet;
}

Sheet causes_sheet(const NeedleData& data) {
  const auto of = [&data](std::int64_t i) -> const NeedleCause& { return data.causes[static_cast<std::size_t>(i)]; };
  Axis causes{.name = Views::tr("cause"), .count = std::ssize(data.causes), .label = [of](std::int64_t i) {
                return Views::tr("{} in {}", Views::tr(of(i).what.c_str()), of(i).where);
              }};
  causes.move = [of](std::int64_t i) { return of(i).go; };
  Sheet sheet{.axes = {causes}, .accuracy = NeedleStory::accuracy};
  if (data.causes.empty()) return sheet;
  sheet.add(
      {.name = Views::tr("took"), .equation = Views::tr("part of all that the needle wrote"), .along = {0}, .number = [of](std::int64_t i) {
         return static_cast<float>(of(i).lost);
       }});
  sheet.add({.name = Views::tr("most at token"), .along = {0}, .text = [of](std::int64_t i) {
               return fmt::format("{} {}", *of(i).go.token, of(i).token_text);
             }});
  return sheet;
}

Sheet falls_sheet(const NeedleData& data) {
  const auto of = [&data](std::int64_t i) -> const NeedleStory::Fall& { return data.falls[static_cast<std::size_t>(i)]; };
  Sheet sheet{.axes = {{.name = Views::tr("fall at token"), .count = std::ssize(data.falls)}}, .accuracy = NeedleStory::accuracy};
  Axis& falls = sheet.axes.front();
  falls.coordinate = [of](std::int64_t i) { return static_cast<double>(of(i).token); };
  falls.label = [of, &data](std::int64_t i) { return visible_token(*data.tokens.run, of(i).token); };
  falls.move = [of](std::int64_t i) { return CursorMove{.token = of(i).token}; };
  if (data.falls.empty()) return sheet;
  sheet.add({.name = Views::tr("fall"),
             .equation = Views::tr("of the mean of the layers, from the token before"),
             .along = {0},
             .number = [of](std::int64_t i) { return static_cast<float>(of(i).by); }});
  return sheet;
}

}  // namespace

std::vector<Sheet> sheets(const NeedleData& data) {
  if (data.message) return {};
  return {curves_sheet(data), parts_sheet(data), causes_sheet(data), falls_sheet(data)};
}

std::vector<Sheet> sheets(const NeedleGridData& data) {
  if (data.message) return {};
  const NeedleGridQuestion& question = data.question;
  const auto cell = [&data](std::int64_t i) -> const NeedleGrid::Cell& { return data.grid.cells[static_cast<std::size_t>(i)]; };
  Axis depths{.name = Views::tr("depth"), .unit = "%", .count = std::ssize(question.depths)};
  depths.coordinate = [&question](std::int64_t i) { return static_cast<double>(question.depths[static_cast<std::size_t>(i)]); };
  Axis lengths{
      .name = Views::tr("length"), .unit = data.grid.unit.empty() ? "" : Engine::tr(data.grid.unit.c_str()), .count = data.columns()};
  lengths.coordinate = [&question](std::int64_t i) { return static_cast<double>(question.lengths[static_cast<std::size_t>(i)]); };
  if (data.mark >= 0) {
    depths.here = data.mark / data.columns();
    lengths.here = data.mark % data.columns();
  }
  Sheet cells{.axes = {depths, lengths}, .accuracy = NeedleGrid::accuracy, .across = 1};
  cells.add({.name = Views::tr("answered right"),
             .equation = Views::tr("right in every token ÷ asked, as statescope eval --task niah"),
             .along = {0, 1},
             .number =
                 [cell](std::int64_t i) {
                   return cell(i).read > 0 ? static_cast<float>(cell(i).right) / static_cast<float>(cell(i).read)
                                           : std::numeric_limits<float>::quiet_NaN();
                 },
             .as_colors = true});
  cells.add({.name = Views::tr("asked"),
             .unit = Views::tr("prompts"),
             .equation = Views::tr("prompts of each cell"),
             .along = {0, 1},
             .number = [cell](std::int64_t i) { return static_cast<float>(cell(i).read); }});
  cells.remark = [&data, cell](const Hit& hit) -> std::string {
    if (!hit.names(2)) return {};
    const std::int64_t i = hit.at[0] * data.columns() + hit.at[1];
    const std::string choose =
        cell(i).failures.empty() ? Views::tr("no failed prompt to open") : Views::tr("choose it to open a prompt that failed");
    const std::string same = Views::tr("read apart from the run; the same: {}", command_of(data, i));
    return cell(i).impossible.empty() ? choose + "\n" + same : cell(i).impossible;
  };
  const std::vector<NeedleGrid::Failure>* marked = data.mark < 0 || data.mark >= data.count() ? nullptr : &cell(data.mark).failures;
  Sheet failures{.axes = {{.name = Views::tr("failed prompt"), .count = marked ? std::ssize(*marked) : 0}}, .rows = -1};
  failures.axes[0].label = [&data, marked](std::int64_t i) { return failure_text(data, (*marked)[static_cast<std::size_t>(i)]); };
  failures.remark = [&data](const Hit&) {
    return data.grid.by_reply ? Views::tr("opens it where the reply begins") : Views::tr("opens it at the first wrong token of its answer");
  };
  return {cells, failures};
}

std::vector<Sheet> sheets(const ModelMapData& data) {
  if (data.message) return {};
  const auto box = [&data](std::int64_t i) -> const LayerBox& { return data.boxes[static_cast<std::size_t>(i)]; };
  std::vector<std::string> names;
  std::int64_t here = -1;
  for (const LayerBox& one : data.boxes) {
    if (one.chosen) here = std::ssize(names);
    names.push_back(one.name);
  }
  Sheet parts{.axes = {axis_of_names(Views::tr("part, from the embedding up"), names, here)}, .accuracy = ModelMap::accuracy};
  parts.axes[0].move = [box](std::int64_t i) { return box(i).layer < 0 ? CursorMove{} : CursorMove{.layer = box(i).layer}; };
  parts.add(
      {.name = Views::tr("parameters"), .equation = Views::tr("elements of the tensors"), .along = {0}, .number = [box](std::int64_t i) {
         return box(i).parameter_count;
       }});
  parts.add({.name = Views::tr("state"),
             .unit = "B",
             .equation = Views::tr("float32: slots · H · K · V · 4"),
             .along = {0},
             .number = [box](std::int64_t i) { return box(i).state_bytes; }});
  parts.add({.name = Views::tr("memory"), .along = {0}, .text = [box](std::int64_t i) { return box(i).memory; }});
  parts.add({.name = Views::tr("shape"), .along = {0}, .text = [box](std::int64_t i) { return box(i).size; }});
  const auto tensor = [&data](std::int64_t i) -> const ModelMap::TensorRow& { return data.tensors[static_cast<std::size_t>(i)]; };
  Sheet tensors{.axes = {{.name = Views::tr("tensor"), .count = std::ssize(data.tensors)}}, .accuracy = ModelMap::accuracy};
  tensors.axes[0].label = [tensor](std::int64_t i) { return tensor(i).name; };
  Sheet program{.axes = {{.name = Views::tr("operation"), .count = std::ssize(data.program)}}, .accuracy = ModelMap::accuracy};
  const auto line = [&data](std::int64_t i) -> const std::string& { return data.program[static_cast<std::size_t>(i)]; };
  program.axes[0].label = [](std::int64_t i) { return std::to_string(i + 1); };
  if (!data.program.empty()) program.add({.name = Views::tr("computes"), .along = {0}, .text = line});
  if (data.tensors.empty()) return {parts, tensors, program};
  tensors.add({.name = Views::tr("stored as"), .along = {0}, .text = [tensor](std::int64_t i) { return tensor(i).dtype; }});
  tensors.add({.name = Views::tr("extents"), .along = {0}, .text = [tensor](std::int64_t i) { return shape_text(tensor(i).shape); }});
  tensors.add({.name = Views::tr("bytes"), .along = {0}, .text = [tensor](std::int64_t i) { return std::to_string(tensor(i).bytes); }});
  return {parts, tensors, program};
}

}  // namespace statescope

// Arrays of the views that look at a model as a whole.
#include <limits>

#include "views/arrays.h"
#include "views/model_map.h"
#include "views/needle.h"
#include "views/needle_grid.h"

namespace statescope {

std::vector<Array> arrays(const NeedleData& data) {
  if (data.message) return {};
  constexpr const char* kept = "‖C_t‖ / ‖C‖, C_t what is left of what the needle's tokens wrote (GLA eq. 3, SSE eq. 9)";
  std::vector<Array> all;
  std::vector<std::string> names;
  Array curves{.name = "kept", .unit = "", .equation = kept, .axes = {}, .values = {}};
  for (const NeedleCurve& curve : data.curves) {
    names.push_back(curve.name);
    curves.values.insert(curves.values.end(), curve.kept.begin(), curve.kept.end());
  }
  curves.axes = {named_axis("curve", names), token_axis(data.tokens)};
  all.push_back(std::move(curves));
  all.push_back({"kept, mean of the layers", "", kept, {token_axis(data.tokens)}, data.mean});
  names.clear();
  Array parts{.name = "part",
              .unit = "",
              .equation = "parts of what the needle wrote, at the question; they add up to 1",
              .axes = {},
              .values = {}};
  Array read{.name = "share of what the question reads",
             .unit = "",
             .equation = "the largest of all heads (SSE Def. 3)",
             .axes = {},
             .values = {}};
  for (const NeedleParts& part : data.parts) {
    names.push_back(part.name);
    for (const double share : {part.clear, part.decayed, part.erased, part.overwritten, part.misrouted})
      parts.values.push_back(static_cast<float>(share));
    read.values.push_back(static_cast<float>(part.read_share));
  }
  parts.axes = {named_axis("layer", names), named_axis("fate", {"clear", "decayed", "erased", "overwritten", "misrouted"})};
  read.axes = {named_axis("layer", names)};
  all.push_back(std::move(parts));
  all.push_back(std::move(read));
  return all;
}

std::vector<Array> arrays(const NeedleGridData& data) {
  if (data.message) return {};
  ArrayAxis depths{.name = "depth",
                   .unit = "%",
                   .coordinates = {data.question.depths.begin(), data.question.depths.end()},
                   .count = std::ssize(data.question.depths)};
  ArrayAxis lengths{.name = "length",
                    .unit = data.grid.unit,
                    .coordinates = {data.question.lengths.begin(), data.question.lengths.end()},
                    .count = data.columns()};
  Array share{.name = "answered right",
              .unit = "",
              .equation = "right in every token ÷ asked, as statescope eval --task niah",
              .axes = {depths, lengths},
              .values = {},
              .as_colors = true};
  Array asked{.name = "asked", .unit = "prompts", .equation = "prompts of each cell", .axes = {depths, lengths}, .values = {}};
  for (const NeedleGrid::Cell& cell : data.grid.cells) {
    const bool known = cell.read > 0;
    share.values.push_back(known ? static_cast<float>(cell.right) / static_cast<float>(cell.read)
                                 : std::numeric_limits<float>::quiet_NaN());
    asked.values.push_back(static_cast<float>(cell.read));
  }
  return {share, asked};
}

std::vector<Array> arrays(const ModelMapData& data) {
  if (data.message) return {};
  std::vector<std::string> names;
  Array parameters{.name = "parameters", .unit = "", .equation = "elements of the tensors", .axes = {}, .values = {}};
  Array state{.name = "state", .unit = "B", .equation = "float32: slots · H · K · V · 4 (SSE eq. 9, GLA eq. 3)", .axes = {}, .values = {}};
  for (const LayerBox& box : data.boxes) {
    names.push_back(box.name);
    parameters.values.push_back(box.parameter_count);
    state.values.push_back(box.state_bytes);
  }
  parameters.axes = state.axes = {named_axis("part, from the embedding up", names)};
  return {parameters, state};
}

}  // namespace statescope

#include "app/eval/scores_hdf5.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/eval/report.h"
#include "engine/checkpoint/hdf5_arrays.h"

namespace statescope {
namespace {

using Json = nlohmann::ordered_json;

struct Group {
  Hdf5Texts texts;
  std::vector<Json> cells;
};

/// Why there is no score, and what was noted, are no settings.
Hdf5Texts texts_of(const Json& cell) {
  Hdf5Texts texts;
  for (const auto& [key, value] : cell.items()) {
    if (value.is_string() && key != "impossible" && key != "scored_by") texts.emplace_back(key, value.get<std::string>());
  }
  return texts;
}

std::vector<Group> groups_of(const Json& cells) {
  std::vector<Group> groups;
  for (const Json& cell : cells) {
    Hdf5Texts texts = texts_of(cell);
    auto group = std::ranges::find(groups, texts, &Group::texts);
    if (group == groups.end()) group = groups.insert(groups.end(), {std::move(texts), {}});
    group->cells.push_back(cell);
  }
  return groups;
}

bool is_column(const Json& value) {
  return value.is_number() || value.is_boolean() || value.is_null() ||
         (value.is_array() && std::ranges::all_of(value, [](const Json& item) { return item.is_number() || item.is_null(); }));
}

std::vector<std::string> columns_of(const Group& group) {
  std::vector<std::string> keys;
  for (const Json& cell : group.cells) {
    for (const auto& [key, value] : cell.items()) {
      if (is_column(value) && std::ranges::count(keys, key) == 0) keys.push_back(key);
    }
  }
  return keys;
}

double number_of(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  return value.is_number() ? value.get<double>() : NAN;
}

Hdf5Array column(const Group& group, std::size_t number, const std::string& key) {
  std::size_t width = 0;
  bool is_list = false;
  for (const Json& cell : group.cells) {
    if (!cell.contains(key) || !cell[key].is_array()) continue;
    is_list = true;
    width = std::max(width, cell[key].size());
  }
  Hdf5Array array{fmt::format("/{}/{}", number, key), {std::ssize(group.cells)}, {}, {}, group.texts};
  if (is_list) array.shape.push_back(static_cast<std::int64_t>(width));
  for (const Json& cell : group.cells) {
    const Json value = cell.contains(key) ? cell[key] : Json();
    if (!is_list) array.coordinates.push_back(number_of(value));
    for (std::size_t i = 0; is_list && i < width; ++i)
      array.coordinates.push_back(value.is_array() && i < value.size() ? number_of(value[i]) : NAN);
  }
  return array;
}

}  // namespace

void write_scores_hdf5(std::span<const CellScore> scores, const std::filesystem::path& path, bool overwrite) {
  const Json document = Json::parse(eval_json(scores));
  std::vector<Hdf5Array> arrays;
  const std::vector<Group> groups = groups_of(document["cells"]);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (const std::string& key : columns_of(groups[i])) arrays.push_back(column(groups[i], i, key));
  }
  write_hdf5_arrays(path, arrays, {{"format", document["format"]}, {"split", document["split"]}}, overwrite);
}

}  // namespace statescope

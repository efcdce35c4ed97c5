// What tells the panels of a figure apart.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "app/figure/render.h"
#include "views/parts.h"

namespace statescope {
namespace {

/// Something that panels may differ in, in words; empty: there is nothing to say.
using Trait = std::function<std::string(const FigurePanel&)>;

std::string stem(const std::string& checkpoint) { return std::filesystem::path(checkpoint).stem().string(); }

std::string view_title(const FigurePanel& panel) {
  const auto row = std::ranges::find(view_catalogue(), panel.view, &ViewRow::id);
  return row == view_catalogue().end() ? "" : std::string(row->title);
}

std::string numbered(std::string_view what, const std::optional<std::int64_t>& number) {
  return number ? fmt::format("{} {}", what, *number) : "";
}

std::vector<Trait> traits() {
  return {view_title,
          [](const FigurePanel& p) {
            std::vector<std::string> names;
            std::ranges::transform(p.checkpoints, std::back_inserter(names), stem);
            return joined(names, ", ");
          },
          [](const FigurePanel& p) { return p.mode; },
          [](const FigurePanel& p) { return numbered("layer", p.layer); },
          [](const FigurePanel& p) { return numbered("head", p.head); },
          [](const FigurePanel& p) { return numbered("slot", p.slot); },
          [](const FigurePanel& p) { return numbered("token", p.token); }};
}

void add(std::string& words, const std::string& more) {
  if (!more.empty()) words += (words.empty() ? "" : ", ") + more;
}

}  // namespace

FigureTitles figure_titles(const FigureSpec& spec) {
  FigureTitles titles;
  const std::vector<FigurePanel>& panels = spec.panels;
  titles.panels.resize(panels.size());
  if (!spec.titles || panels.empty()) return titles;
  const auto columns = static_cast<std::size_t>(spec.grid_columns()), rows = static_cast<std::size_t>(spec.grid_rows());
  const bool own = std::ranges::any_of(panels, [](const FigurePanel& panel) { return panel.title.has_value(); });
  const bool grid = !own && columns > 1 && rows > 1;
  for (const Trait& trait : traits()) {
    std::vector<std::string> words;
    std::ranges::transform(panels, std::back_inserter(words), trait);
    const auto is_first = [&](std::size_t i, std::size_t first) { return words[i] == words[first]; };
    bool differs = false, of_columns = grid, of_rows = grid;
    for (std::size_t i = 0; i < panels.size(); ++i) {
      differs = differs || !is_first(i, 0);
      of_columns = of_columns && is_first(i, i % columns);
      of_rows = of_rows && is_first(i, i / columns * columns);
    }
    if (!differs) continue;  // what all have in common is not said
    if (of_columns) titles.columns.resize(columns);
    if (!of_columns && of_rows) titles.rows.resize(rows);
    for (std::size_t i = 0; i < panels.size(); ++i) {
      if (of_columns && i < columns) add(titles.columns[i], words[i]);
      if (!of_columns && of_rows && i % columns == 0) add(titles.rows[i / columns], words[i]);
      if (!of_columns && !of_rows && !panels[i].title) add(titles.panels[i], words[i]);
    }
  }
  for (std::size_t i = 0; i < panels.size(); ++i)
    if (panels[i].title) titles.panels[i] = *panels[i].title;
  return titles;
}

}  // namespace statescope

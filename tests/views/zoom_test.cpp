// Plots of which a part is in sight: every view of the catalogue, looked at as when it shows all.
#include <set>

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"
#include "tests/views/catalogue_cases.h"
#include "views/view.h"

namespace statescope::zoom_test {
namespace {

constexpr Rect area{20, 30, 900, 640};

TextCanvas drawn(const View& view, Rect in_sight) {
  TextCanvas canvas({area.right() + 20, area.bottom() + 30});
  Frame frame{light_theme(), 1};
  frame.in_sight = in_sight;
  view.draw(canvas, area, frame);
  REQUIRE(canvas.open_clips() == 0);
  return canvas;
}

}  // namespace

TEST_CASE("zoom: what lies under the pointer is what lies there of the whole, in every view; everything around the plots stays") {
  std::set<std::string> zooming;
  std::size_t places = 0;
  for (const CatalogueCase& c : catalogue_cases()) {
    for (const auto& [name, view] : built_views(c)) {
      INFO(c.name << ", " << name);
      const TextCanvas all = drawn(*view, {0, 0, 1, 1});
      if (all.hits().plots().empty()) continue;
      zooming.insert(name.substr(0, name.find(',')));
      for (const Rect part : {Rect{0.25f, 0.5f, 0.5f, 0.25f}, Rect{0.875f, 0, 0.125f, 1}, Rect{0.5f, 0.5f, 1 / 64.0f, 1 / 64.0f}}) {
        const TextCanvas canvas = drawn(*view, part);
        if (c.cursor.progress == 1) check_texts(canvas, area);
        REQUIRE(canvas.hits().plots().size() == all.hits().plots().size());
        for (std::size_t i = 0; i < all.hits().plots().size(); ++i) {
          const HitRegions::ZoomPlot& plot = canvas.hits().plots()[i];
          const Rect rect = plot.rect, whole = all.hits().plots()[i].rect;
          REQUIRE((rect.x == whole.x && rect.y == whole.y && rect.w == whole.w && rect.h == whole.h));
          const auto shown = canvas.hits().in_sight(plot), of_all = all.hits().in_sight(plot);
          if (!shown || !of_all) continue;
          CHECK(shown->grid.first == of_all->grid.first);
          const std::int64_t columns = shown->grid.columns, rows = shown->grid.rows;
          const auto first_column = shown->first.at[shown->grid.across] - of_all->first.at[shown->grid.across];
          const auto first_row = shown->first.at[shown->grid.down] - of_all->first.at[shown->grid.down];
          const auto at = [](float share, std::int64_t count) { return share * static_cast<float>(count); };
          const std::optional<Hit> right = all.hits().at({rect.right() - 1, rect.y + 1});  // decay up to the cursor ends before
          if (plot.across && columns > 1 && right && right->sheet == shown->grid.first.sheet)
            CHECK(std::abs(static_cast<float>(first_column) + 0.5f - at(part.x, columns)) <= 1.5f);
          if (plot.down && rows > 1) CHECK(std::abs(static_cast<float>(first_row) + 0.5f - at(part.y, rows)) <= 1.5f);
          ++places;
        }
      }
    }
  }
  CHECK(places > 100);
  for (const char* id : {"state", "timeline", "writes", "decay", "remembered", "delta_rule", "head_gates", "similarity", "spectrum",
                         "attention", "choices", "experts", "needle", "difference", "branches", "routing", "model_map", "predictions"}) {
    INFO(id);
    CHECK(zooming.contains(id));
  }
}

TEST_CASE("zoom: a hit region of which a part is in sight names its corners") {
  HitRegions hits;
  hits.add({-100, 0, 400, 50}, {0, 0, 100, 50}, {{0, 0, 0}, 5, 40});
  hits.add_plot({0, 0, 100, 50}, true, true);
  const HitRegions::ZoomPlot* plot = hits.plot_at({50, 20});
  REQUIRE(plot != nullptr);
  CHECK(hits.plot_at({150, 20}) == nullptr);
  const auto seen = hits.in_sight(*plot);
  REQUIRE(seen.has_value());
  CHECK((seen->first == Hit{0, 0, 10}));
  CHECK((seen->last == Hit{0, 4, 19}));
  CHECK((hits.at({95, 45}) == Hit{0, 4, 19}));
  hits.clear();
  CHECK(hits.plots().empty());
}

TEST_CASE("zoom: of single places those are named of which half is in sight") {
  HitRegions hits;
  for (int i = 0; i < 4; ++i) hits.add({0, 30.0f * static_cast<float>(i) - 20, 50, 30}, {0, 0, 50, 60}, {{1, 5 - i}});
  hits.add({60, 0, 50, 30}, {0, 0, 200, 200}, {{2, 0}});
  const auto seen = hits.things_in_sight({{0, 0, 50, 60}, true, true});
  REQUIRE(seen.has_value());
  CHECK((seen->first == Hit{1, 3}));
  CHECK((seen->second == Hit{1, 4}));
}

TEST_CASE("zoom: of the axes that are not all in sight the range is said in their words") {
  Sheet sheet;
  sheet.axes = {axis_of_count("key row", 8), axis_of_names("slot", {"a", "b", "c"})};
  CHECK(range_of({sheet}, {0, 2, 0}, {0, 5, 2}) == "key row 2 to key row 5");
  CHECK(range_of({sheet}, {0, 0, 1}, {0, 7, 1}) == "b");
  CHECK(range_of({sheet}, {0, 0, 0}, {0, 7, 2}).empty());
  CHECK(range_of({sheet}, {3, 0, 0}, {3, 7, 2}).empty());
}

}  // namespace statescope::zoom_test

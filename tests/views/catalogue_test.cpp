// What holds for every view of the catalogue.
#include <algorithm>
#include <set>

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"
#include "tests/views/catalogue_cases.h"
#include "views/arrays.h"
#include "views/view.h"

namespace statescope::catalogue_test {
namespace {

bool overlap(Rect a, Rect b) {
  constexpr float slack = 0.5f;
  return a.x + slack < b.right() && b.x + slack < a.right() && a.y + slack < b.bottom() && b.y + slack < a.bottom();
}

bool within(Rect inner, Rect outer) {
  constexpr float slack = 0.5f;
  return inner.x >= outer.x - slack && inner.y >= outer.y - slack && inner.right() <= outer.right() + slack &&
         inner.bottom() <= outer.bottom() + slack;
}

void check_texts(const TextCanvas& canvas, Rect area) {
  const auto& texts = canvas.texts();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    INFO("'" << texts[i].text << "' at " << texts[i].rect.x << "," << texts[i].rect.y << " " << texts[i].rect.w << "x" << texts[i].rect.h);
    REQUIRE(within(texts[i].rect, texts[i].clip));
    REQUIRE(within(texts[i].rect, area));
    for (std::size_t j = 0; j < i; ++j) {
      INFO("'" << texts[j].text << "' at " << texts[j].rect.x << "," << texts[j].rect.y << " " << texts[j].rect.w << "x"
               << texts[j].rect.h);
      REQUIRE_FALSE(overlap(texts[i].rect, texts[j].rect));
    }
  }
}

}  // namespace

TEST_CASE("rows of the catalogue are complete and their ids differ") {
  std::set<std::string_view> ids;
  for (const ViewRow& row : view_catalogue()) {
    CHECK(ids.insert(row.id).second);
    CHECK(row.question.ends_with("?"));
    CHECK_FALSE(row.title.empty());
    CHECK(row.help.find("eq. ") != std::string_view::npos);
    REQUIRE(row.make() != nullptr);
  }
}

TEST_CASE("every view draws every run in all themes, at every scale and size; no text overlaps another or leaves its place") {
  for (const CatalogueCase& c : catalogue_cases()) {
    for (const auto& [name, view] : built_views(c)) {
      CHECK_FALSE(view->describe().empty());
      for (const Theme& theme : {light_theme(), dark_theme(), high_contrast_theme()}) {
        for (const float scale : {1.0f, 2.0f, 3.0f}) {
          for (const Size size : {Size{1280, 720}, Size{620 * scale, 400 * scale}, Size{1280, 90 * scale}}) {
            const Rect area{20, 30, size.w, size.h};
            TextCanvas canvas({size.w + 40, size.h + 60});
            view->draw(canvas, area, {theme, scale});
            INFO(c.name << ", " << name << ", scale " << scale << ", " << size.w << "x" << size.h);
            REQUIRE_FALSE(canvas.lines().empty());
            REQUIRE(canvas.open_clips() == 0);
            // Chips in motion pass over what stands still.
            if (c.cursor.progress == 1) check_texts(canvas, area);
          }
        }
      }
    }
  }
}

TEST_CASE("no size makes a view fail") {
  for (const CatalogueCase& c : catalogue_cases()) {
    for (const auto& [name, view] : built_views(c)) {
      INFO(c.name << ", " << name);
      for (const Size size : {Size{0, 0}, Size{1, 1}, Size{40, 300}, Size{300, 40}, Size{120, 80}, Size{5000, 3000}}) {
        TextCanvas canvas(size);
        view->draw(canvas, {0, 0, size.w, size.h}, {light_theme(), 3});
        REQUIRE(canvas.open_clips() == 0);
      }
    }
  }
}

TEST_CASE("every view tells the numbers that it draws, as many as their axes have room for") {
  std::set<std::string> telling;
  for (const CatalogueCase& c : catalogue_cases()) {
    for (const auto& [name, view] : built_views(c)) {
      INFO(c.name << ", " << name);
      for (const Array& array : view->arrays()) {
        INFO(array.name);
        CHECK_FALSE(array.name.empty());
        CHECK_FALSE(array.equation.empty());
        REQUIRE(std::ssize(array.values) == room(array.axes));
        for (const ArrayAxis& axis : array.axes) {
          CHECK_FALSE(axis.name.empty());
          CHECK((axis.coordinates.empty() || std::ssize(axis.coordinates) == axis.count));
          CHECK((axis.labels.empty() || std::ssize(axis.labels) == axis.count));
        }
        if (!array.values.empty()) telling.insert(name.substr(0, name.find(',')));
      }
    }
  }
  for (const ViewRow& row : view_catalogue()) {
    INFO(row.id);
    CHECK(telling.contains(std::string(row.id)));
  }
}

TEST_CASE("drawing twice draws the same") {
  const Sample sample({.tokens = 40});
  for (const ViewRow& row : view_catalogue()) {
    const auto view = row.make();
    view->build(sample.at(12), {.token = 12});
    TextCanvas first({900, 500}), second({900, 500});
    view->draw(first, {0, 0, 900, 500}, {light_theme(), 1});
    view->draw(second, {0, 0, 900, 500}, {light_theme(), 1});
    CHECK(first.lines() == second.lines());
  }
}

TEST_CASE("every hit of every view answers, and ids that were never given do no harm") {
  const Sample sample({.tokens = 40});
  for (const auto& [name, view] : built_views({"forty tokens", sample.at(12), {.token = 12}})) {
    INFO(name);
    TextCanvas canvas({900, 500});
    view->draw(canvas, {0, 0, 900, 500}, {light_theme(), 1});
    for (float y = 0; y < 500; y += 7) {
      for (float x = 0; x < 900; x += 7) {
        if (const auto id = canvas.hits().at({x, y})) REQUIRE_FALSE(view->tooltip(*id).empty());
      }
    }
    for (const std::int64_t id : {std::int64_t{-1}, std::int64_t{1} << 20, std::int64_t{1} << 50}) {
      view->tooltip(id);
      view->on_hit(id);
    }
  }
}

}  // namespace statescope::catalogue_test

// What holds for every view of the catalogue.
#include <algorithm>
#include <set>

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"
#include "tests/views/sample_answers.h"
#include "tests/views/samples.h"
#include "views/arrays.h"
#include "views/view.h"

using namespace statescope;

namespace {

struct Case {
  std::string name;
  Snapshot snapshot;
  Cursor cursor;
};

Snapshot without_states(Snapshot snapshot, std::int64_t token) {
  snapshot.token = token;
  return snapshot;
}

std::vector<Case> cases() {
  const Sample one({.tokens = 1}), three({.tokens = 3}), forty({.tokens = 40, .partitions = 8, .chosen = 2}),
      plain({.tokens = 40, .partitions = 0}), delta({.tokens = 40, .partitions = 0, .memory = "gated delta rule"});
  const Sample many({.tokens = 4000, .partitions = 32, .chosen = 3, .heads = 1, .rows = 60, .columns = 20});
  Snapshot nothing_read;
  nothing_read.run = std::make_shared<RunInfo>();
  Snapshot branch = forty.at(33);
  branch.run = sample_branch(branch.run);
  const Cursor cell{.token = 33, .slot = 5, .row = 15, .column = 15};
  Cursor moving = cell;
  moving.progress = 0.3f;
  return {{"no run", {}, {}},
          {"no tokens", nothing_read, {}},
          {"one token", one.at(0), {.slot = 1, .row = 0, .column = 0}},
          {"one token, moving", one.at(0), {.progress = 0}},
          {"three tokens", three.at(1), {.token = 1, .head = 1}},
          {"forty tokens", forty.at(33), cell},
          {"forty tokens, moving", forty.at(33), moving},
          {"a branch", branch, cell},
          {"plain memory", plain.at(12), {.token = 12, .row = 3, .column = 4}},
          {"delta rule", delta.at(38), {.token = 38, .head = 1, .row = 3, .column = 4}},
          {"softmax attention", forty.attention_at(5), {.token = 5, .layer = 1}},
          {"4000 tokens", without_states(many.at(20), 3999), {.token = 3999, .slot = 30, .row = 59, .column = 19}},
          {"cursor outside", forty.at(3), {.token = 99999, .layer = 7, .head = 99, .slot = 99, .row = 99, .column = 99}}};
}

/// A view of a row in one of its modes, built without any answers and with all of them.
struct Built {
  std::string name;
  std::unique_ptr<View> view;
};
std::vector<Built> built_views(const Case& c) {
  std::vector<Built> all;
  for (const ViewRow& row : view_catalogue()) {
    for (std::size_t mode = 0; mode < std::max<std::size_t>(1, row.make()->modes().size()); ++mode) {
      for (const bool answered : {false, true}) {
        auto view = row.make();
        view->set_mode(mode);
        const std::vector<Question> questions = view->questions(c.snapshot, c.cursor);
        if (answered && questions.empty() && !view->compares()) continue;
        const auto answers = [&] {
          return view->compares() ? sample_findings_beside(*view, c.snapshot, sample_other(c.snapshot), c.cursor)
                                  : sample_findings(questions, c.snapshot);
        };
        view->build(c.snapshot, c.cursor, answered ? answers() : Findings());
        all.push_back({std::string(row.id) + ", mode " + std::to_string(mode) + (answered ? ", answered" : ""), std::move(view)});
      }
    }
  }
  return all;
}

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
  for (const Case& c : cases()) {
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
  for (const Case& c : cases()) {
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
  for (const Case& c : cases()) {
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

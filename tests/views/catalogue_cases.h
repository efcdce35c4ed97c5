// Runs, from none to a long one, on which every view of the catalogue is built in each of its modes.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"
#include "tests/views/sample_answers.h"
#include "tests/views/samples.h"
#include "views/view.h"

namespace statescope {

struct CatalogueCase {
  std::string name;
  Snapshot snapshot;
  Cursor cursor;
};

inline Snapshot without_states(Snapshot snapshot, std::int64_t token) {
  snapshot.token = token;
  return snapshot;
}

inline std::vector<CatalogueCase> catalogue_cases() {
  const Sample one({.tokens = 1}), three({.tokens = 3}), forty({.tokens = 40, .partitions = 8, .chosen = 2}),
      plain({.tokens = 40, .partitions = 0}), delta({.tokens = 40, .partitions = 0, .memory = "gated delta rule"}),
      coefficients({.tokens = 40, .partitions = 0, .heads = 1, .memory = "state space"});
  const Sample many({.tokens = 4000, .partitions = 32, .chosen = 3, .heads = 1, .rows = 60, .columns = 20});
  const Sample experts({.tokens = 40, .experts = 16}), many_experts({.tokens = 4000, .experts = 512, .chosen_experts = 10});
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
          {"three tokens", three.at(1, 1), {.token = 1, .head = 1}},
          {"forty tokens", forty.at(33), cell},
          {"forty tokens, moving", forty.at(33), moving},
          {"a branch", branch, cell},
          {"plain memory", plain.at(12), {.token = 12, .row = 3, .column = 4}},
          {"delta rule", delta.at(38, 1), {.token = 38, .head = 1, .row = 3, .column = 4}},
          {"coefficients", coefficients.at(30), {.token = 30, .row = 3, .column = 4}},
          {"softmax attention", forty.attention_at(5), {.token = 5, .layer = 1}},
          {"experts", experts.attention_at(33), {.token = 33, .layer = 1}},
          {"experts, moving from the first token", experts.attention_at(0), {.layer = 1, .progress = 0.3f}},
          {"512 experts", many_experts.attention_at(3990), {.token = 3990, .layer = 1}},
          {"4000 tokens", without_states(many.at(20), 3999), {.token = 3999, .slot = 30, .row = 59, .column = 19}},
          {"cursor outside", forty.at(3), {.token = 99999, .layer = 7, .head = 99, .slot = 99, .row = 99, .column = 99}}};
}

/// A view of a row in one of its modes, built without any answers and with all of them.
struct BuiltView {
  std::string name;
  std::unique_ptr<View> view;
};
inline std::vector<BuiltView> built_views(const CatalogueCase& c) {
  std::vector<BuiltView> all;
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

inline bool rects_overlap(Rect a, Rect b) {
  constexpr float slack = 0.5f;
  return a.x + slack < b.right() && b.x + slack < a.right() && a.y + slack < b.bottom() && b.y + slack < a.bottom();
}

inline bool lies_within(Rect inner, Rect outer) {
  constexpr float slack = 0.5f;
  return inner.x >= outer.x - slack && inner.y >= outer.y - slack && inner.right() <= outer.right() + slack &&
         inner.bottom() <= outer.bottom() + slack;
}

/// No text leaves its place or covers another.
inline void check_texts(const TextCanvas& canvas, Rect area) {
  const auto& texts = canvas.texts();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    INFO("'" << texts[i].text << "' at " << texts[i].rect.x << "," << texts[i].rect.y << " " << texts[i].rect.w << "x" << texts[i].rect.h);
    REQUIRE(lies_within(texts[i].rect, texts[i].clip));
    REQUIRE(lies_within(texts[i].rect, area));
    for (std::size_t j = 0; j < i; ++j) {
      INFO("'" << texts[j].text << "' at " << texts[j].rect.x << "," << texts[j].rect.y << " " << texts[j].rect.w << "x"
               << texts[j].rect.h);
      REQUIRE_FALSE(rects_overlap(texts[i].rect, texts[j].rect));
    }
  }
}

}  // namespace statescope

#include "views/choices.h"

#include <cmath>

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"
#include "tests/views/sample_answers.h"
#include "tests/views/samples.h"
#include "views/sheets.h"

namespace statescope::choices_test {
namespace {

/// Layer 1 of the sample is softmax attention; the needle is tokens 5 to 13.
Snapshot snapshot(std::int64_t tokens, std::int64_t token) { return Sample({.tokens = tokens}).attention_at(token); }
Cursor cursor_at(std::int64_t token) { return {.token = token, .layer = 1, .head = 1}; }

/// Blocks of 4 of eight tokens: token 7 looks at both, the tokens before at their own.
Choices two_blocks(std::vector<float> score = {}) {
  return {.heads = 2,
          .head = 1,
          .size = 4,
          .begin = {0, 1, 2, 3, 4, 5, 6, 7, 9},
          .chosen = {0, 0, 0, 0, 1, 1, 1, 0, 1},
          .score = std::move(score)};
}

Findings answered(Choices choices, std::int64_t tokens = 8) {
  Findings findings;
  findings.answer(ChoicesQuestion{1, 1, 0, tokens}, std::move(choices));
  return findings;
}

}  // namespace

TEST_CASE("choices: a column for each token, bright where its blocks are; the sentence says whether the needle is among them") {
  const auto view = make_choices();
  CHECK(view->questions(snapshot(8, 7), cursor_at(7)) == std::vector<Question>{ChoicesQuestion{1, 1, 0, 8}});
  view->build(snapshot(8, 7), cursor_at(7), answered(two_blocks()));
  CHECK(view->sentence() == "“␣of” (7) looks at 2 of 2 blocks, the needle among them · layer 1, head 1.");
  const ChoicesData data = build_choices(snapshot(8, 7), cursor_at(7), answered(two_blocks()));
  CHECK(data.cells.values() == std::vector<float>{1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1});
  CHECK(data.needle == std::vector<bool>{false, true});
  CHECK(view->tooltip({ChoicesSheets::map, 1, 2}).find("a token cannot read what comes after it") != std::string::npos);
  CHECK(view->on_hit({ChoicesSheets::map, 1, 7}).reference == 4);
  CHECK(view->on_hit({ChoicesSheets::chosen, 1}).token == 4);
  view->build(snapshot(8, 3), cursor_at(3), answered(two_blocks()));
  CHECK(view->sentence() == "“␣wet” (3) looks at 1 of 1 blocks · layer 1, head 1.");
}

TEST_CASE("choices: where the layer tells scores, the largest comes first") {
  const ChoicesData data = build_choices(snapshot(8, 7), cursor_at(7), answered(two_blocks({1, 1, 1, 1, 1, 1, 1, 0.25F, 0.5F})));
  REQUIRE(data.chosen.size() == 2);
  CHECK(data.chosen[0].from == 4);
  CHECK(data.chosen[0].score == 0.5F);
  CHECK(data.score[7] == 0.25F);
  CHECK(std::isnan(data.score[4]));
}

TEST_CASE("choices: of many tokens a place stands for several, and no choice is lost") {
  constexpr std::int64_t kTokens = 1400;
  Choices all{.heads = 1, .size = 1, .begin = {0}, .chosen = {}, .score = {}};
  const TokenWindow window = window_around(1399, kTokens);
  for (std::int64_t t = window.from; t < window.to; ++t) {
    all.chosen.push_back(static_cast<std::int32_t>(t - 700));
    all.begin.push_back(std::ssize(all.chosen));
  }
  Findings findings;
  findings.answer(ChoicesQuestion{1, 1, window.from, window.to}, all);
  const ChoicesData data = build_choices(snapshot(kTokens, 1399), cursor_at(1399), findings);
  CHECK(data.each == 3);
  CHECK(data.places() == 467);
  for (std::int64_t i = 0; i < data.tokens.count(); ++i) CHECK(data.cells.at((window.from + i - 700) / 3, i) == 1);
  CHECK(data.title == "“␣it” (1399) looks at 1 of 1400 tokens, the needle not among them · layer 1, all heads");
}

TEST_CASE("choices: a layer that chooses nothing says so, and what is missing is said") {
  CHECK(build_choices({}, {}, {}).message);
  CHECK(build_choices(snapshot(8, 3), cursor_at(3), {}).message.headline.starts_with("What is chosen in layer 1, head 1"));
  CHECK(build_choices(snapshot(8, 3), cursor_at(3), answered({})).message.headline ==
        "Layer 1 (softmax_attention) attends to tokens without choosing them");
  const Snapshot memory = Sample({.tokens = 4}).at(2);
  CHECK(make_choices()->questions(memory, {.token = 2}).empty());
  CHECK(build_choices(memory, {.token = 2}, {})
            .message.sentence()
            .starts_with("Layer 0 (sse) has no softmax attention that could choose tokens. The nearest layer that does is layer 1."));
}

}  // namespace statescope::choices_test

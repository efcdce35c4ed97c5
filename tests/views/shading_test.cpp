#include "views/shading.h"

#include <algorithm>
#include <cmath>

#include "tests/catch.h"
#include "tests/views/sample_answers.h"
#include "tests/views/samples.h"
#include "views/state.h"

namespace statescope::shading_test {
using Fit = RangeChoice::Fit;

TEST_CASE("shading: the view's own range, all numbers, most of them, fixed") {
  std::vector<float> numbers;
  for (int i = 0; i <= 1000; ++i) numbers.push_back(static_cast<float>(i) / 1000);
  numbers.push_back(50);
  numbers.push_back(NAN);
  const Shading own = shade(numbers, {0, 2}, false, {});
  CHECK((own.range == ColorRange{0, 2}));
  CHECK((own.count == 1002 && own.below == 0 && own.above == 1));
  CHECK((own.least == 0 && own.most == 50));
  CHECK((shade(numbers, {0, 2}, false, {.fit = Fit::full}).range == ColorRange{0, 50}));
  const Shading most = shade(numbers, {0, 2}, false, {.fit = Fit::most});
  CHECK(std::abs(most.range.low - 0.01f) < 0.003f);
  CHECK(std::abs(most.range.high - 0.99f) < 0.003f);
  CHECK(most.below + most.above < 25);
  CHECK(range_marks(most).front().text.starts_with("≥ "));
  CHECK(range_marks(most).back().text.starts_with("≤ "));
  CHECK((shade(numbers, {0, 2}, false, {.fit = Fit::fixed, .low = 3, .high = 1}).range == ColorRange{1, 3}));
  CHECK((shade(numbers, {0, 2}, false, {.fit = Fit::fixed, .low = 1, .high = 1}).range == ColorRange{0, 2}));
}

TEST_CASE("shading: signed numbers stay symmetric about 0, magnitudes may be logarithmic, nothing is nothing") {
  const std::vector<float> numbers = {-3, -1, 0, 2, INFINITY};
  CHECK((shade(numbers, {-9, 9}, true, {.fit = Fit::full}).range == ColorRange{-3, 3}));
  CHECK((shade(numbers, {-9, 9}, true, {.fit = Fit::fixed, .low = -0.5f, .high = 2}).range == ColorRange{-2, 2}));
  CHECK_FALSE(shade(numbers, {-9, 9}, true, {.logarithmic = true}).range.logarithmic);
  const Shading log = shade(std::vector<float>{0, 0.001f, 1000}, {0, 1000}, false, {.logarithmic = true});
  CHECK(log.range.logarithmic);
  CHECK(log.range.low == 0.001f);
  CHECK(log.below == 1);
  CHECK((shade(std::span<const float>(), {0, 1}, false, {.fit = Fit::most}).range == ColorRange{0, 1}));
  CHECK(shade(std::vector<float>{NAN}, {0, 1}, false, {.fit = Fit::full}).count == 0);
}

TEST_CASE("shading: a view's colours follow the choice, its exact values do not") {
  const Sample sample({.tokens = 12});
  const Cursor cursor{.token = 10, .slot = 0, .row = 2, .column = 3};
  const auto view = make_state();
  view->build(sample.at(10), cursor);
  const std::string tooltip = view->tooltip({0, 0, 2, 3});
  REQUIRE(view->shading());
  CHECK(view->shading()->is_signed);
  CHECK(view->shading()->count == 256);
  view->set_range({.fit = Fit::fixed, .low = 0, .high = 0.25f});
  view->build(sample.at(10), cursor);
  CHECK((view->shading()->range == ColorRange{-0.25f, 0.25f}));
  CHECK(view->shading()->above > 0);
  CHECK(view->tooltip({0, 0, 2, 3}) == tooltip);
}

TEST_CASE("shading: decay, head gates, ranks of partitions and ages of rows have colours that follow the choice; curves have none") {
  const Sample sample({.tokens = 40});
  const Cursor cursor{.token = 30, .slot = 1, .row = 2};
  const struct {
    std::string_view view;
    std::size_t mode;
    bool has_cells;
  } cases[] = {{"decay", 0, true},     {"decay", 1, true},    {"decay", 2, false}, {"head_gates", 0, false}, {"head_gates", 2, true},
               {"spectrum", 0, false}, {"spectrum", 2, true}, {"writes", 0, true}, {"writes", 1, true},      {"writes", 2, false}};
  for (const auto& [id, mode, has_cells] : cases) {
    INFO(id << ", mode " << mode);
    const auto view = std::ranges::find(view_catalogue(), id, &ViewRow::id)->make();
    view->set_mode(mode);
    const auto build = [&] { view->build(sample.at(30), cursor, sample_findings(view->questions(sample.at(30), cursor), sample.at(30))); };
    build();
    REQUIRE(view->shading().has_value() == has_cells);
    if (!has_cells) continue;
    CHECK(view->shading()->count > 0);
    view->set_range({.fit = Fit::fixed, .low = 0.125f, .high = 0.25f});
    build();
    CHECK(view->shading()->range.low == 0.125f);
    CHECK(view->shading()->range.high == 0.25f);
    CHECK(view->shading()->range.logarithmic == (id == "decay"));
  }
}

}  // namespace statescope::shading_test

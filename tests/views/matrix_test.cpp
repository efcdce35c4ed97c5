#include "views/matrix.h"

#include <cmath>

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"
#include "tests/views/samples.h"
#include "views/parts.h"
#include "views/plot.h"

namespace statescope::matrix_test {

TEST_CASE("cells too small to draw: the strongest of them is shown, whatever its sign") {
  std::vector<float> values(40 * 40, 0.1f);
  values[0] = NAN;
  values[1] = values[40] = values[41] = NAN;  // all four of the first
  values[3 * 40 + 5] = -7;
  const Pyramid cells(values, 40, 40);
  CHECK(cells.rows() == 40);
  CHECK(cells.at(3, 5) == -7);
  CHECK(cells.level_for(40, 40).gathered == 1);
  const Pyramid::Level& half = cells.level_for(39, 200);
  CHECK(half.gathered == 2);
  CHECK(half.rows == 20);
  CHECK(std::isnan(half.values[0]));
  CHECK(half.values[1] == 0.1f);
  CHECK(half.values[1 * 20 + 2] == -7);
  CHECK(cells.level_for(1, 1).gathered == 2);  // the coarsest there is
  const TextCanvas canvas({200, 200});
  CHECK(gathered_text(canvas, cells, {0, 0, 200, 200}).empty());
  CHECK(gathered_text(canvas, cells, {0, 0, 30, 30}) == "2 × 2 cells in one, the strongest");
}

TEST_CASE("a matrix of an odd size keeps its last row and its places") {
  std::vector<float> values(3001 * 33, 0.0f);
  values.back() = 5;
  const Pyramid cells(values, 3001, 33);
  const Pyramid::Level& coarse = cells.level_for(33, 1600);
  CHECK(coarse.rows == 1501);
  CHECK(coarse.columns == 17);
  CHECK(coarse.values.back() == 5);
  TextCanvas canvas({400, 400});
  draw_matrix(canvas, {10, 10, 300, 300}, cells, {ColorMap::viridis, 0, 1}, {2, 0, 0});
  CHECK(canvas.open_clips() == 0);
  const auto hit = canvas.hits().at({309, 309});  // every cell answers, also where many share a place
  REQUIRE(hit);
  CHECK((hit->sheet == 2 && hit->at[1] == 32));
}

TEST_CASE("a long name under a narrow group leaves its neighbours theirs") {
  const std::vector<AxisGroup> groups{{0, 16, "shared", 0}, {16, 32, "1", 1}, {32, 48, "2", 2}, {48, 64, "3", 3}, {64, 80, "4", 4}};
  for (const float scale : {1.0f, 2.0f, 3.0f}) {
    TextCanvas canvas({1000, 1000});
    const Frame frame{light_theme(), scale};
    const float group = 0.9f * canvas.text_width("shared", label(frame, kSmallType, frame.theme.ink));  // of one: the name has no room
    draw_group_axes(canvas, {300, 100, 5 * group, 5 * group}, 80, groups, true, frame);
    for (const AxisGroup& each : groups) {
      INFO(each.text << " at " << scale);
      const auto said =
          std::ranges::count_if(canvas.lines(), [&](const std::string& line) { return line.find("'" + each.text + "'") != line.npos; });
      CHECK(said == 2);  // beside the matrix and below it
    }
  }
}

TEST_CASE("no matrix is no failure") {
  TextCanvas canvas({100, 100});
  draw_matrix(canvas, {0, 0, 100, 100}, {}, {}, {0, 0, 0});
  CHECK(canvas.lines().empty());
  CHECK(gathered_text(canvas, {}, {0, 0, 10, 10}).empty());
}

}  // namespace statescope::matrix_test

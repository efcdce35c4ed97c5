#include "views/hits.h"

#include "tests/catch.h"

namespace statescope::hits_test {

TEST_CASE("the region given last lies above") {
  HitRegions hits;
  const Rect all{0, 0, 100, 100};
  hits.add({0, 0, 50, 50}, all, {{1, 0}});
  hits.add({25, 25, 50, 50}, all, {{2, 0}});
  CHECK(hits.at({10, 10}) == Hit(1, 0));
  CHECK(hits.at({30, 30}) == Hit(2, 0));
  CHECK_FALSE(hits.at({90, 90}));
  hits.clear();
  CHECK_FALSE(hits.at({10, 10}));
}

TEST_CASE("a grid answers with its cell") {
  HitRegions hits;
  hits.add({10, 20, 30, 20}, {0, 0, 100, 100}, {{4, 7, 5, 6}, 2, 3, 1, 2});  // cells of 10 × 10
  CHECK(hits.at({10, 20}) == Hit(4, 7, 5, 6));
  CHECK(hits.at({39.9f, 20}) == Hit(4, 7, 5, 8));
  CHECK(hits.at({10, 39.9f}) == Hit(4, 7, 6, 6));
  CHECK(hits.at({25, 35}) == Hit(4, 7, 6, 7));
  CHECK_FALSE(hits.at({40, 20}));
}

TEST_CASE("what is clipped away does not answer, and the grid keeps its cells") {
  HitRegions hits;
  hits.add({0, 0, 40, 10}, {20, 0, 100, 100}, {{0, Hit::all, 0}, 1, 4});
  CHECK_FALSE(hits.at({5, 5}));
  CHECK(hits.at({25, 5}) == Hit(0, Hit::all, 2));
  hits.add({0, 50, 10, 10}, {50, 50, 10, 10}, {{9, 0}});  // nothing is visible
  CHECK_FALSE(hits.at({5, 55}));
}

}  // namespace statescope::hits_test

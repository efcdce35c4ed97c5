#include "views/hits.h"

#include "tests/catch.h"

namespace statescope::hits_test {

TEST_CASE("the region given last lies above") {
  HitRegions hits;
  const Rect all{0, 0, 100, 100};
  hits.add({0, 0, 50, 50}, all, {1});
  hits.add({25, 25, 50, 50}, all, {2});
  CHECK(hits.at({10, 10}) == 1);
  CHECK(hits.at({30, 30}) == 2);
  CHECK_FALSE(hits.at({90, 90}));
  hits.clear();
  CHECK_FALSE(hits.at({10, 10}));
}

TEST_CASE("a grid answers with its cell") {
  HitRegions hits;
  hits.add({10, 20, 30, 20}, {0, 0, 100, 100}, {1000, 2, 3});  // cells of 10 × 10
  CHECK(hits.at({10, 20}) == 1000);
  CHECK(hits.at({39.9f, 20}) == 1002);
  CHECK(hits.at({10, 39.9f}) == 1003);
  CHECK(hits.at({25, 35}) == 1004);
  CHECK_FALSE(hits.at({40, 20}));
}

TEST_CASE("what is clipped away does not answer, and the grid keeps its cells") {
  HitRegions hits;
  hits.add({0, 0, 40, 10}, {20, 0, 100, 100}, {0, 1, 4});
  CHECK_FALSE(hits.at({5, 5}));
  CHECK(hits.at({25, 5}) == 2);
  hits.add({0, 50, 10, 10}, {50, 50, 10, 10}, {9});  // nothing is visible
  CHECK_FALSE(hits.at({5, 55}));
}

}  // namespace statescope::hits_test

#include "engine/analysis/clustering.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "tests/catch.h"

namespace statescope::test::clustering_test {
namespace {

/// |x_i − x_j|
std::vector<float> distances(const std::vector<float>& x) {
  std::vector<float> d;
  for (const float a : x) {
    for (const float b : x) d.push_back(std::abs(a - b));
  }
  return d;
}

using Branch = std::set<std::int64_t>;

/// The branches that average linkage makes, by looking at all pairs before every merge.
std::vector<Branch> branches(const std::vector<float>& d, std::int64_t n) {
  std::vector<Branch> made, left;
  for (std::int64_t i = 0; i < n; ++i) left.push_back({i});
  const auto between = [&](const Branch& a, const Branch& b) {
    double sum = 0;
    for (const std::int64_t i : a) {
      for (const std::int64_t j : b) sum += d[static_cast<std::size_t>(i * n + j)];
    }
    return sum / static_cast<double>(a.size() * b.size());
  };
  while (left.size() > 1) {
    std::size_t first = 0, second = 1;
    for (std::size_t i = 0; i < left.size(); ++i) {
      for (std::size_t j = i + 1; j < left.size(); ++j) {
        if (between(left[i], left[j]) < between(left[first], left[second])) std::tie(first, second) = std::pair(i, j);
      }
    }
    left[first].insert(left[second].begin(), left[second].end());
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(second));
    made.push_back(left[first]);
  }
  return made;
}

}  // namespace

TEST_CASE("average linkage: things on a line come out along the line") {
  // 10 11 13 | 40 42 | 90: of every branch the ends that are nearest meet
  const std::vector<float> x{40, 11, 90, 13, 42, 10};
  std::vector<std::int64_t> order = average_linkage_order(distances(x), 6);
  if (order.front() == 2) std::ranges::reverse(order);
  CHECK(order == std::vector<std::int64_t>{5, 1, 3, 0, 4, 2});
}

TEST_CASE("average linkage: none, one, two, and equal ones") {
  CHECK(average_linkage_order({}, 0).empty());
  CHECK(average_linkage_order({0}, 1) == std::vector<std::int64_t>{0});
  std::vector<std::int64_t> all = average_linkage_order(std::vector<float>(25, 0.5F), 5);
  std::ranges::sort(all);
  CHECK(all == std::vector<std::int64_t>{0, 1, 2, 3, 4});
}

TEST_CASE("average linkage: every branch of the tree stands together") {
  std::mt19937 random(3);
  for (const std::int64_t n : {2, 3, 7, 40}) {
    std::vector<float> d(static_cast<std::size_t>(n * n));
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < i; ++j)
        d[static_cast<std::size_t>(i * n + j)] = d[static_cast<std::size_t>(j * n + i)] = static_cast<float>(random() % 1'000'003);
    }
    const std::vector<std::int64_t> order = average_linkage_order(d, n);
    REQUIRE(std::ssize(order) == n);
    for (const Branch& branch : branches(d, n)) {
      const auto within = [&](std::int64_t leaf) { return branch.contains(leaf); };
      const auto begin = std::ranges::find_if(order, within);
      CHECK(std::all_of(begin, begin + std::ssize(branch), within));
    }
  }
}

}  // namespace statescope::test::clustering_test

#include "engine/analysis/clustering.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "engine/analysis/parts.h"

namespace statescope {
namespace {

using Leaves = std::vector<std::int64_t>;

class Tree {
 public:
  Tree(std::vector<float> distance, std::int64_t n) : n_(n), between_(distance), distance_(std::move(distance)) {
    for (std::int64_t i = 0; i < n; ++i) {
      branches_.push_back({i});
      alive_.push_back(i);
    }
  }

  Leaves order() {
    std::vector<std::int64_t> chain;
    for (std::int64_t merges = 1; merges < n_; ++merges) {
      if (chain.empty()) chain.push_back(alive_.front());
      while (true) {
        const std::int64_t last = chain.back(), previous = chain.size() > 1 ? chain[chain.size() - 2] : -1;
        const std::int64_t next = nearest(last, previous);
        if (next == previous) break;
        chain.push_back(next);
      }
      const std::int64_t a = chain.back(), b = chain[chain.size() - 2];
      chain.resize(chain.size() - 2);
      merge(std::min(a, b), std::max(a, b));
    }
    return n_ > 0 ? branches_[static_cast<std::size_t>(alive_.front())] : Leaves{};
  }

 private:
  float& d(std::int64_t i, std::int64_t j) { return distance_[static_cast<std::size_t>(i * n_ + j)]; }
  float of_leaves(std::int64_t i, std::int64_t j) const { return between_[static_cast<std::size_t>(i * n_ + j)]; }

  /// `previous` where nothing is nearer, so that a chain ends.
  std::int64_t nearest(std::int64_t branch, std::int64_t previous) {
    std::int64_t best = previous;
    float least = previous < 0 ? std::numeric_limits<float>::infinity() : d(branch, previous);
    const float* row = &d(branch, 0);
    for (const std::int64_t other : alive_) {
      if (row[other] >= least || other == branch) continue;
      best = other;
      least = row[other];
    }
    return best;
  }

  /// b becomes part of a.
  void merge(std::int64_t a, std::int64_t b) {
    Leaves &left = branches_[static_cast<std::size_t>(a)], &right = branches_[static_cast<std::size_t>(b)];
    const auto m = static_cast<float>(left.size()), n = static_cast<float>(right.size());
    // d(a ∪ b, c) = (|a| d(a, c) + |b| d(b, c)) / (|a| + |b|)
    alive_.erase(std::ranges::find(alive_, b));
    for (const std::int64_t c : alive_) d(a, c) = d(c, a) = (m * d(a, c) + n * d(b, c)) / (m + n);
    join(left, right);
  }

  void join(Leaves& left, Leaves& right) const {
    const float front_front = of_leaves(left.front(), right.front()), front_back = of_leaves(left.front(), right.back());
    const float back_front = of_leaves(left.back(), right.front()), back_back = of_leaves(left.back(), right.back());
    const bool turn_left = std::min(front_front, front_back) < std::min(back_front, back_back);
    const bool turn_right = turn_left ? front_back < front_front : back_back < back_front;
    if (turn_left) std::ranges::reverse(left);
    if (turn_right) std::ranges::reverse(right);
    left.insert(left.end(), right.begin(), right.end());
    right.clear();
  }

  std::int64_t n_;
  std::vector<float> between_;   // [n, n] of the leaves
  std::vector<float> distance_;  // [n, n] of the branches, each in the place of its first
  std::vector<Leaves> branches_;
  std::vector<std::int64_t> alive_;  // branches that are not part of another, ascending
};

}  // namespace

std::vector<std::int64_t> average_linkage_order(std::vector<float> distance, std::int64_t n) {
  check_size("average linkage: distance", std::span<const float>(distance), n * n);
  return Tree(std::move(distance), n).order();
}

}  // namespace statescope

#include "kernels/ops/token_choice.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "tests/kernels/memory_cases.h"

namespace statescope::token_choice_test {
using namespace statescope::testing;

namespace {

struct Problem {
  Packed queries, keys;
  std::int64_t H, d, n;
  Numbers q, k, weight;

  Problem(const std::vector<std::int32_t>& queries_, const std::vector<std::int32_t>& keys_, std::int64_t H_, std::int64_t d_,
          std::int64_t n_)
      : queries(queries_, {}, std::ssize(queries_)), keys(keys_, {}, std::ssize(keys_)), H(H_), d(d_), n(n_) {
    Random random(1);
    q = random.uniform({queries.rows(), H, d});
    k = random.uniform({keys.rows(), d});
    weight = random.uniform({queries.rows(), H});
  }
};

struct Found {
  std::vector<double> scores;
  std::vector<std::int32_t> selected;
};

Found run(const Problem& p, bool wants_scores = true) {
  Numbers scores = poisoned({p.queries.rows(), p.n});
  Found found;
  found.selected.assign(scores.values.size(), 12345);
  choose_tokens({.q = p.q.view(),
                 .k = p.k.view(),
                 .weight = p.weight.view(),
                 .scale = 0.3F,
                 .segments = p.queries.view(),
                 .cu_seqlens_k = p.keys.cu_seqlens,
                 .selected = {found.selected.data(), DType::i32, scores.shape},
                 .scores = wants_scores ? scores.view() : Tensor{}});
  if (wants_scores) found.scores.assign(scores.values.begin(), scores.values.end());
  return found;
}

Found truth(const Problem& p) {
  Found all;
  for (std::size_t s = 0; s + 1 < p.queries.cu_seqlens.size(); ++s) {
    const std::int64_t end = p.queries.cu_seqlens[s + 1], first_key = p.keys.cu_seqlens[s], keys = p.keys.cu_seqlens[s + 1] - first_key;
    for (std::int64_t row = p.queries.cu_seqlens[s]; row < end; ++row) {
      const std::int64_t seen = keys - (end - row) + 1;
      std::vector<double> I(static_cast<std::size_t>(seen));
      for (std::int64_t j = 0; j < seen; ++j) {
        for (std::int64_t h = 0; h < p.H; ++h) {
          double product = 0;
          for (std::int64_t c = 0; c < p.d; ++c) product += static_cast<double>(p.q.row(row)[h * p.d + c]) * p.k.row(first_key + j)[c];
          I[static_cast<std::size_t>(j)] += p.weight.row(row)[h] * std::max(0.0, static_cast<double>(0.3F) * product);
        }
      }
      std::vector<std::int32_t> order(I.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](auto a, auto b) { return I[static_cast<std::size_t>(a)] > I[static_cast<std::size_t>(b)]; });
      order.resize(static_cast<std::size_t>(std::min(p.n, seen)));
      std::ranges::sort(order);
      order.resize(static_cast<std::size_t>(p.n), -1);
      all.selected.insert(all.selected.end(), order.begin(), order.end());
      for (const std::int32_t j : order) all.scores.push_back(j < 0 ? 0 : I[static_cast<std::size_t>(j)]);
    }
  }
  return all;
}

}  // namespace

TEST_CASE("token choice: the largest of the indexer's scores, ascending", "[memory]") {
  for (const auto& [H, d] : {std::pair{8, 16}, {1, 5}, {3, 60}}) {
    for (const std::int64_t n : {1, 7, 40, 200}) {
      CAPTURE(H, d, n);
      const Problem p({150, 0, 1, 47, 1}, {150, 9, 90, 133, 3}, H, d, n);
      const Found found = run(p), expected = truth(p);
      CHECK(relative_error(found.scores, expected.scores) <= 1e-5);
      CHECK(found.selected == expected.selected);
      CHECK(run(p, false).selected == expected.selected);
    }
  }
}

TEST_CASE("token choice: of equal scores the earlier tokens are chosen, and a NaN counts as smallest", "[memory]") {
  Problem p({10}, {10}, 2, 4, 3);
  std::fill(p.q.values.begin(), p.q.values.end(), 0.0F);
  Found found = run(p);
  CHECK(std::vector(found.selected.end() - 3, found.selected.end()) == std::vector<std::int32_t>{0, 1, 2});
  p.k.row(1)[0] = std::nanf("");
  found = run(p);
  CHECK(std::vector(found.selected.end() - 3, found.selected.end()).size() == 3);
  CHECK(std::is_sorted(found.selected.end() - 3, found.selected.end()));
}

TEST_CASE("token choice: complaints name the operand", "[memory]") {
  CHECK(complaint_of([] { run(Problem({5}, {4}, 4, 2, 4)); }).find("segment 0 has 5 queries and 4 keys") != std::string::npos);
  CHECK(complaint_of([] {
          Problem p({5}, {5}, 4, 2, 4);
          p.k = Numbers({5, 3});
          run(p);
        }).find("k: found float32 [5, 3], expected float32 [5, 2]") != std::string::npos);
}

}  // namespace statescope::token_choice_test

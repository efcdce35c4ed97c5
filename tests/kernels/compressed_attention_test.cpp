#include "kernels/ops/compressed_attention.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>

#include "kernels/ops/softmax_attention.h"
#include "tests/kernels/memory_cases.h"

namespace statescope::compressed_attention_test {
using namespace statescope::testing;

namespace {

struct Problem {
  Packed queries, keys;
  std::int64_t H, Hkv, d, V, size, n;
  Numbers q, k, v;

  Problem(const std::vector<std::int32_t>& queries_, const std::vector<std::int32_t>& keys_, std::int64_t H_, std::int64_t Hkv_,
          std::int64_t size_, std::int64_t n_)
      : queries(queries_, {}, std::ssize(queries_)),
        keys(keys_, {}, std::ssize(keys_)),
        H(H_),
        Hkv(Hkv_),
        d(12),
        V(20),
        size(size_),
        n(n_) {
    Random random(1);
    q = random.uniform({queries.rows(), H, d}, -3, 3);
    k = random.uniform({keys.rows(), Hkv, d});
    v = random.uniform({keys.rows(), Hkv, V});
  }
};

struct Found {
  std::vector<double> o, importance;
  std::vector<std::int32_t> selected;
};

Found run(const Problem& p, bool wants_importance = true) {
  Numbers o = poisoned({p.queries.rows(), p.H, p.V}), importance = poisoned({p.queries.rows(), p.Hkv, p.n});
  Found found;
  found.selected.assign(importance.values.size(), 12345);
  compressed_attention({.q = p.q.view(),
                        .k = p.k.view(),
                        .v = p.v.view(),
                        .scale = 0.7F,
                        .block_size = p.size,
                        .segments = p.queries.view(),
                        .cu_seqlens_k = p.keys.cu_seqlens,
                        .o = o.view(),
                        .selected = {found.selected.data(), DType::i32, importance.shape},
                        .importance = wants_importance ? importance.view() : Tensor{}});
  found.o.assign(o.values.begin(), o.values.end());
  if (wants_importance) found.importance.assign(importance.values.begin(), importance.values.end());
  return found;
}

/// One query of one head of keys, in double precision.
void add_truth(Found& all, const Problem& p, std::int64_t row, std::int64_t first_key, std::int64_t position, std::int64_t g) {
  const std::int64_t complete = (position + 1) / p.size, own = position / p.size, group = p.H / p.Hkv;
  std::vector<double> importance(static_cast<std::size_t>(own) + 1);
  for (std::int64_t h = g * group; h < (g + 1) * group; ++h) {
    std::vector<double> weight, o(static_cast<std::size_t>(p.V));
    for (std::int64_t b = 0; b < complete; ++b) {
      double score = 0;
      for (std::int64_t j = b * p.size; j < (b + 1) * p.size; ++j) {
        for (std::int64_t c = 0; c < p.d; ++c)
          score += static_cast<double>(p.q.row(row)[h * p.d + c]) * p.k.row(first_key + j)[g * p.d + c] / static_cast<double>(p.size);
      }
      weight.push_back(std::exp(static_cast<double>(0.7F) * score));
    }
    const double total = std::accumulate(weight.begin(), weight.end(), 0.0);
    for (std::int64_t b = 0; b < complete; ++b) {
      const double share = weight[static_cast<std::size_t>(b)] / total;
      importance[static_cast<std::size_t>(b)] += share / static_cast<double>(group);
      for (std::int64_t j = b * p.size; j < (b + 1) * p.size; ++j) {
        for (std::int64_t c = 0; c < p.V; ++c)
          o[static_cast<std::size_t>(c)] += share * p.v.row(first_key + j)[g * p.V + c] / static_cast<double>(p.size);
      }
    }
    std::copy(o.begin(), o.end(), all.o.begin() + (row * p.H + h) * p.V);
  }
  std::set<std::int64_t> chosen{0, own, std::max<std::int64_t>(own - 1, 0)};
  while (std::ssize(chosen) < std::min(p.n, own + 1)) {
    std::int64_t best = -1;
    for (std::int64_t b = 0; b < complete; ++b) {
      if (!chosen.contains(b) && (best < 0 || importance[static_cast<std::size_t>(b)] > importance[static_cast<std::size_t>(best)]))
        best = b;
    }
    chosen.insert(best);
  }
  auto place = (row * p.Hkv + g) * p.n;
  for (const std::int64_t b : chosen) {
    all.importance[static_cast<std::size_t>(place)] = b < complete ? importance[static_cast<std::size_t>(b)] : 0;
    all.selected[static_cast<std::size_t>(place++)] = static_cast<std::int32_t>(b);
  }
}

Found truth(const Problem& p) {
  const auto choices = static_cast<std::size_t>(p.queries.rows() * p.Hkv * p.n);
  Found all{std::vector<double>(static_cast<std::size_t>(p.queries.rows() * p.H * p.V)), std::vector<double>(choices),
            std::vector<std::int32_t>(choices, -1)};
  for (std::size_t s = 0; s + 1 < p.queries.cu_seqlens.size(); ++s) {
    const std::int64_t end = p.queries.cu_seqlens[s + 1], first_key = p.keys.cu_seqlens[s], keys = p.keys.cu_seqlens[s + 1] - first_key;
    for (std::int64_t row = p.queries.cu_seqlens[s]; row < end; ++row) {
      for (std::int64_t g = 0; g < p.Hkv; ++g) add_truth(all, p, row, first_key, keys - (end - row), g);
    }
  }
  return all;
}

}  // namespace

TEST_CASE("compressed attention: means of blocks and the blocks that they choose", "[memory]") {
  for (const auto& [H, Hkv] : {std::pair{6, 1}, {6, 2}, {3, 3}}) {
    for (const auto& [size, n] : {std::pair{8, 4}, {5, 3}, {1, 7}, {64, 5}, {7, 100}}) {
      CAPTURE(H, Hkv, size, n);
      const Problem p({150, 0, 1, 47, 1}, {150, 9, 90, 133, 3}, H, Hkv, size, n);
      const Found found = run(p), expected = truth(p);
      CHECK(relative_error(found.o, expected.o) <= 1e-5);
      CHECK(relative_error(found.importance, expected.importance) <= 1e-5);
      CHECK(found.selected == expected.selected);
      CHECK(run(p, false).selected == expected.selected);
    }
  }
}

TEST_CASE("compressed attention: of equally important blocks the earlier ones are chosen; before the first complete block nothing is read",
          "[memory]") {
  Problem p({40}, {40}, 1, 1, 4, 5);
  std::fill(p.q.values.begin(), p.q.values.end(), 0.0F);
  const Found found = run(p);
  CHECK(std::vector(found.selected.end() - 5, found.selected.end()) == std::vector<std::int32_t>{0, 1, 2, 8, 9});
  CHECK(std::all_of(found.o.begin(), found.o.begin() + 3 * p.V, [](double x) { return x == 0; }));
  CHECK(found.o[static_cast<std::size_t>(3 * p.V)] != 0);
}

TEST_CASE("compressed attention: as many blocks as there are are all of them (spec §18.3)", "[memory]") {
  const Problem p({60}, {60}, 4, 2, 7, 9);
  const Found found = run(p);
  Numbers chosen = poisoned({60, 4, p.V}), all = poisoned({60, 4, p.V});
  SoftmaxAttention op;
  op.q = p.q.view(), op.k = p.k.view(), op.v = p.v.view(), op.segments = p.queries.view(), op.cu_seqlens_k = p.keys.cu_seqlens;
  op.o = all.view();
  softmax_attention_chunk(op, 16);
  op.o = chosen.view(), op.chosen = {{found.selected.data(), DType::i32, {60, 2, 9}}, 7};
  softmax_attention_chunk(op, 16);
  CHECK(relative_error(chosen.values, all.values) <= 1e-6);
}

TEST_CASE("compressed attention: a NaN stays in its row", "[memory]") {
  Problem p({40}, {40}, 1, 1, 4, 5);
  p.q.row(30)[0] = std::nanf("");
  const Found found = run(p);
  for (std::int64_t t = 0; t < 40; ++t) {
    CHECK(std::isnan(found.o[static_cast<std::size_t>(t * p.V)]) == (t == 30));
    CHECK(
        std::is_sorted(found.selected.begin() + 5 * t, std::find(found.selected.begin() + 5 * t, found.selected.begin() + 5 * t + 5, -1)));
  }
}

TEST_CASE("compressed attention: complaints name the operand", "[memory]") {
  CHECK(complaint_of([] { run(Problem({5}, {5}, 4, 2, 0, 4)); }).find("block_size: found 0") != std::string::npos);
  CHECK(complaint_of([] { run(Problem({5}, {5}, 4, 2, 4, 2)); }).find("selected: found [5, 2, 2]") != std::string::npos);
  CHECK(complaint_of([] { run(Problem({5}, {4}, 4, 2, 4, 3)); }).find("segment 0 has 5 queries and 4 keys") != std::string::npos);
}

}  // namespace statescope::compressed_attention_test

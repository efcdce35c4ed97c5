#include "kernels/ops/routing.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "kernels/ops/elementwise.h"
#include "tests/catch.h"
#include "tests/kernels/random_tensors.h"

namespace statescope::routing_test {
using namespace statescope::testing;

namespace {

std::vector<std::int32_t> largest(const Numbers& scores, std::int64_t W) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(scores.shape[0] * W), -1);
  top_k(Tensor(ids.data(), DType::i32, Shape{scores.shape[0], W}), scores.view());
  return ids;
}

ConstTensor table(const std::vector<std::int32_t>& ids, std::int64_t W) {
  return {ids.data(), DType::i32, Shape{static_cast<std::int64_t>(ids.size()) / W, W}};
}

}  // namespace

TEST_CASE("top_k: largest first, ties to the lowest index, NaN last") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(largest(Numbers(Shape{2, 4}, {1, 4, 2, 3, 5, 5, 5, 5}), 3) == std::vector<std::int32_t>{1, 3, 2, 0, 1, 2});
  CHECK(largest(Numbers(Shape{1, 4}, {NAN, -infinity, NAN, 0}), 4) == std::vector<std::int32_t>{3, 1, 0, 2});
  CHECK(largest(Numbers(Shape{1, 3}, {NAN, NAN, NAN}), 2) == std::vector<std::int32_t>{0, 1});
  CHECK(largest(Numbers(Shape{1, 1}, {7}), 1) == std::vector<std::int32_t>{0});
  CHECK_THROWS_AS(largest(Numbers(Shape{1, 2}), 3), std::invalid_argument);
}

TEST_CASE("top_k is a stable sort cut off") {
  Random random(1);
  const std::int64_t N = GENERATE(4, 33), W = GENERATE(1, 2, 4);
  Numbers scores = random.uniform({40, N});
  for (float& x : scores.values) x = std::round(x * 4);  // many ties
  const auto ids = largest(scores, W);
  for (std::int64_t t = 0; t < 40; ++t) {
    std::vector<std::int32_t> order(static_cast<std::size_t>(N));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return scores.row(t)[a] > scores.row(t)[b]; });
    CHECK(std::equal(order.begin(), order.begin() + W, ids.begin() + t * W));
  }
}

TEST_CASE("renormalise leaves the shares of the chosen") {
  Numbers gate(Shape{2, 4}, {0.1F, 0.2F, 0.3F, 0.4F, 0.25F, 0.25F, 0.25F, 0.25F}), y = poisoned(gate.shape);
  const std::vector<std::int32_t> ids{3, 0, 1, 2};
  renormalise(y.view(), gate.view(), table(ids, 2));
  const std::vector<float> truth{0.2F, 0, 0, 0.8F, 0, 0.5F, 0.5F, 0};
  CHECK(relative_error(y.values, truth) < 1e-6);
  renormalise(gate.view(), gate.view(), table(ids, 2));
  CHECK(gate.values == y.values);
}

TEST_CASE("row_sparse is a softmax over the largest rows; the others neither decay nor are written") {
  Numbers z(Shape{1, 2, 4}, {0, std::log(3.0F), -5, 0, 100, 100, 100, 100}), k = poisoned(z.shape), log_decay(z.shape, -1);
  row_sparse(k.view(), log_decay.view(), z.view(), 2, true);
  const std::vector<float> written{0.25F, 0.75F, 0, 0, 0.5F, 0.5F, 0, 0};
  CHECK(relative_error(k.values, written) < 1e-6);
  CHECK(log_decay.values == std::vector<float>{-1, -1, 0, 0, -1, -1, 0, 0});

  Numbers all(z.shape, -1);
  row_sparse(z.view(), all.view(), z.view(), 2, false);
  CHECK(z.values == k.values);
  CHECK(all.values == std::vector<float>(8, -1));
  CHECK_THROWS_AS(row_sparse(z.view(), all.view(), z.view(), 5, false), std::invalid_argument);
}

TEST_CASE("row_sparse with every row is the softmax, in columns of wider matrices") {
  Random random(3);
  const std::int64_t T = 70, H = 2, K = 60;
  Numbers wide = random.uniform({T, 200}, -9, 9), softmax_of(Shape{T, H, K}), wide_k = poisoned({T, 130}), log_decay(Shape{T, H, K}, -2);
  const ConstTensor z = wide.view().columns(7, {H, K});
  softmax(softmax_of.view(), z);
  row_sparse(wide_k.view().columns(3, {H, K}), log_decay.view(), z, K, true);
  Numbers k(Shape{T, H, K});
  copy(k.view(), wide_k.view().columns(3, {H, K}));
  CHECK(relative_error(k.values, softmax_of.values) < 1e-6);
  CHECK(std::count(log_decay.values.begin(), log_decay.values.end(), -2.0F) == T * H * K);
  CHECK(std::isnan(wide_k[2]));
}

TEST_CASE("order_by_partition by hand") {
  // Two sequences of 3 and 1 tokens, three partitions, two choices each.
  const std::vector<std::int32_t> ids{2, 0, 2, 1, 0, 2, 1, 0};
  const std::int32_t cu_seqlens[] = {0, 3, 4};
  PartitionOrder order;
  order_by_partition(order, table(ids, 2), cu_seqlens, 3);
  CHECK(order.token == std::vector<std::int32_t>{0, 2, 1, 0, 1, 2, 3, 3});
  CHECK(order.rank == std::vector<std::int32_t>{1, 0, 1, 0, 0, 1, 1, 0});
  CHECK(order.partition == std::vector<std::int32_t>{0, 0, 1, 2, 2, 2, 0, 1});
  CHECK(order.cu_seqlens == std::vector<std::int32_t>{0, 2, 3, 6, 7, 8});
  CHECK(order.run == std::vector<std::int32_t>{0, 1, 2, 3, 4});
}

TEST_CASE("order_by_partition sorts by (sequence, partition, position) and skips what is empty") {
  Random random(2);
  const std::vector<std::int32_t> cu_seqlens{0, 1, 1, 40, 63};
  const std::int64_t N = 7, W = 2;
  std::vector<std::int32_t> ids;
  for (int t = 0; t < 63; ++t) {
    const auto first = static_cast<std::int32_t>(random.below(N - 1));  // partition 6 is never first
    ids.push_back(first);
    ids.push_back(static_cast<std::int32_t>((first + 1 + random.below(3)) % (N - 1)));
  }
  PartitionOrder order;
  order.token.assign(500, -1);  // what was there before does not matter
  order.run.assign(500, -1);
  order_by_partition(order, table(ids, W), cu_seqlens, N);

  std::vector<std::tuple<int, int, int, int>> truth;
  for (int a = 0; a < 4; ++a) {
    for (std::int32_t t = cu_seqlens[static_cast<std::size_t>(a)]; t < cu_seqlens[static_cast<std::size_t>(a) + 1]; ++t) {
      for (int w = 0; w < W; ++w) truth.emplace_back(a, ids[static_cast<std::size_t>(t * W + w)], t, w);
    }
  }
  std::sort(truth.begin(), truth.end());
  REQUIRE(order.token.size() == truth.size());
  REQUIRE(order.cu_seqlens.size() == order.run.size() + 1);
  for (std::size_t r = 0; r < order.run.size(); ++r) {
    CHECK(order.cu_seqlens[r] < order.cu_seqlens[r + 1]);
    for (auto i = static_cast<std::size_t>(order.cu_seqlens[r]); i < static_cast<std::size_t>(order.cu_seqlens[r + 1]); ++i) {
      const auto [a, n, t, w] = truth[i];
      CHECK((order.token[i] == t && order.rank[i] == w && order.partition[i] == n));
      CHECK(order.run[r] == a * N + n);
    }
  }
  CHECK(order.cu_seqlens.back() == static_cast<std::int32_t>(truth.size()));
}

TEST_CASE("order_by_partition refuses foreign partitions and missing tokens") {
  PartitionOrder order;
  const std::int32_t cu_seqlens[] = {0, 2}, short_of[] = {0, 1};
  CHECK_THROWS_AS(order_by_partition(order, table({0, 3}, 1), cu_seqlens, 3), std::out_of_range);
  CHECK_THROWS_AS(order_by_partition(order, table({0, -1}, 1), cu_seqlens, 3), std::out_of_range);
  CHECK_THROWS_AS(order_by_partition(order, table({0, 1}, 1), short_of, 3), std::invalid_argument);
}

}  // namespace statescope::routing_test

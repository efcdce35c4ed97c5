#include "kernels/ops/convolution.h"

#include <algorithm>

#include "tests/catch.h"
#include "tests/kernels/random_tensors.h"

namespace statescope::convolution_test {
using namespace statescope::testing;

namespace {

struct Case {
  std::vector<std::int32_t> cu_seqlens, slot;
  std::int64_t C, w;
  Activation act = Activation::identity;
  Numbers x, weight, bias, cache;

  Case(std::vector<std::int32_t> cu, std::vector<std::int32_t> slots, std::int64_t C_, std::int64_t w_, std::uint64_t seed = 1)
      : cu_seqlens(std::move(cu)), slot(std::move(slots)), C(C_), w(w_) {
    Random random(seed);
    x = random.uniform({cu_seqlens.back(), C});
    weight = random.uniform({C, w});
    bias = random.uniform({C});
    cache = random.uniform({4, w - 1, C});
  }
  ShortConvolution op(Numbers& y, Numbers& final_cache) const {
    return {x.view(), weight.view(), bias.view(), act, {cu_seqlens, slot}, cache.view(), final_cache.view(), y.view()};
  }
};

/// The inputs of a segment with the cache in front: [w − 1 + length, C].
std::vector<std::vector<double>> history(const Case& c, std::size_t s) {
  std::vector<std::vector<double>> rows;
  const std::int64_t slot = c.slot.empty() ? static_cast<std::int64_t>(s) : c.slot[s];
  for (std::int64_t j = 0; j < c.w - 1; ++j) rows.emplace_back(c.cache.row(slot) + j * c.C, c.cache.row(slot) + (j + 1) * c.C);
  for (std::int64_t t = c.cu_seqlens[s]; t < c.cu_seqlens[s + 1]; ++t) rows.emplace_back(c.x.row(t), c.x.row(t) + c.C);
  return rows;
}

void compare(const Case& c, const Numbers& y, const Numbers& final_cache) {
  std::vector<double> truth;
  for (std::size_t s = 0; s + 1 < c.cu_seqlens.size(); ++s) {
    const auto rows = history(c, s);
    for (std::size_t t = 0; t + static_cast<std::size_t>(c.w) <= rows.size(); ++t) {
      for (std::int64_t ch = 0; ch < c.C; ++ch) {
        double sum = c.bias[ch];
        for (std::int64_t j = 0; j < c.w; ++j)
          sum += static_cast<double>(c.weight.row(ch)[j]) * rows[t + static_cast<std::size_t>(j)][static_cast<std::size_t>(ch)];
        truth.push_back(c.act == Activation::silu ? sum / (1 + std::exp(-sum)) : sum);
      }
    }
    const std::int64_t slot = c.slot.empty() ? static_cast<std::int64_t>(s) : c.slot[s];
    for (std::int64_t j = 0; j < c.w - 1; ++j) {
      const auto& kept = rows[rows.size() - static_cast<std::size_t>(c.w - 1 - j)];
      CHECK(std::equal(kept.begin(), kept.end(), final_cache.row(slot) + j * c.C));
    }
  }
  CHECK(relative_error(y.values, truth) < 1e-5);
}

}  // namespace

TEST_CASE("short convolution by hand: the last tap multiplies the current token") {
  Numbers x(Shape{3, 1}, {1, 2, 3}), weight(Shape{1, 3}, {100, 10, 1}), cache(Shape{1, 2, 1}, {8, 9}), y = poisoned(x.shape);
  const std::int32_t cu_seqlens[] = {0, 3};
  short_convolution({x.view(), weight.view(), {}, Activation::identity, {cu_seqlens, {}}, cache.view(), cache.view(), y.view()});
  CHECK(y.values == std::vector<float>{891, 912, 123});
  CHECK(cache.values == std::vector<float>{2, 3});
}

TEST_CASE("short convolution agrees with double precision") {
  const std::int64_t w = GENERATE(1, 2, 3, 4, 5), C = GENERATE(1, 60, 300);
  const auto act = GENERATE(Activation::identity, Activation::silu);
  // A long segment, one token, none, fewer than w − 1.
  Case c({0, 63, 64, 64, 66}, {2, 0, 3, 1}, C, w);
  c.act = act;
  Numbers y = poisoned(c.x.shape), final_cache = poisoned(c.cache.shape);
  short_convolution(c.op(y, final_cache));
  compare(c, y, final_cache);

  Case aliased = c;
  Numbers again = poisoned(c.x.shape);
  short_convolution(aliased.op(again, aliased.cache));
  CHECK(again.values == y.values);
  CHECK(aliased.cache.values == final_cache.values);
}

TEST_CASE("a slot that no segment names keeps its cache") {
  const Case c({0, 5}, {2}, 7, 4);
  Numbers y = poisoned(c.x.shape), final_cache(c.cache.shape, 42);
  short_convolution(c.op(y, final_cache));
  for (std::int64_t slot : {0, 1, 3}) CHECK(std::count(final_cache.row(slot), final_cache.row(slot) + 21, 42.0F) == 21);
}

TEST_CASE("token by token equals all at once, in columns of a wider matrix") {
  const std::int64_t T = 11, C = 9;
  const Case c({0, T}, {}, C, 4);
  Numbers whole = poisoned(c.x.shape), final_cache = poisoned(c.cache.shape);
  short_convolution(c.op(whole, final_cache));

  Numbers wide_x = poisoned({T, 20}), wide_y = poisoned({T, 30}), cache = c.cache;
  for (std::int64_t t = 0; t < T; ++t) std::copy_n(c.x.row(t), C, wide_x.row(t) + 6);
  const std::int32_t one[] = {0, 1};
  for (std::int64_t t = 0; t < T; ++t) {
    short_convolution({wide_x.view().columns(6, {C}).slice(t, 1),
                       c.weight.view(),
                       c.bias.view(),
                       Activation::identity,
                       {one, {}},
                       cache.view(),
                       cache.view(),
                       wide_y.view().columns(3, {C}).slice(t, 1)});
    CHECK(std::equal(wide_y.row(t) + 3, wide_y.row(t) + 3 + C, whole.row(t)));
    CHECK((std::isnan(wide_y.row(t)[2]) && std::isnan(wide_y.row(t)[3 + C])));
  }
  CHECK(std::equal(cache.row(0), cache.row(1), final_cache.row(0)));
}

TEST_CASE("a convolution that does not fit is refused") {
  const Case c({0, 5}, {}, 7, 4);
  Numbers y = poisoned(Shape{5, 6}), final_cache = poisoned(c.cache.shape);
  CHECK_THROWS_AS(short_convolution(c.op(y, final_cache)), std::invalid_argument);
}

}  // namespace statescope::convolution_test

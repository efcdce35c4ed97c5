#include "kernels/ops/elementwise.h"

#include <algorithm>
#include <limits>
#include <numbers>

#include "tests/catch.h"
#include "tests/kernels/random_tensors.h"

namespace statescope::elementwise_test {
using namespace statescope::testing;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return x > 30 ? x : std::log1p(std::exp(x)); }

double activation(Activation act, double x) {
  switch (act) {
    case Activation::identity:
      return x;
    case Activation::silu:
      return x * sigmoid(x);
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::sigmoid:
      return sigmoid(x);
    case Activation::elu_plus_one:
      return x > 0 ? x + 1 : std::exp(x);
    case Activation::exp:
      return std::exp(x);
    case Activation::log_one_minus:
      return std::log1p(-std::min(x, 1 - 0x1p-24));
    case Activation::tanh:
      return std::tanh(x);
    case Activation::gelu:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
  }
  return 0;
}

const std::vector<Activation> activations = {Activation::identity,      Activation::silu,         Activation::relu,
                                             Activation::sigmoid,       Activation::elu_plus_one, Activation::exp,
                                             Activation::log_one_minus, Activation::tanh,         Activation::gelu};

/// y[i] = fn(x[i]) in double precision.
template <class Fn>
std::vector<double> expected(const Numbers& x, const Fn& fn) {
  std::vector<double> y;
  for (float v : x.values) y.push_back(fn(static_cast<double>(v)));
  return y;
}

/// The columns [begin, begin + axes) of a matrix of T rows, with a margin on both sides.
struct Columns {
  Numbers whole;
  std::int64_t begin, n;
  Columns(Numbers numbers, std::int64_t begin_, std::int64_t n_) : whole(std::move(numbers)), begin(begin_), n(n_) {}
  Tensor view() { return whole.view().columns(begin, {n}); }
  Numbers part() const {
    Numbers result(Shape{whole.shape[0], n});
    for (std::int64_t t = 0; t < whole.shape[0]; ++t) std::copy_n(whole.row(t) + begin, n, result.row(t));
    return result;
  }
};

}  // namespace

TEST_CASE("rms_norm divides a group by its root mean square") {
  Numbers x(Shape{1, 4}, {3, 4, 0, 0}), w(Shape{2}, {1, 10}), y = poisoned(x.shape);
  rms_norm(y.view(), x.view(), w.view(), 0);
  const float rms = std::sqrt(12.5F);
  CHECK(y[0] == Approx(3 / rms));
  CHECK(y[1] == Approx(40 / rms));
  CHECK(std::isnan(y[2]));  // 0 / 0 without eps
  rms_norm(y.view(), x.view(), w.view(), 0.5F, 1);
  CHECK(y[0] == Approx(2 * 3 / std::sqrt(13.0F)));
  CHECK(y[1] == Approx(11 * 4 / std::sqrt(13.0F)));
  CHECK(y[2] == 0);
}

TEST_CASE("norms agree with double precision on odd sizes, strided views and in place") {
  Random random(1);
  const std::int64_t n = GENERATE(1, 7, 60, 257);
  Columns x(random.uniform({3, n + 9}, -3, 5), 4, n), y(poisoned({3, n + 5}), 2, n);
  const Numbers before = x.part();
  std::vector<double> rms, l2, sums;
  for (std::int64_t t = 0; t < 3; ++t) {
    double squares = 0, sum = 0;
    for (std::int64_t i = 0; i < n; ++i) squares += std::pow(before.row(t)[i], 2), sum += before.row(t)[i];
    for (std::int64_t i = 0; i < n; ++i) {
      const double v = before.row(t)[i];
      rms.push_back(v / std::sqrt(squares / static_cast<double>(n) + 1e-5));
      l2.push_back(v / std::sqrt(squares + 1e-6));
      sums.push_back(v / (sum + 1e-4));
    }
  }
  rms_norm_plain(y.view(), x.view(), n, 1e-5F);
  CHECK(relative_error(y.part().values, rms) < 1e-5);
  CHECK(std::isnan(y.whole[1]));
  CHECK(std::isnan(y.whole[n + 2]));
  sum_norm(y.view(), x.view(), 1e-4F);
  CHECK(relative_error(y.part().values, sums) < 1e-5);
  l2_norm(x.view(), x.view());
  CHECK(relative_error(x.part().values, l2) < 1e-5);
}

TEST_CASE("layer_norm takes the mean of each group away, and weighs by the place in the row") {
  Random random(3);
  for (const auto& [heads, n] : {std::pair<std::int64_t, std::int64_t>{1, 7}, {1, 60}, {3, 20}, {5, 1}}) {
    Columns x(random.uniform({3, heads * n + 9}, -3, 5), 4, heads * n), y(poisoned({3, heads * n + 5}), 2, heads * n);
    const Numbers before = x.part(), weight = random.uniform({heads * n}), bias = random.uniform({heads * n});
    std::vector<double> plain, weighed;
    for (std::int64_t i = 0; i < 3 * heads; ++i) {
      const float* in = before.values.data() + i * n;
      double mean = 0, squares = 0;
      for (std::int64_t c = 0; c < n; ++c) mean += double{in[c]} / static_cast<double>(n);
      for (std::int64_t c = 0; c < n; ++c) squares += std::pow(in[c] - mean, 2);
      for (std::int64_t c = 0; c < n; ++c) {
        const std::int64_t at = i % heads * n + c;
        plain.push_back((in[c] - mean) / std::sqrt(squares / static_cast<double>(n) + 1e-3));
        weighed.push_back(plain.back() * double{weight[at]} + double{bias[at]});
      }
    }
    layer_norm(y.view(), x.view(), weight.view(), bias.view(), n, 1e-3F);
    CHECK(relative_error(y.part().values, weighed) < 1e-5);
    CHECK(std::isnan(y.whole[1]));
    layer_norm(x.view(), x.view(), {}, {}, n, 1e-3F);
    if (n > 1) CHECK(relative_error(x.part().values, plain) < 1e-5);
    CHECK_THROWS_AS(layer_norm(y.view(), x.view(), weight.view(), {}, heads * n + 1, 0), std::invalid_argument);
  }
}

TEST_CASE("the norm of a head is that of its own channels") {
  Random random(2);
  const Numbers x = random.uniform({2, 3, 60});
  Numbers y = poisoned(x.shape), one = poisoned(Shape{1, 60});
  l2_norm(y.view(), x.view());
  for (std::int64_t head = 0; head < 6; ++head) {
    l2_norm(one.view(), ConstTensor(x.values.data() + head * 60, DType::f32, Shape{1, 60}));
    CHECK(std::equal(one.values.begin(), one.values.end(), y.values.begin() + head * 60));
  }
}

TEST_CASE("softmax over the last axis") {
  Random random(3);
  const std::int64_t n = GENERATE(1, 4, 16, 63, 1000);
  const float temperature = GENERATE(1.0F, 0.25F, -2.0F);
  const Numbers x = random.uniform({2, 3, n}, -30, 30);
  std::vector<double> truth;
  for (std::int64_t group = 0; group < 6; ++group) {
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(temperature) * x[group * n + i]);
    for (std::int64_t i = 0; i < n; ++i) truth.push_back(std::exp(static_cast<double>(temperature) * x[group * n + i]) / sum);
  }
  Numbers y = poisoned(x.shape);
  softmax(y.view(), x.view(), temperature);
  CHECK(relative_error(y.values, truth) < 1e-5);
  for (std::size_t i = 0; i < truth.size(); ++i) CHECK(std::abs(y.values[i] - truth[i]) <= 2e-5 * truth[i] + 1e-37);
}

TEST_CASE("softmax of equal huge numbers is uniform, whatever the temperature rounds") {
  Numbers x(Shape{1, 20}, std::vector<float>(20, 1e30F));
  softmax(x.view(), x.view(), GENERATE(0.3F, -0.3F, 1.7F));
  for (const float p : x.values) CHECK(p == Approx(0.05F));
}

TEST_CASE("softmax of extremes") {
  Numbers x(Shape{4, 3}, {1e30F, 0, 1e30F, -infinity, 5, -infinity, -infinity, -infinity, -infinity, NAN, -infinity, 1});
  softmax(x.view(), x.view());
  CHECK(std::vector<float>(x.values.begin(), x.values.begin() + 9) == std::vector<float>{0.5F, 0, 0.5F, 0, 1, 0, 0, 0, 0});
  for (std::int64_t i = 9; i < 12; ++i) CHECK(std::isnan(x[i]));
}

TEST_CASE("activations agree with double precision, also far out") {
  Random random(4);
  const Activation act = GENERATE(from_range(activations));
  Numbers x = random.uniform({2, 63}, -12, 12);
  for (float extreme : {-1e30F, -200.0F, -89.0F, -0.0F, 1e-30F, 88.0F, 200.0F}) x.values.push_back(extreme);
  for (int i = 0; i < 6; ++i) x.values.push_back(static_cast<float>(i));
  x.shape = {1, static_cast<std::int64_t>(x.values.size())};
  const auto truth = expected(x, [&](double v) { return activation(act, v); });
  Numbers y = poisoned(x.shape);
  activate(y.view(), x.view(), act);
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const bool overflows = truth[i] > static_cast<double>(std::numeric_limits<float>::max());
    CHECK((overflows ? y.values[i] == infinity : std::abs(y.values[i] - truth[i]) <= 1e-6 * std::abs(truth[i]) + 1e-33));
  }
  activate(x.view(), x.view(), act);
  CHECK(x.values == y.values);
}

TEST_CASE("a NaN survives every activation") {
  const Activation act = GENERATE(from_range(activations));
  Numbers x(Shape{1, 33}, 1), y(Shape{1, 33});
  x[3] = x[32] = NAN;
  activate(y.view(), x.view(), act);
  CHECK((std::isnan(y[3]) && std::isnan(y[32]) && !std::isnan(y[2])));
}

TEST_CASE("gate multiplies by the activation of the second operand") {
  Random random(5);
  const Activation act = GENERATE(from_range(activations));
  Columns a(random.uniform({3, 40}), 1, 37), b(random.uniform({3, 50}, -5, 5), 9, 37), y(poisoned({3, 38}), 0, 37);
  const Numbers left = a.part(), right = b.part();
  std::vector<double> truth;
  for (std::size_t i = 0; i < left.values.size(); ++i) truth.push_back(left.values[i] * activation(act, right.values[i]));
  gate(y.view(), a.view(), b.view(), act);
  CHECK(relative_error(y.part().values, truth) < 1e-6);
  gate(b.view(), a.view(), b.view(), act);
  CHECK(b.part().values == y.part().values);
}

TEST_CASE("add, scale_heads, divide_heads and fill") {
  Numbers a(Shape{2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}), b(Shape{2, 4}, 10), g(Shape{2, 2}, {1, 2, 3, 4}), token(Shape{2, 1}, {-1, 5});
  Numbers y = poisoned(a.shape);
  add(y.view(), a.view(), b.view(), 0.5F);
  CHECK(y.values == std::vector<float>{6, 7, 8, 9, 10, 11, 12, 13});
  scale_heads(y.view().with_row({2, 2}), a.view().with_row({2, 2}), g.view(), 10);
  CHECK(y.values == std::vector<float>{10, 20, 60, 80, 150, 180, 280, 320});
  scale_heads(a.view().with_row({2, 2}), a.view().with_row({2, 2}), token.view());
  CHECK(a.values == std::vector<float>{-1, -2, -3, -4, 25, 30, 35, 40});
  divide_heads(a.view().with_row({2, 2}), a.view().with_row({2, 2}), g.view(), 1);
  CHECK(a.values == std::vector<float>{-0.5F, -1, -1, -4.0F / 3, 6.25F, 7.5F, 7, 8});
  fill(a.view().columns(1, {2}), 3);
  CHECK(a.values == std::vector<float>{-0.5F, 3, 3, -4.0F / 3, 6.25F, 3, 3, 8});
}

TEST_CASE("decays from gate logits") {
  Numbers x(Shape{1, 7}, {-1000, -90, -3, 0, 2, 20, 200}), y = poisoned(x.shape);
  log_sigmoid_decay(y.view(), x.view(), 16, -infinity);
  const auto log_sigmoid = expected(x, [](double v) { return -softplus(-v) / 16; });
  for (std::size_t i = 0; i < 7; ++i) CHECK(std::abs(y.values[i] - log_sigmoid[i]) <= 1e-6 * std::abs(log_sigmoid[i]) + 1e-38);
  log_sigmoid_decay(y.view(), x.view(), 1, -5);
  CHECK(y[0] == -5);
  CHECK(y[3] == Approx(-std::numbers::ln2));
  // Rows longer than a vector, and what is not finite.
  Numbers many = Random(1).uniform({3, 37}, -20, 20), found = poisoned(many.shape);
  many[5] = std::nanf(""), many[40] = infinity, many[41] = -infinity;
  log_sigmoid_decay(found.view(), many.view(), 16, -infinity);
  for (std::int64_t i = 0; i < many.shape.size(); ++i) {
    if (i == 5 || i == 40 || i == 41) continue;
    const double truth = -softplus(-static_cast<double>(many[i])) / 16;
    CHECK(std::abs(found[i] - truth) <= 1e-6 * std::abs(truth));
  }
  CHECK(std::isnan(found[5]));
  CHECK(found[40] == 0);
  CHECK(found[41] == -infinity);
  log_sigmoid_decay(found.view(), many.view(), 16, -1);
  CHECK(std::isnan(found[5]));
  CHECK(found[41] == -1);

  Numbers a(Shape{2, 3}, {-100, 0, 100, 1, 2, 3}), A_log(Shape{3}, {0, 1, -1}), bias(Shape{3}, {0, -1, 5}), decay = poisoned(a.shape);
  gated_delta_decay(decay.view(), a.view(), A_log.view(), bias.view());
  for (std::int64_t i = 0; i < 6; ++i) {
    const double truth = -std::exp(static_cast<double>(A_log[i % 3])) * softplus(static_cast<double>(a[i]) + bias[i % 3]);
    CHECK(std::abs(decay[i] - truth) <= 1e-6 * std::abs(truth) + 1e-38);
  }
  // Per channel: heads of three channels; without and with a lower bound.
  Numbers each(Shape{1, 6}, {-100, 0, 100, 1, 2, 3}), rate(Shape{2}, {0, 1}), biases(Shape{6}, {0, -1, 5, 1, -3, 0}),
      of_channels = poisoned(each.shape);
  for (const float bound : {0.0F, -5.0F}) {
    gated_delta_decay(of_channels.view(), each.view(), rate.view(), biases.view(), bound);
    for (std::int64_t i = 0; i < 6; ++i) {
      const double f = static_cast<double>(each[i]) + biases[i], factor = std::exp(static_cast<double>(rate[i / 3]));
      const double truth = bound < 0 ? bound / (1 + std::exp(-factor * f)) : -factor * softplus(f);
      CHECK(std::abs(of_channels[i] - truth) <= 1e-6 * std::abs(truth) + 1e-38);
    }
  }

  Numbers dt(Shape{1, 3}, {-50, 0, 50}), zero(Shape{3});
  softplus_clamp(dt.view(), dt.view(), zero.view(), 0.001F, 10);
  CHECK(dt[0] == 0.001F);
  CHECK(dt[1] == Approx(std::numbers::ln2));
  CHECK(dt[2] == 10);

  Numbers log_f(Shape{1, 3}, {-1e-6F, -1, -100});
  one_minus_exp(log_f.view(), log_f.view());
  CHECK(log_f[0] == Approx(1e-6));
  CHECK(log_f[1] == Approx(1 - std::exp(-1.0)));
  CHECK(log_f[2] == 1);
}

TEST_CASE("rope turns pairs of channels by the angle of the position") {
  // d = 4 of which 2 are rotated: ω_0 = 1.
  Numbers x(Shape{2, 1, 4}, {1, 0, 7, 8, 0, 1, 7, 8}), y = poisoned(x.shape);
  rope(y.view(), x.view(), 1, 10000, 2);
  CHECK(y[0] == Approx(std::cos(1.0)));
  CHECK(y[1] == Approx(std::sin(1.0)));
  CHECK(y[4] == Approx(-std::sin(2.0)));
  CHECK(y[5] == Approx(std::cos(2.0)));
  CHECK((y[2] == 7 && y[3] == 8 && y[6] == 7 && y[7] == 8));
}

TEST_CASE("rope: half-split frequencies, every head alike, in place, and far positions") {
  Random random(6);
  const std::int64_t first = GENERATE(0, 1000, (1 << 20) - 1, 50'000'000);
  const std::int64_t T = 3, H = 2, d = 12, rotary = 8;
  Numbers x = random.uniform({T, H, d});
  std::vector<double> truth(x.values.begin(), x.values.end());
  for (std::int64_t t = 0; t < T; ++t) {
    for (std::int64_t j = 0; j < rotary / 2; ++j) {
      const double frequency = std::pow(500000.0, -2.0 * static_cast<double>(j) / rotary), position = static_cast<double>(first + t);
      const bool coarse = first + t < (1 << 20);
      const double angle =
          coarse ? static_cast<double>(static_cast<float>(position) * static_cast<float>(frequency)) : position * frequency;
      for (std::int64_t h = 0; h < H; ++h) {
        const std::int64_t at = (t * H + h) * d + j;
        truth[static_cast<std::size_t>(at)] = x[at] * std::cos(angle) - x[at + rotary / 2] * std::sin(angle);
        truth[static_cast<std::size_t>(at + rotary / 2)] = x[at + rotary / 2] * std::cos(angle) + x[at] * std::sin(angle);
      }
    }
  }
  rope(x.view(), x.view(), first, 500000, rotary);
  CHECK(relative_error(x.values, truth) < 1e-6);
}

TEST_CASE("rope with listed frequencies: those of a base are the same, 0 does not turn, the factor scales what turns") {
  Random random(8);
  const std::int64_t first = GENERATE(0, 1000, 50'000'000);
  const Numbers x = random.uniform({3, 2, 12});
  Numbers by_base = poisoned(x.shape), listed = poisoned(x.shape);
  std::vector<float> omega;
  for (int j = 0; j < 4; ++j) omega.push_back(static_cast<float>(std::pow(500.0, -j / 4.0)));
  if (first < (1 << 20)) {
    rope(by_base.view(), x.view(), first, 500, 8);
    rope(listed.view(), x.view(), first, Rotation{omega});
    CHECK(listed.values == by_base.values);
  }
  omega[1] = 0;
  rope(listed.view(), x.view(), first, Rotation{omega, 1.5F});
  for (std::int64_t t = 0; t < 3; ++t) {
    const std::int64_t at = t * 24 + 12;  // the second head
    CHECK(listed[at + 1] == 1.5F * x[at + 1]);
    CHECK(listed[at + 5] == 1.5F * x[at + 5]);
    CHECK(listed[at + 9] == x[at + 9]);
    const double angle = static_cast<double>(first + t) * omega[2];
    CHECK(listed[at + 2] == Approx(1.5 * (x[at + 2] * std::cos(angle) - x[at + 6] * std::sin(angle))).margin(2e-4));
  }
  const std::vector<float> many(7, 1);
  CHECK_THROWS_AS(rope(listed.view(), x.view(), 0, Rotation{many}), std::invalid_argument);
}

TEST_CASE("copy, gather and scatter move rows") {
  Numbers x(Shape{3, 2}, {1, 2, 3, 4, 5, 6}), wide = poisoned(Shape{3, 4});
  copy(wide.view().columns(1, {2}), x.view());
  CHECK((wide[1] == 1 && wide[2] == 2 && wide[9] == 5 && std::isnan(wide[0]) && std::isnan(wide[3])));

  const std::int32_t rows[] = {2, 0, 2, 1};
  Numbers gathered = poisoned(Shape{4, 2});
  gather_rows(gathered.view(), wide.view().columns(1, {2}), rows);
  CHECK(gathered.values == std::vector<float>{5, 6, 1, 2, 5, 6, 3, 4});

  Numbers sum(Shape{3, 2}, 100), weight(Shape{4}, {1, 1, 10, -1});
  scatter_add_rows(sum.view(), gathered.view(), rows);
  CHECK(sum.values == std::vector<float>{101, 102, 103, 104, 110, 112});
  scatter_add_rows(sum.view(), gathered.view(), rows, weight.view());
  CHECK(sum.values == std::vector<float>{102, 104, 100, 100, 165, 178});
  const std::int32_t foreign[] = {0, 3};
  CHECK_THROWS_AS(gather_rows(gathered.view().slice(0, 2), x.view(), foreign), std::out_of_range);
  CHECK_THROWS_AS(scatter_add_rows(sum.view(), gathered.view().slice(0, 2), foreign), std::out_of_range);
}

TEST_CASE("many rows on many threads are the rows one by one") {
  Random random(7);
  const std::int64_t T = 300, n = 260;
  const Numbers x = random.uniform({T, n}, -4, 4);
  Numbers y = poisoned(x.shape), one = poisoned(Shape{1, n});
  activate(y.view(), x.view(), Activation::silu);
  softmax(y.view(), y.view());
  for (std::int64_t t = 0; t < T; ++t) {
    activate(one.view(), x.view().slice(t, 1), Activation::silu);
    softmax(one.view(), one.view());
    REQUIRE(std::equal(one.values.begin(), one.values.end(), y.row(t)));
  }
}

TEST_CASE("operands that do not fit are refused") {
  Numbers x(Shape{2, 6}), y(Shape{2, 5}), w(Shape{4}, 1);
  CHECK_THROWS_AS(activate(y.view(), x.view(), Activation::silu), std::invalid_argument);
  CHECK_THROWS_AS(rms_norm(x.view(), x.view(), w.view(), 0), std::invalid_argument);
  CHECK_THROWS_AS(add(x.view(), x.view(), y.view()), std::invalid_argument);
  CHECK_THROWS_AS(scale_heads(x.view(), x.view(), y.view()), std::invalid_argument);
  CHECK_THROWS_AS(rope(x.view(), x.view(), 0, 10000, 5), std::invalid_argument);
}

}  // namespace statescope::elementwise_test

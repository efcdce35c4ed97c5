#include "kernels/ops/linear.h"
#include "kernels/cpu/bfloat16_product.h"
#include "kernels/cpu/parallel.h"
#include "kernels/ops/linear_blocks.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "tests/catch.h"
#include "tests/kernels/random_tensors.h"

namespace statescope::linear_test {
using namespace statescope::testing;

namespace {

/// What the bits of a float16 or bfloat16 mean, by the definition of the formats.
double value_of(std::uint16_t bits, DType dtype) {
  const int exponent_bits = dtype == DType::f16 ? 5 : 8, mantissa_bits = 15 - exponent_bits;
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1), mantissa = bits & ((1 << mantissa_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int leading = exponent == 0 ? 0 : 1 << mantissa_bits;  // subnormal numbers have no leading one
  const double magnitude = std::ldexp(leading + mantissa, std::max(exponent, 1) - bias - mantissa_bits);
  return bits & 0x8000 ? -magnitude : magnitude;
}

/// A weight matrix of any type at an address that is aligned for its type and for nothing more, with a margin after each row.
class Weight {
 public:
  Weight(DType dtype, std::int64_t out, std::int64_t in, Random& random)
      : dtype_(dtype), out_(out), in_(in), stride_(in + 3), bytes_(static_cast<std::size_t>(out * stride_) * size_of(dtype) + 64, 0xFF) {
    for (std::int64_t o = 0; o < out; ++o) {
      for (std::int64_t i = 0; i < in; ++i) values_.push_back(store(o * stride_ + i, random));
    }
  }
  ConstTensor view() const { return {first(), dtype_, Shape{out_, in_}, stride_}; }
  double operator()(std::int64_t o, std::int64_t i) const { return values_[static_cast<std::size_t>(o * in_ + i)]; }

 private:
  unsigned char* first() const {
    auto* p = const_cast<unsigned char*>(bytes_.data());
    while (reinterpret_cast<std::uintptr_t>(p) % 64 != size_of(dtype_)) ++p;
    return p;
  }
  double store(std::int64_t at, Random& random) {
    unsigned char* p = first() + at * static_cast<std::int64_t>(size_of(dtype_));
    if (dtype_ == DType::f32) {
      const float value = random.uniform(-1, 1);
      std::memcpy(p, &value, sizeof value);
      return static_cast<double>(value);
    }
    // Sign and mantissa at random; the exponent from subnormal to about 1.
    const std::uint32_t sign = random.below(2) ? 0x8000 : 0;
    const auto magnitude =
        static_cast<std::uint32_t>(random.below(8) == 0 ? random.below(64) : random.below(dtype_ == DType::f16 ? 0x3C00 : 0x3F80));
    const auto bits = static_cast<std::uint16_t>(sign | magnitude);
    std::memcpy(p, &bits, sizeof bits);
    return value_of(bits, dtype_);
  }

  DType dtype_;
  std::int64_t out_, in_, stride_;
  std::vector<unsigned char> bytes_;
  std::vector<double> values_;
};

double unrounded(double value) { return value; }

/// The nearest number with eight bits of mantissa, ties to even; not for subnormal ones.
double to_bfloat16(double value) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8);
}

/// y = x wᵀ + bias, of operands that are rounded before
std::vector<double> product(const Numbers& x, const Weight& weight, std::int64_t out, const Numbers* bias,
                            double (*rounded)(double) = unrounded) {
  const std::int64_t in = x.shape[1];
  const auto at = [in](std::int64_t row, std::int64_t i) { return static_cast<std::size_t>(row * in + i); };
  std::vector<double> rows, weights, y;
  for (const float number : x.values) rows.push_back(rounded(static_cast<double>(number)));
  for (std::int64_t o = 0; o < out; ++o) {
    for (std::int64_t i = 0; i < in; ++i) weights.push_back(rounded(weight(o, i)));
  }
  for (std::int64_t t = 0; t < x.shape[0]; ++t) {
    for (std::int64_t o = 0; o < out; ++o) {
      double sum = bias != nullptr ? static_cast<double>((*bias)[o]) : 0;
      for (std::int64_t i = 0; i < in; ++i) sum += rows[at(t, i)] * weights[at(o, i)];
      y.push_back(sum);
    }
  }
  return y;
}

}  // namespace

TEST_CASE("linear by hand") {
  Numbers x(Shape{1, 2}, {1, 2}), w(Shape{3, 2}, {1, 0, 0, 1, 10, 100}), bias(Shape{3}, {0, 0, 0.5F}), y = poisoned(Shape{1, 3});
  linear(y.view(), x.view(), w.view(), bias.view());
  CHECK(y.values == std::vector<float>{1, 2, 210.5F});
}

TEST_CASE("linear agrees with double precision for every type of weight") {
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const std::int64_t T = GENERATE(1, 2, 3, 4, 7, 8, 9, 24, 25, 63);
  const auto [in, out] = GENERATE(table<std::int64_t, std::int64_t>({{60, 7}, {1, 1}, {64, 300}, {333, 65}}));
  Random random(static_cast<std::uint64_t>(100 * T + in));
  const Weight weight(dtype, out, in, random);
  const Numbers x = random.uniform({T, in}), bias = random.uniform({out});
  const bool biased = GENERATE(false, true);

  Numbers wide_x = poisoned({T, in + 5}), wide_y = poisoned({T, out + 2});
  for (std::int64_t t = 0; t < T; ++t) std::copy_n(x.row(t), in, wide_x.row(t) + 3);
  linear(wide_y.view().columns(1, {out}), wide_x.view().columns(3, {in}), weight.view(), biased ? bias.view() : ConstTensor());

  Numbers y(Shape{T, out});
  for (std::int64_t t = 0; t < T; ++t) {
    std::copy_n(wide_y.row(t) + 1, out, y.row(t));
    CHECK(std::isnan(wide_y.row(t)[0]));
    CHECK(std::isnan(wide_y.row(t)[out + 1]));
  }
  CHECK(relative_error(y.values, product(x, weight, out, biased ? &bias : nullptr)) < 1e-5);
}

/// What a byte of E4M3 means, by the definition of the format.
double value_of_float8(std::uint8_t byte) {
  const int exponent = byte >> 3 & 15, mantissa = byte & 7;
  if ((byte & 0x7F) == 0x7F) return std::nan("");
  const double magnitude = std::ldexp(exponent == 0 ? mantissa : 8 + mantissa, std::max(exponent, 1) - 7 - 3);
  return byte & 0x80 ? -magnitude : magnitude;
}

TEST_CASE("float8 weights are multiplied by the scales of their blocks") {
  const std::int64_t T = GENERATE(1, 2, 3, 4, 9, 24, 25, 63);
  const auto [in, out] = GENERATE(table<std::int64_t, std::int64_t>({{60, 7}, {1, 1}, {200, 150}, {333, 65}}));
  const auto [rows, columns] = GENERATE(table<std::int64_t, std::int64_t>({{1000, 1000}, {1, 1000}, {128, 128}, {64, 32}, {3, 5}}));
  Random random(static_cast<std::uint64_t>(100 * T + in));
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(out * in));
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.below(0x7F) | (random.below(2) ? 0x80 : 0));
  const std::int64_t per_row = (in + columns - 1) / columns;
  const Numbers values = random.uniform({(out + rows - 1) / rows, per_row}, 0.01F, 0.1F), x = random.uniform({T, in}),
                bias = random.uniform({out});
  const BlockScales scales{values.values.data(), rows, columns, per_row};
  ConstTensor weight(bytes.data(), DType::f8, {out, in});
  weight.scales = &scales;

  std::vector<double> expected;
  for (std::int64_t t = 0; t < T; ++t) {
    for (std::int64_t o = 0; o < out; ++o) {
      double sum = static_cast<double>(bias[o]);
      for (std::int64_t i = 0; i < in; ++i)
        sum += static_cast<double>(x.row(t)[i]) * value_of_float8(bytes[static_cast<std::size_t>(o * in + i)]) *
               static_cast<double>(values.row(o / rows)[i / columns]);
      expected.push_back(sum);
    }
  }
  // What an earlier product left in this thread's memory is not read: NaN times a weight of 0 is NaN.
  const Numbers nans = poisoned({T, 1024}), wide(Shape{1, 1024});
  Numbers unused = poisoned({T, 1}), y = poisoned({T, out});
  linear(unused.view(), nans.view(), wide.view());
  linear(y.view(), x.view(), weight, bias.view());
  CHECK(relative_error(y.values, expected) < 1e-5);
}

TEST_CASE("every byte of float8 is widened exactly, and one that is no number makes its outputs none") {
  std::vector<std::uint8_t> bytes(256);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i);
  const float half = 0.5F;
  const BlockScales scales{&half, 1000, 1000, 1};
  ConstTensor table(bytes.data(), DType::f8, {16, 16});
  table.scales = &scales;
  Numbers row = poisoned({1, 16}), y = poisoned({1, 16}), x(Shape{1, 16}, std::vector<float>(16, 1));
  for (std::int64_t t = 0; t < 16; ++t) {
    widen_row(row.values.data(), table, t);
    for (std::int64_t i = 0; i < 16; ++i) {
      const double expected = value_of_float8(static_cast<std::uint8_t>(16 * t + i)) / 2;
      CHECK((std::isnan(expected) ? std::isnan(row[i]) : static_cast<double>(row[i]) == expected));
    }
  }
  linear(y.view(), x.view(), table);
  for (std::int64_t o = 0; o < 16; ++o) CHECK(std::isnan(y[o]) == (o == 7 || o == 15));
}

TEST_CASE("float8 without scales is refused") {
  const std::uint8_t byte = 0x38;
  Numbers x(Shape{1, 1}, {1}), y = poisoned({1, 1});
  CHECK_THROWS_AS(linear(y.view(), x.view(), ConstTensor(&byte, DType::f8, {1, 1})), std::invalid_argument);
}

TEST_CASE("every bit pattern of the 16-bit types is widened exactly") {
  const DType dtype = GENERATE(DType::f16, DType::bf16);
  std::vector<std::uint16_t> table(0x10000);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::uint16_t>(i);
  const std::int32_t ids[] = {0};
  Numbers row = poisoned(Shape{1, 0x10000});
  embed(row.view(), ConstTensor(table.data(), dtype, Shape{1, 0x10000}), ids);
  const int special = dtype == DType::f16 ? 0x7C00 : 0x7F80;
  bool exact = true;
  for (int bits = 0; bits < 0x10000; ++bits) {
    const float y = row[bits];
    const int magnitude = bits & 0x7FFF;
    if (magnitude > special) {
      exact = exact && std::isnan(y);
    } else if (magnitude == special) {
      exact = exact && std::isinf(y) && std::signbit(y) == (bits >= 0x8000);
    } else {
      exact = exact && static_cast<double>(y) == value_of(static_cast<std::uint16_t>(bits), dtype) && std::signbit(y) == (bits >= 0x8000);
    }
  }
  CHECK(exact);
}

TEST_CASE("subnormal weights count in the product") {
  const DType dtype = GENERATE(DType::f16, DType::bf16);
  const std::int64_t T = GENERATE(1, 5);
  std::vector<std::uint16_t> w(70, 1);  // the smallest positive number
  Numbers x(Shape{T, 70}, dtype == DType::f16 ? 0x1p24F : 0x1p120F), y = poisoned(Shape{T, 1});
  linear(y.view(), x.view(), ConstTensor(w.data(), dtype, Shape{1, 70}));
  for (float v : y.values) CHECK(v == (dtype == DType::f16 ? 70.0F : 70 * 0x1p-13F));
}

TEST_CASE("the result of a row does not depend on the number of threads") {
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const std::int64_t T = GENERATE(1, 7, 63, 300);
  const std::int64_t out = T <= 7 ? 3001 : 600, in = 260;
  Random random(8);
  const Weight weight(dtype, out, in, random);
  const Numbers x = random.uniform({T, in});
  std::vector<Numbers> y;
  for (int threads : {1, 2, 3}) {
    const ThreadLimit limit(threads);
    y.push_back(poisoned({T, out}));
    linear(y.back().view(), x.view(), weight.view());
  }
  CHECK(y[0].values == y[1].values);
  CHECK(y[0].values == y[2].values);
  CHECK(relative_error(y[0].values, product(x, weight, out, nullptr)) < 1e-5);
}

TEST_CASE("one row gives the same whether it comes alone or with a few others") {
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  Random random(9);
  const Weight weight(dtype, 65, 333, random);
  const Numbers x = random.uniform({7, 333});
  Numbers together = poisoned({7, 65}), alone = poisoned({7, 65});
  linear(together.view(), x.view(), weight.view());
  for (std::int64_t t = 0; t < 7; ++t) linear(alone.view().slice(t, 1), x.view().slice(t, 1), weight.view());
  CHECK(together.values == alone.values);
}

TEST_CASE("linear refuses what does not fit, and does nothing for no rows") {
  Numbers x(Shape{2, 3}), w(Shape{4, 3}), y(Shape{2, 4}), bias(Shape{3}), none(Shape{0, 3}), nothing(Shape{0, 4});
  CHECK_THROWS_AS(linear(y.view(), x.view(), w.view(), bias.view()), std::invalid_argument);
  CHECK_THROWS_AS(linear(x.view(), x.view(), w.view()), std::invalid_argument);
  CHECK_THROWS_AS(linear(y.view(), y.view(), w.view()), std::invalid_argument);
  CHECK_THROWS_AS(linear(y.view(), x.view(), ConstTensor(w.values.data(), DType::i32, Shape{4, 3})), std::invalid_argument);
  linear(nothing.view(), none.view(), w.view());
}

TEST_CASE("a product over no inputs is the bias") {
  const std::int64_t T = GENERATE(1, 5);
  Numbers x(Shape{T, 0}), w(Shape{2, 0}), bias(Shape{2}, {3, 4}), y = poisoned(Shape{T, 2});
  linear(y.view(), x.view(), w.view(), bias.view());
  for (std::int64_t t = 0; t < T; ++t) CHECK((y.row(t)[0] == 3 && y.row(t)[1] == 4));
}

/// As it is used, and in the form for every processor, which is another one where the processor multiplies bfloat16 itself.
using RoundedForm = void (*)(Tensor, ConstTensor, ConstTensor, ConstTensor);
constexpr RoundedForm kRoundedForms[] = {linear_rounded, linear_rounded_portably};

TEST_CASE("linear_rounded agrees with double precision of rounded operands, for every type of weight") {
  const RoundedForm form = kRoundedForms[GENERATE(0, 1)];
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const std::int64_t T = GENERATE(1, 2, 7, 8, 9, 25, 63, 130);
  const auto [in, out] = GENERATE(table<std::int64_t, std::int64_t>({{60, 7}, {1, 1}, {64, 300}, {333, 65}, {32, 1}}));
  Random random(static_cast<std::uint64_t>(100 * T + in));
  const Weight weight(dtype, out, in, random);
  const Numbers x = random.uniform({T, in}), bias = random.uniform({out});
  const bool biased = GENERATE(false, true);
  INFO("x [" << T << ", " << in << "], weight [" << out << ", " << in << "] of " << name_of(dtype) << (biased ? ", biased" : ""));

  Numbers wide_x = poisoned({T, in + 5}), wide_y = poisoned({T, out + 2});
  for (std::int64_t t = 0; t < T; ++t) std::copy_n(x.row(t), in, wide_x.row(t) + 3);
  form(wide_y.view().columns(1, {out}), wide_x.view().columns(3, {in}), weight.view(), biased ? bias.view() : ConstTensor());

  Numbers y(Shape{T, out});
  bool untouched = true;
  for (std::int64_t t = 0; t < T; ++t) {
    std::copy_n(wide_y.row(t) + 1, out, y.row(t));
    untouched = untouched && std::isnan(wide_y.row(t)[0]) && std::isnan(wide_y.row(t)[out + 1]);
  }
  CHECK(untouched);
  CHECK(relative_error(y.values, product(x, weight, out, biased ? &bias : nullptr, to_bfloat16)) < 1e-5);
}

TEST_CASE("linear_rounded rounds to the nearest, ties to even, and keeps what is not finite") {
  const RoundedForm form = kRoundedForms[GENERATE(0, 1)];
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const float infinity = std::numeric_limits<float>::infinity();
  // Between 1 and the next bfloat16, 1 + 2⁻⁷: below, at and above the middle; the middle above an odd one; the largest float.
  Numbers x(Shape{12, 1}, {1, 1 + 0x1.FEp-9F, 1 + 0x1p-8F, 1 + 0x1.02p-8F, 1 + 0x1.8p-7F, -1 - 0x1p-8F, 3.4028235e38F, infinity, -infinity,
                           std::nanf(""), 0, -2.5F});
  const float expected[] = {1, 1, 1, 1 + 0x1p-7F, 1 + 0x1p-6F, -1, infinity, infinity, -infinity, std::nanf(""), 0, -2.5F};
  const float one = 1;
  const std::uint16_t rounded_one = 0x3F80;
  const ConstTensor weight(dtype == DType::f32 ? static_cast<const void*>(&one) : &rounded_one, dtype, Shape{1, 1});
  const std::int64_t T = GENERATE(12, 1);
  for (std::int64_t t = 0; t < 12; t += T) {
    Numbers y = poisoned(Shape{T, 1});
    form(y.view(), x.view().slice(t, T), weight, {});
    for (std::int64_t i = 0; i < T; ++i) {
      INFO(x[t + i]);
      CHECK((std::isnan(expected[t + i]) ? std::isnan(y[i]) : y[i] == expected[t + i]));
    }
  }
}

TEST_CASE("linear_rounded: a row does not depend on the number of threads, and nothing is left of a call before") {
  const RoundedForm form = kRoundedForms[GENERATE(0, 1)];
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const std::int64_t T = GENERATE(1, 7, 63, 300), out = 2600, in = 260;
  Random random(8);
  const Weight weight(dtype, out, in, random);
  const Numbers x = random.uniform({T, in}), poison(Shape{T, in}, std::nanf(""));
  std::vector<Numbers> y;
  for (int threads : {1, 2, 3}) {
    const ThreadLimit limit(threads);
    y.push_back(poisoned({T, out}));
    form(y.back().view(), poison.view(), weight.view(), {});
    CHECK(std::isnan(y.back().values.front()));
    form(y.back().view(), x.view(), weight.view(), {});
  }
  CHECK(y[0].values == y[1].values);
  CHECK(y[0].values == y[2].values);
  CHECK(relative_error(y[0].values, product(x, weight, out, nullptr, to_bfloat16)) < 1e-5);
}

TEST_CASE("linear_rounded: both forms are near each other, and refuse what does not fit") {
  const std::int64_t T = GENERATE(5, 40);
  Random random(11);
  const Weight weight(DType::bf16, 70, 300, random);
  const Numbers x = random.uniform({T, 300});
  Numbers used = poisoned({T, 70}), portable = poisoned({T, 70}), none(Shape{0, 300}), nothing(Shape{0, 70});
  linear_rounded(used.view(), x.view(), weight.view());
  linear_rounded_portably(portable.view(), x.view(), weight.view());
  CHECK(relative_error(used.values, portable.values) < 1e-6);
  CHECK_THROWS_AS(linear_rounded(nothing.view(), x.view(), weight.view()), std::invalid_argument);
  linear_rounded(nothing.view(), none.view(), weight.view());
  if (bfloat16_instructions() == nullptr) WARN("this processor, or this build, has no products of bfloat16: one form is tested");
}

TEST_CASE("embed takes rows of the table and refuses foreign ids") {
  Numbers table(Shape{3, 2}, {1, 2, 3, 4, 5, 6}), y = poisoned(Shape{2, 2});
  const std::int32_t ids[] = {2, 0}, beyond[] = {0, 3}, negative[] = {-1, 0};
  embed(y.view(), table.view(), ids);
  CHECK(y.values == std::vector<float>{5, 6, 1, 2});
  CHECK_THROWS_AS(embed(y.view(), table.view(), beyond), std::out_of_range);
  CHECK_THROWS_AS(embed(y.view(), table.view(), negative), std::out_of_range);
}

TEST_CASE("gemm: all transpositions, leading dimensions, alpha and beta") {
  const auto [m, n, k] = GENERATE(table<std::int64_t, std::int64_t, std::int64_t>(
      {{1, 1, 1}, {3, 4, 5}, {16, 16, 16}, {1, 40, 33}, {37, 1, 20}, {65, 70, 61}, {4, 4, 0}}));
  const bool transpose_a = GENERATE(false, true), transpose_b = GENERATE(false, true);
  const float alpha = GENERATE(1.0F, -0.5F), beta = GENERATE(0.0F, 1.0F, 2.0F);
  Random random(10);
  const std::int64_t lda = (transpose_a ? m : k) + 2, ldb = (transpose_b ? k : n) + 1, ldc = n + 3;
  const Numbers a = random.uniform({transpose_a ? k : m, lda}), b = random.uniform({transpose_b ? n : k, ldb});
  Numbers c = beta == 0 ? poisoned({m, ldc}) : random.uniform({m, ldc});
  const Numbers before = c;
  gemm({m, n, k, a.values.data(), lda, transpose_a, b.values.data(), ldb, transpose_b, c.values.data(), ldc, alpha, beta});
  std::vector<double> truth, result;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < ldc; ++j) {
      if (j >= n) {
        CHECK(std::memcmp(c.row(i) + j, before.row(i) + j, sizeof(float)) == 0);
        continue;
      }
      double sum = beta == 0 ? 0 : static_cast<double>(beta) * before.row(i)[j];
      for (std::int64_t l = 0; l < k; ++l) {
        sum += static_cast<double>(alpha) * (transpose_a ? a.row(l)[i] : a.row(i)[l]) * (transpose_b ? b.row(j)[l] : b.row(l)[j]);
      }
      truth.push_back(sum);
      result.push_back(c.row(i)[j]);
    }
  }
  CHECK(relative_error(result, truth) < 1e-5);
}

TEST_CASE("stream_read adds up all whole words, however many threads read") {
  std::vector<std::uint64_t> words(100'003);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < words.size(); ++i) sum += words[i] = i * 0x9E3779B97F4A7C15ULL;
  CHECK(stream_read(words.data(), words.size() * 8) == sum);
  CHECK(stream_read(words.data(), 7) == 0);
  CHECK(std::string(instruction_set()).size() > 2);
}

}  // namespace statescope::linear_test

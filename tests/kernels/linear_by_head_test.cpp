#include "kernels/ops/linear_by_head.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "kernels/ops/linear.h"
#include "tests/kernels/memory_cases.h"

namespace statescope::linear_by_head_test {
using namespace statescope::testing;

namespace {

/// A weight of 16 or 32 bits whose rows lie apart.
struct Weight {
  std::vector<std::uint16_t> bits;
  Numbers wide;
  std::int64_t rows, columns;
  DType dtype;

  Weight(std::int64_t rows_, std::int64_t columns_, DType dtype_) : rows(rows_), columns(columns_), dtype(dtype_) {
    Random random(3);
    wide = random.uniform({rows, columns + 3});
    for (float& x : wide.values) {
      std::uint32_t word = 0;
      std::memcpy(&word, &x, sizeof word);
      // float16 of the same bits as bfloat16 is another number: read back below.
      bits.push_back(static_cast<std::uint16_t>(dtype == DType::f16 ? (word >> 16 & 0x8000) | (word >> 13 & 0x3BFF) : word >> 16));
    }
    for (std::int64_t r = 0; dtype != DType::f32 && r < rows; ++r) widen_row(wide.row(r), view(), r);
  }
  ConstTensor view() const {
    return dtype == DType::f32 ? ConstTensor(wide.view().data, dtype, {rows, columns}, columns + 3)
                               : ConstTensor(bits.data(), dtype, {rows, columns}, columns + 3);
  }
};

void check(std::int64_t T, std::int64_t H, std::int64_t m, std::int64_t n, DType dtype, bool transposed) {
  CAPTURE(T, H, m, n, name_of(dtype), transposed);
  const Weight weight(H * m, n, dtype);
  const std::int64_t in = transposed ? m : n, out = transposed ? n : m;
  Random random(5);
  const Numbers x = random.uniform({T * H, in + 5});
  Numbers y = poisoned({T * H, out + 2});
  const ConstTensor x_view(x.view().columns(2, {in}));
  linear_by_head({.y = y.view().columns(1, {out}), .x = x_view, .weight = weight.view(), .heads = H, .transposed = transposed});
  std::vector<double> truth;
  std::vector<float> found;
  for (std::int64_t row = 0; row < T * H; ++row) {
    for (std::int64_t o = 0; o < out; ++o) {
      double sum = 0;
      for (std::int64_t i = 0; i < in; ++i) {
        const std::int64_t r = row % H * m + (transposed ? i : o), c = transposed ? o : i;
        sum += static_cast<double>(weight.wide.row(r)[c]) * x.row(row)[2 + i];
      }
      truth.push_back(sum);
      found.push_back(y.row(row)[1 + o]);
    }
    CHECK(std::isnan(y.row(row)[0]));
    CHECK(std::isnan(y.row(row)[out + 1]));
  }
  CHECK(relative_error(found, truth) <= 1e-6);
}

}  // namespace

TEST_CASE("linear by head: every head has rows of its own, or their transpose") {
  for (const bool transposed : {false, true}) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      for (const std::int64_t T : {0, 1, 3, 4, 5, 70}) {
        check(T, 3, 7, 21, dtype, transposed);
        check(T, 2, 33, 64, dtype, transposed);
        check(T, 1, 1, 1, dtype, transposed);
      }
    }
  }
  check(1, 16, 128, 512, DType::bf16, true);  // over the cores
  check(1, 16, 128, 512, DType::bf16, false);
}

TEST_CASE("linear by head: complaints name the operand, what was found and what was expected") {
  Numbers weight({6, 5}), x({4, 5}), y({4, 3});
  const LinearByHead good{.y = y.view(), .x = x.view(), .weight = weight.view(), .heads = 2};
  const auto complaint = [&](auto&& spoil) {
    LinearByHead op = good;
    spoil(op);
    return complaint_of([&] { linear_by_head(op); });
  };
  CHECK(complaint([](auto&) {}).empty());
  CHECK(complaint([](auto& op) { op.heads = 4; }) == "linear_by_head: weight: found [6, 5], expected rows for each of 4 heads");
  CHECK(complaint([](auto& op) { op.transposed = true; }).find("x: found float32 [4, 5], expected float32 [4, 3]") != std::string::npos);
  CHECK(complaint([](auto& op) { op.x = op.x.slice(0, 3); }).find("x: found 3 rows") != std::string::npos);
  CHECK(complaint([](auto& op) { op.y = op.y.slice(0, 2); }).find("y: found float32 [2, 3]") != std::string::npos);
  CHECK(complaint([](auto& op) { op.weight.dtype = DType::f8; }).find("weight: found float8") != std::string::npos);
}

}  // namespace statescope::linear_by_head_test

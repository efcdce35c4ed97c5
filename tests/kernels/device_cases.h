// One operation on two backends: the same operands on each, and how far apart what they leave behind is.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "kernels/device.h"
#include "tests/catch.h"
#include "tests/kernels/random_tensors.h"

namespace statescope::testing {

/// Null where there is no device; the running test case then says so.
inline std::shared_ptr<Backend> cuda_backend(Precision precision = Precision::float32) {
  static std::string reason;
  static const auto make = [](Precision wanted) -> std::shared_ptr<Backend> {
    try {
      return make_backend("cuda", 0, wanted);
    } catch (const DeviceError& error) {
      reason = error.what();
      return nullptr;
    }
  };
  static const std::shared_ptr<Backend> exact = make(Precision::float32), rounded = make(Precision::bfloat16);
  const std::shared_ptr<Backend>& backend = precision == Precision::float32 ? exact : rounded;
  if (!backend) WARN("skipped: no CUDA device (" << reason << ")");
  return backend;
}

/// The same, of nobody else's.
inline std::shared_ptr<Backend> own_cuda_backend() {
  try {
    return make_backend("cuda", 0, Precision::float32);
  } catch (const DeviceError& error) {
    WARN("skipped: no CUDA device (" << error.what() << ")");
    return nullptr;
  }
}

/// The operands of one call on one backend. Each lies in a larger piece of memory, with a row before, a row behind, and `margin` numbers on
/// both sides of its rows: all NaN, none of them to be read or written.
class Side {
 public:
  Side(Backend& backend, std::int64_t margin) : backend_(backend), margin_(margin), workspace_(backend) {}

  Backend* operator->() { return &backend_; }
  Workspace& workspace() { return workspace_; }

  ConstTensor in(const Numbers& x) { return place(x.view(), margin_, false); }
  ConstTensor in(const std::vector<std::int32_t>& x, const Shape& shape) { return place({x.data(), DType::i32, shape}, margin_, false); }
  Tensor out(const Shape& shape) { return place(unwritten(shape).view(), margin_, true); }
  Tensor inout(const Numbers& x) { return place(x.view(), margin_, true); }
  Tensor out_i32(const Shape& shape) {
    const std::vector<std::int32_t> unwritten(static_cast<std::size_t>(shape.size()), 12345);
    return place({unwritten.data(), DType::i32, shape}, margin_, true);
  }
  /// Of numbers that bf16 holds, in the type in which this side keeps activations.
  ConstTensor activation(const Numbers& x) { return place(rounded(x).view(), margin_, false, true); }
  Tensor activation_out(const Shape& shape) { return place(unwritten(shape).view(), margin_, true, true); }
  Tensor activation_inout(const Numbers& x) { return place(rounded(x).view(), margin_, true, true); }
  /// Rows that follow each other without a gap: states, caches, small weights.
  ConstTensor whole(const Numbers& x) { return place(x.view(), 0, false); }
  Tensor out_whole(const Shape& shape) { return place(unwritten(shape).view(), 0, true); }
  Tensor inout_whole(const Numbers& x) { return place(x.view(), 0, true); }
  /// `rows` rows that are all x [1, ...].
  ConstTensor repeated(const Numbers& x, std::int64_t rows) {
    ConstTensor view = in(x);
    view.shape[0] = rows;
    view.stride = 0;
    return view;
  }
  /// A weight of a checkpoint; the host's memory must outlive this.
  ConstTensor weight(ConstTensor host) { return backend_.adopt(host, owners_.emplace_back()); }

  /// Checks what this side did against what `truth` did.
  void compare(const Side& truth, double tolerance) const {
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      INFO((operands_[i].written ? "result, operand " : "operand ") << i << ", " << operands_[i].shape.to_string());
      compare(operands_[i], bits(operands_[i]), truth.bits(truth.operands_[i]), tolerance);
    }
  }

 private:
  using Bits = std::vector<std::int32_t>;  // of float32 or int32 numbers
  struct Operand {
    Buffer memory;
    Shape shape;
    DType dtype;
    std::int64_t margin, rows, row_size;
    Bits before;
    bool written;
    DType kept;  // the type on the device, where `dtype` is that of the bits

    Shape image() const { return {rows + 2, row_size + 2 * margin}; }
    std::int64_t width() const { return row_size + 2 * margin; }
    std::size_t at(std::int64_t row, std::int64_t i) const { return static_cast<std::size_t>((row + 1) * width() + margin + i); }
  };

  /// NaN of bits that no arithmetic gives: a result that is NaN tells that it was written.
  static Numbers unwritten(const Shape& shape) {
    Numbers numbers(shape);
    constexpr std::int32_t nobodys_nan = 0x7FC0BAD1;
    for (float& x : numbers.values) std::memcpy(&x, &nobodys_nan, sizeof x);
    return numbers;
  }
  /// To the nearest number of bf16, ties to even.
  static Numbers rounded(Numbers x) {
    for (float& number : x.values) {
      if (!std::isfinite(number)) continue;
      const auto bits = std::bit_cast<std::uint32_t>(number);
      number = std::bit_cast<float>((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000);
    }
    return x;
  }
  Tensor place(ConstTensor host, std::int64_t margin, bool written, bool activation = false) {
    if (host.shape.rank() == 1) margin = 0;
    Operand& x = operands_.emplace_back(Operand{{}, host.shape, host.dtype, margin, host.rows(), host.row_size(), {}, written, host.dtype});
    x.before.assign(static_cast<std::size_t>(x.image().size()), std::bit_cast<std::int32_t>(std::nanf("")));
    for (std::int64_t row = 0; row < x.rows && x.row_size > 0; ++row) {
      std::memcpy(&x.before[x.at(row, 0)], static_cast<const std::int32_t*>(host.data) + row * x.row_size,
                  static_cast<std::size_t>(x.row_size) * sizeof(std::int32_t));
    }
    x.memory = backend_.allocate(x.before.size() * sizeof(std::int32_t));
    backend_.upload(Tensor(x.memory.get(), x.dtype, x.image()), ConstTensor(x.before.data(), x.dtype, x.image()));
    constexpr std::int64_t many_rows = 1 << 10;
    if (activation) keep_as(x, backend_.activation_type(many_rows));
    return {static_cast<char*>(x.memory.get()) + x.at(0, 0) * size_of(x.kept), x.kept, x.shape, x.width()};
  }
  void keep_as(Operand& x, DType type) {
    if (type == x.dtype) return;
    const Buffer exact = std::exchange(x.memory, backend_.allocate(x.before.size() * size_of(type)));
    backend_.copy(Tensor(x.memory.get(), type, x.image()), ConstTensor(exact.get(), x.dtype, x.image()));
    x.kept = type;
    x.before = bits(x);
  }

  Bits bits(const Operand& x) const {
    Bits now(x.before.size());
    Buffer exact = x.memory;
    if (x.kept != x.dtype) {
      exact = backend_.allocate(now.size() * size_of(x.dtype));
      backend_.copy(Tensor(exact.get(), x.dtype, x.image()), ConstTensor(x.memory.get(), x.kept, x.image()));
    }
    backend_.download(Tensor(now.data(), x.dtype, x.image()), ConstTensor(exact.get(), x.dtype, x.image()));
    return now;
  }

  static bool same_row(const Operand& x, const Bits& a, const Bits& b, std::int64_t row) {
    return x.row_size == 0 || std::equal(&a[x.at(row, 0)], &a[x.at(row, 0)] + x.row_size, &b[x.at(row, 0)]);
  }

  /// Rows that the truth left as they were must have the same bits; so must all that does not belong to the operand.
  static void compare(const Operand& x, const Bits& found, const Bits& truth, double tolerance) {
    Bits outside_before = x.before, outside_found = found;
    std::int64_t touched = 0;
    for (std::int64_t row = 0; row < x.rows; ++row) {
      if (same_row(x, truth, x.before, row) && !same_row(x, found, x.before, row)) ++touched;
      for (std::int64_t i = 0; i < x.row_size; ++i) outside_before[x.at(row, i)] = outside_found[x.at(row, i)] = 0;
    }
    CHECK(outside_found == outside_before);
    CHECK(touched == 0);
    if (!x.written) return;
    const auto [error, row, i] = largest_difference(x, found, truth);
    if (error <= tolerance) return;
    const auto number = [&](const Bits& numbers) {
      const std::int32_t n = numbers[x.at(row, i)];
      return x.dtype == DType::i32 ? static_cast<double>(n) : static_cast<double>(std::bit_cast<float>(n));
    };
    INFO("row " << row << ", number " << i << ": " << number(found) << ", expected " << number(truth));
    const double maximal_relative_error = error;
    CHECK(maximal_relative_error <= tolerance);
  }

  struct Difference {
    double error = 0;
    std::int64_t row = 0, i = 0;
  };
  /// Of a number the difference over its size, or over the root mean square of all finite ones where that is larger. Infinite for a NaN or
  /// an infinity that is none in the truth, and for unequal integers.
  static Difference largest_difference(const Operand& x, const Bits& found, const Bits& truth) {
    const double typical = root_mean_square(x, truth);
    Difference largest;
    for (std::int64_t row = 0; row < x.rows; ++row) {
      for (std::int64_t i = 0; i < x.row_size; ++i) {
        const double error = difference(x.dtype, found[x.at(row, i)], truth[x.at(row, i)], typical);
        if (error > largest.error) largest = {error, row, i};
      }
    }
    return largest;
  }
  static double difference(DType dtype, std::int32_t found_bits, std::int32_t truth_bits, double typical) {
    const double infinity = std::numeric_limits<double>::infinity();
    if (found_bits == truth_bits) return 0;
    if (dtype == DType::i32) return infinity;
    const double found = std::bit_cast<float>(found_bits), truth = std::bit_cast<float>(truth_bits);
    if (found == truth || (std::isnan(found) && std::isnan(truth))) return 0;
    if (!std::isfinite(found) || !std::isfinite(truth)) return infinity;
    return std::abs(found - truth) / std::max({std::abs(truth), typical, 1e-30});
  }
  static double root_mean_square(const Operand& x, const Bits& numbers) {
    double squares = 0, count = 0;
    for (std::int64_t row = 0; row < x.rows; ++row) {
      for (std::int64_t i = 0; i < x.row_size; ++i) {
        const double number = std::bit_cast<float>(numbers[x.at(row, i)]);
        if (!std::isfinite(number)) continue;
        squares += number * number;
        ++count;
      }
    }
    return count > 0 ? std::sqrt(squares / count) : 0;
  }

  Backend& backend_;
  std::int64_t margin_;
  Workspace workspace_;
  std::vector<Operand> operands_;
  std::vector<Buffer> owners_;
};

/// Bits of plausible weights, of any float type.
struct StoredWeight {
  DType dtype;
  Shape shape;
  std::vector<float> floats;
  std::vector<std::uint16_t> halves;

  StoredWeight(Random& random, DType dtype_, const Shape& shape_) : dtype(dtype_), shape(shape_) {
    if (dtype == DType::f32) floats = random.uniform(shape).values;
    for (std::int64_t i = 0; dtype != DType::f32 && i < shape.size(); ++i) {
      const std::int64_t one = dtype == DType::f16 ? 0x3C00 : 0x3F80, sign = random.below(2) << 15;
      halves.push_back(static_cast<std::uint16_t>(sign | (one - random.below(dtype == DType::f16 ? 0x1000 : 0x200))));
    }
  }
  ConstTensor view() const { return {floats.empty() ? static_cast<const void*>(halves.data()) : floats.data(), dtype, shape}; }
};
inline const std::vector<DType> weight_types = {DType::f32, DType::f16, DType::bf16};

/// Runs cases on the CPU and on the device; one that fails says by how much, and the next one follows.
class Comparison {
 public:
  explicit Comparison(Precision precision = Precision::float32) : device_(cuda_backend(precision)) {}
  /// False where there is no device.
  explicit operator bool() const { return device_ != nullptr; }

  /// `run(Side&)` places operands and calls one operation; with contiguous rows, then with `apart` numbers on both sides of each.
  template <class Run>
  void operator()(const std::string& name, const Run& run, double tolerance = 1e-5, std::int64_t apart = 3) const {
    for (const std::int64_t margin : {std::int64_t{0}, apart}) {
      INFO(name << (margin > 0 ? ", rows apart" : ""));
      try {
        Side truth(*cpu_, margin), found(*device_, margin);
        run(truth);
        run(found);
        found.compare(truth, tolerance);
      } catch (const std::exception& error) {
        FAIL_CHECK(error.what());
      }
    }
  }

 private:
  std::shared_ptr<Backend> cpu_ = make_cpu_backend(), device_;
};

}  // namespace statescope::testing

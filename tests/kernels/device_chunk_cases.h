// What the tests of the chunk forms on a device share: bfloat16 products, so results are compared by the norm of their difference.
#pragma once

#include <bit>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "tests/kernels/device_cases.h"
#include "tests/kernels/memory_cases.h"

namespace statescope::testing {

constexpr double bf16_rounding = 1e-2;

/// Decays are drawn from [low, high]; where it is `broken` every fifth is −1100 and every eleventh −∞.
struct Decay {
  const char* name;
  float low, high;
  bool broken = false;

  Numbers draw(Random& random, const Shape& shape) const {
    Numbers log_decay = random.uniform(shape, low, high);
    for (std::size_t i = 0; broken && i < log_decay.values.size(); ++i) {
      if (i % 5 == 2) log_decay.values[i] = -1100;
      if (i % 11 == 7) log_decay.values[i] = -std::numeric_limits<float>::infinity();
    }
    return log_decay;
  }
};
constexpr Decay no_decay{"0", 0, 0}, weak_decay{"-0.001", -0.001F, -0.001F}, mild_decay{"mild", -0.2F, 0},
    broken_decay{"broken", -0.2F, 0, true}, wiping_decay{"-1100", -1100, -1100};

/// Tensors on a device, their rows `gap` numbers apart, with NaN between them. Those of bfloat16 hold the numbers without their lower bits.
class DeviceTensors {
 public:
  DeviceTensors(Backend& backend, std::int64_t gap) : backend_(backend), gap_(gap) {}

  /// Of contiguous float32 tensors of the host; absent stays absent.
  Tensor rows(ConstTensor x, DType type = DType::f32) { return put(x, gap_, type); }
  Tensor whole(ConstTensor x) { return put(x, 0, DType::f32); }
  Tensor indices(const std::vector<std::int32_t>& x, const Shape& shape) {
    return placed(ConstTensor(x.data(), DType::i32, shape), shape, shape.row_size());
  }

  Numbers fetch(const Tensor& x) const {
    const Shape shape{x.rows(), x.stride};
    std::vector<char> image(static_cast<std::size_t>(shape.size()) * size_of(x.dtype));
    backend_.download(Tensor(image.data(), x.dtype, shape), ConstTensor(x.data, x.dtype, shape));
    Numbers result(x.shape);
    for (std::int64_t row = 0; row < x.rows(); ++row) {
      for (std::int64_t i = 0; i < x.row_size(); ++i) {
        const auto bytes = size_of(x.dtype), at = static_cast<std::size_t>(row * x.stride + i) * bytes;
        std::memcpy(reinterpret_cast<char*>(result.row(row) + i) + sizeof(float) - bytes, &image[at], bytes);
      }
    }
    return result;
  }

 private:
  Tensor put(ConstTensor x, std::int64_t gap, DType type) {
    if (!x) return {};
    const std::int64_t width = x.row_size() + gap;
    const auto bytes = size_of(type);
    const float nan = std::nanf("");
    std::vector<char> image(static_cast<std::size_t>(x.rows() * width) * bytes);
    for (std::int64_t row = 0; row < x.rows(); ++row) {
      for (std::int64_t i = 0; i < width; ++i) {
        const float* const number = i < x.row_size() ? x.f32(row) + i : &nan;
        std::memcpy(&image[static_cast<std::size_t>(row * width + i) * bytes],
                    reinterpret_cast<const char*>(number) + sizeof(float) - bytes, bytes);  // bf16: the upper half
      }
    }
    return placed(ConstTensor(image.data(), type, {x.rows(), width}), x.shape, width);
  }
  Tensor placed(ConstTensor image, const Shape& shape, std::int64_t stride) {
    const Buffer& memory = memory_.emplace_back(backend_.allocate(static_cast<std::size_t>(image.shape.size()) * size_of(image.dtype)));
    backend_.upload(Tensor(memory.get(), image.dtype, image.shape), image);
    return {memory.get(), image.dtype, shape, stride};
  }

  Backend& backend_;
  std::int64_t gap_;
  std::vector<Buffer> memory_;
};

/// As run() of memory_cases.h, on the device; slots of no segment must keep their bits.
template <class Problem>
Result<float> run_on(Backend& backend, const Problem& p, std::int64_t gap, bool in_place) {
  Numbers o = poisoned({p.segments.rows(), p.initial.shape[1], p.initial.shape[3]}),
          final_state = in_place ? p.initial : poisoned(p.initial.shape);
  DeviceTensors device(backend, gap);
  auto op = p.op(final_state, o);
  op.q = device.rows(op.q), op.k = device.rows(op.k), op.v = device.rows(op.v), op.log_decay = device.rows(op.log_decay);
  if constexpr (requires { op.beta; }) op.beta = device.rows(op.beta);
  op.final_state = device.whole(final_state.view()), op.o = device.rows(o.view());
  op.initial_state = in_place ? op.final_state : device.whole(p.initial.view());
  Problem::apply_on(backend, op);
  Numbers found = device.fetch(op.final_state);
  for (std::int64_t slot = 0; slot < p.segments.slots; ++slot) {
    if (p.segments.owns(slot)) continue;
    const auto size = static_cast<std::size_t>(found.shape.row_size());
    CHECK(same_bits({found.row(slot), size}, {final_state.row(slot), size}));
    std::copy_n(p.initial.row(slot), size, found.row(slot));
  }
  return {device.fetch(op.o).values, found.values};
}

/// Without the lower bits, so that bfloat16 holds them.
inline void shorten(std::initializer_list<Numbers*> operands) {
  for (Numbers* x : operands) {
    for (float& number : x->values) number = std::bit_cast<float>(std::bit_cast<std::uint32_t>(number) & 0xFFFF0000U);
  }
}

/// apply(op) with q, k, v and o of bfloat16, their rows `gap` numbers apart.
template <class Problem, class Apply>
Result<float> run_in_bf16(Backend& backend, const Problem& p, std::int64_t gap, const Apply& apply) {
  Numbers o = poisoned({p.segments.rows(), p.initial.shape[1], p.initial.shape[3]}), final_state = poisoned(p.initial.shape);
  DeviceTensors device(backend, gap);
  auto op = p.op(final_state, o);
  op.q = device.rows(op.q, DType::bf16), op.k = device.rows(op.k, DType::bf16), op.v = device.rows(op.v, DType::bf16);
  op.log_decay = device.rows(op.log_decay), op.o = device.rows(o.view(), DType::bf16);
  if constexpr (requires { op.beta; }) op.beta = device.rows(op.beta);
  op.initial_state = device.whole(p.initial.view()), op.final_state = device.whole(final_state.view());
  apply(op);
  return {device.fetch(op.o).values, device.fetch(op.final_state).values};
}
template <class Problem>
Result<float> run_in_bf16(Backend& backend, const Problem& p, std::int64_t gap) {
  return run_in_bf16(backend, p, gap, [&](const auto& op) { Problem::apply_on(backend, op); });
}

/// What is not finite in one sequence leaves the one before it, which ends within a chunk, as it is.
template <class Problem>
void keep_apart(Backend& backend, const Problem& p, Numbers Problem::*operand) {
  const std::int64_t end = p.segments.view().cu_seqlens[1];
  Problem broken = p;
  (broken.*operand).row(end)[0] = std::numeric_limits<float>::infinity();
  const Result<float> expected = run_in_bf16(backend, p, 0), found = run_in_bf16(backend, broken, 0);
  const auto of_first = [&](const std::vector<float>& numbers, std::int64_t rows, std::int64_t all) {
    return std::span(numbers).first(numbers.size() / static_cast<std::size_t>(all) * static_cast<std::size_t>(rows));
  };
  INFO(p.name());
  CHECK(same_bits(of_first(found.o, end, p.segments.rows()), of_first(expected.o, end, p.segments.rows())));
  CHECK(same_bits(of_first(found.state, 1, p.segments.slots), of_first(expected.state, 1, p.segments.slots)));
}

template <class Problem>
void compare_chunks(Backend& backend, const Problem& p, double tolerance = bf16_rounding) {
  const Result<float> truth = run(p, 64);
  for (const std::int64_t gap : {0, 3}) {
    for (const bool in_place : {false, true}) {
      INFO(p.name() << (gap > 0 ? ", rows apart" : "") << (in_place ? ", in place" : ""));
      check_close(run_on(backend, p, gap, in_place), truth, tolerance);
    }
  }
}

inline Packed mixed_lengths() { return Packed({5, 0, 1, 70, 600, 17}, {6, 2, 0, 3, 7, 5}, 8); }
inline Packed many_segments() { return Packed({256, 0, 0, 257, 64, 1, 511, 128}, {}, 8); }

}  // namespace statescope::testing

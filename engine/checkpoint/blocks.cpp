#include "engine/checkpoint/blocks.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/checkpoint/file.h"
#include "kernels/ops/linear.h"

namespace statescope {
namespace {

constexpr std::int64_t block_bytes = 8 << 20;

/// Drops the `shift` lowest bits, to nearest, ties to even. A carry runs into the exponent, as it should.
std::uint32_t round_off(std::uint32_t bits, unsigned shift) {
  const std::uint32_t half = (1u << (shift - 1)) - 1 + (bits >> shift & 1u);
  return (bits + half) >> shift;
}

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);  // a quiet NaN, whatever its payload loses
  return static_cast<std::uint16_t>(round_off(bits, 16));
}

float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

std::uint16_t to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
  if (magnitude >= 0x47800000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // 2^16 and beyond
  if (magnitude < 0x33000000u) return static_cast<std::uint16_t>(sign);             // below 2^-25: half the smallest denormal
  if (magnitude >= 0x38800000u) return static_cast<std::uint16_t>(sign | round_off(magnitude - (112u << 23), 13));
  // A denormal is a multiple of 2^-24: the mantissa with its hidden bit, shifted by what the exponent lacks.
  const std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  return static_cast<std::uint16_t>(sign | round_off(mantissa, 126 - (magnitude >> 23)));
}

float from_f16(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16, exponent = half >> 10 & 0x1fu, mantissa = half & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent > 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

float load_float(const std::byte* from, DType dtype) {
  if (dtype == DType::f32) return load<float>(from);
  return dtype == DType::bf16 ? from_bf16(load<std::uint16_t>(from)) : from_f16(load<std::uint16_t>(from));
}

void store_float(float value, std::byte* to, DType dtype) {
  if (dtype == DType::f32) {
    std::memcpy(to, &value, sizeof value);
  } else {
    const std::uint16_t bits = dtype == DType::bf16 ? to_bf16(value) : to_f16(value);
    std::memcpy(to, &bits, sizeof bits);
  }
}

/// Reads from every page. Those of a file that became shorter are missed here, not by the operating system when it is to write them.
void touch(std::span<const std::byte> bytes) {
  constexpr std::size_t page = 4096;
  for (std::size_t at = 0; at < bytes.size(); at += page) {
    [[maybe_unused]] const volatile std::byte read = bytes[at];
  }
}

}  // namespace

DType written_dtype(const StoredTensor& tensor, const WriteOptions& options) {
  if (options.dtype && tensor.shape.size() >= 2) return *options.dtype;
  return tensor.dtype == DType::f8 ? DType::f32 : tensor.dtype;
}

void convert(const std::byte* source, DType from, std::byte* target, DType to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) store_float(load_float(source + i * size_of(from), from), target + i * size_of(to), to);
}

BlockWriter::BlockWriter(const Checkpoint& checkpoint, const WriteOptions& options) : checkpoint_(checkpoint), options_(options) {}

/// Rows of a float8 matrix, as float32.
std::span<const std::byte> BlockWriter::widened(const StoredTensor& tensor, std::int64_t first, std::int64_t count) {
  const ConstTensor matrix = tensor.matrix();
  widened_.resize(static_cast<std::size_t>(count * matrix.row_size()));
  for (std::int64_t i = 0; i < count; ++i) widen_row(widened_.data() + i * matrix.row_size(), matrix, first + i);
  return std::as_bytes(std::span(widened_));
}

void BlockWriter::write_tensor(const StoredTensor& tensor, DType dtype, const Write& write) {
  const std::int64_t rows = tensor.shape.empty() ? 1 : tensor.shape[0];
  const std::int64_t row_size = tensor.size() / rows;
  const std::int64_t row_bytes = tensor.bytes() / rows;
  const std::int64_t step = std::max<std::int64_t>(1, block_bytes / row_bytes);
  for (std::int64_t first = 0; first < rows; first += step) {
    const std::int64_t count = std::min(step, rows - first);
    const auto numbers = static_cast<std::size_t>(count * row_size);
    std::span<const std::byte> bytes(tensor.data + first * row_bytes, static_cast<std::size_t>(count * row_bytes));
    if (dtype != tensor.dtype) {
      if (tensor.dtype == DType::f8) bytes = widened(tensor, first, count);
      rounded_.resize(numbers * size_of(dtype));
      convert(bytes.data(), tensor.dtype == DType::f8 ? DType::f32 : tensor.dtype, rounded_.data(), dtype, numbers);
      bytes = rounded_;
    }
    touch(bytes);
    checkpoint_.require_whole_files();
    write(first, count, bytes);
    done_ += count * row_bytes;
    if (options_.progress && !options_.progress(static_cast<double>(done_) / static_cast<double>(checkpoint_.bytes())))
      fail(checkpoint_.path, "writing was cancelled");
  }
}

}  // namespace statescope

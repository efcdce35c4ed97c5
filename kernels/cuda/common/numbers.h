// Operands that are float32 or bf16, as their tensor says: kernels compute in float32 whatever they read and write.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "kernels/cuda/common/cuda.h"

namespace statescope::cuda {

/// Two bf16 numbers, the first in the lower half.
__device__ inline float first_of(unsigned pair) { return __uint_as_float(pair << 16); }
__device__ inline float second_of(unsigned pair) { return __uint_as_float(pair & 0xFFFF0000U); }

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(__half x) { return __half2float(x); }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

/// `Width` neighbours of a row.
template <int Width>
struct Pack {
  float at[Width];
};

/// Rows of float32 or bf16 numbers: row t begins at number t · stride. The type is the same for a whole launch, so no warp diverges.
template <class Byte>
struct Numbers {
  Byte* data = nullptr;
  std::int64_t stride = 0;
  bool bf16 = false;

  Numbers() = default;
  /// Throws std::logic_error for numbers of another type.
  explicit Numbers(BasicTensor<Byte> x) : data(x.data), stride(x.stride), bf16(x.dtype == DType::bf16) {
    if (x.data != nullptr && !bf16) x.f32();
  }
  __host__ __device__ explicit operator bool() const { return data != nullptr; }

  /// Numbers i to i + Width of row t.
  template <int Width>
  __device__ Pack<Width> load(std::int64_t t, std::int64_t i) const {
    return bf16 ? load_as<__nv_bfloat16, Width>(t, i) : load_as<float, Width>(t, i);
  }
  template <int Width>
  __device__ void store(std::int64_t t, std::int64_t i, const Pack<Width>& x) const {
    bf16 ? store_as<__nv_bfloat16, Width>(t, i, x) : store_as<float, Width>(t, i, x);
  }
  /// Whether `width` neighbours of every row may be read at once, beginning at any multiple of `width`.
  bool in_packs(int width) const {
    const std::size_t size = size_of(bf16 ? DType::bf16 : DType::f32),
                      bytes = std::min(most_at_once, static_cast<std::size_t>(width) * size);
    return reinterpret_cast<std::uintptr_t>(data) % bytes == 0 && static_cast<std::size_t>(stride) * size % bytes == 0;
  }
  __device__ float number(std::int64_t t, std::int64_t i) const { return load<1>(t, i).at[0]; }

 protected:
  template <class Number, int Width>
  __device__ Pack<Width> load_as(std::int64_t t, std::int64_t i) const {
    const auto raw = *at<Raw<Number, Width>>(t, i);
    Pack<Width> x;
#pragma unroll
    for (int j = 0; j < Width; ++j) x.at[j] = as_float(raw.at[j]);
    return x;
  }
  template <class Number, int Width>
  __device__ void store_as(std::int64_t t, std::int64_t i, const Pack<Width>& x) const {
    Raw<Number, Width> raw;
#pragma unroll
    for (int j = 0; j < Width; ++j) raw.at[j] = Number(x.at[j]);
    *at<Raw<Number, Width>>(t, i) = raw;
  }

 private:
  static __device__ float as_float(float x) { return x; }
  static __device__ float as_float(__nv_bfloat16 x) { return __bfloat162float(x); }
  static constexpr std::size_t most_at_once = 16;  // bytes
  template <class Number, int Width>
  struct alignas(sizeof(Number) * Width < most_at_once ? sizeof(Number) * Width : most_at_once) Raw {
    using Type = Number;
    Number at[Width];
  };
  template <class Part>
  __device__ auto at(std::int64_t t, std::int64_t i) const {
    using Number = typename Part::Type;
    using Result = std::conditional_t<std::is_const_v<Byte>, const Part, Part>;
    using Element = std::conditional_t<std::is_const_v<Byte>, const Number, Number>;
    return reinterpret_cast<Result*>(static_cast<Element*>(data) + t * stride + i);
  }
};

/// Numbers that are known to be bf16: without a branch, so several loads are in flight at once.
template <class Byte>
struct Bf16Numbers : Numbers<Byte> {
  Bf16Numbers() = default;
  explicit Bf16Numbers(const Numbers<Byte>& x) : Numbers<Byte>(x) {}
  template <int Width>
  __device__ Pack<Width> load(std::int64_t t, std::int64_t i) const {
    return this->template load_as<__nv_bfloat16, Width>(t, i);
  }
  template <int Width>
  __device__ void store(std::int64_t t, std::int64_t i, const Pack<Width>& x) const {
    this->template store_as<__nv_bfloat16, Width>(t, i, x);
  }
};

template <class Byte>
Numbers<Byte> numbers(BasicTensor<Byte> x) {
  return Numbers<Byte>(x);
}

inline bool in_packs(ConstTensor x, int width) { return numbers(x).in_packs(width); }

}  // namespace statescope::cuda

// A view of numbers on some device: what every kernel takes and gives.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace statescope {

/// f8: E4M3 as OCP's FP8 has it, "fn": bias 7, subnormals, largest 448, 0x7F and 0xFF are NaN. Only weights are.
enum class DType : std::uint8_t { f32, f16, bf16, i32, f8 };

constexpr std::size_t size_of(DType dtype) {
  constexpr std::array<std::size_t, 5> sizes{4, 2, 2, 4, 1};
  return sizes[static_cast<std::size_t>(dtype)];
}

constexpr std::string_view name_of(DType dtype) {
  constexpr std::array<std::string_view, 5> names{"float32", "float16", "bfloat16", "int32", "float8"};
  return names[static_cast<std::size_t>(dtype)];
}

/// The extents of a tensor, at most four; axis 0 counts rows (tokens, state slots).
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents) {
    if (extents.size() > extent_.size()) throw std::invalid_argument("Shape: at most four axes");
    for (std::int64_t extent : extents) push_back(extent);
  }

  void push_back(std::int64_t extent) {
    if (rank_ == static_cast<int>(extent_.size())) throw std::invalid_argument("Shape: at most four axes");
    extent_[static_cast<std::size_t>(rank_++)] = extent;
  }
  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return extent_[static_cast<std::size_t>(axis)]; }
  std::int64_t& operator[](int axis) { return extent_[static_cast<std::size_t>(axis)]; }
  /// Numbers in one row, the product of all extents but the first; 0 for the empty shape.
  std::int64_t row_size() const {
    std::int64_t product = rank_ > 0 ? 1 : 0;
    for (int axis = 1; axis < rank_; ++axis) product *= (*this)[axis];
    return product;
  }
  std::int64_t size() const { return rank_ > 0 ? extent_[0] * row_size() : 0; }
  bool operator==(const Shape&) const = default;
  /// "[96, 4, 16]"
  std::string to_string() const {
    std::string text = "[";
    for (int axis = 0; axis < rank_; ++axis) {
      if (axis > 0) text += ", ";
      text += std::to_string((*this)[axis]);
    }
    return text + "]";
  }

 private:
  std::array<std::int64_t, 4> extent_{};
  int rank_ = 0;
};

/// What the numbers of an f8 matrix are multiplied by: W[o, i] = stored[o, i] · values[o / rows][i / columns], values [·, per_row].
struct BlockScales {
  const float* values = nullptr;
  std::int64_t rows = 1, columns = 1, per_row = 1;

  const float* of_row(std::int64_t o) const { return values + o / rows * per_row; }
};

/// A view that owns nothing. Every row (everything after axis 0) is contiguous; successive rows lie `stride` elements apart,
/// so a range of columns is a view as well, and `stride` 0 repeats one row for all. A default-constructed tensor is "absent".
template <class Byte>
struct BasicTensor {
  Byte* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;
  std::int64_t stride = 0;
  const BlockScales* scales = nullptr;  // of an f8 matrix, which is read whole: views of its parts have none

  BasicTensor() = default;
  BasicTensor(Byte* data_, DType dtype_, Shape shape_) : BasicTensor(data_, dtype_, shape_, shape_.row_size()) {}
  BasicTensor(Byte* data_, DType dtype_, Shape shape_, std::int64_t stride_) : data(data_), dtype(dtype_), shape(shape_), stride(stride_) {}
  /// A tensor that may be written is also one that may be read.
  template <class Other>
  requires(std::is_const_v<Byte>&& std::is_same_v<Other, std::remove_const_t<Byte>>) BasicTensor(const BasicTensor<Other>& other)
      : BasicTensor(other.data, other.dtype, other.shape, other.stride) {
    scales = other.scales;
  }

  explicit operator bool() const { return data != nullptr; }
  std::int64_t rows() const { return shape[0]; }
  std::int64_t row_size() const { return shape.row_size(); }
  bool contiguous() const { return rows() <= 1 || stride == row_size(); }

  /// Row `t` as numbers of type T; throws std::logic_error if the tensor holds another type.
  template <class T>
  auto* row(std::int64_t t) const {
    if (dtype != dtype_for<T>()) throw std::logic_error("Tensor: a " + std::string(name_of(dtype)) + " tensor read as another type");
    using Element = std::conditional_t<std::is_const_v<Byte>, const T, T>;
    return static_cast<Element*>(data) + t * stride;
  }
  auto* f32(std::int64_t t = 0) const { return row<float>(t); }
  auto* i32(std::int64_t t = 0) const { return row<std::int32_t>(t); }

  /// Rows [begin, begin + count).
  BasicTensor slice(std::int64_t begin, std::int64_t count) const {
    BasicTensor view = *this;
    view.scales = nullptr;
    view.data = at(begin * stride);
    view.shape[0] = count;
    return view;
  }
  /// Of every row the elements [begin, begin + product(axes)), read as shape [rows, axes...].
  BasicTensor columns(std::int64_t begin, std::initializer_list<std::int64_t> axes) const {
    Shape part{rows()};
    for (std::int64_t extent : axes) part.push_back(extent);
    if (begin < 0 || begin + part.row_size() > row_size()) throw std::logic_error("Tensor: columns outside the row");
    return {at(begin), dtype, part, stride};
  }
  /// The same rows with their elements read as `axes`.
  BasicTensor with_row(std::initializer_list<std::int64_t> axes) const {
    BasicTensor view = columns(0, axes);
    if (view.row_size() != row_size()) throw std::logic_error("Tensor: with_row changes the number of elements");
    return view;
  }

 private:
  template <class T>
  static constexpr DType dtype_for() {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, std::int32_t>);
    return std::is_same_v<T, float> ? DType::f32 : DType::i32;
  }
  Byte* at(std::int64_t element) const {
    using Raw = std::conditional_t<std::is_const_v<Byte>, const char, char>;
    return static_cast<Raw*>(data) + element * static_cast<std::int64_t>(size_of(dtype));
  }
};

using Tensor = BasicTensor<void>;
using ConstTensor = BasicTensor<const void>;

}  // namespace statescope

// bf16 weights in 12 bits each, without loss, for a token's step (decode/), which is bound by their bytes. Nearly all values of a row have
// one of 16 neighbouring exponents: a value keeps its sign, its 7 bits of mantissa, and 4 bits that say which of the 16. The few others are
// exceptions, stored as they are after the row. Included by .cu files alone.
//
// The slices of a row (decode/operation.h) lie apart: first the first slices of all rows, then their second slices, and so on. A slice has
// 48 bytes for every k-block of 32 columns, in the order in which lanes multiply them (decode/consumer.h), then a trailer of 32 bytes: the
// scale of its sums, and its exceptions.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <map>

namespace statescope::cuda {

namespace compact {

constexpr int k_block_columns = 32, k_block_bytes = 48, trailer_bytes = 32;
constexpr int lanes_per_row = 4, warps_per_row = 4;  // each lane has 8 columns of a k-block; each warp has every fourth k-block
constexpr int group_k_blocks = 16,
              half_group_k_blocks = 8;  // k-blocks that warps multiply together; a slice has whole groups, and perhaps half a group
constexpr int lane_bytes = 16,
              row_vector_bytes = lanes_per_row * lane_bytes;  // that a lane loads at once; that the lanes of a row load at once
constexpr int exponents = 16, most_exceptions = 7;            // of a row; of a slice of a row
constexpr int is_exception = 1;                               // set in the offset of an exception, which is even
constexpr unsigned first_exponent = 112;  // what code 0 means: values become 2^−15 … 2, and sums are multiplied by the scale of the row
constexpr unsigned kept_bits = 0x87FF87FF, common_exponent_bits = 0x38003800;

/// Where a slice begins, after so many slices and k-blocks: in bytes for each row of the matrix.
__device__ inline std::int64_t bytes_before(int slices, int blocks) {
  return std::int64_t{blocks} * k_block_bytes + std::int64_t{slices} * trailer_bytes;
}
/// Whether rows of n values, in slices of so many k-blocks, can be compact.
inline bool fits(int n, int k_blocks_per_slice) {
  const int last = n / k_block_columns % k_blocks_per_slice;  // 0: a whole slice
  return n % (half_group_k_blocks * k_block_columns) == 0 && k_blocks_per_slice % half_group_k_blocks == 0 &&
         k_blocks_per_slice >= group_k_blocks && (last == 0 || last >= group_k_blocks);
}

/// Eight values of a lane, 24 bits for each pair: three pairs lie where bf16 has them, but for the upper four bits of their exponents,
/// which hold the bits of the fourth pair.
struct CompactEight {
  unsigned a, b, c;
};

#ifdef __CUDACC__

/// From pairs of bf16 values whose exponents begin at `first_exponent`.
__device__ inline CompactEight packed_eight(uint4 pairs) {
  constexpr unsigned spare = ~kept_bits;
  const unsigned last = pairs.w & kept_bits;
  return {(pairs.x & kept_bits) | (last << 4 & spare), (pairs.y & kept_bits) | (last << 8 & spare),
          (pairs.z & kept_bits) | (__funnelshift_l(last, last, 12) & spare)};
}
/// The bits that all their exponents share. The compiler does not know this value: so masking and adding are one instruction; with two
/// constants it took two.
__device__ inline unsigned common_bits() { return common_exponent_bits * gridDim.z; }
__device__ inline uint4 unpacked_eight(CompactEight x, unsigned common) {
  const unsigned last = (x.a >> 4 & 0x07800780) | common | (x.b >> 8 & 0x00780078) | (__funnelshift_r(x.c, x.c, 12) & 0x80078007);
  return {(x.a & kept_bits) | common, (x.b & kept_bits) | common, (x.c & kept_bits) | common, last};
}

#endif

}  // namespace compact

/// The compact forms of the weights of a stream, made when a product of one row asks for them first. The weights themselves stay, for
/// products of many rows. For one thread at a time.
class CompactWeights {
 public:
  CompactWeights() = default;
  CompactWeights(const CompactWeights&) = delete;
  CompactWeights& operator=(const CompactWeights&) = delete;

  /// This memory holds weights, which nobody writes once products have read them.
  void hold(const void* memory, std::size_t bytes);
  /// This memory is freed, and so are the compact forms of its weights.
  void release(const void* memory, cudaStream_t stream) noexcept;

  /// bf16 weights: `out` rows of `in` values, `row_bytes` apart, in slices of so many k-blocks.
  struct Matrix {
    const char* weight;
    std::int64_t row_bytes;
    int out, in, k_blocks_per_slice;
    bool operator==(const Matrix&) const = default;
  };
  /// The compact form; null where there is none: the weights may change, rows do not fit or have too many exceptions, a graph is being
  /// captured, or memory is short (half of what is free is left alone).
  const char* of(const Matrix& matrix_descriptor, cudaStream_t stream);

 private:
  struct Made {
    Matrix matrix_descriptor;
    std::size_t bytes;
    char* memory;  // null: there is none
  };
  struct Held {
    std::size_t bytes;
    std::map<const char*, Made> made;
  };
  Made make(const Matrix& matrix_descriptor, cudaStream_t stream);
  std::map<const char*, Held> held_;
  std::size_t bytes_ = 0;  // of all compact forms
};

}  // namespace statescope::cuda
